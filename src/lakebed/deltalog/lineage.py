"""The lineage of data files: where the rows of earlier files went, by a log. Pure.

A version without data change moves rows; one with data change alters or removes them; a RESTORE
removes files and brings others back. For commits of penguin, the journal entries name exactly which
files replace which (`journaled`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import unquote

from lakebed.deltalog.actions import CommitInfo, FileAction, FileKey, LogActions, LogHistory

RESTORE = "RESTORE"
BEFORE = -1
"""The version of all events before the history begins."""

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
    """The version that added it in its present form."""
    of_others: bool
    """Whether its rows are another writer's own, and come from no other file."""
    deletions: tuple[tuple[int, int], ...] = ()
    """The versions that deleted rows in place, each with the number of rows deleted by then."""

    @property
    def visible(self) -> int | None:
        """Return how many rows readers see; None if unknown."""
        return None if self.rows is None else self.rows - self.deleted

    def since(self, before: "Active | None", version: int) -> "Active":
        """Return this form of a file with its deletions; a RESTORE may undo some of the earlier."""
        earlier = () if before is None else before.deletions
        known = tuple(one for one in earlier if one[1] <= self.deleted)
        if self.deleted > (known[-1][1] if known else 0):
            known += ((version, self.deleted),)
        return replace(self, deletions=known)


@dataclass(frozen=True, slots=True, kw_only=True)
class RewritingVersion:
    """A version that replaced data files with others that have all or some of their rows."""

    version: int
    is_ours: bool
    moves: bool
    """Whether it changed no data."""
    added: frozenset[str]
    placed: Mapping[PartitionKey, tuple[str, ...]]
    """The added files, by partition."""
    removed: tuple[str, ...]
    """Files that it removed, or whose rows it deleted in place."""
    lost: int = 0
    """The rows that are in none of the new files, other writers' rows excluded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Where the rows of one data file are now."""

    active: frozenset[str] = frozenset()
    """The files of the table that hold all or some of them."""
    altered: frozenset[int] = frozenset()
    """The versions that changed or deleted some of them."""
    removed: frozenset[tuple[str, int]] = frozenset()
    """The last files that held them, with the versions that removed these."""

    def __or__(self, other: "Trace") -> "Trace":
        """Combine the traces of two files."""
        return Trace(
            active=self.active | other.active,
            altered=self.altered | other.altered,
            removed=self.removed | other.removed,
        )

    @property
    def is_unknown(self) -> bool:
        """Whether the log no longer shows where some of the rows went."""
        return any(version == BEFORE for _name, version in self.removed)


@dataclass(slots=True)
class Lineage:
    """The active data files of a table, and the fate of all that were ever in it."""

    first: int = 0
    """The first version that is read from its own object, not from a checkpoint."""
    is_sparse: bool = False
    """Whether only some versions are folded, so that a removed file may have no known add."""
    active: dict[str, Active] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)
    """The version that last removed each inactive file."""
    past: dict[str, Active] = field(default_factory=dict)
    """Removed files as they last were in the table."""
    rewrites: dict[int, RewritingVersion] = field(default_factory=dict)
    rewritten_by: dict[str, list[int]] = field(default_factory=dict)
    """The versions that moved rows of each file to others."""
    ours: set[int] = field(default_factory=set)
    """The versions of penguin that removed files."""
    restores: dict[int, int] = field(default_factory=dict)
    """The version that each RESTORE restored; the one before it if unknown."""
    newest: int = BEFORE
    """The last version taken."""
    steps: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)
    """The replacements of each file by journal entries, in order."""
    made_from: dict[str, list[str]] = field(default_factory=dict)
    """The files whose rows each file took over."""
    born: dict[str, int] = field(default_factory=dict)
    """The version that first added each file with rows of others."""
    sources_of: Callable[[str], frozenset[int] | None] = lambda _name: None
    """Returns the source files with rows in a data file; None if unknown."""
    _values: dict[PartitionKey, PartitionKey] = field(default_factory=dict)
    _forms: dict[FileKey, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    """The deletions in each form that a file ever had."""
    _traces: dict[str, Trace] = field(default_factory=dict)
    _alive: dict[str, bool] = field(default_factory=dict)

    @classmethod
    def fold(cls, history: LogHistory, until: int) -> "Lineage":
        """Fold the versions of a log up to `until`."""
        found = cls(first=history.first)
        for version in history.versions:
            if version.version <= until:
                found.take(version)
        return found

    def take(self, found: LogActions) -> dict[str, Active]:
        """Fold one version, or a batch of a checkpoint; return the files that it removes.

        A file that stays under its name, say with a new deletion vector, is included as it was.
        """
        self._changed()
        adds, removes, self.newest = found.adds, found.removes, found.version
        if found.is_checkpoint:
            for remove in removes:
                self.removed[remove.path] = BEFORE
            for add in adds:
                self.removed.pop(add.path, None)
                new, before = self._active(add, BEFORE, of_others=False), self.active.get(add.path)
                if before is not None:
                    new = replace(before, deleted=new.deleted).since(before, BEFORE)
                self.active[add.path] = new
            return {}
        gone = self._remove(found.version, removes)
        if found.info.is_ours and gone:
            self.ours.add(found.version)
        # Rows that come from no other file are another writer's own.
        is_restore = found.info.operation == RESTORE
        if is_restore:
            to = found.info.restored
            self.restores[found.version] = found.version - 1 if to is None else to
        theirs = not is_restore and all(one.of_others for one in gone.values())
        for add in adds:
            of_others = theirs and not found.info.is_ours and (add.data_change or bool(removes))
            self._add(add, found.version, gone, of_others=of_others)
        if gone and adds and not is_restore:
            self._rewrite(found, gone)
        return gone

    def _add(
        self, add: FileAction, version: int, gone: dict[str, Active], *, of_others: bool
    ) -> None:
        """Record a file that a version added, perhaps one that it removed as it was before."""
        self.removed.pop(add.path, None)
        before = gone.get(add.path) or self.active.get(add.path)
        earlier = before or self.past.get(add.path)
        file = self._active(add, version, of_others=earlier.of_others if earlier else of_others)
        if before is not None and before.written == file.written:
            gone[add.path] = before  # Re-added, say with other statistics.
            file = file.since(before, version)
        elif file.deleted:
            file = file.since(self.past.get(add.path), BEFORE)
        if file.deleted:
            # A RESTORE brings back an earlier form, with the deletions that made it.
            known = self._forms.setdefault(add.key, file.deletions)
            file = replace(file, deletions=known)
        self.active[add.path] = file

    def recall(self, adds: Iterable[FileAction]) -> None:
        """Add files of the checkpoint that no version since has removed."""
        self._changed()
        for add in adds:
            if add.path not in self.active and self.removed.get(add.path, BEFORE) < self.first:
                self.removed.pop(add.path, None)
                self.active[add.path] = self._active(add, BEFORE, of_others=False)

    def forget(self, paths: Iterable[str]) -> None:
        """Remove files that versions which are not folded removed."""
        for path in paths:
            self.past[path] = self.active.pop(path)
            self.removed[path] = BEFORE

    def _remove(self, version: int, removes: Iterable[FileAction]) -> dict[str, Active]:
        gone: dict[str, Active] = {}
        for remove in removes:
            before = self.active.pop(remove.path, None)
            if before is None and self.is_sparse:
                before = self._active(remove, BEFORE, of_others=False)
            if before is not None:
                if (
                    remove.deleted_rows > before.deleted
                ):  # A version that was not read deleted them.
                    before = replace(before, deleted=remove.deleted_rows).since(before, BEFORE)
                gone[remove.path] = self.past[remove.path] = before
            self.removed[remove.path] = version
        return gone

    def _rewrite(self, found: LogActions, gone: dict[str, Active]) -> None:
        """Record which files of a version hold the rows of those that it removed."""
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
        """Record that a committed entry replaced a file with others, or with none."""
        names = tuple(new)
        self.steps.setdefault(old, []).append(names)
        for name in names:
            self.made_from.setdefault(name, []).append(old)
        self._changed()

    def _changed(self) -> None:
        self._traces.clear()
        self._alive.clear()

    def is_heir(self, name: str) -> bool:
        """Whether a journal entry replaced another file with this one."""
        return any(name in names for steps in self.steps.values() for names in steps)

    def removed_by(self, name: str) -> int | None:
        """Return the version that removed the last rows of a file; None if some may be left."""
        if name in self.active:
            return None
        trace = self.trace(name)
        if trace.is_unknown or trace.active:
            return None
        return max((version for _name, version in trace.removed), default=None)

    def in_effect(self, version: int) -> bool:
        """Whether no RESTORE of an earlier version has undone a version."""
        newest = self.newest
        for restore, to in sorted(self.restores.items(), reverse=True):
            if version < restore <= newest:
                newest = to
        return version <= newest

    def added(self, name: str) -> int:
        """Return the version that last added a file; BEFORE if unknown."""
        file = self.active.get(name) or self.past.get(name)
        return BEFORE if file is None else file.version

    def trace(self, name: str) -> Trace:
        """Follow the rows of a file forward, and to earlier files that were restored."""
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
        """Follow the restored files among those that a removed one was made from.

        Skip files without rows of the wanted source files.
        """
        found = Trace()
        for old in dict.fromkeys(self.made_from[name]):
            held = None if wanted is None else self.sources_of(old)
            if old in seen or (wanted and held is not None and wanted.isdisjoint(held)):
                continue
            if self._may_have_rows(old, since):
                found |= self._traced(old, seen | {old})
            elif self.is_back(old, name):
                found |= self._behind(old, version, since, seen | {old}, wanted)
            else:
                found |= Trace(removed=frozenset([(old, version)]))
        return found

    def _may_have_rows(self, name: str, since: int) -> bool:
        """Whether a file was in the table after a version, or its rows are in another one now."""
        removed = self.removed.get(name, BEFORE)
        return (removed > since and self.in_effect(removed)) or self._is_alive(name)

    def is_back(self, old: str, new: str) -> bool:
        """Whether a file, or one that it was made from, was restored after its replacement."""
        waiting, seen = [old], {old, new}
        since = self.born.get(new, BEFORE)
        while waiting:
            name = waiting.pop()
            if self._may_have_rows(name, since):
                return True
            waiting += [source for source in self.made_from.get(name, ()) if source not in seen]
            seen |= set(waiting)
        return False

    def forward(
        self, name: str, ends: Callable[[str, int], bool] = lambda _name, _version: False
    ) -> Trace:
        """Follow the rows of a file through the versions that moved or altered them.

        Stop at a file and the version that removed it if `ends` returns True.
        """
        active: set[str] = set()
        altered: set[int] = set()
        gone: set[tuple[str, int]] = set()
        waiting, seen = [name], {name}
        while waiting:
            current = waiting.pop()
            file = self.active.get(current) or self.past.get(current)
            altered |= set() if file is None else {by for by, _rows in file.deletions}
            updated = [new for new in self.updated(file) if new not in seen]
            waiting += updated
            seen |= set(updated)
            if current in self.active:
                active.add(current)
                continue
            version = self._removal(current)
            if ends(current, version):
                continue
            following, rewrite = self._followed(current, version)
            if not following and not self._is_journaled(current, version):
                gone.add((current, version))
            elif rewrite is not None and not rewrite.moves and not rewrite.is_ours:
                altered.add(rewrite.version)
            waiting += [other for other in following if other not in seen]
            seen |= set(following)
        return Trace(active=frozenset(active), altered=frozenset(altered), removed=frozenset(gone))

    def updated(self, file: Active | None) -> Iterator[str]:
        """Yield the files that may have updated rows of those that were deleted in place."""
        for by, _rows in () if file is None else file.deletions:
            if by in self.rewrites:
                yield from sorted(self.rewrites[by].added)

    def _removal(self, name: str) -> int:
        """Return the version that removed a file, also if a RESTORE repeated or undid that."""
        version = self.removed.get(name, BEFORE)
        if self.in_effect(version) and version not in self.restores:
            return version
        known = reversed(self.rewritten_by.get(name, ()))
        return next((one for one in known if self.in_effect(one)), version)

    def _followed(self, name: str, version: int) -> tuple[list[str], RewritingVersion | None]:
        """Return the files with rows of a removed one, and the version that wrote them.

        A RESTORE may bring back files to which an earlier version moved its rows.
        """
        following = self._next(name, version)
        earlier = [one for one in self.rewritten_by.get(name, ()) if one != version]
        if version != BEFORE and earlier and not any(map(self._is_alive, following)):
            for one in reversed(earlier):
                others = self._next(name, one)
                back = [new for new in others if self.added(new) >= version]
                if back and (not following or any(map(self._is_alive, back))):
                    return others, self.rewrites[one]
        return following, self.rewrites.get(version)

    def _is_alive(self, name: str) -> bool:
        """Whether a file is in the table, or one to which its rows moved."""
        if name not in self._alive:
            self._alive[name] = name in self.active  # For a chain that comes back to it.
            self._alive[name] = bool(self.forward(name).active)
        return self._alive[name]

    def after(self, name: str) -> list[str]:
        """Return the files to which the rows of a removed file moved directly."""
        if name in self.active:
            return []
        return self._followed(name, self._removal(name))[0]

    def successors(self, name: str) -> list[str]:
        """Return the files to which any version ever moved rows of a removed file."""
        versions = (self.removed.get(name, BEFORE), *self.rewritten_by.get(name, ()))
        moved = (new for version in dict.fromkeys(versions) for new in self._next(name, version))
        return [] if name in self.active else list(dict.fromkeys(moved))

    def reached(self, paths: Iterable[str]) -> dict[str, None]:
        """Return files, and all files through which their rows moved since."""
        reached = dict.fromkeys(paths)
        waiting = list(reached)
        while waiting:
            following = self.after(waiting.pop())
            waiting += [name for name in following if name not in reached]
            reached |= dict.fromkeys(following)
        return reached

    def _is_journaled(self, name: str, version: int) -> bool:
        """Whether a journal entry removed or replaced a file."""
        return name in self.steps and (version == BEFORE or version in self.ours)

    def _next(self, name: str, version: int) -> list[str]:
        """Return the files to which a version moved rows of a removed file."""
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
            deletions=((BEFORE, add.deleted_rows),) if add.deleted_rows else (),
        )


def written_as(add: FileAction) -> str:
    """Return the path as the log spells it, without escapes: another spelling is another file."""
    written = unquote(add.written)
    return add.path if written == add.path else written


def _lost(found: LogActions, gone: Mapping[str, Active]) -> int:
    """Return how many rows, other writers' excluded, a version did not carry over."""
    added = [add.visible_rows for add in found.adds]
    removed = [file.visible for file in gone.values()]
    if None in added or None in removed:
        return 0
    taken, brought = (sum(filter(None, counts)) for counts in (removed, added))
    theirs = sum(file.visible or 0 for file in gone.values() if file.of_others)
    deleted = _rows_deleted(found.info)
    lost = taken - brought if deleted is None else deleted
    return max(0, min(lost, taken - theirs))


def _rows_deleted(info: CommitInfo) -> int | None:
    """Return the number of rows that a MERGE of Spark or delta-rs deleted; None for others.

    A MERGE may insert as many rows as it deletes.
    """
    if info.operation != "MERGE":
        return None
    rows = info.metrics.get("numTargetRowsDeleted", info.metrics.get("num_target_rows_deleted"))
    return int(rows) if isinstance(rows, int | str) and str(rows).isdigit() else None
