"""The last look at a journal or a log, for everybody who asks while nothing has changed."""

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

View = TypeVar("View")


@dataclass(frozen=True, slots=True)
class Fresh:
    """How new a look must be to do for another question as well."""

    mark: Hashable = None
    """Another one says that something has happened since; None where nobody tells."""
    max_age: float = 0.0


ANEW = Fresh()
"""No look does for another question."""


class Kept(Generic[View]):
    """One view, with what it was looked at for. Who uses it has a lock."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._view: View | None = None
        self._began = 0.0
        self._since = 0.0
        self._mark: Hashable = None

    def does(self, fresh: Fresh, since: float) -> View | None:
        """Return the view where it is new enough and of the same span; else None."""
        age = self._seconds() - self._began
        same = self._mark == fresh.mark and 0 <= since - self._since <= fresh.max_age
        return self._view if same and age < fresh.max_age else None

    def begin(self, fresh: Fresh, since: float) -> None:
        """Forget the view: another look begins, and its age counts from now."""
        self._view = None
        self._began, self._since, self._mark = self._seconds(), since, fresh.mark

    def keep(self, view: View) -> View:
        """Keep what the look has found, and return it."""
        self._view = view
        return view
