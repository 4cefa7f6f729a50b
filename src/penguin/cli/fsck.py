"""`penguin fsck`: which files of a table are missing, whose rows they held, and what to do."""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from lakebed.errors import LakeError
from lakebed.layout import log_version
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
from lakebed.terminal.console import (
    console,
    plural,
    print_lines,
    say,
    say_as_it_is,
    say_error,
    say_more,
)
from penguin.cli import options
from penguin.model.settings import TableSettings

if TYPE_CHECKING:
    from penguin.upkeep.fsck import Damaged
    from penguin.upkeep.repair import Repaired

FEW = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagedRow:
    """One file, in the keys that docs/upkeep.md promises."""

    path: str
    trouble: str
    bytes: int | None
    bytes_found: int | None
    partition: dict[str, str | None]
    version: int | None
    pipeline: str | None
    entry: int | None
    kind: str | None
    rows: int | None
    sources: tuple[str, ...]
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FsckRow:
    """What was found in a table, and what was taken out of its log."""

    table: str
    table_uri: str
    version: int | None = None
    files: int = 0
    elsewhere: int = 0
    damaged: tuple[DamagedRow, ...] = ()
    taken_out: int = 0
    repaired: int | None = None
    redo: tuple[str, ...] = ()
    rows_lost: tuple[str, ...] = ()
    dry_run: bool = False


def fsck(
    files: Files = None,
    folders: Folders = None,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair", help="Take missing files out of the log, with --yes; without it, show them."
        ),
    ] = False,
    with_unit: Annotated[
        bool,
        typer.Option(
            "--with-unit",
            help="Also take out files written together with them, so that blizzard redo can read "
            "their sources again.",
        ),
    ] = False,
    rows_lost: Annotated[
        bool,
        typer.Option(
            "--rows-lost",
            help="Also take out files whose rows blizzard redo cannot read again, and name them.",
        ),
    ] = False,
    rows_back: Annotated[
        bool,
        typer.Option(
            "--rows-back",
            help="Also take out files with deleted rows, which come back when blizzard redo reads "
            "their sources again.",
        ),
    ] = False,
    even_all: Annotated[
        bool, typer.Option("--all", help="Repair even if none of the table's files is there.")
    ] = False,
    sure: Sure = False,
    output: Shape = Output.TEXT,
) -> None:
    """Show which files of each table are missing, or have another size than the log says.

    Exits with 0 if all are there, 1 if not, and 2 if it cannot be told.
    """
    if (with_unit or rows_lost or rows_back or even_all or sure) and not repair:
        options_of = "--with-unit, --rows-lost, --rows-back, --all and --yes"
        say_error(f"error: {options_of} belong to --repair")
        raise typer.Exit(USAGE)
    tables = options.tables(files, folders)
    from lakebed.deltalog.segment import is_empty_log  # noqa: PLC0415
    from lakebed.deltalog.snapshot import LogReader  # noqa: PLC0415
    from penguin.upkeep.fsck import check  # noqa: PLC0415
    from penguin.upkeep.repair import Repaired, RepairOrder, RepairRefused  # noqa: PLC0415

    def code(error: LakeError) -> int:
        return FAILED if isinstance(error, RepairRefused) else USAGE

    rows, outcome = [], Outcome()
    for table in tables:
        with outcome.of(table.name, code), options.looked_with(table, output) as opens:
            store = opens()
            if sure and store is not None and is_empty_log(store):
                store.delete(log_version(0))
            if store is None or LogReader(store).look() is None:
                rows.append(FsckRow(table=table.name, table_uri=table.table_uri))
                continue
            order = RepairOrder(
                with_unit=with_unit, rows_lost=rows_lost, rows_back=rows_back, even_all=even_all
            )
            if not repair:
                found = Repaired(checked=check(store))
            else:
                found = order.carry_out(store) if sure else order.plan(store)
            rows.append(fsck_row(table, found, dry_run=repair and not sure))
            is_well = not found.checked.damaged or found.version is not None
            outcome.at_least(DONE if is_well else FAILED)
    if output is Output.JSON:
        print_lines(rows)
    else:
        for row in rows:
            _show_fsck(row)
    raise typer.Exit(outcome.code)


def fsck_row(table: TableSettings, found: "Repaired", *, dry_run: bool) -> FsckRow:
    """Return what was found, and done."""
    checked = found.checked
    return FsckRow(
        table=table.name,
        table_uri=table.table_uri,
        version=checked.version,
        files=checked.files,
        elsewhere=checked.elsewhere,
        damaged=tuple(map(damaged_row, checked.damaged)),
        taken_out=len(found.files),
        repaired=found.version,
        redo=found.marked,
        rows_lost=tuple(
            sorted({path for one in found.lost if one.origin for path in one.origin.sources})
        ),
        dry_run=dry_run,
    )


def damaged_row(one: "Damaged") -> DamagedRow:
    """Return what is known of a file, and what to do."""
    origin = one.origin
    return DamagedRow(
        path=one.path,
        trouble=str(one.trouble),
        bytes=one.action.size,
        bytes_found=one.found,
        partition=dict(one.action.partition_values),
        version=one.added,
        pipeline=None if origin is None else origin.pipeline,
        entry=None if origin is None else origin.entry,
        kind=None if origin is None else origin.kind,
        rows=None if origin is None else origin.rows,
        sources=() if origin is None else origin.sources,
        remedy=_remedy(one),
    )


def _remedy(one: "Damaged") -> str:
    if str(one.trouble) != "missing":
        return "restore it from a backup, or from a version of the bucket"
    if one.origin is None:
        return (
            "restore it from a backup; if that is not possible, penguin fsck --repair, and write "
            "its rows again from where they came"
        )
    if one.origin.kind != "batch":
        return (
            "restore it from a backup, or from a version of the bucket; penguin fsck --repair "
            "takes it out only with --rows-lost, since blizzard redo cannot read again what a "
            f"{one.origin.kind} entry wrote"
        )
    if one.origin.replaced:
        return (
            "restore it from a backup, or from a version of the bucket; penguin fsck --repair "
            "takes it out only with --rows-lost, since another journal has taken the place of the "
            "one that it was written with, and blizzard redo reads again what its own has"
        )
    if one.origin.part_read:
        return (
            "restore it from a backup, or from a version of the bucket; penguin fsck --repair "
            f"takes it out only with --rows-lost, since {one.origin.part_read[0]} was read over "
            "several batches, and blizzard redo reads a source file only as a whole"
        )
    unit = " --with-unit" if one.origin.others else ""
    again = "" if one.action.deletion_vector is None else " --rows-back"
    name = one.path.rpartition("/")[2].removesuffix(".parquet")
    told = (
        f"restore it from a backup; if that is not possible, penguin fsck --repair{unit}{again} "
        f"--yes, then blizzard redo --held {name} --yes"
    )
    return f"{told}; its deleted rows come back, so delete them again" if again else told


def _show_fsck(row: FsckRow) -> None:
    to = console()
    if row.version is None:
        say(to, f"{row.table}: there is no table yet")
        return
    what = f"version {row.version}, {plural(row.files, 'file')}"
    if not row.damaged:
        say(to, f"{row.table}: {what}: {'it is' if row.files == 1 else 'all are'} there")
    else:
        say(to, f"{row.table}: {what}: {plural(len(row.damaged), 'file')} cannot be read")
    if row.elsewhere:
        say(to, f"  {plural(row.elsewhere, 'file')} outside of the table's folder: not checked")
    for one in row.damaged[:FEW]:
        _show_damaged(to, one)
    say_more(to, len(row.damaged) - FEW)
    by_partition = Counter(_partition(one) for one in row.damaged)
    if len(row.damaged) > FEW:
        for partition, count in sorted(by_partition.items())[:FEW]:
            say(to, f"  {partition}: {plural(count, 'file')}")
    _show_repair(to, row)


def _show_repair(to: Console, row: FsckRow) -> None:
    if row.repaired is not None:
        say(to, f"  version {row.repaired}: {plural(row.taken_out, 'file')} taken out of the log")
    elif row.dry_run and row.taken_out:
        say(to, f"  {plural(row.taken_out, 'file')} would be taken out; add --yes to do it")
    if row.redo and (row.repaired is not None or row.dry_run):
        held = " ".join(f"--held {name}" for name in row.redo[:FEW])
        say(to, "  then read their sources again:")
        say_as_it_is(to, f"    blizzard redo {held} --yes")
    if row.rows_lost and (row.repaired is not None or row.dry_run):
        files = plural(len(row.rows_lost), "source file")
        say(to, f"  rows of {files} are lost with that; to read each of them again as a whole:")
        for source in row.rows_lost:
            say_as_it_is(to, f"    blizzard retract {source} --replace {source} --yes")
        say(to, "  rows of them that were erased come back with it: erase them again")


def _show_damaged(to: Console, one: DamagedRow) -> None:
    trouble = {
        "missing": "missing",
        "size_differs": f"{one.bytes_found} bytes instead of {one.bytes}",
        "vector_missing": "its deletion vector is missing",
    }[one.trouble]
    added = "" if one.version is None else f", added by version {one.version}"
    say(to, f"  {one.path}: {trouble}{added}")
    if one.pipeline is not None:
        rows = plural(one.rows or 0, "row")
        say(to, f"    {rows} of pipeline {one.pipeline}, entry {one.entry} ({one.kind}), from:")
        for source in one.sources[:FEW]:
            say(to, f"      {source}")
        say_more(to, len(one.sources) - FEW, "      ")
    say(to, f"    {one.remedy}")


def _partition(one: DamagedRow) -> str:
    return "/".join(f"{name}={value}" for name, value in one.partition.items()) or "no partition"
