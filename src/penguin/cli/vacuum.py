"""`penguin vacuum`: show or delete files that no version of the table needs."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated

import typer

from lakebed.terminal.call import Confirmed, refuse
from lakebed.terminal.console import first, picked, second
from lakebed.units import in_words, parse_span, plural
from penguin.cli.call import TableCall, document_of
from penguin.model.settings import TableSettings
from penguin.upkeep.order import Vacuumed, VacuumOrder

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


def vacuum(
    call: TableCall,
    sure: Confirmed = False,
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
) -> None:
    """Show or delete data files that no version within the table's retention needs.

    Nothing is deleted without --yes.
    """
    span = None if older_than is None else parse_span(older_than)
    if older_than is not None and (span is None or span > LONGEST):
        why = "write 90m, 24h or 7d" if span is None else "no file is that old"
        refuse(f"--older-than {older_than!r}: {why}")
    for table in call.tables():
        with call.guard(table.name):
            order = VacuumOrder(settings=table, older_than=span, ignore_retention=ignore_retention)
            with call.store(table) as store:
                carried_out = order.carry_out if sure else order.look
                found = None if store is None else carried_out(store)
            call.show(_text(table, found, sure=sure), vacuum_document(table, found, sure=sure))
            call.fail_if(found is not None and found.deleted is not None and found.deleted.failed)


def vacuum_document(
    table: TableSettings, found: Vacuumed | None, *, sure: bool
) -> dict[str, object]:
    """Return what was deleted, or what could be, in the keys that docs/upkeep.md promises."""
    done = None if found is None else found.deleted
    gone = None if found is None else found.found
    return {
        **document_of(table),
        "deleted": sure and found is not None,
        "version": None if found is None else found.version,
        "cutoff": None if found is None else found.cutoff,
        "retention_hours": None if found is None else found.retention.total_seconds() / 3600,
        "versions": None if found is None else found.versions,
        "files": gone.files if gone else 0,
        "bytes": gone.bytes if gone else 0,
        "oldest": gone.oldest if gone else None,
        "newest": gone.newest if gone else None,
        "some": gone.some if gone else (),
        "kept": None if found is None else {str(why): n for why, n in found.kept.items()},
        **(picked(done, "failed spared") if done else {"failed": 0, "spared": 0}),
        "recorded": found is not None and found.recorded,
        "error": done.error if done else None,
    }


def _text(table: TableSettings, found: Vacuumed | None, *, sure: bool) -> Iterator[str]:
    if found is None:
        yield f"{table.name}: there is no table yet"
        return
    gone, done = found.found, found.deleted
    amount = f"{plural(gone.files, 'file')} ({in_words(gone.bytes)})"
    if sure:
        yield f"{table.name}: {amount} deleted"
    elif gone.files:
        yield f"{table.name}: {amount} could be deleted; add --yes to do it"
    else:
        yield f"{table.name}: there is nothing to delete"
    stay = plural(found.versions, "version stays", "versions stay")
    yield f"  {stay} readable, back to {second(found.cutoff)} UTC"
    if gone.files:
        oldest, newest = second(gone.oldest), second(gone.newest)
        when = f"at {newest}" if oldest == newest else f"between {oldest} and {newest}"
        yield f"  last modified {when} UTC"
        yield from first(gone.some, len(gone.some))
        if gone.files > len(gone.some):
            yield f"  ... and {gone.files - len(gone.some):,} more"
    for why, count in sorted((str(why), count) for why, count in found.kept.items()):
        it = ("they", "them", "their") if count != 1 else ("it", "it", "its")
        words = WHY_KEPT[why].format(**dict(zip(("they", "them", "their"), it, strict=True)))
        yield f"  kept: {plural(count, 'file')}: {words}"
    if done is not None and done.spared:
        yield f"  kept: {plural(done.spared, 'file')} that a commit has put back meanwhile"
    if done is not None and done.failed:
        yield f"  {plural(done.failed, 'file')} could not be deleted: {done.error}; run it again"
