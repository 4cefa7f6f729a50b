"""The one backoff policy, driven by what the error says of itself. Pure."""

from collections.abc import Callable
from dataclasses import dataclass

from lakebed.errors import LakeError, Whose


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Wait longer after each failure, up to a limit, and never all at the same moment."""

    first_secs: float = 1.0
    factor: float = 2.0
    limit_secs: float = 60.0

    def wait(self, failures: int, random: Callable[[], float]) -> float:
        """Say how long to wait after the n-th failure in a row: half fixed, half by chance."""
        # The exponent is bounded so that a failure that lasts for days cannot overflow a float.
        full = min(self.limit_secs, self.first_secs * self.factor ** min(failures - 1, 60))
        return full * (0.5 + random() / 2)


def can_help(error: BaseException) -> bool:
    """Say whether trying again soon can help; what we do not know is tried again."""
    return error.retryable if isinstance(error, LakeError) else True


def may_mend(error: BaseException) -> bool:
    """Say whether somebody may mend it while we wait: permissions, a full disk, a missing mount."""
    return can_help(error) or (isinstance(error, LakeError) and error.whose is Whose.EXTERNAL)
