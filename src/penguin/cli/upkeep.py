"""`penguin vacuum` and `penguin fsck`: files that no version needs, and files that are missing."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated

import typer

from lakebed.deltalog.segment import is_empty_log
from lakebed.deltalog.snapshot import LogReader
from lakebed.errors import LakeError
from lakebed.layout import file_name, log_version
from lakebed.storage.remote import local_path
from lakebed.terminal.call import FAILED, USAGE, Confirmed, refuse
from lakebed.terminal.console import FEW, Verbatim, first, more, picked
from lakebed.units import in_words, parse_span, plural, typable
from penguin.cli.app import TableCall, document_of
from penguin.model.settings import TableMissing, TableSettings
from penguin.pipeline import written
from penguin.upkeep.fsck import Damaged, check
from penguin.upkeep.repair import Repaired, RepairOrder, RepairRefused
from penguin.upkeep.vacuum import VacuumOrder, VacuumReport

LONGEST = timedelta(days=36_500)
"""Longer than any file has existed."""
WHY_KEPT = {
    "young": "no version refers to {them}, but {they} changed within the retention",
    "waiting": "waiting for {their} commit",
    "held": "held by penguin; see penguin held",
    "leftover": "written by blizzard and named by no entry; blizzard gc deletes {them}",
    "scanned": "penguin scans these folders for files, and may still commit {them}",
    "nested": "in a folder with a Delta log of its own, which is another table",
    "other": "neither Parquet files nor deletion vectors",
}


NO_TABLE = {
    **dict.fromkeys(("version", "cutoff", "kept", "error")),
    "files": 0,
    "bytes": 0,
    "some": (),
    "failed": 0,
    "spared": 0,
}
"""The report if there is no table yet."""


def vacuum(
    call: TableCall,
    sure: Confirmed = False,
    older_than: str | None = None,
    ignore_retention: bool = False,
) -> None:
    """Show or delete data files that no version within the table's retention needs.

    Nothing is deleted without --yes.

    Args:
        older_than SPAN: Only files older than this, such as 30d or 240h; by default the retention
            of the table.
        ignore_retention: Allow --older-than to be less than the table's retention.
    """
    span = None if older_than is None else parse_span(older_than)
    if older_than is not None and span is None:
        refuse(f"--older-than: {older_than!r} is not a duration; use for example 90m, 24h or 7d")
    if span is not None and span > LONGEST:
        refuse(f"--older-than {older_than!r}: no file is that old")
    for table in call.tables():
        with call.guard(table.name):
            order = VacuumOrder(settings=table, older_than=span, ignore_retention=ignore_retention)
            with call.store(table) as found_store:
                store = written(table, found_store)
                found = order.carry_out(store) if sure else order.plan(store)
            call.show(
                _vacuum_text(table, found, sure=sure), vacuum_document(table, found, sure=sure)
            )
            call.fail_if(found is not None and found.failed)


def vacuum_document(
    table: TableSettings, found: VacuumReport | None, *, sure: bool
) -> dict[str, object]:
    """Return what was deleted, or what could be, in the keys that docs/upkeep.md promises."""
    facts = NO_TABLE if found is None else picked(found, " ".join(NO_TABLE))
    keeps = None if found is None else found.retention.total_seconds() / 3600
    done = sure and found is not None
    return {**document_of(table), "deleted": done, "retention_hours": keeps, **facts}


def _vacuum_text(table: TableSettings, found: VacuumReport | None, *, sure: bool) -> Iterator[str]:
    if found is None:
        yield f"{table.name}: there is no table yet"
        return
    amount = f"{plural(found.files, 'file')} ({in_words(found.bytes)})"
    if sure:
        yield f"{table.name}: {amount} deleted"
    elif found.files:
        yield f"{table.name}: {amount} could be deleted; add --yes to do it"
    else:
        yield f"{table.name}: there is nothing to delete"
    if found.files:
        yield from first(found.some, len(found.some))
        if found.files > len(found.some):
            yield f"  ... and {found.files - len(found.some):,} more"
    for why, count in sorted((str(why), count) for why, count in found.kept.items()):
        it = ("they", "them", "their") if count != 1 else ("it", "it", "its")
        words = WHY_KEPT[why].format(**dict(zip(("they", "them", "their"), it, strict=True)))
        yield f"  kept: {plural(count, 'file')}: {words}"
    if found.spared:
        yield f"  kept: {plural(found.spared, 'file')} that a commit has added again meanwhile"
    if found.failed:
        yield f"  {plural(found.failed, 'file')} could not be deleted: {found.error}; run it again"


RESTORE = "restore it from a backup"


def fsck(
    call: TableCall,
    repair: bool = False,
    with_unit: bool = False,
    rows_lost: bool = False,
    rows_back: bool = False,
    even_all: Annotated[bool, typer.Option("--all")] = False,
    sure: Confirmed = False,
) -> None:
    """Show which files of each table are missing, or have another size than the log says.

    Exits with 0 if all are there, 1 if not, and 2 if that is unknown.

    Args:
        repair: Take missing files out of the log, with --yes; without it, show them.
        with_unit: Also take out files written together with them, so that blizzard redo can read
            their sources again.
        rows_lost: Also take out files whose rows blizzard redo cannot read again, and name them.
        rows_back: Also take out files with deleted rows, which come back when blizzard redo reads
            their sources again.
        even_all: Repair even if none of the table's files is there.
    """
    if (with_unit or rows_lost or rows_back or even_all or sure) and not repair:
        refuse("--with-unit, --rows-lost, --rows-back, --all and --yes belong to --repair")
    order = RepairOrder(
        with_unit=with_unit, rows_lost=rows_lost, rows_back=rows_back, even_all=even_all
    )
    for table in call.tables():
        with call.guard(table.name, _exit_code), call.store(table) as found_store:
            store = written(table, found_store)
            if sure and is_empty_log(store):
                store.delete(log_version(0))
            found = None
            if LogReader(store).newest() is not None:
                if not repair:
                    found = Repaired(checked=check(store))
                else:
                    found = order.carry_out(store) if sure else order.plan(store)
                call.fail_if(found.checked.damaged and found.version is None)
            planned = repair and not sure
            document = fsck_document(table, found, planned)
            call.show(_fsck_text(table, found, repair=repair, planned=planned), document)


def _exit_code(error: LakeError) -> int:
    return FAILED if isinstance(error, RepairRefused | TableMissing) else USAGE


def fsck_document(table: TableSettings, found: Repaired | None, planned: bool) -> dict[str, object]:
    """Return what was found and done, in the keys that docs/upkeep.md promises."""
    checked = None if found is None else found.checked
    return {
        **document_of(table),
        "version": checked.version if checked else None,
        "files": checked.files if checked else 0,
        "elsewhere": checked.elsewhere if checked else 0,
        "damaged": [
            damaged_document(one, table.table_uri) for one in (checked.damaged if checked else ())
        ],
        "taken_out": len(found.files) if found else 0,
        "repaired": found.version if found else None,
        "redo": found.marked if found else (),
        "rows_lost": [key for _pipeline, key in _rows_lost(found)] if found else (),
        "dry_run": planned and found is not None,
    }


def _rows_lost(found: Repaired) -> list[tuple[str, str]]:
    """Return the keys of source files with lost rows, after their pipelines.

    The pipeline is empty if another journal replaced that one: it may have another name now.
    """
    origins = [one.origin for one in found.lost if one.origin]
    pipelines = ["" if one.replaced else one.pipeline for one in origins]
    named = zip(pipelines, origins, strict=True)
    return sorted({(pipeline, key) for pipeline, origin in named for key in origin.sources})


def damaged_document(one: Damaged, uri: str) -> dict[str, object]:
    """Return the facts of a damaged file, and the remedy."""
    return {
        **picked(one, "path trouble bytes=action.size bytes_found=found"),
        "partition": dict(one.action.partition_values),
        "version": one.action.version,
        **picked(one.origin, "pipeline entry kind rows"),
        "sources": one.origin.sources if one.origin else (),
        "remedy": _remedy(one, uri),
    }


def _remedy(one: Damaged, uri: str) -> str:
    origin = one.origin
    older = "" if local_path(uri) else ", or from an older version of the object"
    if one.trouble == "size_differs":
        return f"{RESTORE}{older}; if that is not possible, move it away and run penguin fsck again"
    if one.trouble != "missing":
        return f"{RESTORE}{older}"
    if origin is not None and not origin.sources:
        return f"{RESTORE}{older}; its rows cannot be read again"
    if origin is None or origin.why_lost is not None:
        why = "no journal entry names it" if origin is None else origin.why_lost
        return (
            f"{RESTORE}{older}; penguin fsck --repair takes it out only with --rows-lost, since "
            f"blizzard redo cannot read its rows again ({why})"
        )
    unit = " --with-unit" if origin.others else ""
    again = "" if one.action.deletion_vector is None else " --rows-back"
    remedy = (
        f"{RESTORE}; if that is not possible, penguin fsck --repair{unit}{again} --yes, then "
        f"blizzard redo --held {file_name(one.path)} --yes"
    )
    return f"{remedy}; its deleted rows come back, so delete them again" if again else remedy


def _fsck_text(
    table: TableSettings, found: Repaired | None, *, repair: bool, planned: bool
) -> Iterator[str]:
    if found is None:
        yield f"{table.name}: there is no table yet"
        return
    checked, damaged = found.checked, found.checked.damaged
    what = f"{table.name}: version {checked.version}, {plural(checked.files, 'file')}"
    if damaged:
        yield f"{what}: {plural(len(damaged), 'file')} cannot be read"
    else:
        yield f"{what}: {'it is' if checked.files == 1 else 'all are'} there"
    if checked.elsewhere:
        yield f"  {plural(checked.elsewhere, 'file')} outside of the table's folder: not checked"
    taken_out = () if found.version is None else [each.path for each in found.files]
    for one in damaged[:FEW]:
        yield from _damaged_lines(one)
        if one.path not in taken_out:
            yield f"    {_remedy(one, table.table_uri)}"
    yield from more(len(damaged) - FEW)
    if repair and (left := len(damaged) - len(checked.missing)):
        files = plural(left, "file stays", "files stay")
        yield f"  {files} in the log: --repair takes out only missing files"
    yield from _repair_lines(found, planned)


def _repair_lines(found: Repaired, planned: bool) -> Iterator[str]:
    taken_out = plural(len(found.files), "file")
    if found.version is not None:
        yield f"  version {found.version}: {taken_out} taken out of the log"
    elif planned and found.files:
        yield f"  {taken_out} would be taken out; add --yes to do it"
    if found.version is None and not planned:
        return
    if found.marked:
        held = " ".join(f"--held {name}" for name in found.marked[:FEW])
        yield "  then read their sources again:"
        yield Verbatim(f"    blizzard redo {held} --yes")
    if lost := _rows_lost(found):
        files = plural(len(lost), "source file")
        yield f"  rows of {files} are lost with that; to read each of them again as a whole:"
        for pipeline, key in lost:
            file, of = typable(key), f" -p {pipeline}" if pipeline else ""
            yield Verbatim(f"    blizzard retract {file} --replace {file} --yes{of}")
        yield "  rows of them that were erased come back with it: erase them again"
    if count := sum(one.origin is None for one in found.lost):
        yield (
            f"  rows of {plural(count, 'file')} that other programs wrote are lost with that; "
            "blizzard files --state removed names source files with rows in them"
        )


def _damaged_lines(one: Damaged) -> Iterator[str]:
    trouble = {
        "missing": "missing",
        "size_differs": f"{one.found} bytes instead of {one.action.size}",
        "vector_missing": "its deletion vector is missing",
    }[str(one.trouble)]
    at = one.action.version
    added = "" if at is None else f", added by version {at}"
    yield f"  {one.path}: {trouble}{added}"
    if (origin := one.origin) is not None:
        rows = plural(origin.rows, "row")
        entry = f"entry {origin.entry} ({origin.kind})"
        sources = "from:" if origin.sources else "source files unknown"
        yield f"    {rows} of pipeline {origin.pipeline}, {entry}, {sources}"
        yield from first(origin.sources, indent="      ")
