"""The fate of an entry's data files: in the table, held, removed, rewritten."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from blizzard.answers.answer import ROWS_ARE_THERE, ROWS_LOST, AwaitingRedo, DataFile, FileState
from blizzard.answers.entries import (
    came_for,
    data_file_of,
    dealing_with_lines,
    last_part,
    likely_naming,
    mentioning,
    parts_until,
)
from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.ledger import Ledger, Lookup
from lakebed import layout
from lakebed.deltalog.lineage import BEFORE, Lineage
from lakebed.deltalog.versions import FORGET, Commit
from lakebed.documents.entry import Entry, Inheritance
from lakebed.documents.losses import TakenOut, decode_repair
from lakebed.documents.pending_meta import HeldMeta, HeldState, decode_held
from lakebed.documents.records import FinishedFile
from lakebed.errors import DocumentUnreadable
from lakebed.journal import JournalReader, accepted_losses, replaced_journals
from lakebed.storage.objects import ahead
from lakebed.storage.store import Reader

if TYPE_CHECKING:
    from lakebed.deltalog.search import EntryInLog, LogSearch

CHANGED = (FileState.REMOVED, FileState.DISCARDED, FileState.ALTERED)
"""The states of data files that another writer changed."""
MOST_ENTRIES = 100
"""The most entries of one commit to search for a file's replacement."""


@dataclass(slots=True, kw_only=True)
class JournalEvidence:
    """One journal of a table, and one version of the table's log."""

    store: Reader
    pipeline: str
    journal: JournalReader
    last: int
    """The last entry of the journal."""
    log: "LogSearch"
    _entries: dict[int, Entry | None] = field(default_factory=dict)
    _standings: dict[int, tuple[DataFile, ...]] = field(default_factory=dict)
    _takers: dict[str, Entry | None] = field(default_factory=dict)
    """The entry that removed each data file, if one did."""
    _replay_entries: list[Entry] = field(default_factory=list)
    """The entries after `_replayed_since` that replayed bad lines."""
    _replayed_since: int | None = None
    _heritage: "tuple[JournalEvidence, ...] | None" = None
    """The earlier journal, if there is one; None before it was sought."""
    _read_in: dict[str, int] = field(default_factory=dict)
    """By key, the last entry that read a source file."""

    @property
    def heritage(self) -> "JournalEvidence | None":
        """The earlier journal whose knowledge this one inherits; None if there is none any more."""
        if self._heritage is None:
            of, found = self._inherits, list[JournalEvidence]()
            if of is not None:
                folder = layout.replaced_journal(of.pipeline, of.journal)
                is_kept = folder in replaced_journals(self.store, of.pipeline)
                reader = JournalReader(self.store, of.pipeline, folder=folder if is_kept else None)
                opening = None if is_kept else reader.entry(0)
                # Without that folder, the journal in use may be it, under an earlier name.
                if is_kept or (opening is not None and opening.journal == of.journal):
                    evidence = JournalEvidence(
                        store=self.store,
                        pipeline=of.pipeline,
                        journal=reader,
                        last=of.sequence,
                        log=self.log,
                    )
                    found.append(evidence)
            self._heritage = tuple(found)
        return next(iter(self._heritage), None)

    @property
    def _inherits(self) -> Inheritance | None:
        opening = self.entry(0)
        return None if opening is None else opening.inherits

    def inherited_files(self, key: str, number: int | None) -> tuple[DataFile, ...]:
        """Return the data files of a source file that an earlier journal read.

        Empty if `number` is not an entry that repeats what such a journal knows.
        """
        of, before = self._inherits, self.heritage
        if of is None or before is None or number is None or number > of.entries:
            return ()
        last = before.last_reading(key)
        if last is None:
            return before.inherited_files(key, 0)
        parts = parts_until(before.journal, key, before.entry(last))
        return before.files_of(key, parts, None, replayed=True)

    def last_reading(self, key: str) -> int | None:
        """Return the last entry that read a source file; the first call reads all entries."""
        if not self._read_in:
            for number, entry in ahead(self.journal.entry, range(self.last + 1)):
                read = () if entry is None else entry.readings
                self._read_in |= {one.key: number for one in read if one.failure is None}
        return self._read_in.get(key)

    def committed(self, entry: Entry) -> "EntryInLog":
        """Look up an entry in the log."""
        return self.log.entry(entry.pipeline, entry.journal, entry.sequence)

    def data_files(self, entry: Entry, files: Sequence[FinishedFile]) -> tuple[DataFile, ...]:
        """Return the states of data files of an entry."""
        bare = [
            DataFile(
                path=file.filename,
                rows=file.record_count,
                bytes=file.size,
                entry=entry.sequence,
                sources=len(file.source_files) or 1,
                state=FileState.JOURNALED,
            )
            for file in files
        ]
        if not bare:
            return ()
        in_log = self.committed(entry)
        if not in_log.committed:
            return tuple(bare)
        lineage = self.follow([one.path for one in bare])
        return tuple(self._standing(one, lineage, in_log) for one in bare)

    def follow(self, paths: Iterable[str]) -> Lineage:
        """Return the lineage of data files, including their replacements by entries."""
        waiting = list(paths)
        seen = set(waiting)
        lineage = self.log.follow(waiting)
        while waiting:
            for path in waiting:
                self._note_step(path, lineage)
            found = (new for path in waiting for new in lineage.successors(path))
            waiting = [new for new in dict.fromkeys(found) if new not in seen]
            seen.update(waiting)
            lineage = self.log.follow(waiting)
        return lineage

    def _note_step(self, path: str, lineage: Lineage) -> None:
        """Record which entries removed a file, and its replacements.

        A RESTORE may have brought it back since, and another one its replacements.
        """
        if path in lineage.active or path in self._takers:
            return
        known = (lineage.removed.get(path, BEFORE), *reversed(lineage.rewritten_by.get(path, ())))
        versions = sorted(dict.fromkeys(known), key=lineage.in_effect, reverse=True)
        commits = filter(None, map(self.log.commit, versions))
        for part in (part for commit in commits for part in commit.entries):
            numbers = range(part.first, min(part.last, part.first + MOST_ENTRIES) + 1)
            entries = (
                entry
                for journal in self._journals_of(part.pipeline)
                for entry in map(journal.entry, numbers)
                if entry is not None and any(one.filename == path for one in entry.outgoing)
            )
            if (taker := next(entries, None)) is not None:
                self._takers.setdefault(path, taker)
                lineage.journaled(path, came_for(taker, path))

    def _journals_of(self, pipeline: str) -> Iterator[JournalReader]:
        """Yield the journals of a pipeline of the table, the current one first."""
        yield self.journal if pipeline == self.pipeline else JournalReader(self.store, pipeline)
        for folder in replaced_journals(self.store, pipeline):
            yield JournalReader(self.store, pipeline, folder=folder)

    def _standing(self, one: DataFile, lineage: Lineage, in_log: "EntryInLog") -> DataFile:
        name = layout.file_name(one.path)
        # A released file was committed in a later version than the rest of its entry.
        first = None if name in in_log.held else in_log.version
        active, own = lineage.active.get(one.path), lineage.removed.get(one.path)
        if active is not None and not active.deletions:
            added = lineage.added(one.path)
            return replace(one, state=FileState.IN_TABLE, version=first if added < 0 else added)
        if active is None and own is None:
            return self._withheld(one, name, in_log)
        trace, form = lineage.forward(one.path), active or lineage.past.get(one.path)
        lost = max((*trace.altered, *(version for _name, version in trace.removed)), default=None)
        version = own if lost is None else lost
        by = self.log.commit(version)
        state = FileState.REMOVED
        is_some_left = form is None or form.deleted < one.rows or any(lineage.updated(form))
        if trace.active and is_some_left:
            state = FileState.REWRITTEN if lost is None else FileState.ALTERED
        elif not (trace.altered or any(not self._takes(*last) for last in trace.removed)):
            state = FileState.RETRACTED
        elif self._is_accepted(by):
            state = FileState.DISCARDED
        at = self.log.removed_at(one.path) if version == own or by is None else by.at
        is_lost = state is FileState.REMOVED and by is not None and by.is_repair
        is_lost = is_lost and self.log.fates([name])[name] != HeldState.GONE
        heirs = [path for path in sorted(trace.active) if lineage.is_heir(path)]
        return replace(
            one,
            state=state,
            code=ROWS_LOST if is_lost else None,
            version=first,
            removed_version=None if by is None else by.version,
            removed_at=at,
            removed_by=None if by is None else by.who,
            replaced_by=" or ".join(heirs if lost is None else ()) or None,
        )

    def _takes(self, path: str, version: int) -> bool:
        """Whether an entry took a file out for good, given the version that removed it last."""
        taker, by = self._takers.get(path), self.log.commit(version)
        if taker is None or by is None:
            return taker is not None
        taken = self.committed(taker).version or 0
        return taken == version if by.restored is None else taken <= by.restored

    def _for_source(self, one: DataFile, key: str) -> DataFile:
        """Return the state of a data file with regard to the rows of one source file.

        An entry may have removed all of these and kept others, which live on in other files, also
        after another writer has moved them.
        """
        waiting, is_taken, seen = [one.path], False, {one.path}
        lineage = self.follow(waiting)
        while waiting:
            path = waiting.pop()
            taker = self._takers.get(path)
            version = None if taker is None else self.committed(taker).version
            is_undone = version is not None and not lineage.in_effect(version)
            moved = lineage.after(path) if taker is None else []
            if taker is None and moved:
                waiting += [name for name in moved if name not in seen]
                seen.update(moved)
                continue
            if taker is None or (is_undone and one.state in ROWS_ARE_THERE):
                return one
            is_taken |= key in _retracted(taker) or taker.uri_of(key) in taker.erased
            names = came_for(taker, path)
            new = [file for file in taker.data_files if file.filename in names]
            if key not in _retracted(taker) and not all(file.source_files for file in new):
                return one
            waiting += [file.filename for file in new if key in file.source_files]
        if is_taken or one.state not in CHANGED:
            return replace(one, state=FileState.RETRACTED)
        # Another writer deleted them before, so they are not in the new files, either.
        is_accepted = self._is_accepted(self.log.commit(one.removed_version))
        return replace(one, state=FileState.DISCARDED if is_accepted else FileState.REMOVED)

    def _is_accepted(self, removed: Commit | None) -> bool:
        """Whether an operator accepted this removal by another writer."""
        if removed is None or removed.is_repair:
            return False
        return removed.version in accepted_losses(self.store)

    def _withheld(self, one: DataFile, name: str, in_log: "EntryInLog") -> DataFile:
        """Return the state of a file of a committed entry that the log does not contain."""
        fate = self.log.fates([name]).get(name)
        if fate == HeldState.HELD:
            meta = _meta(self.store, layout.held_meta(name))
            reasons = () if meta is None else meta.reasons
            code = None if meta is None else meta.code
            return replace(one, state=FileState.HELD, code=code, reasons=reasons)
        if fate == HeldState.GONE:
            again = mentioning(self.journal, name, self.last, lambda entry: name in entry.redone)
            is_redone = next(again, None) is not None
            return replace(one, state=FileState.GIVEN_UP if is_redone else FileState.DISCARDED)
        if in_log.is_forgotten:
            version = in_log.version
            return replace(one, state=FileState.REMOVED, removed_version=version, removed_by=FORGET)
        return replace(one, state=FileState.REMOVED)

    def takers(self, paths: Iterable[str]) -> list[Entry]:
        """Return the entries of any pipeline that removed data files or their replacements."""
        paths = list(paths)
        takers = map(self._takers.get, self.follow(paths).reached(paths))
        return [entry for entry in takers if entry is not None]

    def files_of(
        self, key: str, parts: Sequence[Entry], number: int | None, *, replayed: bool
    ) -> tuple[DataFile, ...]:
        """Return the data files with rows of a source file, from the entries that read it.

        `number` is the entry that says that it was read, perhaps of an earlier journal. `replayed`:
        bad lines of it were replayed since.
        """
        found = [*self.inherited_files(key, number)]
        later = self._replays(parts[0].sequence) if replayed and parts else ()
        for entry in (*parts, *later):
            if entry.sequence not in self._standings:
                self._standings[entry.sequence] = self.data_files(entry, entry.files)
            for file, one in zip(entry.files, self._standings[entry.sequence], strict=True):
                if key in file.source_files:
                    own = replace(one, own_rows=_rows_of(file, key))
                    found.append(self._for_source(own, key))
        return tuple(found)

    def entry(self, number: int) -> Entry | None:
        """Return an entry; None if there is none of this number."""
        if number not in self._entries:
            self._entries[number] = self.journal.entry(number)
        return self._entries[number]

    def _replays(self, since: int) -> list[Entry]:
        """Return the entries after `since` that replayed bad lines."""
        if self._replayed_since is None or self._replayed_since > since:
            until = self.last if self._replayed_since is None else self._replayed_since
            settled = dealing_with_lines(self.journal, since + 1, until)
            self._replay_entries[:0] = [entry for entry in settled if entry.kind == "replay"]
            self._replayed_since = since
        return [entry for entry in self._replay_entries if entry.sequence > since]

    def replayed_sources(self, *, since: int) -> set[str]:
        """Return the keys of source files with rows that later entries replayed."""
        files = (file for entry in self._replays(since) for file in entry.files)
        return {key for file in files for key in file.source_files}

    def altered_sources(self) -> set[str]:
        """Return the keys of source files with rows in data files that other writers changed.

        For a file that a retraction wrote, this includes the source files that it retracted.
        """
        found, known = set[str](), dict[str, set[str]]()
        lineage = self.log.follow(None)
        changed = [
            path
            for path, file in lineage.active.items()
            if file.deletions or path in lineage.past  # It left the table, and was put back.
        ]
        for path, version in lineage.removed.items():
            trace = lineage.forward(path)
            is_moved = not (trace.altered or trace.removed)
            is_ours = version in lineage.ours and not trace.altered
            if not (version == BEFORE or is_ours or is_moved):
                changed.append(path)
        for path in changed:
            name = layout.file_name(path)
            if name not in known and layout.file_id(path) is not None:
                entry = self.naming(name)
                files = () if entry is None else entry.data_files
                out = set() if entry is None else _retracted(entry)
                known |= {
                    layout.file_name(file.filename): out.union(file.source_files) for file in files
                }
            found |= known.get(name, set())
        return found

    def naming(self, name: str) -> Entry | None:
        """Return the entry that a data file was written for, also under an earlier journal."""
        before, entry = self.heritage, likely_naming(self.journal, name, self.last)
        return before.naming(name) if entry is None and before is not None else entry

    def repaired_sources(self) -> dict[str, int]:
        """Map the keys of source files with rows in repaired files to the last entry affected.

        A file that a later entry read is in the table.
        """
        found: dict[str, int] = {}
        for entry, file in self._taken_out():
            for key in file.source_files:
                found[key] = max(last_part(self.journal, entry, key), found.get(key, 0))
        return found

    def awaiting_redo(self, lookup: Lookup) -> tuple[AwaitingRedo, ...]:
        """Return repaired files that `blizzard redo` can read again and has not."""
        files = {
            layout.file_name(file.filename): (entry, file) for entry, file in self._taken_out()
        }
        marks = self.log.fates(files) if files else {}
        return tuple(
            AwaitingRedo(
                file=file.filename,
                entry=entry.sequence,
                rows=file.record_count,
                sources=file.source_files,
            )
            for name, (entry, file) in files.items()
            if marks[name] == HeldState.GONE
            for read in [map(lookup, file.source_files)]
            if any(one.finished and one.finished.entry == entry.sequence for one in read)
        )

    def _taken_out(self) -> Iterator[tuple[Entry, FinishedFile]]:
        """Yield repaired files that are not back. Without any repair this costs one listing."""
        files = [one for one in repaired(self.store) if one.pipeline == self.pipeline]
        lineage = self.log.follow({one.path for one in files}) if files else Lineage()
        for one in files:
            removed, entry = self.log.commit(lineage.removed.get(one.path)), self.entry(one.entry)
            name = layout.file_name(one.path)
            # If a later version removed the file, it had been put back in between.
            is_back = one.path in lineage.active or (removed is not None and not removed.is_repair)
            file = None if entry is None else data_file_of(entry, name)
            if entry is not None and file is not None and not is_back:
                yield entry, file


def repaired(store: Reader) -> list[TakenOut]:
    """Return all files that repairs took out, in order."""
    listed = sorted(one.path for one in store.objects(layout.REPAIRED))
    bodies = ((path, store.get(path)) for path in listed)
    return [
        file
        for path, body in bodies
        if body is not None
        for file in decode_repair(body, path).files
    ]


def _retracted(entry: Entry) -> set[str]:
    """Return the keys of the source files that an entry retracts."""
    return {record.key for record in entry.sources if record.retracted}


def _rows_of(file: FinishedFile, key: str) -> int | None:
    """Count the rows of a source file in a data file; None if the journal does not say."""
    if not file.runs:
        return file.record_count if len(file.source_files) == 1 else None
    return sum(run.rows for run in file.runs if file.source_files[run.source] == key)


def _meta(store: Reader, path: str) -> HeldMeta | None:
    body = store.get(path)
    try:
        return None if body is None else decode_held(body, path)
    except DocumentUnreadable:
        return None  # penguin reports it, and the log says that the file is held.


def journals_of(
    store: Reader, mark: tuple[str, str] | None, known: Mapping[str, Ledger] | None = None
) -> Iterator[tuple[str, JournalReader, int]]:
    """Yield the journals that may name a data file: that of its mark, or all without one.

    Each comes with its pipeline and its last entry. Pipelines with known ledgers come first.
    """
    ledgers = known or {}
    pipelines = layout.pipelines(store.folders(layout.OURS)) if mark is None else [mark[0]]
    for pipeline in sorted(pipelines, key=lambda name: (name not in ledgers, name)):
        ledger = ledgers.get(pipeline) or read_ledger(store, pipeline)
        is_in_use = mark is None or ledger.journal == mark[1]
        if is_in_use:
            yield pipeline, JournalReader(store, pipeline), ledger.sequence
        for folder in replaced_journals(store, pipeline) if mark is None or not is_in_use else ():
            if mark is None or folder == layout.replaced_journal(*mark):
                journal = JournalReader(store, pipeline, folder=folder)
                yield pipeline, journal, max(journal.numbers(), default=-1)
