"""Plans that were out of date by the time they were to be carried out. Pure."""

from dataclasses import dataclass

MOST = 3


@dataclass(frozen=True, slots=True)
class RepeatedConflicts:
    """How often in a row plans were overtaken at one and the same version.

    Somebody else was ahead, and at the next look the table is another. Where it is not, what is
    remembered of it is wrong.
    """

    version: int | None = None
    times: int = 0

    def again(self, version: int | None) -> "RepeatedConflicts":
        """Count one more plan, made for a version; None where there was no table."""
        return RepeatedConflicts(version, self.times + 1 if version == self.version else 1)

    @property
    def calls_for_a_fresh_look(self) -> bool:
        """Whether what is remembered is to be forgotten."""
        return self.times > 1

    @property
    def is_hopeless(self) -> bool:
        """Whether even that did not help."""
        return self.times > MOST
