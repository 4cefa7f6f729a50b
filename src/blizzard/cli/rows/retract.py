"""`blizzard retract`: take the rows of source files out of the table."""

from collections import Counter
from collections.abc import Iterator
from typing import Annotated

import typer

from blizzard.answers.progress import PipelineEvidence
from blizzard.cli.call import PipelineCall, document_of
from blizzard.cli.rows.rewriting import RewriteCommand, file_documents
from blizzard.execute.runner import ServiceRunner
from blizzard.ingest import Ingest
from blizzard.journal.source_names import the_key
from blizzard.model.settings import PipelineSettings
from blizzard.model.stores import open_reader
from blizzard.pipeline_log import PipelineLog
from blizzard.rewrite.replace import exchange_of, replace_rows
from blizzard.rewrite.retract import RetractPlan, plan_retraction, refuse_rows_out
from blizzard.rewrite.retract import retract as append_retraction
from blizzard.rewrite.transaction import RewriteDone
from lakebed.clock import Clock
from lakebed.errors import ObjectMissing
from lakebed.storage.store import Reader, Store
from lakebed.telemetry.logs import log_events
from lakebed.terminal.call import Confirmed
from lakebed.terminal.console import first
from lakebed.types import LogFormat, LogLevel
from lakebed.units import plural

Retracted = RewriteDone[RetractPlan]


def retract(
    call: PipelineCall,
    sources: list[str],
    other: Annotated[str | None, typer.Option("--replace")] = None,
    rows_deleted: bool = False,
    yes: Confirmed = False,
) -> None:
    """Take the rows of source files out of the table, or replace them with those of another file.

    Data files that also hold other rows are rewritten on Spark; penguin makes one commit.

    Args:
        sources SOURCE: Source files, named as for `blizzard why`; without --yes their full names
            are shown.
        other OTHER: A source file whose rows replace them; it may be SOURCE itself.
        rows_deleted: Confirm that another engine has already deleted the rows that blizzard cannot
            distinguish.
    """
    with call.one() as settings:
        command, clock = RewriteCommand(call, settings, sure=yes), call.around.clock
        keys, new = _keys(settings, sources, other, clock)

        def plan(reader: Reader) -> RetractPlan:
            some = keys
            if new is not None:
                some, _new = exchange_of(reader, settings, keys, new, open_reader, now=clock.now())
            found = plan_retraction(reader, settings, some, rows_deleted=rows_deleted)
            if new is not None:
                refuse_rows_out(reader, found)
            return found

        def apply(store: Store, runner: ServiceRunner, _progress: object) -> Retracted:
            if new is None:
                return append_retraction(
                    store, settings, keys, runner, clock=clock, rows_deleted=rows_deleted
                )
            ingest = Ingest(
                settings=settings,
                runner=runner,
                clock=clock,
                of_table=PipelineLog(settings).columns,
                emit=log_events(LogLevel.WARN, LogFormat.TEXT),
                total_concurrency=call.loaded.total_concurrency,
            )
            some, file = exchange_of(store, settings, keys, new, open_reader, now=clock.now())
            return replace_rows(store, some, file, ingest, open_reader, rows_deleted=rows_deleted)

        done = command.run(plan, apply)
    call.show(_text(command, done, new), retraction_document(settings, done, new))
    call.fail_if((done.found.rows.files or new) and not yes)


def _keys(
    settings: PipelineSettings, names: list[str], other: str | None, clock: Clock
) -> tuple[tuple[str, ...], str | None]:
    """Return the named source files and the new one, as `source:path`."""
    scope = PipelineEvidence.read(settings, clock)
    if scope.store is None and other is None:
        raise ObjectMissing("the table has no folder", path=settings.sink.table_uri)
    new = None if other is None else the_key(other, scope, listing=True)
    # With new content, a named file need not be known to the journal.
    return tuple(the_key(name, scope, listing=new is not None) for name in names), new


def retraction_document(
    settings: PipelineSettings, done: Retracted, other: str | None = None
) -> dict[str, object]:
    """Return the rows taken out or, without --yes, to be taken out."""
    found, rows = done.found, _rows(done)
    return {
        **document_of(settings),
        "entry": done.entry,
        "sources": [
            {"source": one.source, "path": one.path, "rows": rows.get(one.key, 0)}
            for one in found.sources
        ],
        "rows": sum(rows.values()),
        "bad_lines": found.waiting_lines,
        "removed": file_documents(found.rows.whole),
        "rewritten": file_documents(found.rows.mixed),
        "searched": file_documents(found.rows.unnamed),
        "replaced_by": done.new[0].key if done.new else other,
        "new_rows": sum(one.rows for one in done.new) if done.new else None,
        "new_bad_lines": sum(one.quarantined for one in done.new) if done.new else None,
    }


def _rows(done: Retracted) -> Counter[str]:
    if done.entry is not None:
        return Counter(done.rows)
    return Counter(done.found.rows.rows) + Counter(done.found.rows.counted)


def _text(command: RewriteCommand, done: Retracted, other: str | None) -> Iterator[str]:
    sure, found, rows = command.sure, done.found, _rows(done)
    count = plural(len(found.sources), "source file")
    yield f"pipeline {command.settings.name}: {plural(sum(rows.values()), 'row')} of {count}"
    by_source = [f"{one.key}: {plural(rows.get(one.key, 0), 'row')}" for one in found.sources]
    yield from first(by_source)
    if not other and (versions := found.removed_by()):
        numbers = " and ".join(map(str, versions))
        yield f"  version {numbers} removed rows of {count}"
        yield "  if a RESTORE or penguin replay puts them back, run this again"
    if not other and (not found.rows.files or (sure and done.entry is None)):
        whose = "its" if len(found.sources) == 1 else "their"
        yield f"  none of {whose} rows is in the table; nothing was changed"
        if found.waiting_lines:
            lines = plural(found.waiting_lines, "bad line")
            yield f"  {lines} of them in quarantine: blizzard dlq discard gives those up"
        return
    files = found.rows
    yield from command.file_lines(files.whole, "removed, with no other rows")
    yield from command.file_lines(files.mixed, "rewritten without them")
    yield from command.file_lines(files.unnamed, "rewritten without them, identified by _file")
    if found.waiting_lines:
        verb = "given up" if sure else "to be given up"
        yield f"  {plural(found.waiting_lines, 'bad line')} in quarantine {verb}"
    if done.new:
        new = done.new[0]
        bad = f", {plural(new.quarantined, 'bad line')} in quarantine" if new.quarantined else ""
        yield f"  replaced with {plural(new.rows, 'row')} of {new.key}{bad}"
    elif other is not None:
        yield f"  to be replaced with the rows of {other}"
        known = found.state.history.lookup()(other).unfinished
        if known is not None and (failure := known.record.failure) is not None:
            yield (
                f"  {other} failed before: {failure.message} [{failure.code}]; if it fails again, "
                "the old rows stay"
            )
    if sure:
        yield from command.committed(done.entry, "takes the rows out")
        yield command.time_travel()
    elif other is not None:
        yield f"add --yes to do it; {other} is read now, and nothing else is read again"
    else:
        yield "add --yes to do it; the source files stay known and are not read again"
