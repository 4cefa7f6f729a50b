"""`blizzard schema`: the columns of the table, those that files would give it, and differences."""

from typing import Annotated

import typer

from blizzard.answers.explain import explain
from blizzard.cli.init import Looked, look, warn
from blizzard.cli.output import One, chosen, load, open_reader, tables_of, the_one
from blizzard.cli.schema import shown
from blizzard.cli.schema.promote import promote
from blizzard.cli.schema.shown import DiffRow
from blizzard.inspect import sample
from blizzard.inspect.columns import PresentColumns, differences, present_columns
from blizzard.inspect.guess.fields import GuessedColumn, columns_in
from blizzard.inspect.guess.forms import Record, records_in
from blizzard.log_questions import TableOf, table_rules
from blizzard.model.locations import sink_location, source_location
from blizzard.model.settings import PipelineSettings
from lakebed.clock import Clock
from lakebed.config.places import source_location as checked_location
from lakebed.deltalog import tables
from lakebed.errors import ObjectMissing
from lakebed.journal import JournalReader
from lakebed.storage.store import ObjectFacts
from lakebed.terminal.arguments import (
    FAILED,
    USAGE,
    Files,
    Folders,
    ForwardingGroup,
    Outcome,
    Output,
    Program,
    Shape,
    exit_code_of,
)
from lakebed.terminal.console import print_line, say_error
from penguin import inline

app = Program(cls=ForwardingGroup)


@app.callback(invoke_without_command=True)
def schema(
    context: typer.Context,
    files: Files = None,
    folders: Folders = None,
    pipeline: One = None,
    output: Shape = Output.TEXT,
) -> None:
    """Show the columns, find them in files, or compare them with the table.

    Without a command this is `show`.
    """
    if context.invoked_subcommand is None:
        schema_show(files, folders, pipeline, output)


@app.command(name="show")
def schema_show(
    files: Files = None,
    folders: Folders = None,
    pipeline: One = None,
    output: Shape = Output.TEXT,
) -> None:
    """Show the columns, where each came from, and which values no column takes.

    It reads the journal, and no data.
    """
    outcome = Outcome()
    for settings in chosen(load(files, folders), pipeline):
        with outcome.of(settings.name):
            found = _present(settings)
            if output is Output.JSON:
                print_line(shown.row(settings, found))
            else:
                shown.columns_of(settings, found)
    raise typer.Exit(outcome.code)


@app.command(name="infer")
def schema_infer(
    uri: Annotated[
        str | None,
        typer.Argument(
            metavar="URI",
            help="Where files are; by default those that the next batch would read.",
            show_default=False,
        ),
    ] = None,
    files: Files = None,
    folders: Folders = None,
    pipeline: One = None,
    most: Looked = sample.BYTES,
    ddl: Annotated[bool, typer.Option("--ddl", help="Print the columns as Spark DDL.")] = False,
    output: Shape = Output.TEXT,
) -> None:
    """Look at files and print their columns, as the configuration has them.

    Nothing is written, and no column of the table is changed.
    """
    if ddl and output is Output.JSON:
        say_error("error: --ddl and --output json exclude each other")
        raise typer.Exit(USAGE)
    outcome = Outcome()
    with outcome.of("schema infer"):
        found = (
            _waiting(the_one(load(files, folders), pipeline), most)
            if uri is None
            else columns_in(look(_checked(uri), most, output)[1].records)
        )
        shown.found(found, ddl=ddl, output=output)
    raise typer.Exit(outcome.code)


@app.command(name="diff")
def schema_diff(
    files: Files = None,
    folders: Folders = None,
    pipeline: One = None,
    output: Shape = Output.TEXT,
) -> None:
    """Compare the columns of the configuration, of the journal and of the table.

    Exits with 1 if, because of a difference, penguin would hold the next files uncommitted.
    """
    outcome = Outcome()
    settings = load(files, folders)
    table_of = tables_of(settings, files, folders)
    for each in chosen(settings, pipeline):
        with outcome.of(each.name, exit_code_of):
            row = _diff(each, table_of)
            if output is Output.JSON:
                print_line(row)
            else:
                shown.differences(row)
            if row.held:
                outcome.at_least(FAILED)
    raise typer.Exit(outcome.code)


def _present(settings: PipelineSettings) -> PresentColumns:
    try:
        store = open_reader(sink_location(settings))
    except ObjectMissing:
        return present_columns(settings, ())  # There is no table's folder, so no journal either.
    journal = JournalReader(store, settings.name, full_paths=True)
    return present_columns(settings, journal.entries())


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


def _checked(uri: str) -> str:
    try:
        return checked_location(uri)
    except ValueError as wrong:
        say_error(f"error: URI: {wrong}")
        raise typer.Exit(USAGE) from None


def _diff(settings: PipelineSettings, table_of: TableOf) -> DiffRow:
    found, sink = _present(settings), settings.sink
    rules, mode_is_known = table_rules(settings, table_of(settings.name))
    held = inline.reasons_to_hold(
        rules,
        found.schema.delta(),
        sink.template.keys if sink.template else (),
        mode_is_known=mode_is_known,
    )
    last, table = found.last, tables.look_at(sink.table_uri, sink.storage_options)
    return DiffRow(
        pipeline=settings.name,
        table_uri=sink.table_uri,
        differences=differences(
            found.schema.delta(),
            # Entry 0 holds no file: what it says of the columns binds nobody.
            last.table_schema if last is not None and last.sequence else None,
            None if table is None else table.facts.schema,
        ),
        held=held,
    )


app.command(name="promote")(promote)
