"""The backoff policy and the retry loop; errors say whether they are retryable."""

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from lakebed.errors import LakeError, Whose


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Exponential backoff with jitter, up to a limit."""

    first_secs: float = 1.0
    factor: float = 2.0
    limit_secs: float = 60.0

    def wait(self, failures: int, random: Callable[[], float]) -> float:
        """Return the wait after the n-th failure in a row: half fixed, half random."""
        # The exponent is bounded so that a failure that lasts for days cannot overflow a float.
        full = min(self.limit_secs, self.first_secs * self.factor ** min(failures - 1, 60))
        return full * (0.5 + random() / 2)


def can_help(error: BaseException) -> bool:
    """Whether retrying soon can help; unknown errors are retried."""
    return error.retryable if isinstance(error, LakeError) else True


def may_mend(error: BaseException) -> bool:
    """Whether the cause may be fixed while we wait: permissions, a full disk, a missing mount."""
    return can_help(error) or (isinstance(error, LakeError) and error.whose is Whose.EXTERNAL)


def attempts(
    tries: int,
    backoff: Backoff,
    pause: Callable[[float], object],
    *,
    retried: Callable[[], None] = lambda: None,
    never: type[LakeError] | tuple[type[LakeError], ...] = (),
) -> Iterator[AbstractContextManager[None]]:
    """Yield contexts for attempts: each but the last swallows a transient error after a pause.

    A caller that succeeds leaves the loop from within the context. `retried` is called before each
    pause; errors of a type in `never` are raised at once.
    """

    @contextmanager
    def attempt(number: int) -> Iterator[None]:
        try:
            yield
        except LakeError as error:
            if number == tries or not error.retryable or isinstance(error, never):
                raise
            retried()
            pause(backoff.wait(number, random.random))

    return map(attempt, range(1, tries + 1))
