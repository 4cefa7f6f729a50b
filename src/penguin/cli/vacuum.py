"""`penguin vacuum`: what may be deleted, what stays and why, and the deletion if it is ordered."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from lakebed.terminal.arguments import (
    DONE,
    FAILED,
    USAGE,
    Files,
    Folders,
    Outcome,
    Output,
    Shape,
    Sure,
)
from lakebed.terminal.console import console, plural, print_lines, say, say_error, second
from lakebed.units import in_words, parse_span
from penguin.cli import options
from penguin.model.settings import TableSettings

if TYPE_CHECKING:
    from penguin.upkeep.order import Vacuumed

LONGEST = timedelta(days=36_500)
"""Longer than any store has had files."""
WHY_KEPT = {
    "young": "no version refers to {them}, but {they} changed within the retention",
    "waiting": "waiting for {their} commit",
    "held": "held by penguin; see penguin held",
    "leftover": "written by blizzard and named by no entry; blizzard gc deletes {them}",
    "scanned": "penguin finds files here by looking into the folders, and may still commit {them}",
    "nested": "in a folder with a Delta log of its own, which is another table",
    "other": "neither Parquet files nor deletion vectors",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumRow:
    """What was deleted of a table, or could be, in the keys that docs/upkeep.md promises."""

    table: str
    table_uri: str
    deleted: bool
    version: int | None = None
    cutoff: datetime | None = None
    retention_hours: float | None = None
    versions: int | None = None
    files: int = 0
    bytes: int = 0
    oldest: datetime | None = None
    newest: datetime | None = None
    some: tuple[str, ...] = ()
    kept: dict[str, int] | None = None
    failed: int = 0
    spared: int = 0
    recorded: bool = False
    error: str | None = None


def vacuum(
    files: Files = None,
    folders: Folders = None,
    sure: Sure = False,
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="SPAN",
            help="Only files older than this, such as 30d or 240h; by default the retention of "
            "the table.",
        ),
    ] = None,
    ignore_retention: Annotated[
        bool,
        typer.Option(
            "--ignore-retention", help="Allow --older-than to be less than the table's retention."
        ),
    ] = False,
    output: Shape = Output.TEXT,
) -> None:
    """Show or delete data files that no version within the table's retention needs.

    Nothing is deleted without --yes.
    """
    span = None if older_than is None else parse_span(older_than)
    if older_than is not None and span is None:
        say_error(f"error: --older-than {older_than!r}: write 90m, 24h or 7d")
        raise typer.Exit(USAGE)
    if span is not None and span > LONGEST:
        say_error(f"error: --older-than {older_than!r}: no file is that old")
        raise typer.Exit(USAGE)
    tables = options.tables(files, folders)
    from penguin.upkeep.order import VacuumOrder  # noqa: PLC0415

    rows, outcome = [], Outcome()
    for table in tables:
        with outcome.of(table.name):
            order = VacuumOrder(settings=table, older_than=span, ignore_retention=ignore_retention)
            with options.looked_with(table, output) as opens:
                store = opens()
                carried_out = order.carry_out if sure else order.look
                found = None if store is None else carried_out(store)
            rows.append(vacuum_row(table, found, sure=sure))
            failed = found is not None and found.deleted is not None and found.deleted.failed
            outcome.at_least(FAILED if failed else DONE)
    if output is Output.JSON:
        print_lines(rows)
    else:
        for row in rows:
            _show(row)
    raise typer.Exit(outcome.code)


def vacuum_row(table: TableSettings, found: "Vacuumed | None", *, sure: bool) -> VacuumRow:
    """Return what was deleted, or what could be."""
    if found is None:
        return VacuumRow(table=table.name, table_uri=table.table_uri, deleted=False)
    done = found.deleted
    return VacuumRow(
        table=table.name,
        table_uri=table.table_uri,
        deleted=sure,
        version=found.version,
        cutoff=found.cutoff,
        retention_hours=found.retention.total_seconds() / 3600,
        versions=found.versions,
        files=found.found.files,
        bytes=found.found.bytes,
        oldest=found.found.oldest,
        newest=found.found.newest,
        some=found.found.some,
        kept={str(why): count for why, count in found.kept.items()},
        failed=0 if done is None else done.failed,
        spared=0 if done is None else done.spared,
        recorded=found.recorded,
        error=None if done is None else done.error,
    )


def _show(row: VacuumRow) -> None:
    to = console()
    if row.version is None:
        say(to, f"{row.table}: there is no table yet")
        return
    amount = f"{plural(row.files, 'file')} ({in_words(row.bytes)})"
    if row.deleted:
        say(to, f"{row.table}: {amount} deleted")
    elif row.files:
        say(to, f"{row.table}: {amount} could be deleted; add --yes to do it")
    else:
        say(to, f"{row.table}: there is nothing to delete")
    stay = plural(row.versions or 0, "version stays", "versions stay")
    say(to, f"  {stay} readable, back to {second(row.cutoff)} UTC")
    if row.files:
        first, last = second(row.oldest), second(row.newest)
        when = f"at {last}" if first == last else f"between {first} and {last}"
        say(to, f"  last modified {when} UTC")
        for path in row.some:
            say(to, f"  {path}")
        if row.files > len(row.some):
            say(to, f"  ... and {row.files - len(row.some):,} more")
    for why, count in sorted((row.kept or {}).items()):
        many = count != 1
        words = WHY_KEPT[why].format(
            they="they" if many else "it",
            them="them" if many else "it",
            their="their" if many else "its",
        )
        say(to, f"  kept: {plural(count, 'file')}: {words}")
    if row.spared:
        say(to, f"  kept: {plural(row.spared, 'file')} that a commit has put back meanwhile")
    if row.failed:
        say(to, f"  {plural(row.failed, 'file')} could not be deleted: {row.error}; run it again")
