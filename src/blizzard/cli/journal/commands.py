"""`blizzard journal`: the last entries, one entry, or a new journal."""

import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer
import yaml

from blizzard.answers.entries import EntryRecord, stored_entries
from blizzard.cli.call import PipelineCall
from blizzard.cli.journal.new import begin_anew
from blizzard.journal.standings import EntrySummary
from blizzard.model.settings import PipelineSettings
from blizzard.model.stores import open_reader, open_table, sink_location
from blizzard.pipeline_log import PipelineLog
from lakebed.documents.entry import Entry, encode
from lakebed.documents.pending_meta import by_reason
from lakebed.terminal.call import Confirmed, refuse
from lakebed.terminal.console import (
    UNBOUNDED,
    Line,
    Table,
    Verbatim,
    fields_of,
    more,
    picked,
    second,
    text_width,
)
from lakebed.terminal.program import CommandLine, ForwardingGroup
from lakebed.units import in_words, plural

REJECTED = "rejected"
FEW = 50
"""The most items of a list to show to a person."""
BULKY = frozenset(("table_schema", "columns", "statistics", "runs"))
"""What only `--output json` shows."""

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
    """Yield one entry for a person: its standing, then what it records."""
    entry = kept.entry
    yield f"entry {entry.sequence} ({entry.kind}) of pipeline {entry.pipeline}"
    yield from (f"  {name:<10} {value}" for name, value in _facts(kept))
    # Its defaults are not stored.
    recorded = _shortened(json.loads(encode(entry)))
    text = yaml.safe_dump(recorded, sort_keys=False, allow_unicode=True, width=UNBOUNDED)
    yield from map(Verbatim, text.splitlines())


def _shortened(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return a JSON value with the first items of each list, and without statistics of columns."""
    if isinstance(value, dict):
        return {key: _shortened(each) for key, each in value.items() if key not in BULKY}
    if not isinstance(value, list):
        return value
    return [*map(_shortened, value[:FEW]), *more(len(value) - FEW)]


def _facts(kept: EntryRecord) -> Iterator[tuple[str, str]]:
    chain = "intact: the digests of the entries before and after match"
    if kept.is_last:
        chain = "intact: the digest of the entry before matches; this is the last one"
    if not kept.follows:
        chain = "BROKEN: the digests of this entry and its neighbours do not match"
    yield "digest", kept.digest
    yield "chain", chain
    yield "committed", _committed(kept)
    withheld = kept.withheld
    if withheld.error is not None:
        yield "held", f"unknown: {withheld.error}"
    for word, metas in (("held", withheld.held), ("discarded", withheld.discarded)):
        for one in by_reason(metas):
            which = f"{plural(one.files, 'file')} with {plural(one.rows, 'row')}"
            yield word, f"{which}, NOT in the table: {'; '.join(one.reasons)} [{one.code}]"


def _committed(kept: EntryRecord) -> str:
    if kept.rejected:
        kind = kept.entry.kind
        again = "schema promote" if kind == "promote" else kind
        if kind == "compact":
            return "rejected in favour of another writer; the next compaction tries again"
        return f"rejected: nothing in the table was changed; run blizzard {again} again"
    return "yes" if kept.committed else "not yet, by the receipt"
