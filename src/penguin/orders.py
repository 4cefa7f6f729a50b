"""The commands by which an operator settles what penguin will not settle by itself."""

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from lake.arguments import DONE, FAILED, USAGE, Files, Folders, Output, Shape
from lake.clock import Clock
from lake.errors import LakeError
from penguin import given, report
from penguin.settings import TableSettings

if TYPE_CHECKING:
    from penguin.mend import Order

app = typer.Typer()

Ids = Annotated[
    list[str] | None, typer.Argument(metavar="[ID]…", help="As `penguin held` shows them.")
]
Sure = Annotated[bool, typer.Option("--yes", help="Do it; without, only say what would be done.")]


@app.command()
def release(
    context: typer.Context,
    ids: Ids = None,
    every: Annotated[bool, typer.Option("--all", help="Everything that is held.")] = False,
    files: Files = None,
    folders: Folders = None,
    output: Shape = Output.TEXT,
) -> None:
    """Try held files again: those that the table can hold now go in."""
    if bool(ids) == every:
        sys.stderr.write("error: name files by their ids, or say --all\n")
        raise typer.Exit(USAGE)
    rows, code = [], DONE
    for table, order, names in _chosen(given.tables(context, files, folders), ids):
        try:
            settled = order.release(names)
        except LakeError as error:
            code = _complain(table, error)
            continue
        rows += report.settled_rows(table.name, settled, "released")
        code = max(code, FAILED if settled.left else DONE)
    report.settled(rows, output)
    raise typer.Exit(code)


@app.command()
def discard(
    context: typer.Context,
    ids: Annotated[list[str], typer.Argument(metavar="ID…", help="As `penguin held` shows them.")],
    sure: Sure = False,
    files: Files = None,
    folders: Folders = None,
    output: Shape = Output.TEXT,
) -> None:
    """Give held files up for good: their rows never will be in the table."""
    rows, code = [], DONE
    for table, order, names in _chosen(given.tables(context, files, folders), ids):
        if not sure:
            count = len(names or ())
            sys.stderr.write(f"{table.name}: would discard {count} files; say --yes to do it\n")
            code = FAILED
            continue
        try:
            settled = order.discard(names or frozenset())
        except LakeError as error:
            code = _complain(table, error)
            continue
        rows += report.settled_rows(table.name, settled, "discarded")
    report.settled(rows, output)
    raise typer.Exit(code)


def _chosen(
    tables: tuple[TableSettings, ...], ids: list[str] | None
) -> "list[tuple[TableSettings, Order, frozenset[str] | None]]":
    """Find the tables that hold the files that are named; a name that none has is an error."""
    from penguin.mend import Order  # noqa: PLC0415
    from penguin.pipeline import open_store  # noqa: PLC0415

    unknown = set(ids or ())
    found: list[tuple[TableSettings, Order, frozenset[str] | None]] = []
    for table in tables:
        try:
            store = open_store(table)
            if store is None:
                continue
            order = Order(settings=table, store=store, clock=Clock(), pause=time.sleep)
            here = order.held() & frozenset(ids) if ids else None
        except LakeError as error:
            raise typer.Exit(_complain(table, error)) from error
        if here is None or here:
            found.append((table, order, here))
        unknown -= here or set()
    if unknown:
        names = ", ".join(sorted(unknown))
        sys.stderr.write(f"error: not held: {names}; `penguin held` shows what is\n")
        raise typer.Exit(FAILED)
    return found


def _complain(table: TableSettings, error: LakeError) -> int:
    sys.stderr.write(f"error: {table.name}: {error}\n")
    return FAILED
