"""Where the next look at a source has to begin. Pure, and only about cost.

A source is looked at in two ways. A *sweep* lists all of it. A *quick look* lists a few ranges:
in each folder where something arrived within the late window, the names from the first of those
arrivals on; and behind the last folder, where new folders appear. What a quick look does not list
the next sweep does, so nothing here decides whether a file is new: the journal does.

A folder's `start_after` is the name up to which a quick look need not list it. It never passes a
file that is listed and not done, nor one that arrived within the late window.

A look that has filled a batch stops. It goes on from there once the batch is journaled, and its
files are then done for the folders they are in (`CursorBuilder.resumed`).
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from itertools import takewhile

from blizzard.model.settings import LookLimits
from blizzard.model.source.file import IngestedFile
from lakebed.listing.sort import end_of
from lakebed.listing.watermark import Range, folder_and_name, sweep_is_due


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenName:
    """A name after its folder's `start_after` that is done."""

    name: IngestedFile
    arrived: float


@dataclass(slots=True)
class FolderCursor:
    """The files right in one folder, as far as quick looks need to know them."""

    start_after: str = ""
    """The name after which a quick look lists the folder."""
    names: dict[str, SeenName] = field(default_factory=dict)
    """Names after that one that are done."""
    reach: str = ""
    """The highest name that was listed."""
    waiting: bool = False
    """Whether a name after that one is listed and neither done nor taken."""
    taken: dict[str, SeenName] = field(default_factory=dict)
    """Names after that one that are done once the batch that takes them is journaled."""

    @property
    def is_live(self) -> bool:
        """Whether something waits in it, or arrived within the late window."""
        return self.waiting or bool(self.names) or bool(self.taken)

    def settled(self, late_after: float, unsettled: Collection[str]) -> "FolderCursor":
        """Return a copy in which the taken names are done, except for those not journaled."""
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
    """What is remembered of a source between two looks; begun anew by each sweep."""

    swept_at: float | None = None
    """When the last sweep began: what has landed since may be below where it was by then."""
    sweep_ended: float | None = None
    pages: int = 1
    """Requests that the last sweep took, about."""
    folders: dict[str, FolderCursor] = field(default_factory=dict)
    incomplete: bool = False
    """Whether files wait that no quick look would list."""

    def sweep_is_due(self, now: float, *, interval: float, poll_interval: float) -> bool:
        """Whether to list everything: in time, and as often as it costs little.

        A source of n pages is swept every n polls, which is one request a poll on average. So a
        small source is always listed whole.
        """
        ended = self.swept_at if self.sweep_ended is None else self.sweep_ended
        return (
            self.incomplete
            or not self.folders
            or sweep_is_due(self.swept_at, now, every=interval)
            or sweep_is_due(ended, now, every=(self.pages - 1) * poll_interval)
        )

    def seen(self, path: str) -> SeenName | None:
        """Return what is remembered of a name that is done."""
        if not self.folders:
            return None
        folder = self.folders.get(folder_and_name(path)[0])
        return folder.names.get(path) if folder is not None else None

    def ranges(self) -> list[Range]:
        """Return the listings of a quick look: each folder's, and on to the end of what is above.

        The last folder below another is listed on past its end, since new folders come there.
        """
        last: dict[str, str] = {}
        for name, folder in self.folders.items():
            for above in _above(name):
                if above not in last or self.folders[last[above]].reach < folder.reach:
                    last[above] = name
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
    """Follows one look, name by name in their order, and says what to remember of it."""

    late_after: float
    """Arrivals after this moment are within the late window."""
    before: ListingCursor
    sweep: bool
    limits: LookLimits = field(default_factory=LookLimits)
    _open: list[tuple[str, FolderCursor]] = field(default_factory=list)
    _live: dict[str, bool] = field(default_factory=dict)
    _last: dict[str, tuple[str, FolderCursor]] = field(default_factory=dict)
    _folders: dict[str, FolderCursor] = field(default_factory=dict)
    _incomplete: bool = False
    _passed: bool = False
    """Whether quick looks would pass over names that are taken: only until they are journaled."""
    _listed: int = 0

    def listed(self, names: int) -> None:
        """Count listed names, read or not."""
        self._listed += names

    def done(self, name: IngestedFile, path: str, arrived: float) -> None:
        """Take in a name that needs nothing more."""
        folder = self._enter(path)
        folder.reach = max(folder.reach, path)
        if arrived <= self.late_after and not folder.is_live:
            folder.start_after = path
            return
        folder.names[path] = SeenName(name=name, arrived=arrived)
        if len(folder.names) > self.limits.names:
            self._pass(folder, path)

    def waits(self, path: str) -> None:
        """Take in a name that has to be looked at again."""
        folder = self._enter(path)
        folder.waiting = True
        folder.reach = max(folder.reach, path)

    def takes(self, name: IngestedFile, path: str, arrived: float) -> None:
        """Take in a name that the next batch takes."""
        folder = self._enter(path)
        folder.taken[path] = SeenName(name=name, arrived=arrived)
        folder.reach = max(folder.reach, path)

    def resumed(self, late_after: float, unsettled: Collection[str]) -> "CursorBuilder":
        """Return a copy that goes on, now that the taken names are journaled except for some."""
        copy = replace(self, late_after=late_after, _live=dict(self._live))
        copy.settle(unsettled)
        return copy

    def settle(self, unsettled: Collection[str]) -> None:
        """Count the taken names as done, except for some; no folder is changed in place."""
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
        """Return what to remember, once the listing has come to its end."""
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
        """Forget closed folders that are no longer live, and the last ones above none that is."""
        live = [name for name, folder in self._folders.items() if folder.is_live]
        if len(live) > self.limits.ranges:
            self._folders, self._incomplete = {}, True
            return
        last: dict[str, str] = {}
        above_live = {above for name in live for above in _above(name)}
        for name, folder in self._folders.items():
            for above in above_live.intersection(_above(name)):
                if above not in last or self._folders[last[above]].reach < folder.reach:
                    last[above] = name
        kept = {*live, *last.values()}
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
        """Go on with a folder from where it was left: what was remembered is taken in again."""
        if name not in self._folders:
            before = self.before.folders.get(name)
            self._folders[name] = (
                _beginning(name)
                if before is None
                else FolderCursor(start_after=before.start_after, reach=before.reach)
            )
        return self._folders[name]

    def _leave(self, path: str) -> None:
        """Close the folders that the listing has left."""
        while self._open and not _is_below(path, self._open[-1][0]):
            self._close()

    def _close(self) -> None:
        """Remember a folder that is live, and the last one of each that is above a live one."""
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
        # Files right in a folder that also has folders: only those behind the last of them are
        # listed quickly, or the listing would go through that folder again.
        self._pass(self._open[-1][1], end_of(name))

    def _pass(self, folder: FolderCursor, name: str) -> None:
        """List a folder after a name from now on; files that wait before it need a sweep."""
        self._incomplete = self._incomplete or folder.waiting
        self._passed = self._passed or bool(folder.taken)
        folder.start_after = name
        folder.names, folder.taken = {}, {}
        folder.waiting = False


def _beginning(name: str) -> FolderCursor:
    """Return a folder of which nothing is known: it is listed from its first name on."""
    return FolderCursor(start_after=f"{name}/" if name else "")


def _is_below(path: str, folder: str) -> bool:
    return not folder or path.startswith(f"{folder}/")


def _above(folder: str) -> Iterator[str]:
    """Name a folder and every one above it, up to the root."""
    while folder:
        yield folder
        folder = folder_and_name(folder)[0]
    yield ""


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
