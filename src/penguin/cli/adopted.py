"""What became of a folder that was to be a table, for a person or a machine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.console import Console

from lakebed.deltalog.delta_types import by_name, type_name
from lakebed.terminal.arguments import Output
from lakebed.terminal.console import console, is_are, plural, print_line, say, say_first
from lakebed.units import in_words

if TYPE_CHECKING:
    from lakebed.deltalog.table_facts import TableFacts
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
