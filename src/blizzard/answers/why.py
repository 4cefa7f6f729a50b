"""Explain why a file is not in the table or how it got there, for each file of a name."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta

from blizzard.answers.answer import Answer, CommandPrefix, DataFile, FileState, WayOut, confirmed
from blizzard.answers.entries import data_file_of, naming_data_file
from blizzard.answers.evidence import JournalEvidence, journals_of
from blizzard.answers.progress import PipelineEvidence
from blizzard.answers.source_file import why_source_file
from blizzard.answers.wording.phrases import moment, removal
from blizzard.answers.wording.words import run_penguin, way
from blizzard.journal.source_names import (
    FileAmbiguous,
    FileUnknown,
    ambiguous,
    files_in_full,
    is_place,
    named_files,
)
from blizzard.model.settings import PipelineSettings, SinkSettings, SourceSettings
from lakebed import layout
from lakebed.documents.entry import Entry
from lakebed.errors import LakeError
from lakebed.layout import file_name
from lakebed.locations import below, place_of
from lakebed.storage.options import ObjectFacts
from lakebed.storage.parquet_tail import born, mark_of
from lakebed.storage.store import Reader
from lakebed.types import CommitMode
from lakebed.units import plural

UUID = re.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
Ask = Callable[[PipelineSettings], PipelineEvidence]
"""Opens the evidence of a pipeline."""
Search = Callable[[Sequence[PipelineEvidence]], list[tuple[PipelineEvidence, str]]]
"""Returns the source files of some pipelines that match a name."""
Subject = tuple[PipelineEvidence, SourceSettings | None, str]
"""A file that matches: of a source, or a data file of the table if the source is None."""


@dataclass(frozen=True, slots=True)
class Pipelines:
    """The pipelines to search; an unreadable one does not hide the others."""

    settings: Sequence[PipelineSettings]
    ask: Ask
    unread: dict[str, LakeError] = field(default_factory=dict)
    """Errors of unreadable pipelines, by name."""

    def opened(self, settings: Iterable[PipelineSettings]) -> Iterator[PipelineEvidence]:
        """Open pipelines, skipping unreadable ones."""
        for one in settings:
            with self.sparing(one):
                yield self.ask(one)

    @contextmanager
    def sparing(self, of: PipelineSettings) -> Iterator[None]:
        """Record that a pipeline cannot be read, and continue."""
        try:
            yield
        except (FileUnknown, FileAmbiguous):
            raise
        except LakeError as trouble:
            self.unread[of.name] = trouble

    def find(
        self, scopes: Sequence[PipelineEvidence], search: Search
    ) -> list[tuple[PipelineEvidence, str]]:
        """Search pipelines; if that fails, search only those with readable sources."""
        try:
            return search(scopes)
        except (FileUnknown, FileAmbiguous):
            raise
        except LakeError:
            return search([scope for scope in scopes if self._is_readable(scope, search)])

    def _is_readable(self, scope: PipelineEvidence, search: Search) -> bool:
        with suppress(FileUnknown, FileAmbiguous), self.sparing(scope.settings):
            search([scope])
        return scope.settings.name not in self.unread


def subjects(name: str, pipelines: Pipelines) -> list[Subject]:
    """Return the files that a name means; none for a location that no source reads.

    Raise if no file matches, or several match in part.
    """
    data_file = next(_placed_data_file(name, pipelines), None)
    if data_file is not None:
        return [data_file]
    scopes = list(pipelines.opened(pipelines.settings))
    found = list(_of_sources(pipelines.find(scopes, lambda each: files_in_full(name, each))))
    if found or is_place(name):
        return found
    return list(_data_files(name, pipelines)) or list(
        _of_sources(pipelines.find(scopes, lambda each: named_files(name, each, listing=True)))
    )


def _of_sources(found: Sequence[tuple[PipelineEvidence, str]]) -> Iterator[Subject]:
    for evidence, key in found:
        name, _, path = key.partition(":")
        for source in evidence.settings.sources:
            if source.name == name:
                yield evidence, source, path


def _placed_data_file(name: str, pipelines: Pipelines) -> Iterator[Subject]:
    """Yield the data file at a URI or local path."""
    for settings in pipelines.settings:
        path = below(settings.sink.table_uri, name)
        if path is not None and layout.is_parquet(path):
            evidence = pipelines.ask(settings)
            there = evidence.store is not None and evidence.store.head(path) is not None
            if is_place(name) or there:
                yield evidence, None, path


def _data_files(name: str, pipelines: Pipelines) -> Iterator[Subject]:
    """Yield the data file of each table that matches a relative path, a name or a UUID.

    Raise if a name without folders matches several files of a table.
    """
    is_ours = layout.file_id(f"{name.removesuffix(layout.PARQUET_SUFFIX)}.parquet") is not None
    if not is_ours and not UUID.search(name) and not layout.is_parquet(name):
        return
    tables = {place_of(each.sink.table_uri): each for each in reversed(pipelines.settings)}
    for evidence in pipelines.opened(tables.values()):
        paths = _paths_in_log(evidence, name) or [name] * is_ours
        if len(paths) > 1:
            found = [(evidence, path) for path in paths]
            raise ambiguous(f"{name!r} matches several data files; name one", found)
        yield from ((evidence, None, path) for path in paths)


NOT_TAKEN = (FileState.SKIPPED, FileState.MISSING)


def why(name: str, pipelines: Pipelines) -> list[Answer]:
    """Return the answers about the files that a name means, usually one.

    If several pipelines read the same folder with different patterns, those that take the file
    answer; if none does, each says why not. Unreadable pipelines are in `pipelines.unread`; without
    any answer, their errors are raised.
    """
    try:
        found = subjects(name, pipelines)
        answers = []
        for evidence, source, path in found:
            with pipelines.sparing(evidence.settings):
                answers.append(_answer(evidence, source, path))
    except FileUnknown:
        _raise_unread(pipelines)
        raise
    if not answers:
        _raise_unread(pipelines)
        return [
            Answer(
                kind="source",
                state=FileState.ELSEWHERE,
                uri=name,
                answer="It lies in no source and no table of this configuration, so no pipeline "
                "reads it.",
                next=(way("Check where each pipeline reads from."),),
            )
        ]
    known = [each for each in answers if each is not None]
    if not known:
        raise FileUnknown(f"no entry of a journal names the data file {name!r}")
    return [each for each in known if each.state not in NOT_TAKEN] or known


def _raise_unread(pipelines: Pipelines) -> None:
    """Raise the error of the first unreadable pipeline, if any."""
    for trouble in pipelines.unread.values():
        raise trouble


def _answer(evidence: PipelineEvidence, source: SourceSettings | None, path: str) -> Answer | None:
    if source is not None:
        return why_source_file(evidence, source, path)
    return None if evidence.store is None else why_data_file(evidence, evidence.store, path)


GC_AGE = timedelta(hours=24)
"""The default minimum age for `blizzard gc`."""


def why_data_file(evidence: PipelineEvidence, store: Reader, path: str) -> Answer | None:
    """Explain the state of a data file; None for an unknown UUID."""
    name, is_path = file_name(path), layout.is_parquet(path)
    facts = store.head(path) if is_path else None
    mark = None if facts is None else mark_of(store, facts)
    for table in _journals(evidence, store, mark):
        entry = naming_data_file(table.journal, name, table.last)
        if entry is not None:
            return _of_entry(evidence, store, table, entry, name)
    if not is_path:
        return None
    bare, log = _bare(evidence, store, path, facts), evidence.log.search()
    lineage = log.follow([path])
    if path in lineage.active or path in lineage.removed:
        removed = log.commit(lineage.removed.get(path))
        by = None if removed is None else removed.who
        gone = (
            ""
            if path in lineage.active
            else f"; it has been removed since ({by or 'by an unknown writer'})"
        )
        return replace(
            bare,
            state=FileState.FOREIGN,
            reason="in_table" if path in lineage.active else "removed",
            answer=f"Another program wrote or committed it: only the table's log names it{gone}.",
        )
    if facts is None:
        return replace(bare, answer="It does not exist, and no journal or log names it.")
    if mark is None:
        return replace(
            bare,
            state=FileState.FOREIGN,
            reason="uncommitted",
            answer="Another program wrote it, and neither a journal nor the table's log names it.",
            next=(way("penguin commits such files if the table's configuration allows it."),),
        )
    at, gc = born(facts) + GC_AGE, f"{evidence.cli.blizzard} gc"
    return replace(
        bare,
        state=FileState.ORPHAN,
        pipeline=mark[0],
        deleted_from=at,
        answer="It is an orphan: blizzard wrote it, and no entry names it. Its batch died or is "
        f"still running; blizzard gc deletes it from {moment(at)} on.",
        next=(way("Delete it once it is old enough.", gc, f"{gc} --delete"),),
    )


def _paths_in_log(evidence: PipelineEvidence, name: str) -> list[str]:
    """Return the data files in the log with a path, else with a name, else with a UUID in it."""
    lineage = evidence.log.search().follow([f"{name.removesuffix(layout.PARQUET_SUFFIX)}.parquet"])
    known = lineage.active.keys() | lineage.removed.keys()
    if "/" in name:
        return [name] if name in known or _is_uncommitted(evidence, name) else []
    found = [path for path in known if file_name(path) == file_name(name)]
    if not found and layout.file_id(name) is None:
        table = evidence.log.snapshot()
        found = [path for path in table.files if name in file_name(path)] if table else []
    return found or ([name] if _is_uncommitted(evidence, name) else [])


def _is_uncommitted(evidence: PipelineEvidence, path: str) -> bool:
    """Whether a data file lies in the table's directory that the log does not name."""
    store = evidence.store
    return store is not None and layout.is_parquet(path) and store.head(path) is not None


def _journals(
    evidence: PipelineEvidence, store: Reader, mark: tuple[str, str] | None
) -> Iterator[JournalEvidence]:
    """Yield the journals that may name a file: that of its mark, or all without one."""
    log = evidence.log.search() if evidence.table is None else evidence.table.log
    known = {evidence.settings.name: evidence.history}
    for pipeline, journal, last in journals_of(store, mark, known):
        yield JournalEvidence(store=store, pipeline=pipeline, journal=journal, last=last, log=log)


def _bare(
    evidence: PipelineEvidence, store: Reader, path: str, facts: ObjectFacts | None
) -> Answer:
    return Answer(
        kind="data",
        state=FileState.MISSING,
        uri=store.describe(path),
        table_uri=evidence.settings.sink.table_uri,
        path=path,
        answer="",
        stored=facts,
    )


def _of_entry(
    evidence: PipelineEvidence, store: Reader, table: JournalEvidence, entry: Entry, name: str
) -> Answer:
    file = data_file_of(entry, name)
    if file is None:
        path = next(each for each in entry.deleted if file_name(each) == name)
        gc = way("Finish the deletion.", f"{evidence.cli.blizzard} gc --delete")
        bare = _bare(evidence, store, path, store.head(path))
        return replace(
            bare,
            pipeline=table.pipeline,
            state=FileState.DELETED,
            answer=f"No batch has ever named it, and blizzard gc deletes it: entry "
            f"{entry.sequence} gives it up.",
            next=() if bare.stored is None else (gc,),
        )
    (one,) = table.data_files(entry, (file,))
    if entry.replaces and one.state is FileState.REMOVED and one.removed_at is None:
        one = replace(one, state=FileState.DISCARDED)
    bare, cli = _bare(evidence, store, one.path, store.head(one.path)), evidence.cli
    fate, ways = _fate(one, evidence.settings.sink, cli)
    if bare.stored is None and one.state in STORED:
        if store.head(layout.outbox(table.pipeline, file.filename)) is not None:
            fate += " It is still in the outbox; blizzard moves it from there when it starts."
            ways = (way("Run blizzard.", cli.start("blizzard")),)
        else:
            fate += " The file itself is no longer in the store."
            redo = confirmed(f"{cli.blizzard} redo --held {name}")
            ways = (*ways, way("Read its sources again, if penguin holds it.", *redo))
    rows = f"{plural(one.rows, 'row')} of {plural(one.sources, 'source file')}"
    return replace(
        bare,
        pipeline=table.pipeline,
        state=one.state,
        reason=one.code,
        answer=f"Entry {entry.sequence} ({entry.kind}) names it with {rows}. {fate}",
        data_files=(one,),
        sources=file.source_files,
        next=ways,
    )


STORED = (FileState.IN_TABLE, FileState.JOURNALED, FileState.HELD)
"""The states of data files whose objects must be in the store."""


def _fate(one: DataFile, sink: SinkSettings, cli: CommandPrefix) -> tuple[str, tuple[WayOut, ...]]:
    """Say what has become of a data file, with ways out."""
    name, by = file_name(one.path), removal(one)
    if one.state is FileState.JOURNALED:
        once = way("Run blizzard.", f"{cli.start('blizzard')} --once")
        ways = run_penguin(cli) if sink.commit is CommitMode.PENGUIN else once
        return f"It is not in the table yet: {sink.committer} has yet to commit that.", (ways,)
    if one.state is FileState.HELD:
        why = "; ".join(one.reasons) or "penguin held shows why"
        return (
            f"It is not in the table: penguin holds it: {why}.",
            (
                way("Release it.", f"{cli.penguin} release {name}"),
                way("Or discard it.", *confirmed(f"{cli.penguin} discard {name}")),
                way("Or read its sources again.", *confirmed(f"{cli.blizzard} redo --held {name}")),
            ),
        )
    since = "" if one.version is None else f", since Delta version {one.version}"
    heir = "" if one.replaced_by is None else f" {one.replaced_by} has them."
    fates = {
        FileState.IN_TABLE: f"It is in the table{since}.",
        FileState.GIVEN_UP: "It never goes into the table: its sources were read again.",
        FileState.REWRITTEN: f"Its rows are in other files now: {by}.{heir}",
        FileState.ALTERED: f"It has been rewritten, perhaps without some of its rows: {by}.",
    }
    if one.state is FileState.DISCARDED and one.removed_version is None:
        return "It never goes into the table: it was discarded.", ()
    return fates.get(one.state, f"It has been removed from the table: {by}."), ()
