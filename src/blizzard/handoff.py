"""What happens to a journaled batch next. Doing it again changes nothing."""

from collections.abc import Callable
from typing import Protocol


class Publisher(Protocol):
    """Hands journaled batches on; says how many Delta commits this process made for it."""

    def publish(self) -> int:
        """Hand on whatever is journaled and not yet handed on."""


class LeaveToPenguin:
    """The journal is the hand-off: penguin reads the entries past the one it committed last."""

    def publish(self) -> int:
        """Do nothing: the entry says it all."""
        return 0


class CommitInline:
    """Commit each batch to the Delta log in this process, right after it is journaled."""

    def __init__(self, commit: Callable[[], int]) -> None:
        self._commit = commit

    def publish(self) -> int:
        """Commit every entry that is not committed yet, also those of an earlier run."""
        return self._commit()
