"""`penguin release`, `penguin discard`, `penguin replay` and `penguin forget`."""

import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer

from lakebed.clock import Clock
from lakebed.storage.store import Store
from lakebed.terminal.call import DONE, FAILED, Confirmed, refuse
from lakebed.terminal.console import picked
from lakebed.units import entries_from, is_are, plural
from penguin.cli.app import TableCall
from penguin.model.settings import TableSettings
from penguin.operate.release import HeldFileOperations, Settlement
from penguin.operate.replay import LogReplay, RolledBackPipeline
from penguin.pipeline import is_missing, nothing_at, open_store

NOTHING_LOST = "no Delta log has lost a commit"
IDS = typer.Argument(metavar="ID", help="IDs, as `penguin held` shows them.")

OnlyPipeline = Annotated[
    str | None, typer.Option("-p", "--pipeline", metavar="NAME", help="Only this pipeline.")
]


def release(
    call: TableCall,
    ids: Annotated[list[str] | None, IDS] = None,
    every: Annotated[bool, typer.Option("--all")] = False,
) -> None:
    """Try held files again, and commit those that now fit the table.

    Args:
        every: All files that are held.
    """
    if bool(ids) == every:
        refuse("name files by their IDs, or use --all")
    rows, chosen = [], _chosen(call, ids)
    for table, operations, names in chosen:
        with call.guard(table.name):
            found = operations.release(names)
            rows += list(_settled(table, found, "released"))
            call.fail_if(found.left)
    if chosen:
        call.show(_settled_text(rows), *rows)


def discard(
    call: TableCall,
    ids: Annotated[list[str], IDS],
    sure: Confirmed = False,
    rows_deleted: bool = False,
) -> None:
    """Discard held files for good; their rows will not be in the table.

    Args:
        rows_deleted: Confirm that you have deleted the rows of a file that was rewritten.
    """
    rows = []
    for table, operations, names in _chosen(call, ids, contested=True):
        if not sure:
            _show_order(call, table, [f"{one} would be discarded" for one in sorted(names or ())])
            continue
        with call.guard(table.name):
            found = operations.discard(names or frozenset(), rows_deleted=rows_deleted)
            rows += list(_settled(table, found, "discarded"))
    if sure:
        call.show(_settled_text(rows), *rows)
    else:
        call.needs_yes()


def _settled(table: TableSettings, found: Settlement, word: str) -> Iterator[dict[str, object]]:
    """Yield the outcome for each held file of one table; `reasons` say why one stays held."""
    held = "id=name file=filename rows=record_count"
    taken_out = "id=name file=file.filename rows=file.record_count"
    settled = [picked(one, held) for one in found.done]
    settled += [picked(one, taken_out) for one in found.taken_out]
    outcome: dict[str, object] = {"outcome": word, "version": found.version, "reasons": ()}
    yield from ({"table": table.name, **file, **outcome} for file in settled)
    for one in found.left:
        why = found.why.get(one.name)
        reasons = one.reasons if why is None else (why,)
        outcome = {"outcome": "held", "version": None, "reasons": reasons}
        yield {"table": table.name, **picked(one, held), **outcome}


def _settled_text(rows: list[dict[str, Any]]) -> Iterator[str]:
    if not rows:
        yield "nothing is held"
    for row in rows:
        where = f" in version {row['version']}" if row["version"] is not None else ""
        yield f"{row['table']}: {row['outcome']}{where}: {row['id']}, {plural(row['rows'], 'row')}"
        yield from (f"  {reason}" for reason in row["reasons"])


def _show_order(
    call: TableCall, table: TableSettings, lines: list[str], *, done: bool = False
) -> None:
    documents = ({"table": table.name, "done": done, "what": what} for what in lines)
    call.show((f"{table.name}: {what}" for what in lines), *documents)


def replay(
    call: TableCall,
    pipeline: OnlyPipeline = None,
    sure: Confirmed = False,
    rows_missing: bool = False,
) -> None:
    """Commit again what the log has lost, or what a RESTORE removed.

    Args:
        rows_missing: Confirm that rows are missing if the log cannot tell.
    """

    def settle(replay: LogReplay) -> list[str]:
        lines = []
        for one in _of(replay.rolled_back(), pipeline):
            if sure:
                replay.replay_lost(one, rows_missing=rows_missing)
            lines += _replayed(one, sure=sure, rows_missing=rows_missing)
        if unlisted := replay.unlisted():
            if sure:
                replay.list_again(unlisted)
            are = is_are(len(unlisted))
            lines.append(
                f"{plural(len(unlisted), 'file')} whose release the log has lost "
                f"{are if sure else 'would be'} held again"
            )
        undone = None if lines or pipeline is not None else replay.undone()
        if undone is None:
            return lines
        restore, adds = undone
        files_of = plural(len(adds), "file")
        what = f"{files_of} that version {restore.restored_by} (RESTORE) took out"
        if not sure:
            return [f"{what} would be added again"]
        return [f"{what} {is_are(len(adds))} back in version {replay.replay_undone()}"]

    nothing = f"{NOTHING_LOST}, and no RESTORE took out anything that is not back"
    _settle_lost(call, settle, nothing=nothing, sure=sure)


def forget(call: TableCall, pipeline: OnlyPipeline = None, sure: Confirmed = False) -> None:
    """Continue without the rows that the log has lost."""

    def settle(replay: LogReplay) -> list[str]:
        lines = []
        for one in _of(replay.rolled_back(), pipeline):
            version = replay.forget_lost(one) if sure else None
            lines += _kept(one, sure=sure)
            if (lost := _lost(one)) is not None:
                would = "would be " if version is None else ""
                lines.append(f"{lost} {would}left out")
        return lines

    _settle_lost(call, settle, nothing=NOTHING_LOST, sure=sure)


def _settle_lost(
    call: TableCall, settle: Callable[[LogReplay], list[str]], *, nothing: str, sure: bool
) -> None:
    """Settle every table, and print what was done or would be, or `nothing`."""
    any_lines = any_read = False
    for table in call.tables():
        with call.guard(table.name):
            store = _opened(call, table)
            if store is None:
                continue
            any_read = True
            lines = settle(LogReplay(settings=table, store=store, clock=Clock(), pause=time.sleep))
            _show_order(call, table, lines, done=sure)
            any_lines = any_lines or bool(lines)
    if any_read and not any_lines and call.code == DONE:
        call.show([f"nothing to do: {nothing}"])
    elif any_lines and not sure:
        call.needs_yes()


def _of(found: tuple[RolledBackPipeline, ...], pipeline: str | None) -> list[RolledBackPipeline]:
    return [one for one in found if pipeline in (None, one.position.pipeline)]


def _replayed(rolled_back: RolledBackPipeline, *, sure: bool, rows_missing: bool) -> list[str]:
    """Return what becomes of the entries whose transactions the log has lost."""
    lines, lost = _kept(rolled_back, sure=sure), _lost(rolled_back)
    if lost is None:
        return lines
    doubtful = rolled_back.evidence.doubtful
    if doubtful is not None and not (sure or rows_missing):
        lines.append(
            f"pipeline {rolled_back.position.pipeline}: of {entries_from(*doubtful)} the log "
            "cannot tell whether the rows are in the table; check, and add --rows-missing if they "
            "are not"
        )
    what = "will be committed again by the next poll" if sure else "would be committed again"
    return [*lines, f"{lost} {what}"]


def _kept(rolled_back: RolledBackPipeline, *, sure: bool) -> list[str]:
    """Return which entries are recorded again, because the log still knows their files."""
    last = rolled_back.evidence.up_to
    if last is None:
        return []
    entries = entries_from(rolled_back.first, last)
    what = "this is recorded again" if sure else "this would be recorded again"
    line = (
        f"pipeline {rolled_back.position.pipeline}: the log still knows files of {entries}: its "
        f"transactions were dropped, not the rows; {what}, and no row is added"
    )
    return [line]


def _lost(rolled_back: RolledBackPipeline) -> str | None:
    """Return the entries that the log has lost, in words; None if it has lost none."""
    first, last = rolled_back.first_lost, rolled_back.receipt.sequence
    if first > last:
        return None
    return f"pipeline {rolled_back.position.pipeline}: {entries_from(first, last)}"


def _opened(call: TableCall, table: TableSettings) -> Store | None:
    """Open a table's directory; None, and a line that says so, if nothing was written there."""
    store = open_store(table)
    if not is_missing(store):
        return store
    call.show([f"{table.name}: {nothing_at(table)}"])
    return None


def _chosen(
    call: TableCall, ids: list[str] | None, *, contested: bool = False
) -> list[tuple[TableSettings, HeldFileOperations, frozenset[str] | None]]:
    """Return the tables that hold the named files; a name that none holds is an error.

    A table that cannot be read fails the command, and does not keep it from the others.
    """
    unknown = set(ids or ())
    found: list[tuple[TableSettings, HeldFileOperations, frozenset[str] | None]] = []
    for table in call.tables():
        with call.guard(table.name):
            store = _opened(call, table)
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
        refuse(f"not held: {names}; `penguin held` shows what is", FAILED)
    return found
