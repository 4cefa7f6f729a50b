"""`blizzard schema`: the columns of the table, those that files would give it, and differences."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from blizzard.answers.explain import explain
from blizzard.cli.call import PipelineCall, document_of
from blizzard.cli.init import SampleSize, look, warn
from blizzard.cli.schema.promote import promote
from blizzard.inspect import sample
from blizzard.inspect.columns import (
    ColumnDifference,
    ColumnOrigin,
    ColumnReport,
    Homeless,
    PresentColumns,
    differences,
    present_columns,
)
from blizzard.inspect.guess.fields import GuessedColumn, columns_in
from blizzard.inspect.guess.forms import Record, records_in
from blizzard.inspect.written import field_lines
from blizzard.journal.books import Books
from blizzard.journal.checkpoint import refresh
from blizzard.journal.ledger import Ledger
from blizzard.model.locations import open_reader, open_table, source_location
from blizzard.model.settings import PipelineSettings
from blizzard.table_rules import table_rules
from lakebed.clock import Clock
from lakebed.config.places import source_location as checked_location
from lakebed.deltalog import tables
from lakebed.journal import JournalReader
from lakebed.storage.store import ObjectFacts
from lakebed.terminal.call import refuse
from lakebed.terminal.console import Line, Table, Verbatim, more, picked, second
from lakebed.terminal.program import program
from lakebed.units import plural
from penguin import inline

FEW = 50

app = program()
app.command(name="promote")(promote)


@app.callback(invoke_without_command=True)
def schema(call: PipelineCall) -> None:
    """Show the columns, find them in files, or compare them with the table.

    Without a command this is `show`.
    """
    if not call.has_subcommand:
        schema_show(call)


@app.command(name="show")
def schema_show(call: PipelineCall) -> None:
    """Show the columns, where each came from, and which values no column takes.

    It reads the journal, and no data.
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
    """Look at files and print their columns, as the configuration has them.

    Nothing is written, and no column of the table is changed.

    Args:
        uri URI: Where files are; by default those that the next batch would read.
    """
    call.who = "schema infer"
    if uri is not None:
        try:
            place = checked_location(uri)
        except ValueError as wrong:
            refuse(f"URI: {wrong}")
        found = columns_in(look(place, most, call.output)[1].records)
    else:
        with call.one() as settings:
            found = _waiting(settings, most)
    call.show(map(Verbatim, ["fields:", *field_lines(found, 2)]), *_found_rows(found))


@app.command(name="diff")
def schema_diff(call: PipelineCall) -> None:
    """Compare the columns of the configuration, of the journal and of the table.

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
            for unit in batch.units
            for file in unit.files
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
        raise sample.NothingToLookAt(
            "no file is waiting that has JSON objects; blizzard --dry-run says which files there "
            "are, and blizzard schema infer URI looks at others"
        )
    sink = settings.sink
    keys = sink.template.keys if sink.template and sink.timestamp_field is None else ()
    return columns_in(records, without=frozenset(keys))


def _diff(call: PipelineCall, settings: PipelineSettings) -> None:
    present, sink = _present(settings), settings.sink
    rules, mode_is_known = table_rules(settings, call.table_of(settings.name))
    held = inline.reasons_to_hold(
        rules,
        present.schema.delta(),
        sink.template.keys if sink.template else (),
        mode_is_known=mode_is_known,
    )
    last, table = present.last, tables.look_at(sink.table_uri, sink.storage_options)
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
    """Return the columns of a pipeline as JSON has them."""
    return {
        **document_of(settings),
        "last_entry": None if found.last is None else found.last.sequence,
        **picked(settings, "unknown_fields on_mismatch"),
        "columns": [picked(one, "column=path type origin entry at") for one in found.columns],
        "without_column": found.homeless,
    }


def column_lines(settings: PipelineSettings, found: PresentColumns) -> Iterator[Line]:
    """Yield the columns of a pipeline, and the values that are in none."""
    entry = "no entry yet" if found.last is None else f"entry {found.last.sequence}"
    yield (
        f"pipeline {settings.name} ({entry}): unknown_fields {settings.unknown_fields}, "
        f"on_mismatch {settings.on_mismatch}"
    )
    if not found.columns:
        yield "  the columns are found in the first batch; blizzard schema infer looks ahead"
        return
    rows = [(one.path, one.type, _origin(one)) for one in found.columns]
    yield Table(("column", "type", "where from"), rows)
    for dropped in (False, True):
        some = [one for one in found.homeless if one.dropped is dropped]
        if some:
            yield from _homeless(settings, some, "left out" if dropped else "in _rescued")


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
        rows = [(one.path, one.present, one.journal, one.table) for one in differences]
        yield Table(("column", "next files", "journal", "table"), rows)
    if not held:
        yield "penguin would commit the next files"
        return
    yield "penguin would hold the next files:"
    yield from (f"  {reason}" for reason in held)
    yield "declare the fields as the table has them, change tables.*.schema_evolution,"
    yield "or write to another table; penguin held shows what is held already"


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


def _homeless(settings: PipelineSettings, some: Sequence[Homeless], title: str) -> Iterator[Line]:
    key = "hints" if settings.infer else "fields"
    yield ""
    yield Table(
        (title, ">values", "why"),
        [
            (one.path, one.values, "no column" if one.not_a is None else f"no {one.not_a}")
            for one in some[:FEW]
        ],
    )
    yield from more(len(some) - FEW)
    for above in dict.fromkeys(one.inside for one in some if one.line is not None):
        where = f"schema.{key}" if above is None else f"the fields of {above}"
        yield f"for a column, add to {where}:"
        for one in some[:FEW]:
            if one.line is not None and one.inside == above:
                yield Verbatim(f"  - {one.line}")


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
