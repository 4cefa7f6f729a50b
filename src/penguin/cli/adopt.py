"""`penguin adopt`: a folder of Parquet files becomes a Delta table."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from lakebed.clock import Clock
from lakebed.config.places import location
from lakebed.locations import place_of
from lakebed.terminal.arguments import (
    DONE,
    FAILED,
    USAGE,
    Files,
    Folders,
    Output,
    Shape,
    Sure,
    ends_on_error,
    exit_code_of,
)
from lakebed.terminal.console import say_error
from penguin.cli import options
from penguin.model.settings import TableSettings

if TYPE_CHECKING:
    from penguin.adopt.adoption import Looked
    from penguin.cli.partition_columns import PartitionColumns


def adopt(
    uri: Annotated[
        str,
        typer.Argument(metavar="URI", help="The folder of Parquet files.", show_default=False),
    ],
    partition_by: Annotated[
        str | None,
        typer.Option(
            "--partition-by",
            metavar="COLUMNS",
            help="Partition columns and types, such as 'date:date,region:string'.",
        ),
    ] = None,
    infer_types: Annotated[
        bool,
        typer.Option(
            "--infer-types",
            help="Give partition columns the type date or long if all of their values are such.",
        ),
    ] = False,
    skip_unreadable: Annotated[
        bool,
        typer.Option("--skip-unreadable", help="Leave out files that cannot be read as Parquet."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done; write nothing.")
    ] = False,
    sure: Sure = False,
    files: Files = None,
    folders: Folders = None,
    output: Shape = Output.TEXT,
) -> None:
    """Make a folder of Parquet files a Delta table; no file is moved or rewritten.

    Credentials for a store are taken from the environment, or from the table of this URI in the
    configuration.
    """
    place = _location(uri)
    columns = _partition_columns(partition_by)
    settings = _settings(place, files, folders)
    from penguin.adopt.adoption import Adopter  # noqa: PLC0415
    from penguin.cli import adopted  # noqa: PLC0415
    from penguin.cli.partition_columns import PartitionColumns  # noqa: PLC0415
    from penguin.model.adoption import Wanted  # noqa: PLC0415
    from penguin.pipeline import open_store  # noqa: PLC0415

    does = sure and not dry_run
    with ends_on_error(place, exit_code_of):
        store = open_store(settings)
        if store is None:
            _complain(f"there is no folder {place}")
        else:
            columns = columns or PartitionColumns.of_template(settings.partition_template)
            wanted = Wanted(
                partition_columns=None if columns is None else columns.names,
                partition_types={} if columns is None else columns.types,
                infer_types=infer_types,
                skip_unreadable=skip_unreadable,
            )
            with _progress(output) as looked:
                adopter = Adopter(
                    settings=settings, wanted=wanted, store=store, clock=Clock(), looked=looked
                )
                found = adopter.adopt() if does else adopter.look()
            adopted.show(adopted.AdoptedRow.of(place, found), output)
            if found.troubles:
                raise typer.Exit(FAILED)
            if not does and not dry_run and found.version is None:
                sys.stderr.write("add --yes to do it\n")
                raise typer.Exit(FAILED)
    raise typer.Exit(DONE)


def _settings(place: str, files: list[Path] | None, folders: list[Path] | None) -> TableSettings:
    """Return the table of the configuration that is at a place; a plain one without any."""
    if not files and not folders:
        return TableSettings(name=place, table_uri=place)
    tables = options.tables(files, folders)
    here = [table for table in tables if place_of(table.table_uri) == place_of(place)]
    if not here:
        _complain(f"no table of the configuration has the table_uri {place}")
    return here[0]


def _location(uri: str) -> str:
    try:
        return location(uri)
    except ValueError as wrong:
        _complain(f"URI: {wrong}")


def _partition_columns(text: str | None) -> "PartitionColumns | None":
    from penguin.cli.partition_columns import parse_partition_columns  # noqa: PLC0415

    try:
        return None if text is None else parse_partition_columns(text)
    except ValueError as wrong:
        _complain(f"--partition-by: {wrong}")


def _complain(what: str) -> NoReturn:
    say_error(f"error: {what}")
    raise typer.Exit(USAGE)


@contextmanager
def _progress(output: Output) -> "Iterator[Looked]":
    """Show how far it is, to a person at a terminal."""
    if output is Output.JSON or not sys.stderr.isatty():
        yield lambda _what, _done, _files: None
        return
    from rich.console import Console  # noqa: PLC0415

    from penguin.cli.progress_bar import FileBar  # noqa: PLC0415

    with FileBar(Console(stderr=True)) as bar:
        yield bar.show
