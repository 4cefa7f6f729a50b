"""`blizzard schema`: the columns of the table, those that files would give it, and differences."""

from typing import Annotated

import typer

from blizzard.answers.explain import explain
from blizzard.cli.call import PipelineCall, document_of
from blizzard.cli.init import SampleSize, look, warn
from blizzard.cli.schema import shown
from blizzard.cli.schema.promote import promote
from blizzard.inspect import sample
from blizzard.inspect.columns import PresentColumns, differences, present_columns
from blizzard.inspect.guess.fields import GuessedColumn, columns_in
from blizzard.inspect.guess.forms import Record, records_in
from blizzard.model.locations import open_reader, sink_location, source_location
from blizzard.model.settings import PipelineSettings
from blizzard.table_rules import table_rules
from lakebed.clock import Clock
from lakebed.config.places import source_location as checked_location
from lakebed.deltalog import tables
from lakebed.errors import ObjectMissing
from lakebed.journal import JournalReader
from lakebed.storage.store import ObjectFacts
from lakebed.terminal.call import Output, refuse
from lakebed.terminal.program import program
from penguin import inline

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
            document = shown.columns_document(settings, found)
            call.show(shown.column_lines(settings, found), document)


@app.command(name="infer")
def schema_infer(
    call: PipelineCall,
    uri: Annotated[
        str | None,
        typer.Argument(
            metavar="URI",
            help="Where files are; by default those that the next batch would read.",
            show_default=False,
        ),
    ] = None,
    most: SampleSize = sample.BYTES,
    ddl: Annotated[bool, typer.Option("--ddl", help="Print the columns as Spark DDL.")] = False,
) -> None:
    """Look at files and print their columns, as the configuration has them.

    Nothing is written, and no column of the table is changed.
    """
    if ddl and call.output is Output.JSON:
        refuse("--ddl and --output json exclude each other")
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
    shown.show_found(call, found, ddl=ddl)


@app.command(name="diff")
def schema_diff(call: PipelineCall) -> None:
    """Compare the columns of the configuration, of the journal and of the table.

    Exits with 1 if, because of a difference, penguin would hold the next files uncommitted.
    """
    for settings in call.pipelines():
        with call.guard(settings.name):
            _diff(call, settings)


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
    call.show(shown.difference_lines(settings, found, held), document)
    call.fail_if(held)
