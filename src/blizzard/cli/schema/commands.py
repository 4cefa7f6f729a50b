"""`blizzard schema`: show the columns of a table, infer them from files, and promote one.

`promote` fills a column from `_rescued` for rows that are already in the table.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from blizzard.cli.call import PipelineCall, document_of
from blizzard.cli.init import SampleSize, read_samples, warn
from blizzard.cli.rows.rewriting import RewriteCommand, file_documents, schema_check
from blizzard.cli.run.dry_run import explain
from blizzard.inspect import sample
from blizzard.inspect.columns import (
    ColumnDifference,
    ColumnOrigin,
    ColumnReport,
    PresentColumns,
    Unmapped,
    differences,
    present_columns,
)
from blizzard.inspect.guess.fields import GuessedColumn, columns_in
from blizzard.inspect.guess.forms import Record, records_in
from blizzard.inspect.written import field_lines, plain_columns
from blizzard.journal.books import Books
from blizzard.journal.checkpoint import refresh
from blizzard.journal.ledger import Ledger
from blizzard.model.rewriting import ActiveFile
from blizzard.model.settings import PipelineSettings
from blizzard.model.stores import open_reader, open_table, source_location
from blizzard.rewrite.promote import PromotedField, PromotionPlan, plan_promotion
from blizzard.rewrite.promote import promote as append_promotion
from blizzard.rewrite.transaction import RewriteDone
from blizzard.table_rules import table_entry, table_rules
from lakebed.clock import Clock
from lakebed.config.section import source_location as checked_location
from lakebed.deltalog import tables
from lakebed.journal import JournalReader
from lakebed.storage.options import ObjectFacts
from lakebed.terminal.call import Confirmed, refuse
from lakebed.terminal.console import Line, Table, Verbatim, more, picked, second, text_width
from lakebed.terminal.program import program
from lakebed.units import plural
from penguin.rules import reasons_to_hold

Promoted = RewriteDone[PromotionPlan]


def promote(
    call: PipelineCall,
    field: str,
    kind: Annotated[str | None, typer.Option("--type")] = None,
    yes: Confirmed = False,
) -> None:
    """Fill a column from _rescued for the rows that are in the table.

    The data files with such values are rewritten on Spark; penguin replaces them in one commit.

    Args:
        field FIELD: A declared column.
        kind TYPE: The type of an undeclared column.
    """
    wanted = PromotedField(field=field, type=kind)
    with call.one() as settings:
        command = RewriteCommand(call, settings, sure=yes)
        check = schema_check(settings, table_entry(settings, call.table_of))
        done = command.run(
            lambda reader: plan_promotion(reader, settings, wanted, check),
            lambda store, runner, _progress: append_promotion(
                store, settings, wanted, check, runner, clock=call.around.clock
            ),
        )
    call.show(_text(command, done), promotion_document(settings, done))
    call.fail_if(done.found.files and not yes)


def promotion_document(settings: PipelineSettings, done: Promoted) -> dict[str, object]:
    """Return what was rewritten or, without --yes, which files would be searched."""
    found, files = done.found, _files(done)
    return {
        **document_of(settings),
        "field": found.target.name,
        "type": found.target.field.shown,
        "entry": done.entry,
        "files": file_documents(files),
        "rows": sum(one.rows or 0 for one in files),
        "bytes": sum(one.size for one in files),
        "promoted": sum(one.taken for one in done.rewritten) if done.rewritten else None,
        "left": sum(one.left for one in done.rewritten) if done.rewritten else None,
        "waiting_entries": found.waiting,
    }


def _files(done: Promoted) -> tuple[ActiveFile, ...]:
    if not done.rewritten:
        return done.found.files
    return tuple(one.old for one in done.rewritten if one.new)


def _text(command: RewriteCommand, done: Promoted) -> Iterator[str]:
    found = done.found
    yield f"pipeline {command.settings.name}: {found.target.name}, {found.target.field.shown}"
    if not found.files:
        yield "  no file of the table has values for it in _rescued"
    elif command.sure:
        yield from _result(command, done)
    else:
        yield from command.file_lines(_files(done), "rewritten")
        if found.unknown:
            some = plural(len(found.unknown), "of them was", "of them were")
            yield f"  {some} written by another program and may have no such value"
    if found.waiting and not command.sure:
        entries = plural(found.waiting, "entry is", "entries are")
        yield f"  {entries} not committed yet; their rows are not included"
    if found.files and not command.sure:
        yield "add --yes to do it"


def _result(command: RewriteCommand, done: Promoted) -> Iterator[str]:
    left = sum(one.left for one in done.rewritten)
    if done.entry is None:
        yield "  nothing was changed: no value in _rescued fits the column"
    else:
        yield from command.file_lines(_files(done), "rewritten")
        taken = sum(one.taken for one in done.rewritten)
        yield f"  {plural(taken, 'value')} moved from _rescued to the column"
    if left:
        values = plural(left, "value")
        yield f"  {values} left in _rescued: of another type, or the column already has one"
    yield from command.committed(done.entry, "replaces the files")


FEW = 50

app = program()
app.command(name="promote")(promote)


@app.callback(invoke_without_command=True)
def schema(call: PipelineCall) -> None:
    """Show the columns, infer them from files, or compare them with the table.

    Without a command this is `show`.
    """
    if not call.has_subcommand:
        schema_show(call)


@app.command(name="show")
def schema_show(call: PipelineCall) -> None:
    """Show the columns, where each came from, and which values no column takes.

    Reads the journal and no data.
    """
    for settings in call.pipelines():
        with call.guard(settings.name):
            found = _present(settings)
            document = columns_document(settings, found)
            call.show(column_lines(settings, found), document)


@app.command(name="infer")
def schema_infer(
    call: PipelineCall,
    uri: Annotated[str | None, typer.Argument(show_default=False)] = None,
    most: SampleSize = sample.BYTES,
) -> None:
    """Print the columns of files as YAML for the configuration.

    Without URI, `schema.hints` of the configuration determine the columns that they name. Nothing
    is written, and no column of the table is changed.

    Args:
        uri URI: The location of the files; by default those that the next batch would read.
    """
    call.who = "schema infer"
    if uri is not None:
        try:
            place = checked_location(uri)
        except ValueError as wrong:
            refuse(f"URI: {wrong}")
        found = columns_in(read_samples(place, most, call.output)[1].records)
    else:
        with call.one() as settings:
            found = _waiting(settings, most)
    call.show(map(Verbatim, ["fields:", *field_lines(found, 2)]), *_found_rows(found))


@app.command(name="diff")
def schema_diff(call: PipelineCall) -> None:
    """Compare the columns of the configuration, the journal and the table.

    Exits with 1 if, because of a difference, penguin would hold the next files uncommitted.
    """
    for settings in call.pipelines():
        with call.guard(settings.name):
            _diff(call, settings)


def _present(settings: PipelineSettings) -> PresentColumns:
    store = open_table(settings, open_reader)
    if store is None:
        return present_columns(settings, (), Books())
    journal = JournalReader(store, settings.name, full_paths=True)
    ledger = Ledger()
    refresh(ledger, store, settings.name)
    return present_columns(settings, journal.entries(), ledger.books)


def _waiting(settings: PipelineSettings, most: int) -> tuple[GuessedColumn, ...]:
    """Return the columns in the files that the next batch would read."""
    batch = explain(settings, open_reader, parallelism=1, clock=Clock())
    records: list[Record] = []
    troubles: list[str] = []
    for source in settings.sources:
        files = {
            file.path: ObjectFacts(
                path=file.path, size=file.size, etag=file.etag, modified=file.modified
            )
            for file in (*batch.changed, *batch.files)
            if file.source == source.name and file.size
        }
        reader = open_reader(source_location(source))
        share = max(1, most // len(settings.sources))
        read, unread = sample.beginnings(reader, list(files.values()), share)
        found = records_in(read, source.form)
        records += found.records
        troubles += [*unread, *found.strange]
    warn(troubles)
    if not records:
        raise sample.NothingToSample(
            "no waiting file has JSON objects; blizzard --dry-run lists the files, and blizzard "
            "schema infer URI reads others"
        )
    sink = settings.sink
    keys = sink.template.keys if sink.template and sink.timestamp_field is None else ()
    hints = plain_columns(settings.schema.fields if settings.infer else ())
    hinted = {one.name: one for one in hints}
    renamed = {name for one in settings.schema.fields for name in one.reading.path[:1] if hints}
    columns = columns_in(records, without=frozenset(keys) | renamed - hinted.keys())
    return (*(hinted.pop(one.name, one) for one in columns), *hinted.values())


def _diff(call: PipelineCall, settings: PipelineSettings) -> None:
    present, sink = _present(settings), settings.sink
    rules, mode_is_known = table_rules(settings, call.table_of(settings.name))
    held = reasons_to_hold(
        rules,
        present.schema.delta(),
        sink.template.keys if sink.template else (),
        mode_is_known=mode_is_known,
    )
    last, table = present.last, tables.newest_snapshot(sink.table_uri, sink.storage_options)
    found = differences(
        present.schema.delta(),
        # Entry 0 holds no file: its columns are not binding.
        last.table_schema if last is not None and last.sequence else None,
        None if table is None else table.facts.schema,
    )
    document = {**document_of(settings), "differences": found, "held": held}
    call.show(difference_lines(settings, found, held), document)
    call.fail_if(held)


def columns_document(settings: PipelineSettings, found: PresentColumns) -> dict[str, object]:
    """Return the columns of a pipeline for JSON."""
    return {
        **document_of(settings),
        "last_entry": None if found.last is None else found.last.sequence,
        **picked(settings, "unknown_fields on_mismatch"),
        "columns": [picked(one, "column=path type origin entry at") for one in found.columns],
        "without_column": found.unmapped,
    }


def column_lines(settings: PipelineSettings, found: PresentColumns) -> Iterator[Line]:
    """Yield the columns of a pipeline, and the values without a column."""
    entry = "no entry yet" if found.last is None else f"entry {found.last.sequence}"
    yield (
        f"pipeline {settings.name} ({entry}): unknown_fields {settings.unknown_fields}, "
        f"on_mismatch {settings.on_mismatch}"
    )
    if not found.columns:
        yield "  the first batch infers the columns; see blizzard schema infer"
        return
    rows = [(_path_lines(one.path), one.type, _origin(one)) for one in found.columns]
    yield Table(("column", "type", "where from"), rows)
    for dropped in (False, True):
        some = [one for one in found.unmapped if one.dropped is dropped]
        if some:
            yield from _unmapped(settings, some, "left out" if dropped else "in _rescued")


def difference_lines(
    settings: PipelineSettings, differences: Sequence[ColumnDifference], held: Sequence[str]
) -> Iterator[Line]:
    """Yield how columns differ, and why penguin would hold the next files."""
    if not differences and not held:
        yield f"pipeline {settings.name}: no difference"
        return
    count = plural(len(differences), "difference")
    yield f"pipeline {settings.name}: {count} from {settings.sink.table_uri}"
    if differences:
        rows = [(_path_lines(one.path), one.present, one.journal, one.table) for one in differences]
        yield Table(("column", "next files", "journal", "table"), rows)
    if not held:
        yield "penguin would commit the next files"
        return
    yield "penguin would hold the next files:"
    yield from (f"  {reason}" for reason in held)
    yield "declare the fields as the table has them, change tables.*.schema_evolution,"
    yield "or write to another table; penguin held shows what is already held"


def _path_lines(path: str) -> list[str]:
    """Break a path after dots into lines of at most half the width of the output."""
    lines = [""]
    for name in re.split(r"(?<=\.)", path):
        if lines[-1] and len(lines[-1] + name) > text_width() // 2:
            lines.append("  ")
        lines[-1] += name
    return lines


def _origin(one: ColumnReport) -> str:
    match one.origin:
        case ColumnOrigin.FOUND if one.entry is not None:
            return f"entry {one.entry}, {second(one.at)}"
        case ColumnOrigin.PARTITION:
            return "partition, from the path"
        case ColumnOrigin.RESCUED:
            return "values without a column"
        case ColumnOrigin.PROVENANCE:
            return "provenance, where the row came from"
    return one.origin.value


def _unmapped(settings: PipelineSettings, some: Sequence[Unmapped], title: str) -> Iterator[Line]:
    key = "hints" if settings.infer else "fields"
    yield ""
    yield Table(
        (title, ">values", "why"),
        [
            (
                _path_lines(one.path),
                one.values,
                "no column" if one.not_a is None else f"no {one.not_a}",
            )
            for one in some[:FEW]
        ],
    )
    yield from more(len(some) - FEW)
    lines = [one.line for one in some[:FEW] if one.line is not None]
    if lines:
        yield f"for a column, add to schema.{key}:"
    yield from (Verbatim(f"  - {line}") for line in lines)


def _found_rows(some: Sequence[GuessedColumn], above: str = "") -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for one in some:
        path = f"{above}{one.name}"
        if one.name in ("element", "value") and above.endswith("[]."):
            path = above[:-1]
        kind = None if one.field is None else one.field.shown
        rows.append({"column": path, "type": kind, "remarks": one.remarks})
        is_struct = one.field is not None and bool(one.field.fields)
        rows += _found_rows(one.inner, f"{path}." if is_struct else f"{path}[].")
    return rows
