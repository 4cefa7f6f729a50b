"""Why a data file is where it is: committed, held, removed, an orphan, or another program's."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

from blizzard.answers.answer import Answer, DataFile, StoredObject
from blizzard.answers.asked import Asked
from blizzard.answers.entry_search import data_file_of, naming_data_file
from blizzard.answers.evidence import Table
from blizzard.answers.lifecycle import FileState
from blizzard.journal.checkpoint import read_ledger
from blizzard.model.settings import SinkSettings
from lakebed import layout
from lakebed.documents.entry import Entry
from lakebed.journal import JournalReader
from lakebed.layout import file_name
from lakebed.storage.parquet_tail import born, mark_of
from lakebed.storage.store import ObjectFacts, Reader
from lakebed.types import Commit
from lakebed.units import is_are, plural

GC_AGE = timedelta(hours=24)
"""How old a file must be for `blizzard gc`, unless it is told otherwise."""


def why_data_file(asked: Asked, store: Reader, path: str) -> Answer | None:
    """Return why a data file is where it is; None where only a UUID is given that nobody knows."""
    name, is_path = file_name(path), layout.is_parquet(path)
    facts = store.head(path) if is_path else None
    mark = None if facts is None else mark_of(store, facts)
    found = next(_named(asked, store, name, mark), None)
    if found is not None:
        table, entry = found
        return _of_entry(asked, store, table, entry, name)
    if not is_path:
        return None
    bare = _bare(asked, store, path, facts)
    told = asked.log.files([path])[path]
    if told.in_table or told.removed:
        removed_by = None if told.removed_by is None else told.removed_by.who
        gone = f"; it has been removed since ({removed_by or 'by whom is not known any more'})"
        return replace(
            bare,
            state=FileState.FOREIGN,
            reason="in_table" if told.in_table else "removed",
            answer="No entry of a journal names it, but the table's log does: another program "
            f"wrote or committed it{'' if told.in_table else gone}.",
        )
    if facts is None:
        return replace(bare, answer="It is not there, and neither a journal nor the log names it.")
    if mark is None:
        return replace(
            bare,
            state=FileState.FOREIGN,
            reason="uncommitted",
            answer="Another program wrote it: it does not carry blizzard's mark, no entry names it "
            "and the table's log does not either. blizzard gc leaves it alone.",
            next=("penguin commits such files where the table's configuration lets it",),
        )
    at = born(facts) + GC_AGE
    return replace(
        bare,
        state=FileState.ORPHAN,
        pipeline=mark[0],
        deleted_from=at,
        answer="It is an orphan: blizzard wrote it, and no entry names it. Its batch died or is "
        f"still running; blizzard gc deletes it from {at:%Y-%m-%d %H:%M:%S} UTC on.",
        next=("blizzard gc shows it, and blizzard gc --delete deletes it once it is old enough",),
    )


@dataclass(frozen=True, slots=True)
class _Journal:
    """A journal in which a data file may be named."""

    pipeline: str
    reader: JournalReader
    last: int


def _named(
    asked: Asked, store: Reader, name: str, mark: tuple[str, str] | None
) -> Iterator[tuple[Table, Entry]]:
    """Yield the entry that names or deletes a data file, and the part of the table it is in."""
    for one in _journals(asked, store, mark):
        entry = naming_data_file(one.reader, name, one.last)
        if entry is not None:
            table = Table(
                store=store,
                pipeline=one.pipeline,
                journal=one.reader,
                last=one.last,
                log=asked.log,
            )
            yield table, entry


def _journals(asked: Asked, store: Reader, mark: tuple[str, str] | None) -> Iterator[_Journal]:
    """Yield the journals that may name a file: the one of its mark, or else all of them."""
    ours = asked.settings.name
    pipelines = layout.pipelines(store.folders(layout.OURS)) if mark is None else [mark[0]]
    for pipeline in sorted(pipelines, key=lambda name: (name != ours, name)):
        history = asked.history if pipeline == ours else read_ledger(store, pipeline)
        if mark is None or history.journal == mark[1]:
            reader = JournalReader(store, pipeline)
            yield _Journal(pipeline, reader, history.sequence)
        if mark is None or history.journal != mark[1]:
            yield from _aside(store, pipeline, mark)


def _aside(store: Reader, pipeline: str, mark: tuple[str, str] | None) -> Iterator[_Journal]:
    """Yield the journals of a pipeline that others have replaced."""
    folders = [folder.rstrip("/") for folder in store.folders(f"{layout.OURS}/{pipeline}")]
    for folder in filter(layout.is_journal_aside, folders):
        if mark is None or folder == layout.journal_aside(pipeline, mark[1]):
            reader = JournalReader(store, pipeline, folder=folder)
            yield _Journal(pipeline, reader, max(reader.numbers(), default=-1))


def _bare(asked: Asked, store: Reader, path: str, facts: ObjectFacts | None) -> Answer:
    return Answer(
        kind="data",
        state=FileState.MISSING,
        uri=store.describe(path),
        table_uri=asked.settings.sink.table_uri,
        path=path,
        answer="",
        stored=None
        if facts is None
        else StoredObject(size=facts.size, etag=facts.etag, modified=facts.modified),
    )


def _of_entry(asked: Asked, store: Reader, table: Table, entry: Entry, name: str) -> Answer:
    file = data_file_of(entry, name)
    path = (
        next(each for each in entry.deleted if file_name(each) == name)
        if file is None
        else file.filename
    )
    bare = replace(_bare(asked, store, path, store.head(path)), pipeline=table.pipeline)
    if file is None:
        is_there = "it is still there" if bare.stored is not None else "it is gone"
        return replace(
            bare,
            state=FileState.DELETED,
            answer=f"blizzard gc deletes it: no batch has ever named it, and entry "
            f"{entry.sequence} gives it up; {is_there}.",
            next=() if bare.stored is None else ("blizzard gc --delete finishes the deletion",),
        )
    (one,) = table.data_files(entry, (file,))
    if entry.replaces and one.state is FileState.REMOVED and one.removed_at is None:
        one = replace(one, state=FileState.DISCARDED)
    sources = file.source_files
    sentence, ways = _told(one, entry, asked.settings.sink)
    if bare.stored is None and one.state in (
        FileState.IN_TABLE,
        FileState.JOURNALED,
        FileState.HELD,
    ):
        if store.head(layout.outbox(table.pipeline, file.filename)) is not None:
            sentence += " It is still in the outbox; blizzard moves it from there when it starts."
            ways = ("run blizzard",)
        else:
            sentence += " The file itself is not in the store any more."
            again = f"blizzard redo --held {name} reads its sources again, if penguin holds it"
            ways = (*ways, again)
    return replace(
        bare,
        state=one.state,
        reason=one.code,
        answer=f"{sentence} {_sources(sources)}",
        data_files=(one,),
        sources=sources,
        next=ways,
    )


def _sources(sources: tuple[str, ...]) -> str:
    some = ", ".join(sources[:3]) + (", ..." if len(sources) > 3 else "")
    return f"Its rows are from {plural(len(sources), 'source file')}: {some}." if sources else ""


def _told(one: DataFile, entry: Entry, sink: SinkSettings) -> tuple[str, tuple[str, ...]]:
    rows, named = plural(one.rows, "row"), f"entry {entry.sequence} ({entry.kind})"
    name, are = file_name(one.path), is_are(one.rows)
    removed = one.removed_by or "by whom is not known any more"
    if one.removed_version is not None:
        removed += f" in version {one.removed_version}"
    match one.state:
        case FileState.IN_TABLE:
            version = (
                f"since Delta version {one.version}"
                if one.version is not None
                else "since a version that the log has cleaned up, or that released it"
            )
            return f"It is in the table with {rows}, {version}; {named} names it.", ()
        case FileState.JOURNALED:
            way = f"run {sink.committer} --once"
            if sink.commit is Commit.PENGUIN:
                way += "; penguin status shows what stops it"
            waits = f"It is not in the table yet: {named} names it with {rows}"
            return f"{waits}, and {sink.committer} has yet to commit that.", (way,)
        case FileState.HELD:
            why = "; ".join(one.reasons) or "penguin held shows why"
            way = f"penguin release {name}, penguin discard {name}, or blizzard redo --held {name}"
            return f"penguin holds it: {why}. Its {rows} {are} not in the table.", (way,)
        case FileState.DISCARDED | FileState.GIVEN_UP:
            how = (
                "its sources were read again"
                if one.state is FileState.GIVEN_UP
                else "it was discarded, and its sources were not read again"
            )
            return f"It never goes into the table: {how} ({named}, {rows}).", ()
        case FileState.REWRITTEN:
            heir = f" {one.replaced_by} has them." if one.replaced_by else ""
            return f"Its {rows} {are} in other files now: {removed}.{heir}", ()
        case _:
            told = f"has been removed: {removed}."
            if one.state is FileState.ALTERED:
                told = (
                    f"has been rewritten: {removed}. Some of them may have been removed by that, "
                    "and the log does not say which."
                )
            return f"It was in the table with {rows} and {told}", ()
