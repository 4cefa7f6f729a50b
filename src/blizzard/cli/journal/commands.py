"""`blizzard journal`: the last entries, one entry, or a new journal."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from blizzard.answers.entries import EntryRecord, stored_entries
from blizzard.cli.call import PipelineCall, failed_at
from blizzard.cli.journal.new import begin_anew
from blizzard.handoff.held_rows import WithheldFiles
from blizzard.journal.standings import EntrySummary
from blizzard.model.settings import PipelineSettings
from blizzard.model.source.partly_read import bytes_in_words
from blizzard.model.stores import open_reader, open_table, sink_location
from blizzard.pipeline_log import PipelineLog
from lakebed.documents.entry import Entry
from lakebed.documents.pending_meta import by_reason
from lakebed.documents.records import Rewrite, SourceRecord
from lakebed.terminal.call import Confirmed, refuse
from lakebed.terminal.console import Line, Table, fields_of, first, more, picked, second, text_width
from lakebed.terminal.program import CommandLine, ForwardingGroup
from lakebed.units import in_words, plural

REJECTED = "rejected"
READ = "read"
FEW = 50
"""The most source files or data files of an entry to show to a person."""

ROOMY = 100
"""The least width of a terminal for full times; a narrower one shows them without the year."""
STATES = {
    (
        "held",
        "discarded",
    ): "held, discarded: committed without some rows; see journal show N",
    (REJECTED,): "rejected: it changed nothing in the table, because its files had changed",
    ("waits",): "waits: it is not committed yet, by the receipt",
    ("broken",): "broken: the digests of this entry and its neighbours do not match",
}


class _Journal(ForwardingGroup):
    """The commands of `blizzard journal`, where `journal 7` is short for `journal show 7`."""

    def resolve_command(self, ctx: Any, args: Any) -> Any:  # noqa: ANN401 - typer's own types are private
        """Find the command; a number is the entry to show."""
        return super().resolve_command(ctx, ["show", *args] if args[0].isdecimal() else args)


app = CommandLine(cls=_Journal)

Limit = Annotated[int, typer.Option(min=1, metavar="COUNT", help="How many entries to list.")]


@app.callback(invoke_without_command=True)
def journal(call: PipelineCall, limit: Limit = 20) -> None:
    """Show the journal, which has a numbered entry for each batch, or begin a new one.

    Without a command this is `list`; with the number of an entry it is `show`.
    """
    if not call.has_subcommand:
        journal_list(call, limit)


@app.command(name="list")
def journal_list(call: PipelineCall, limit: Limit = 20) -> None:
    """List the last entries of the journals, newest first."""
    for settings in call.pipelines():
        with call.guard(settings.name):
            found = _last_entries(settings, limit)
            call.show(list_lines(settings.name, found), *map(entry_summary, found))
            call.fail_if(not all(kept.follows for kept in found))


@app.command(name="show")
def journal_show(
    call: PipelineCall,
    number: Annotated[int, typer.Argument(min=0, show_default=False)],
) -> None:
    """Show everything that one entry records.

    `blizzard journal N` does the same.

    Args:
        number N: The number of the entry.
    """
    with call.one() as settings:
        reader = open_reader(sink_location(settings))
        fates = PipelineLog(settings).fates
        (kept,) = stored_entries(reader, settings.name, fates, number=number)
        call.show(entry_lines(kept), entry_document(kept))
        call.fail_if(not kept.follows)


@app.command(name="new")
def journal_new(
    call: PipelineCall,
    old: Annotated[str | None, typer.Option("--from")] = None,
    empty: bool = False,
    yes: Confirmed = False,
) -> None:
    """Begin a new journal, for example after it was lost or the pipeline was renamed.

    Args:
        old OLD: Take over the knowledge of the journal of pipeline OLD.
        empty: Start from nothing: every source file is ingested again.
    """
    if (old is None) == (not empty):
        refuse("journal new needs either --from OLD or --empty")
    with call.one() as settings:
        begin_anew(call, settings, old, yes=yes)


def _last_entries(settings: PipelineSettings, limit: int) -> list[EntryRecord]:
    reader, fates = open_table(settings, open_reader), PipelineLog(settings).fates
    return [] if reader is None else stored_entries(reader, settings.name, fates, limit=limit)


def entry_summary(kept: EntryRecord) -> dict[str, object]:
    """Return the key figures of an entry, with the keys documented in docs/operations.md."""
    return {
        "pipeline": kept.entry.pipeline,
        **fields_of(EntrySummary.of(kept.entry)),
        "sources": _sources(kept.entry),
        "dlq": len(kept.entry.dlq),
        **picked(kept, "committed rejected follows"),
        **fields_of(kept.withheld.counts()),
    }


def entry_document(kept: EntryRecord) -> dict[str, object]:
    """Return an entry as stored, with what is known about it."""
    return {
        **fields_of(kept.entry),
        **picked(kept, "path digest size committed rejected follows is_last"),
        **fields_of(kept.withheld.counts()),
    }


def _sources(entry: Entry) -> list[str]:
    return sorted({record.source for record in entry.sources})


def list_lines(pipeline: str, found: list[EntryRecord]) -> Iterator[Line]:
    """Yield entries for a person, a row for each."""
    if not found:
        yield f"pipeline {pipeline}: nothing is journaled yet"
        return
    yield f"pipeline {pipeline}: the last {plural(len(found), 'entry', 'entries')}, newest first"
    is_roomy = text_width() >= ROOMY
    rows = []
    for kept in found:
        batch = EntrySummary.of(kept.entry)
        rows.append(
            (
                batch.entry,
                second(batch.at) if is_roomy else f"{batch.at:%m-%d %H:%M}",
                batch.kind,
                ", ".join(_sources(kept.entry)) or None,
                *(batch.files, batch.failed, batch.rows, batch.parquet_files),
                in_words(batch.parquet_bytes),
                _state(kept),
            )
        )
    titles = (">entry", "at (UTC)", "kind", "sources", ">in", ">failed", ">rows", ">out", ">bytes")
    yield Table((*titles, ""), rows)
    states = set(map(_state, found))
    yield from (f"  {words}" for names, words in STATES.items() if states.intersection(names))


def _state(kept: EntryRecord) -> str:
    if not kept.follows:
        return "broken"
    if kept.withheld.held or kept.withheld.discarded:
        return "held" if kept.withheld.held else "discarded"
    if kept.rejected:
        return REJECTED
    return "" if kept.committed or kept.entry.kind == "open" else "waits"


def entry_lines(kept: EntryRecord) -> Iterator[Line]:
    """Yield one entry for a person."""
    entry = kept.entry
    yield f"entry {entry.sequence} ({entry.kind}) of pipeline {entry.pipeline}"
    yield from (f"  {name:<10} {value}" for name, value in _facts(kept))
    if entry.sources:
        yield from _source_lines(entry)
    if entry.files:
        yield Table(
            ("data file", "partition", ">rows", ">bytes"),
            [
                (
                    file.filename.rpartition("/")[2],
                    ", ".join(f"{key}={value}" for key, value in file.partition_values.items())
                    or None,
                    file.record_count,
                    in_words(file.size),
                )
                for file in entry.files[:FEW]
            ],
        )
        yield from more(len(entry.files) - FEW)
    yield from (f"  dead letters {uri}" for uri in entry.dlq)
    bad = [
        f"{plural(one.record_count, 'bad line')} in {one.filename}"
        for one in entry.quarantine_files
    ]
    yield from first(bad, FEW)
    yield from first([f"deleted {path}" for path in entry.deleted], FEW)
    for one in entry.rewrites[:FEW]:
        yield from _rewrite_lines(one)
    yield from more(len(entry.rewrites) - FEW)


def _source_lines(entry: Entry) -> Iterator[Line]:
    # Few pipelines filter records, and the table has no room to spare.
    has_filtered = any(record.filtered for record in entry.sources)
    counts = ("lines", "blank", *(("filtered",) if has_filtered else ()), "rows")
    # Failed files come first.
    ordered = sorted(entry.sources, key=lambda record: (record.failure is None, record.key))
    yield Table(
        (">bytes", *(f">{count}" for count in counts), "source file"),
        [
            (in_words(record.size), *(getattr(record, count) for count in counts), record.key)
            for record in ordered[:FEW]
        ],
    )
    # Sentences have no room in a table of 80 columns.
    outcomes = ((record.key, _outcome(record)) for record in ordered[:FEW])
    yield from (f"  {key}: {outcome}" for key, outcome in outcomes if outcome != READ)
    yield from more(len(ordered) - FEW)


def _facts(kept: EntryRecord) -> list[tuple[str, str]]:
    entry = kept.entry
    chain = "intact: the digests of the entries before and after match"
    if kept.is_last:
        chain = "intact: the digest of the entry before matches; this is the last one"
    if not kept.follows:
        chain = "BROKEN: the digests of this entry and its neighbours do not match"
    batch = EntrySummary.of(entry)
    in_short = (
        f"{plural(batch.files, 'source file')} read, {batch.failed:,} failed, "
        f"{plural(batch.rows, 'row')}, {plural(batch.parquet_files, 'Parquet file')} "
        f"({in_words(batch.parquet_bytes)})"
    )
    return [
        ("at", f"{second(batch.at)} UTC, by run {entry.run}"),
        ("journal", entry.journal),
        ("digest", kept.digest),
        ("previous", entry.previous or "none: this entry begins the journal"),
        ("chain", chain),
        ("hand-off", entry.handoff.value),
        ("committed", _committed(kept)),
        *_not_in_table(kept.withheld),
        *_upkeep(entry),
        ("in short", in_short),
    ]


def _committed(kept: EntryRecord) -> str:
    if kept.rejected:
        kind = kept.entry.kind
        again = "schema promote" if kind == "promote" else kind
        if kind == "compact":
            return "rejected in favour of another writer; the next compaction tries again"
        return f"rejected: nothing in the table was changed; run blizzard {again} again"
    return "yes" if kept.committed else "not yet, by the receipt"


def _not_in_table(withheld: WithheldFiles) -> Iterator[tuple[str, str]]:
    """Yield the rows that are not in the table, even if the entry is committed."""
    if withheld.error is not None:
        yield "held", f"unknown: {withheld.error}"
    for word, metas in (("held", withheld.held), ("discarded", withheld.discarded)):
        for one in by_reason(metas):
            which = f"{plural(one.files, 'file')} with {plural(one.rows, 'row')}"
            yield word, f"{which}, NOT in the table: {'; '.join(one.reasons)} [{one.code}]"


def _upkeep(entry: Entry) -> Iterator[tuple[str, str]]:
    """Yield the purpose of an entry that is not a batch."""
    if (lineage := entry.inherits) is not None:
        which = f"what entries 0 to {lineage.sequence} of pipeline {lineage.pipeline} knew"
        yield "inherits", f"{which} (journal {lineage.journal})"
    if entry.heir is not None:
        yield "heir", f"pipeline {entry.heir} has taken this journal over"
    if entry.moved is not None:
        uri = entry.source_uris.get(entry.moved)
        where = "no longer read: another pipeline reads it" if uri is None else f"read from {uri}"
        yield "moved", f"source {entry.moved} is {where}"
    if entry.deleted:
        yield "deletes", plural(len(entry.deleted), "object")
    if entry.resolved:
        lines = plural(sum(one.lines for one in entry.resolved), "bad line")
        yield "resolves", f"{lines} of {plural(len(entry.resolved), 'quarantine file')}"
    if entry.rewrites:
        old = plural(sum(len(one.old) for one in entry.rewrites), "data file")
        size = in_words(sum(file.size for file in entry.data_files))
        into = f" into {plural(len(entry.data_files), 'data file')}"
        is_compaction = entry.operation == "rewrite"
        yield (
            "compacts" if is_compaction else "replaces",
            f"{old}{into if is_compaction else ''} ({size})",
        )
    if entry.left_out:
        named = len(entry.erased) or sum(one.retracted for one in entry.sources)
        files = plural(named, "source file")
        yield "takes out", f"{plural(entry.left_out, 'row')} of {files}"
    if entry.reason is not None:
        yield "reason", entry.reason


def _rewrite_lines(one: Rewrite) -> Iterator[Line]:
    """Yield superseded data files, each with its replacements."""
    many = f"{plural(len(one.old), 'data file')} with {plural(one.rows, 'row')}"
    yield f"  {one.old[0].path if len(one.old) == 1 else many}"
    gone = f", {plural(one.left_out, 'row')} fewer" if one.left_out else ""
    yield from (f"    -> {file.filename}{gone}" for file in one.new)
    if not one.new:
        yield f"    -> nothing: all of its {plural(one.left_out, 'row')} are taken out"


def _outcome(record: SourceRecord) -> str:
    if record.retracted:
        return "rows taken out of the table"
    if record.discarded:
        return f"{'its rest ' if record.records_read else ''}given up by an operator"
    if record.gone:
        return "gone from its source"
    if record.failure is not None:
        failure = record.failure
        at = failed_at(failure.stage.value, failure.line, failure.field)
        return f"{failure.code} ({at})" + (", to be read again" if record.retry else "")
    done = READ if record.complete else _so_far(record)
    return f"{done}, {record.quarantined} quarantined" if record.quarantined else done


def _so_far(record: SourceRecord) -> str:
    """Describe how much of a partly read file was read."""
    if not record.has_holes:
        return f"read up to line {record.records_read}"
    return f"{plural(record.records_read, 'line')} read; left are {bytes_in_words(record)}"
