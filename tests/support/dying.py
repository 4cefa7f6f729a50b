"""A store that dies at a chosen call and answers nothing from then on."""

import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from lakebed.storage.store import Store

READS = ("get", "fetch", "head", "part", "objects", "folders", "level")
CHANGES = ("create", "replace", "upload", "move", "delete", "sync")


class Died(BaseException):
    """The process is gone. No `except Exception` may outlive it."""


Files = dict[str, tuple[int, int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The files that were there right before or right after a call of a life."""

    call: int
    change: int
    """Which change the call is; 0 where it only reads."""
    after: bool
    files: Files


@dataclass
class Fate:
    """Which call is the last, counted over all stores of one life."""

    call: int
    after: bool = False
    """Whether the call still reaches the store, and only its answer is lost."""
    changes_only: bool = False
    """Whether only calls that change the store count."""
    calls: int = 0
    changes: int = 0
    died: bool = False
    watched: Path | None = None
    """A folder whose files are looked at around every call."""
    seen: list[Seen] = field(default_factory=list, repr=False)
    lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    @classmethod
    def none(cls) -> "Fate":
        return cls(call=0)

    def look(self, call: int, change: int, *, after: bool) -> None:
        """Remember what a death now would leave."""
        if self.watched is not None:
            with self.lock:
                files = _files(self.watched)
                self.seen.append(Seen(call=call, change=change, after=after, files=files))

    def alone(self, change: int) -> AbstractContextManager[object]:
        """Let one thread change something at a time, in a life that is watched.

        Uploads and hand-offs have threads of their own: what one of them has half done would
        otherwise be seen around the calls of another, or not, as it happens.
        """
        return self.lock if change and self.watched is not None else nullcontext()


def dying(store: Store, fate: Fate) -> Store:
    """Wrap every call of a store, so that the fated one is the last."""

    def wrap(name: str) -> Any:
        original = getattr(store, name)

        def call(*arguments: Any, **named: Any) -> Any:
            if fate.died:
                raise Died
            with fate.lock:
                fate.calls += 1
                fate.changes += name in CHANGES
                number, change = fate.calls, fate.changes if name in CHANGES else 0
            if fate.call and fate.call == (change if fate.changes_only else number):
                fate.died = True
                if fate.after:
                    original(*arguments, **named)
                raise Died
            with fate.alone(change):
                fate.look(number, change, after=False)
                answer = original(*arguments, **named)
                fate.look(number, change, after=True)
            return answer

        return call

    for name in (*READS, *CHANGES):
        setattr(store, name, wrap(name))
    return store


def lives(folder: Path, most: int = 400) -> Iterator[Fate]:
    """Yield a life that nobody ends, and then one for each state that a death in it can leave.

    Each life begins with the files as they are now, at the same place, with the same times.

    Who dies at a call that only reads leaves what a death right before or right after a change
    leaves: the first life shows whether that is so, and which of them leave the same. Where it is
    not so, there is a death at each call; by turns, they are after it.
    """
    kept = folder.with_name(f"{folder.name}.kept")
    shutil.copytree(folder, kept, copy_function=_same)
    before = _files(kept)
    whole = Fate(call=0, watched=folder)
    yield whole
    assert not whole.died
    deaths = _deaths(whole.seen)
    assert 0 < len(deaths) < most, f"{len(deaths)} deaths"
    for fate in deaths:
        assert _files(kept) == before, "a file was written to in its place"
        shutil.rmtree(folder)
        shutil.copytree(kept, folder, copy_function=_same)
        yield fate
        assert fate.died, f"{fate} came to its end"


def in_recovery(first: Fate) -> tuple[Fate, Fate]:
    """Return a death in the recovery from another, and one in the recovery from both.

    By turns, they come at one of the first changes.
    """
    number = first.call
    return (
        Fate(1 + number % 4, after=first.after, changes_only=True),
        Fate(1 + number % 3, after=not first.after, changes_only=True),
    )


def _deaths(seen: Sequence[Seen]) -> list[Fate]:
    changes = [each for each in seen if each.change]
    if len(_states(changes)) == len(_states(seen)):
        # A change may be a part of another: there is a death around each of them.
        left = {id(each) for each in _states(changes)}
        left |= {id(two) for one, two in pairwise(changes) if one.after == two.after}
        deaths = [each for each in changes if id(each) in left]
        return [Fate(each.change, after=each.after, changes_only=True) for each in deaths]
    calls = max(each.call for each in seen)
    return [Fate(number, after=bool(number % 2)) for number in range(1, calls + 1)]


def _states(seen: Sequence[Seen]) -> list[Seen]:
    """Leave out whoever sees what was seen right before."""
    return [*seen[:1], *(two for one, two in pairwise(seen) if one.files != two.files)]


def _same(source: str, target: str) -> None:
    """Link a file: both programs write whole files only. A test may edit its configuration."""
    if source.endswith(".yaml"):
        shutil.copy2(source, target)
    else:
        os.link(source, target)


def _files(folder: Path) -> Files:
    """Look at every file; it is done around every call of a life, so without Path.rglob."""
    places = [f"{place}/{name}" for place, _, names in os.walk(folder) for name in names]
    found = {path: os.stat(path) for path in places}  # noqa: PTH116 - as above
    return {path: (facts.st_ino, facts.st_size, facts.st_mtime_ns) for path, facts in found.items()}
