"""The positions from which the next listing of a source begins. Pure; they affect only cost.

A source is listed in two ways. A *sweep* lists all of it. A *quick listing* lists a few ranges: in
each folder with an arrival within the late window, the names from the first such arrival on; and
the names after the last folder, where new folders appear. The next sweep finds what a quick listing
misses. Whether a file is new is decided by the journal, not here.

A quick listing lists a folder after its `start_after`, which never passes a listed file that is not
done, nor one that arrived within the late window.

A listing that has filled a batch stops. It resumes there once the batch is journaled, and its files
then count as done (`CursorBuilder.resumed`).
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile

from blizzard.model.settings import ListingLimits
from blizzard.model.source.file import IngestedFile
from lakebed.listing.sort import end_of
from lakebed.listing.watermark import Range, folder_and_name, sweep_is_due


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenName:
    """A finished file after its folder's `start_after`."""

    name: IngestedFile
    arrived: float


@dataclass(slots=True)
class FolderCursor:
    """The state of the files directly in one folder, for quick listings."""

    start_after: str = ""
    """The name after which a quick listing lists the folder."""
    names: dict[str, SeenName] = field(default_factory=dict)
    """Finished names after `start_after`."""
    reach: str = ""
    """The highest listed name."""
    waiting: bool = False
    """Whether a name after `start_after` is neither done nor taken."""
    taken: dict[str, SeenName] = field(default_factory=dict)
    """Names after `start_after` that are done once their batch is journaled."""

    @property
    def is_live(self) -> bool:
        """Whether it has waiting files or recent arrivals."""
        return self.waiting or bool(self.names) or bool(self.taken)

    def settled(self, late_after: float, unsettled: Collection[str]) -> "FolderCursor":
        """Return a copy in which the taken names are done, except the `unsettled` ones."""
        start_after, waiting = self.start_after, self.waiting
        names = dict(sorted((self.names | self.taken).items())) if self.taken else dict(self.names)
        for path in self.taken:
            if path in unsettled:
                del names[path]
                waiting = True
        if not waiting:
            for path in list(takewhile(lambda path: names[path].arrived <= late_after, names)):
                start_after = path
                del names[path]
        return FolderCursor(start_after=start_after, names=names, reach=self.reach, waiting=waiting)


@dataclass(slots=True)
class ListingCursor:
    """The state of a source between two listings; each sweep replaces it."""

    swept_at: float | None = None
    """When the last sweep began: later arrivals may be below its position."""
    sweep_ended: float | None = None
    pages: int = 1
    """Approximate requests of the last sweep."""
    folders: dict[str, FolderCursor] = field(default_factory=dict)
    incomplete: bool = False
    """Whether files wait that no quick listing would list."""

    def sweep_is_due(self, now: float, *, interval: float, poll_interval: float) -> bool:
        """Whether to list everything: after the interval, or if it is cheap.

        A source of n pages is swept every n polls, which is one request per poll on average. So a
        small source is always listed completely.
        """
        ended = self.swept_at if self.sweep_ended is None else self.sweep_ended
        return (
            self.incomplete
            or not self.folders
            or sweep_is_due(self.swept_at, now, every=interval)
            or sweep_is_due(ended, now, every=(self.pages - 1) * poll_interval)
        )

    def seen(self, path: str) -> SeenName | None:
        """Return the remembered state of a finished file."""
        if not self.folders:
            return None
        folder = self.folders.get(folder_and_name(path)[0])
        return folder.names.get(path) if folder is not None else None

    def ranges(self) -> list[Range]:
        """Return the ranges of a quick listing.

        The range of the last folder in its parent extends past its end, where new folders appear.
        """
        last = _last_below(self.folders)
        found: list[Range] = []
        for name, folder in self.folders.items():
            widest = name
            for above in _above(name):
                if last[above] != name:
                    break
                widest = above
            found.append(Range(prefix=widest, after=folder.start_after))
        return _without_overlap(found)


@dataclass(slots=True, kw_only=True)
class CursorBuilder:
    """Builds the next cursor from one listing, name by name in order."""

    late_after: float
    """Arrivals after this moment are within the late window."""
    before: ListingCursor
    sweep: bool
    limits: ListingLimits = field(default_factory=ListingLimits)
    _open: list[tuple[str, FolderCursor]] = field(default_factory=list)
    _live: dict[str, bool] = field(default_factory=dict)
    _last: dict[str, tuple[str, FolderCursor]] = field(default_factory=dict)
    _folders: dict[str, FolderCursor] = field(default_factory=dict)
    _incomplete: bool = False
    _passed: bool = False
    """Whether quick listings would miss taken names, which are not journaled yet."""
    _listed: int = 0

    def listed(self, names: int) -> None:
        """Count listed names, read or not."""
        self._listed += names

    def done(self, name: IngestedFile, path: str, arrived: float) -> None:
        """Add a finished name."""
        folder = self._enter(path)
        folder.reach = max(folder.reach, path)
        if arrived <= self.late_after and not folder.is_live:
            folder.start_after = path
            return
        folder.names[path] = SeenName(name=name, arrived=arrived)
        if len(folder.names) > self.limits.names:
            self._pass(folder, path)

    def waits(self, path: str) -> None:
        """Add a name that must be checked again."""
        folder = self._enter(path)
        folder.waiting = True
        folder.reach = max(folder.reach, path)

    def takes(self, name: IngestedFile, path: str, arrived: float) -> None:
        """Add a name that the next batch takes."""
        folder = self._enter(path)
        folder.taken[path] = SeenName(name=name, arrived=arrived)
        folder.reach = max(folder.reach, path)

    def resumed(self, late_after: float, unsettled: Collection[str]) -> "CursorBuilder":
        """Return a copy to resume with, after the taken names except `unsettled` are journaled."""
        copy = replace(self, late_after=late_after, _live=dict(self._live))
        copy.settle(unsettled)
        return copy

    def settle(self, unsettled: Collection[str]) -> None:
        """Count the taken names as done, except `unsettled` ones; change no folder in place."""
        self._incomplete = self._incomplete or (self._passed and bool(unsettled))
        self._passed = False
        self._open = [(name, self._settled(folder, unsettled)) for name, folder in self._open]
        self._last = {
            above: (name, self._settled(folder, unsettled))
            for above, (name, folder) in self._last.items()
        }
        self._folders = {
            name: self._settled(folder, unsettled) for name, folder in self._folders.items()
        }
        if self.sweep:
            self._forget_quiet()

    def end(self, began: float, now: float) -> ListingCursor:
        """Return the cursor after a complete listing."""
        if self.sweep:
            self._leave("")
            if self._open:
                self._close()
        folders = self._folders if self.sweep else {**self.before.folders, **self._folders}
        return ListingCursor(
            swept_at=began if self.sweep else self.before.swept_at,
            sweep_ended=now if self.sweep else self.before.sweep_ended,
            pages=max(1, -(-self._listed // self.limits.page)) if self.sweep else self.before.pages,
            folders=folders,
            incomplete=self._incomplete or self._passed or len(folders) > self.limits.ranges,
        )

    def _settled(self, folder: FolderCursor, unsettled: Collection[str]) -> FolderCursor:
        folder = folder.settled(self.late_after, unsettled)
        if len(folder.names) > self.limits.names:
            self._pass(folder, max(folder.names))
        return folder

    def _forget_quiet(self) -> None:
        """Forget closed folders that are neither live nor the last one below a live parent."""
        live = [name for name, folder in self._folders.items() if folder.is_live]
        if len(live) > self.limits.ranges:
            self._folders, self._incomplete = {}, True
            return
        last = _last_below(self._folders)
        kept = {*live, *(last[above] for name in live for above in _above(name))}
        self._folders = {name: self._folders[name] for name in self._folders if name in kept}

    def _enter(self, path: str) -> FolderCursor:
        name = folder_and_name(path)[0]
        if not self.sweep:
            return self._resume(name)
        self._leave(path)
        if not self._open or self._open[-1][0] != name:
            self._open.append((name, _beginning(name)))
        return self._open[-1][1]

    def _resume(self, name: str) -> FolderCursor:
        """Continue a folder from its remembered position."""
        if name not in self._folders:
            before = self.before.folders.get(name)
            self._folders[name] = (
                _beginning(name)
                if before is None
                else FolderCursor(start_after=before.start_after, reach=before.reach)
            )
        return self._folders[name]

    def _leave(self, path: str) -> None:
        """Close the folders that the listing has passed."""
        while self._open and not _is_below(path, self._open[-1][0]):
            self._close()

    def _close(self) -> None:
        """Remember a live folder, and the last folder of each parent of a live one."""
        name, folder = self._open.pop()
        own = (name, folder) if folder.reach else None
        inner = self._last.pop(name, None)
        live = self._live.pop(name, False)
        if folder.is_live:
            self._folders[name] = folder
        last = max((each for each in (own, inner) if each is not None), key=_order, default=None)
        if last is None:
            return
        live = live or folder.is_live
        if live or name == "":
            self._folders[last[0]] = last[1]
        if name == "":
            return
        above = folder_and_name(name)[0]
        if not self._open or self._open[-1][0] != above:
            self._open.append((above, _beginning(above)))
        self._last[above] = max(last, self._last.get(above, last), key=_order)
        self._live[above] = self._live.get(above, False) or live
        # In a folder with subfolders, quick listings list only files after the last subfolder:
        # otherwise they would list that subfolder again.
        self._pass(self._open[-1][1], end_of(name))

    def _pass(self, folder: FolderCursor, name: str) -> None:
        """Advance a folder's position to a name; files waiting before it need a sweep."""
        self._incomplete = self._incomplete or folder.waiting
        self._passed = self._passed or bool(folder.taken)
        folder.start_after = name
        folder.names, folder.taken = {}, {}
        folder.waiting = False


def _beginning(name: str) -> FolderCursor:
    """Return the state of an unknown folder, listed from its first name."""
    return FolderCursor(start_after=f"{name}/" if name else "")


def _is_below(path: str, folder: str) -> bool:
    return not folder or path.startswith(f"{folder}/")


def _above(folder: str) -> Iterator[str]:
    """Yield a folder and all of its parents, up to the root."""
    while folder:
        yield folder
        folder = folder_and_name(folder)[0]
    yield ""


def _last_below(folders: Mapping[str, FolderCursor]) -> dict[str, str]:
    """Return the last listed folder in each folder or below, by the highest name in it."""
    last: dict[str, str] = {}
    for name, folder in folders.items():
        for above in _above(name):
            if above not in last or folders[last[above]].reach < folder.reach:
                last[above] = name
    return last


def _order(each: tuple[str, FolderCursor]) -> str:
    return each[1].reach


def _without_overlap(ranges: list[Range]) -> list[Range]:
    """Cut each range where a wider one begins, so that no name is listed twice."""
    found = []
    for one in ranges:
        wider = [
            other.after
            for other in ranges
            if other is not one
            and _is_below(f"{one.prefix}/", other.prefix)
            and (other.prefix != one.prefix or other.after < one.after)
        ]
        until = min(wider, default=None)
        if until is None or until > one.after:
            found.append(replace(one, until=until))
    return found
