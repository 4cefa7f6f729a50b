"""Which data files hold the rows of which earlier ones, folded from the versions of a log. Pure.

A version without data change moves rows; one with data change alters or removes them; a RESTORE
takes files out and brings others back. What the programs themselves put in the place of what, their
journals say: `journaled` pairs follow a version of ours exactly.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import unquote

from lakebed.deltalog.actions import CommitInfo, FileAction, LogActions, LogHistory

RESTORE = "RESTORE"
BEFORE = -1
"""The version of everything that happened before the history begins."""

PartitionKey = tuple[tuple[str, str | None], ...]
"""The partition values of a file, sorted: logs write the columns in any order."""


@dataclass(frozen=True, slots=True)
class Active:
    """A data file in the table."""

    written: str
    size: int
    rows: int | None
    deleted: int
    values: PartitionKey
    version: int
    """The version that added it, as it is now."""
    of_others: bool
    """Whether its rows are another writer's, and were never in any other file."""
    altered_by: int | None = None
    """The version that deleted rows in place."""

    @property
    def visible(self) -> int | None:
        """Return how many rows readers see."""
        return None if self.rows is None else self.rows - self.deleted


@dataclass(frozen=True, slots=True, kw_only=True)
class RewritingVersion:
    """A version that removed data files and added others with their rows, or some of them."""

    version: int
    is_ours: bool
    moves: bool
    """Whether it changed no data."""
    added: frozenset[str]
    placed: Mapping[PartitionKey, tuple[str, ...]]
    """The files that it added, by their partition."""
    removed: tuple[str, ...]
    """Files that it took out, or deleted rows of in place."""
    lost: int = 0
    """The rows that are in none of the new files, without those of other writers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Where the rows of one data file have gone."""

    active: frozenset[str] = frozenset()
    """The files of the table that hold them, or what is left of them."""
    altered: frozenset[int] = frozenset()
    """The versions that changed or deleted some of them on the way."""
    removed: frozenset[tuple[str, int]] = frozenset()
    """The last files that held them, with the versions that took these out."""

    def __or__(self, other: "Trace") -> "Trace":
        """Return where the rows of both have gone."""
        return Trace(
            active=self.active | other.active,
            altered=self.altered | other.altered,
            removed=self.removed | other.removed,
        )

    @property
    def is_unknown(self) -> bool:
        """Whether the log no longer shows what became of some of the rows."""
        return any(version == BEFORE for _name, version in self.removed)


@dataclass(slots=True)
class Lineage:
    """The data files of a table, and what became of all that ever were in it."""

    first: int = 0
    """The first version that is read by itself."""
    is_sparse: bool = False
    """Whether only some versions are folded: what one removes was in the table before it."""
    active: dict[str, Active] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)
    """The version that removed each file that is not in the table, last."""
    past: dict[str, Active] = field(default_factory=dict)
    """Removed files as they were when they were in the table last."""
    rewrites: dict[int, RewritingVersion] = field(default_factory=dict)
    rewritten_by: dict[str, list[int]] = field(default_factory=dict)
    """The versions that wrote rows of each file to others."""
    ours: set[int] = field(default_factory=set)
    """The versions of penguin's that removed files."""
    steps: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)
    """The files that journals put in the place of each, by step."""
    made_from: dict[str, list[str]] = field(default_factory=dict)
    """The files that held the rows of each before it was written."""
    born: dict[str, int] = field(default_factory=dict)
    """The version that first added each file that took rows over from others."""
    sources_of: Callable[[str], frozenset[int] | None] = lambda _name: None
    """Returns the source files with rows in a file; None where it is not known."""
    _values: dict[PartitionKey, PartitionKey] = field(default_factory=dict)
    _traces: dict[str, Trace] = field(default_factory=dict)

    @classmethod
    def fold(cls, history: LogHistory, until: int) -> "Lineage":
        """Fold the versions of a log up to one."""
        found = cls(first=history.first)
        for version in history.versions:
            if version.version <= until:
                found.take(version)
        return found

    def take(self, found: LogActions) -> dict[str, Active]:
        """Fold one version, or a part of a checkpoint; return the files that it takes out.

        A file that stays under its name, say with a deletion vector, is among them as it was.
        """
        self._traces.clear()
        adds, removes = found.adds, found.removes
        if found.is_checkpoint:
            for one in removes:
                self.removed[one.path] = BEFORE
            for add in adds:
                self.removed.pop(add.path, None)
                self.active[add.path] = self._active(add, BEFORE, of_others=False)
            return {}
        gone = self._take_out(found.version, removes)
        if found.info.is_ours and gone:
            self.ours.add(found.version)
        # Rows that were in no other file before are another writer's own.
        theirs = all(one.of_others for one in gone.values())
        for add in adds:
            self.removed.pop(add.path, None)
            before = gone.get(add.path) or self.active.get(add.path)
            of_others = theirs and not found.info.is_ours and (add.data_change or bool(removes))
            file = self._active(add, found.version, of_others=of_others)
            if before is not None and before.written == file.written:
                gone[add.path] = before  # In its own place, say with other statistics.
                altered_by = found.version if file.deleted > before.deleted else before.altered_by
                file = replace(file, of_others=before.of_others, altered_by=altered_by)
            self.active[add.path] = file
        if gone and adds and found.info.operation != RESTORE:
            self._rewrite(found, gone)
        return gone

    def recall(self, adds: Iterable[FileAction]) -> None:
        """Add files that a checkpoint has and no folded version names."""
        self._traces.clear()
        for add in adds:
            if add.path not in self.active and self.removed.get(add.path, BEFORE) == BEFORE:
                self.removed.pop(add.path, None)
                self.active[add.path] = self._active(add, BEFORE, of_others=False)

    def forget(self, paths: Iterable[str]) -> None:
        """Take out files that versions removed which are not folded."""
        for path in paths:
            self.past[path] = self.active.pop(path)
            self.removed[path] = BEFORE

    def _take_out(self, version: int, removes: Iterable[FileAction]) -> dict[str, Active]:
        gone: dict[str, Active] = {}
        for one in removes:
            before = self.active.pop(one.path, None)
            if before is None and self.is_sparse:
                before = self._active(one, BEFORE, of_others=False)
            if before is not None:
                gone[one.path] = self.past[one.path] = before
            self.removed[one.path] = version
        return gone

    def _rewrite(self, found: LogActions, gone: dict[str, Active]) -> None:
        """Note which files of a version hold the rows of those that it took out."""
        moves = not found.changes_data
        mode = found.info.parameters.get("mode")
        if not moves and isinstance(mode, str) and mode.strip('"').lower() == "overwrite":
            return
        placed: dict[PartitionKey, tuple[str, ...]] = {}
        for add in found.adds:
            if add.path not in gone:
                values = self.active[add.path].values
                placed[values] = (*placed.get(values, ()), add.path)
        rewrite = RewritingVersion(
            version=found.version,
            is_ours=found.info.is_ours,
            moves=moves,
            added=frozenset(name for names in placed.values() for name in names),
            placed=placed,
            removed=tuple(sorted(gone)),
            lost=_lost(found, gone),
        )
        self.rewrites[found.version] = rewrite
        for name in rewrite.added:
            self.born.setdefault(name, found.version)
        for name in gone:
            self.rewritten_by.setdefault(name, []).append(found.version)
        for name in gone if moves and not found.info.is_ours else ():
            for new in self._next(name, found.version):
                self.made_from.setdefault(new, []).append(name)

    def journaled(self, old: str, new: Iterable[str]) -> None:
        """Note that a committed entry put files in the place of another, or none."""
        names = tuple(new)
        self.steps.setdefault(old, []).append(names)
        for name in names:
            self.made_from.setdefault(name, []).append(old)
        self._traces.clear()

    def is_heir(self, name: str) -> bool:
        """Whether a journal put a file in the place of another."""
        return any(name in names for steps in self.steps.values() for names in steps)

    def removed_by(self, name: str) -> int | None:
        """Return the version that took the last rows of a file out; None if some may be left."""
        if name in self.active:
            return None
        trace = self.trace(name)
        if trace.is_unknown or trace.active:
            return None
        return max((version for _name, version in trace.removed), default=None)

    def added(self, name: str) -> int:
        """Return the version that added a file last; BEFORE where it is unknown."""
        one = self.active.get(name) or self.past.get(name)
        return BEFORE if one is None else one.version

    def trace(self, name: str) -> Trace:
        """Follow the rows of a file forward and, where files of before came back, to those."""
        found = self._traces.get(name)
        if found is None:
            found = self._traces[name] = self._traced(name, frozenset())
        return found

    def _traced(self, name: str, seen: frozenset[str]) -> Trace:
        forward, wanted = self.forward(name), self.sources_of(name)
        found = replace(forward, removed=frozenset())
        for last, version in forward.removed:
            olds = () if last in seen else self.made_from.get(last, ())
            if any(self.is_back(old, last) for old in olds):
                since = self.born.get(last, BEFORE)
                found |= self._behind(last, version, since, seen | {last}, wanted)
            else:
                found |= Trace(removed=frozenset([(last, version)]))
        return found

    def _behind(
        self,
        name: str,
        version: int,
        since: int,
        seen: frozenset[str],
        wanted: frozenset[int] | None,
    ) -> Trace:
        """Follow the files that a removed one was made from, as far as they came back.

        Files without rows of the source files that are wanted are left out.
        """
        found = Trace()
        for old in dict.fromkeys(self.made_from[name]):
            held = None if wanted is None else self.sources_of(old)
            if old in seen or (wanted and held is not None and wanted.isdisjoint(held)):
                continue
            if old in self.active or self.removed.get(old, BEFORE) > since:
                found |= self._traced(old, seen | {old})
            elif self.is_back(old, name):
                found |= self._behind(old, version, since, seen | {old}, wanted)
            else:
                found |= Trace(removed=frozenset([(old, version)]))
        return found

    def is_back(self, old: str, new: str) -> bool:
        """Whether a file, or one that it was made from, came back after another took over."""
        waiting, seen = [old], {old, new}
        since = self.born.get(new, BEFORE)
        while waiting:
            one = waiting.pop()
            if one in self.active or self.removed.get(one, BEFORE) > since:
                return True
            waiting += [each for each in self.made_from.get(one, ()) if each not in seen]
            seen |= set(waiting)
        return False

    def forward(
        self, name: str, ends: Callable[[str, int], bool] = lambda _name, _version: False
    ) -> Trace:
        """Follow the rows of a file through the versions that moved or altered them.

        Where `ends` says so of a file and the version that removed it, they are not followed.
        """
        active: set[str] = set()
        altered: set[int] = set()
        gone: set[tuple[str, int]] = set()
        waiting, seen = [name], {name}
        while waiting:
            one = waiting.pop()
            if (there := self.active.get(one)) is not None:
                active.add(one)
                altered |= set() if there.altered_by is None else {there.altered_by}
                continue
            version = self.removed.get(one, BEFORE)
            if ends(one, version):
                continue
            following, rewrite = self._followed(one, version)
            if not following and not self._is_journaled(one, version):
                gone.add((one, version))
            elif rewrite is not None and not rewrite.moves and not rewrite.is_ours:
                altered.add(rewrite.version)
            waiting += [other for other in following if other not in seen]
            seen |= set(following)
        return Trace(active=frozenset(active), altered=frozenset(altered), removed=frozenset(gone))

    def _followed(self, name: str, version: int) -> tuple[list[str], RewritingVersion | None]:
        """Return the files with rows of a removed one, and the version that put them there.

        A RESTORE may bring back files that an earlier version wrote its rows to.
        """
        following = self._next(name, version)
        if version != BEFORE and not any(new in self.active for new in following):
            for earlier in reversed(self.rewritten_by.get(name, ())):
                others = self._next(name, earlier)
                back = [new for new in others if self.added(new) >= version]
                if back and (not following or any(new in self.active for new in back)):
                    return others, self.rewrites[earlier]
        return following, self.rewrites.get(version)

    def after(self, name: str) -> list[str]:
        """Return the files that hold rows of one that was removed, one step on."""
        return (
            [] if name in self.active else self._followed(name, self.removed.get(name, BEFORE))[0]
        )

    def reached(self, paths: Iterable[str]) -> dict[str, None]:
        """Return files, and all that their rows went through since."""
        reached = dict.fromkeys(paths)
        waiting = list(reached)
        while waiting:
            following = self.after(waiting.pop())
            waiting += [name for name in following if name not in reached]
            reached |= dict.fromkeys(following)
        return reached

    def _is_journaled(self, name: str, version: int) -> bool:
        """Whether an entry took a file out, and put nothing in its place."""
        return name in self.steps and (version == BEFORE or version in self.ours)

    def _next(self, name: str, version: int) -> list[str]:
        """Return the files that a version put rows of a removed file into."""
        rewrite, steps = self.rewrites.get(version), self.steps.get(name, ())
        if version == BEFORE:
            return [new for names in steps for new in names]
        if rewrite is None:
            return []
        if rewrite.is_ours:
            return [new for names in steps if rewrite.added.issuperset(names) for new in names]
        values = self.past[name].values if name in self.past else ()
        if rewrite.moves and values in rewrite.placed:
            return list(rewrite.placed[values])
        return sorted(rewrite.added)

    def _active(self, add: FileAction, version: int, *, of_others: bool) -> Active:
        values = tuple(sorted(add.partition_values))
        return Active(
            written=written_as(add),
            size=add.size or 0,
            rows=add.rows,
            deleted=add.deleted_rows,
            values=self._values.setdefault(values, values),  # Shared by the files of a partition.
            version=version,
            of_others=of_others,
        )


def written_as(add: FileAction) -> str:
    """Return the name as the log writes it, without escapes: another spelling is another file."""
    written = unquote(add.written)
    return add.path if written == add.path else written


def _lost(found: LogActions, gone: Mapping[str, Active]) -> int:
    """Count the rows of the programs that a version has left in no file."""
    added = [one.visible_rows for one in found.adds]
    removed = [one.visible for one in gone.values()]
    if None in added or None in removed:
        return 0
    taken, brought = (sum(filter(None, counts)) for counts in (removed, added))
    theirs = sum(one.visible or 0 for one in gone.values() if one.of_others)
    deleted = _rows_deleted(found.info)
    lost = taken - brought if deleted is None else deleted
    return max(0, min(lost, taken - theirs))


def _rows_deleted(info: CommitInfo) -> int | None:
    """Return the rows that a MERGE deleted, as Spark or delta-rs spells it.

    It may have inserted as many.
    """
    if info.operation != "MERGE":
        return None
    told = info.metrics.get("numTargetRowsDeleted", info.metrics.get("num_target_rows_deleted"))
    return int(told) if isinstance(told, int | str) and str(told).isdigit() else None
