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
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.console import Console

from lakebed.columns.schema import DELTA
from lakebed.config.ddl import schema_from
from lakebed.deltalog.delta_types import by_name, type_name
from lakebed.partition import PARTITION_TYPES, Template
from lakebed.terminal.console import console, is_are, plural, print_line, say, say_first
from lakebed.types import FieldType
from lakebed.units import in_words

if TYPE_CHECKING:
    from lakebed.deltalog.delta_types import TableFacts
    from penguin.model.adoption import Adoption, Trouble


MOST_NAMED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRow:
    """A file that is not adopted, and why."""

    file: str
    code: str
    reason: str

    @classmethod
    def of(cls, found: "Trouble") -> "RefusedRow":
        """Return what is known of it."""
        return cls(file=found.file, code=found.code, reason=found.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptedRow:
    """What was done to a folder, or would be."""

    table_uri: str
    done: bool
    """Whether the folder is a table now."""
    before: bool
    """Whether it was adopted before, or by another process meanwhile."""
    version: int | None
    files: int
    rows: int
    bytes: int
    columns: Mapping[str, str] = field(default_factory=dict)
    partition_columns: Mapping[str, str] = field(default_factory=dict)
    footers_read: int = 0
    empty_files: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    skipped: tuple[RefusedRow, ...] = ()
    refused: tuple[RefusedRow, ...] = ()
    checkpoint_error: str | None = None

    @classmethod
    def of(cls, uri: str, found: "Adoption") -> "AdoptedRow":
        """Return what became of a folder."""
        columns, apart = _columns(found.table)
        return cls(
            table_uri=uri,
            done=found.version is not None,
            before=found.before,
            version=found.version,
            files=found.totals.files,
            rows=found.totals.rows,
            bytes=found.totals.bytes,
            columns=columns,
            partition_columns=apart,
            footers_read=found.footers_read,
            empty_files=found.totals.empty_files,
            hidden=found.hidden,
            skipped=tuple(map(RefusedRow.of, found.skipped)),
            refused=tuple(map(RefusedRow.of, found.troubles)),
            checkpoint_error=found.checkpoint_error,
        )


def show(row: AdoptedRow, output: Output) -> None:
    """Print what became of a folder."""
    if output is Output.JSON:
        print_line(row)
        return
    to = console()
    say(to, _headline(row))
    for title, columns in (("columns", row.columns), ("partitions", row.partition_columns)):
        if columns:
            listed = ", ".join(f"{name} {kind}" for name, kind in columns.items())
            say(to, f"  {title}: {listed}")
    _named(to, row.empty_files, "without rows, in the table as well")
    _named(to, row.hidden, "hidden by `_` or `.`, or empty, and left alone")
    _refused(to, row.skipped, "left out, as asked for")
    _refused(to, row.refused, "in the way")
    if row.checkpoint_error is not None:
        say(to, f"  no checkpoint could be written: {row.checkpoint_error}")


def _headline(row: AdoptedRow) -> str:
    what = f"{plural(row.files, 'file')}, {plural(row.rows, 'row')}, {in_words(row.bytes)}"
    if row.before:
        return f"{row.table_uri}: adopted before, in version {row.version}: {what}"
    if row.done:
        return f"{row.table_uri}: is a Delta table now, in version {row.version}: {what}"
    if row.refused:
        return f"{row.table_uri}: not adopted; {what} can be, {len(row.refused):,} cannot"
    return f"{row.table_uri}: would become a Delta table: {what}"


def _named(to: Console, names: tuple[str, ...], what: str) -> None:
    if names:
        say(to, f"  {plural(len(names), 'file')} {is_are(len(names))} {what}:")
        say_first(to, names, MOST_NAMED, indent="    ")


def _refused(to: Console, rows: tuple[RefusedRow, ...], what: str) -> None:
    if rows:
        say(to, f"  {plural(len(rows), 'file')} {is_are(len(rows))} {what}:")
        lines = [f"{row.file}: {row.reason} ({row.code})" for row in rows]
        say_first(to, lines, MOST_NAMED, indent="    ")


def _columns(table: "TableFacts | None") -> tuple[dict[str, str], dict[str, str]]:
    if table is None:
        return {}, {}
    kinds = {name: type_name(one["type"]) for name, one in by_name(table.schema).items()}
    apart = {name: kinds.pop(name) for name in table.partition_columns}
    return kinds, apart


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionColumns:
    """Partition columns in their order, and the Delta types of those that have one."""

    names: tuple[str, ...]
    types: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_template(cls, template: str | None) -> "PartitionColumns | None":
        """Return those that a `prefix_template` of the configuration names."""
        if template is None:
            return None
        parts = Template.parse(template).parts
        types = {part.key: DELTA[part.field.type] for part in parts}
        return cls(names=tuple(types), types=types)


def parse_partition_columns(text: str) -> PartitionColumns:
    """Read `date:date,region:string`; a column without a type is text, or what the files say.

    A ValueError says what is wrong with it.
    """
    names: list[str] = []
    types: dict[str, str] = {}
    for part in text.split(","):
        name, colon, kind = (piece.strip() for piece in part.partition(":"))
        if not name or (colon and not kind):
            raise ValueError(f"{part!r} is not of the form column or column:type")
        if name in names:
            raise ValueError(f"column {name} appears twice")
        names.append(name)
        if kind:
            types[name] = _type(name, kind)
    return PartitionColumns(names=tuple(names), types=types)


def _type(name: str, kind: str) -> str:
    allowed = tuple(PARTITION_TYPES)
    found = FieldType(kind) if kind in allowed else _from_ddl(kind)
    if found is None or found not in allowed:
        raise ValueError(
            f"{name} cannot be of type {kind}; a partition column is one of "
            f"{', '.join(one.value for one in allowed)}"
        )
    return DELTA[found]


def _from_ddl(kind: str) -> FieldType | None:
    """Return a type by the name that Spark has for it; None for one that is no plain type."""
    try:
        (declared,) = schema_from(f"c {kind}")
        return FieldType(declared["type"])
    except (ValueError, KeyError):
        return None


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
            show(AdoptedRow.of(place, found), output)
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
