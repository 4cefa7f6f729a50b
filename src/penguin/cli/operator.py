"""The commands by which an operator decides what penguin does not decide by itself."""

import sys
import time
from collections.abc import Callable
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
    Program,
    Shape,
    Sure,
)
from lakebed.terminal.console import console, say, say_error
from lakebed.units import entries_from, is_are, plural
from penguin.cli import options

if TYPE_CHECKING:
    from penguin.model.settings import TableSettings
    from penguin.operate.release import HeldFileOperations
    from penguin.operate.replay import Replay, RolledBackPipeline

app = Program()

NOTHING_LOST = "no log is behind its receipts"

OnlyPipeline = Annotated[
    str | None, typer.Option("-p", "--pipeline", metavar="NAME", help="Only this pipeline.")
]

Ids = Annotated[
    list[str] | None, typer.Argument(metavar="ID", help="IDs, as `penguin held` shows them.")
]


@app.command()
def release(
    ids: Ids = None,
    every: Annotated[bool, typer.Option("--all", help="All files that are held.")] = False,
    files: Files = None,
    folders: Folders = None,
    output: Shape = Output.TEXT,
) -> None:
    """Try held files again, and commit those that now fit the table."""
    if bool(ids) == every:
        say_error("error: name files by their IDs, or use --all")
        raise typer.Exit(USAGE)
    from penguin.cli import settled  # noqa: PLC0415 - printing is loaded by whoever prints

    rows, outcome = [], Outcome()
    for table, operations, names in _chosen(options.tables(files, folders), ids, outcome):
        with outcome.of(table.name):
            found = operations.release(names)
            rows += settled.settled_rows(table.name, found, "released")
            outcome.at_least(FAILED if found.left else DONE)
    settled.settled(rows, output)
    raise typer.Exit(outcome.code)


@app.command()
def discard(
    ids: Annotated[
        list[str], typer.Argument(metavar="ID", help="IDs, as `penguin held` shows them.")
    ],
    sure: Sure = False,
    rows_deleted: Annotated[
        bool,
        typer.Option(
            "--rows-deleted",
            help="Confirm that you have deleted the rows of a file that was rewritten.",
        ),
    ] = False,
    files: Files = None,
    folders: Folders = None,
    output: Shape = Output.TEXT,
) -> None:
    """Discard held files for good; their rows will not be in the table."""
    from penguin.cli import settled  # noqa: PLC0415

    rows, outcome = [], Outcome()
    tables = options.tables(files, folders)
    for table, operations, names in _chosen(tables, ids, outcome, contested=True):
        if not sure:
            what = [f"{name} would be discarded" for name in sorted(names or ())]
            orders = [settled.OrderRow(table=table.name, done=False, what=one) for one in what]
            settled.orders(orders, output)
            continue
        with outcome.of(table.name):
            found = operations.discard(names or frozenset(), rows_deleted=rows_deleted)
            rows += settled.settled_rows(table.name, found, "discarded")
    if sure:
        settled.settled(rows, output)
    else:
        sys.stderr.write("add --yes to do it\n")
        outcome.at_least(FAILED)
    raise typer.Exit(outcome.code)


@app.command()
def replay(
    pipeline: OnlyPipeline = None,
    sure: Sure = False,
    rows_missing: Annotated[
        bool,
        typer.Option(
            "--rows-missing",
            help="Confirm that the rows are missing where the log cannot tell.",
        ),
    ] = False,
    files: Files = None,
    folders: Folders = None,
    output: Shape = Output.TEXT,
) -> None:
    """Commit again what the log has lost, or what a RESTORE removed."""

    def settle(replay: "Replay") -> list[str]:
        said = []
        for one in _of(replay.rolled_back(), pipeline):
            if sure:
                replay.replay_lost(one, rows_missing=rows_missing)
            said += _replayed(one, sure=sure, rows_missing=rows_missing)
        if unlisted := replay.unlisted():
            if sure:
                replay.list_again(unlisted)
            are = is_are(len(unlisted))
            said.append(
                f"{plural(len(unlisted), 'file')} whose release the log has lost "
                f"{are if sure else 'would be'} held again"
            )
        if said or pipeline is not None:
            return said
        undone = replay.undone()
        if undone is None:
            return []
        restore, adds = undone
        files_of = plural(len(adds), "file")
        what = f"{files_of} that version {restore.restored_by} (RESTORE) took out"
        if not sure:
            return [f"{what} would be added again"]
        return [f"{what} {is_are(len(adds))} back in version {replay.replay_undone()}"]

    tables = options.tables(files, folders)
    nothing = f"{NOTHING_LOST}, and no RESTORE took out anything that is not back"
    raise typer.Exit(_settle_lost(tables, settle, nothing=nothing, sure=sure, output=output))


@app.command()
def forget(
    pipeline: OnlyPipeline = None,
    sure: Sure = False,
    files: Files = None,
    folders: Folders = None,
    output: Shape = Output.TEXT,
) -> None:
    """Continue without the rows that the log has lost."""

    def settle(replay: "Replay") -> list[str]:
        said = []
        for one in _of(replay.rolled_back(), pipeline):
            version = replay.forget_lost(one) if sure else None
            said += _kept(one, sure=sure)
            if (lost := _lost(one)) is not None:
                done = f"{_are(one)} left out (version {version})"
                said.append(f"{lost} {'would be left out' if version is None else done}")
        return said

    tables = options.tables(files, folders)
    raise typer.Exit(_settle_lost(tables, settle, nothing=NOTHING_LOST, sure=sure, output=output))


def _settle_lost(
    tables: "tuple[TableSettings, ...]",
    settle: "Callable[[Replay], list[str]]",
    *,
    nothing: str,
    sure: bool,
    output: Output,
) -> int:
    """Settle every table, and print what was done or would be, or that there is `nothing`."""
    from lakebed.clock import Clock  # noqa: PLC0415
    from penguin.cli import settled  # noqa: PLC0415
    from penguin.operate.replay import Replay  # noqa: PLC0415
    from penguin.pipeline import open_store  # noqa: PLC0415

    outcome, said_any = Outcome(), False
    for table in tables:
        with outcome.of(table.name):
            store = open_store(table)
            if store is None:
                continue
            said = settle(Replay(settings=table, store=store, clock=Clock(), pause=time.sleep))
            rows = [settled.OrderRow(table=table.name, done=sure, what=what) for what in said]
            settled.orders(rows, output)
            said_any = said_any or bool(said)
    if not said_any and outcome.code == DONE:
        if output is Output.TEXT:
            say(console(), f"nothing to do: {nothing}")
    elif said_any and not sure:
        sys.stderr.write("add --yes to do it\n")
        return FAILED
    return outcome.code


def _of(
    found: "tuple[RolledBackPipeline, ...]", pipeline: str | None
) -> "list[RolledBackPipeline]":
    return [one for one in found if pipeline in (None, one.position.pipeline)]


def _replayed(rolled_back: "RolledBackPipeline", *, sure: bool, rows_missing: bool) -> list[str]:
    """Return what becomes of entries that the log has no transaction of."""
    said = _kept(rolled_back, sure=sure)
    if (lost := _lost(rolled_back)) is not None:
        done = f"{_are(rolled_back)} committed again by the next poll"
        said.append(f"{lost} {done if sure else 'would be committed again'}")
        if rolled_back.evidence.doubtful is not None and not (sure or rows_missing):
            said.append(_in_doubt(rolled_back))
    return said


def _kept(rolled_back: "RolledBackPipeline", *, sure: bool) -> list[str]:
    """Return which entries the log knows the files of, and that nothing is added for them."""
    last = rolled_back.evidence.up_to
    if last is None:
        return []
    what = "is recorded again" if sure else "would be recorded again"
    entries = entries_from(rolled_back.first, last)
    they_are = "it is" if rolled_back.first == last else "they are"
    said = (
        f"pipeline {rolled_back.position.pipeline}: the log still knows files of {entries}: "
        f"its transactions were dropped, not the rows. It {what} that {they_are} committed, and "
        "no row is added"
    )
    return [said]


def _lost(rolled_back: "RolledBackPipeline") -> str | None:
    """Return the entries that the log has lost, in words; None where it has lost none."""
    first, last = rolled_back.first_lost, rolled_back.receipt.sequence
    if first > last:
        return None
    return f"pipeline {rolled_back.position.pipeline}: {entries_from(first, last)}"


def _are(rolled_back: "RolledBackPipeline") -> str:
    return is_are(rolled_back.receipt.sequence - rolled_back.first_lost + 1)


def _in_doubt(rolled_back: "RolledBackPipeline") -> str:
    first, last = rolled_back.evidence.doubtful or (0, 0)
    return (
        f"pipeline {rolled_back.position.pipeline}: of {entries_from(first, last)} the log cannot "
        "tell whether the rows are in the table; look for them, and add --rows-missing if they "
        "are not"
    )


def _chosen(
    tables: "tuple[TableSettings, ...]",
    ids: list[str] | None,
    outcome: Outcome,
    *,
    contested: bool = False,
) -> "list[tuple[TableSettings, HeldFileOperations, frozenset[str] | None]]":
    """Return the tables that hold the files that are named; a name that none has is an error.

    A table that cannot be read fails the command, and does not keep it from the others.
    """
    from lakebed.clock import Clock  # noqa: PLC0415
    from penguin.operate.release import HeldFileOperations  # noqa: PLC0415
    from penguin.pipeline import open_store  # noqa: PLC0415

    unknown = set(ids or ())
    found: list[tuple[TableSettings, HeldFileOperations, frozenset[str] | None]] = []
    for table in tables:
        with outcome.of(table.name):
            store = open_store(table)
            if store is None:
                continue
            operations = HeldFileOperations(
                settings=table, store=store, clock=Clock(), pause=time.sleep
            )
            known = operations.held()
            if contested and not known.issuperset(ids or ()):
                known |= {one.name for one in operations.contested()}
            here = known & frozenset(ids) if ids else None
            if here is None or here:
                found.append((table, operations, here))
            unknown -= here or set()
    if unknown:
        names = ", ".join(sorted(unknown))
        say_error(f"error: not held: {names}; `penguin held` shows what is")
        raise typer.Exit(FAILED)
    return found
