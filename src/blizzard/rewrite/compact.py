"""Small data files of the table, made into fewer; no row changes.

Tasks write the new files under fresh names. One `compact` entry then says which come in the place
of which, and penguin does all of it in one version or, where a file is not in the table any more,
nothing. Whoever else wants to change the same files comes first: what was written is dropped then,
and the next compaction tries again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from blizzard.config.columns import columns_from
from blizzard.execute.runner import Rewriter
from blizzard.journal.fence import append_what_is_found
from blizzard.model.locations import sink_location
from blizzard.model.rewriting import ActiveFile, FileGroup, Merged, MergeFailed, Merging
from blizzard.model.settings import PipelineSettings
from blizzard.plan.small_files import Group, Policy, SmallFile, groups_of, is_small
from blizzard.rewrite.origins import KnownOrigins, joined
from blizzard.rewrite.transaction import (
    PromotionWaits,
    Standing,
    TableLog,
    drop,
    refuse_collected_since,
    refuse_renamed,
    standing_of,
    waiting_entries,
)
from blizzard.worker.deleted_rows import deleted_rows, ranges_of
from blizzard.worker.output.origins import runs_without
from lakebed import layout
from lakebed.clock import Clock
from lakebed.columns.schema import Schema
from lakebed.documents.data_file import FinishedFile
from lakebed.documents.entry import Entry
from lakebed.documents.merge import Merge, MergedFile
from lakebed.errors import JournalConflict, LakeError, ObjectMissing, Whose
from lakebed.journal import JournalReader
from lakebed.listing.watermark import named_at
from lakebed.storage.store import Reader, Store
from lakebed.types import FieldType, Provenance

FILE = Provenance.FILE.column
NESTED = (FieldType.STRUCT, FieldType.LIST, FieldType.MAP)

Partition = Mapping[str, str | None]
"""Values of some partition columns: those of the files that are meant."""


class CannotSort(LakeError):
    """The rows of the table cannot be sorted by a column."""

    code = "cluster_by_invalid"
    whose = Whose.USER


class NoSuchPartition(LakeError):
    """A partition was named by a column that the table is not partitioned by."""

    code = "partition_unknown"
    whose = Whose.USER


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The groups of small files that are worth it, and where the journal stands."""

    groups: tuple[Group, ...]
    files: Mapping[str, FinishedFile]
    """The files of the groups as the journal has them."""
    small: int
    """How many small files there are in the partitions that are meant, whoever wrote them."""
    young: int
    """How many of them are not `quiet_secs` old yet."""
    standing: Standing
    columns: Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """What was found, and the entry that puts fewer files in the place of many."""

    found: Found | None = None
    merged: tuple[Merge, ...] = ()
    entry: int | None = None
    """None where there was nothing to do, or where others came first."""
    failed: tuple[MergeFailed, ...] = ()
    gave_way: str | None = None
    """Why nothing was changed though files were written: somebody else came first."""


def look(
    store: Reader,
    settings: PipelineSettings,
    log: TableLog,
    *,
    now: datetime,
    partition: Partition | None = None,
    known: KnownOrigins | None = None,
) -> Found:
    """Find the small files of this journal that are worth being put together."""
    standing = standing_of(store, settings, log)
    columns = columns_from(standing.table.schema)
    if columns is None:
        raise ObjectMissing("the columns of the table cannot be read", path=store.uri)
    wanted = settings.sink.compact.cluster_by
    _check_columns(wanted, columns, partition or {}, standing.last.partition_columns)
    origins = known if known is not None else KnownOrigins()
    active = standing.table.files
    origins.keep(standing.last.journal, active.keys())
    policy = policy_of(settings)
    at = round(now.timestamp() * 1000)
    waiting = waiting_entries(store, standing.table)
    taken = {old.filename for entry in waiting for old in entry.outgoing}
    small = [
        file
        for path, file in active.items()
        if path not in taken
        and is_meant(file, partition or {})
        and is_small(_small(file, None, policy), policy)
    ]
    journal = JournalReader(store, settings.name)
    while True:
        groups = groups_of(_candidates(small, origins, policy), policy, at)
        unknown = {
            file.path for group in groups for file in group.files if file.path not in origins.files
        }
        if not unknown:
            break
        origins.ask(journal, standing.last.sequence, unknown)
    ours = {path: file for path, file in origins.files.items() if file is not None}
    return Found(
        groups=groups,
        files={one.path: ours[one.path] for group in groups for one in group.files},
        small=len(small),
        young=sum(at - _small(file, None, policy).written < policy.quiet_ms for file in small),
        standing=standing,
        columns=columns,
    )


def compact(
    store: Store,
    settings: PipelineSettings,
    log: TableLog,
    rewriter: Rewriter,
    *,
    clock: Clock,
    partition: Partition | None = None,
    known: KnownOrigins | None = None,
    rewritten: Callable[[int, int], None] | None = None,
) -> Compacted:
    """Make fewer files of small ones, and append the entry that puts them in their place.

    `rewritten` is told how many of how many groups are done.
    """
    found = look(store, settings, log, now=clock.now(), partition=partition, known=known)
    if not found.groups:
        return Compacted(found=found)
    standing = found.standing
    work = Merging(
        sink=sink_location(settings),
        codec=settings.sink.rolling.codec,
        upload=settings.sink.upload,
        marks={"pipeline": settings.name, "journal": standing.last.journal},
        clock=clock,
        columns=found.columns,
        mapping=standing.table.mapping,
        row_columns=standing.table.row_columns,
        row_group_size=settings.sink.rolling.row_group_size,
    )
    groups = [_group(one, standing.table.files) for one in found.groups]
    outcomes = rewriter.merge(groups, work, ended=_of(len(groups), rewritten))
    failed = tuple(one for one in outcomes if isinstance(one, MergeFailed))
    merges = tuple(_merge(one, found.files, store) for one in outcomes if isinstance(one, Merged))
    left: tuple[Merge, ...] = ()

    def look_again() -> tuple[tuple[Merge, ...], Entry | None]:
        nonlocal left
        now = standing_of(store, settings, log)
        refuse_renamed(standing.table.mapping, now.table.mapping, store.uri)
        waiting = waiting_entries(store, now.table)
        left = _still_there(merges, now, waiting, standing.last.journal)
        if not left:
            return left, None
        entry = now.last.successor(
            "compact",
            previous=now.history.digest,
            run=str(clock.fresh_id()),
            created=clock.now().isoformat(),
            merged=left,
            table_schema=dict(now.table.schema),
            columns=now.history.columns,
        )
        refuse_collected_since(store, standing.last.sequence, entry)
        return left, entry

    try:
        done, entry = append_what_is_found(store, settings.name, look_again)
    except (PromotionWaits, JournalConflict) as others:
        # No entry names what was written: it is garbage, and nobody else's.
        _drop(store, merges)
        return Compacted(found=found, failed=failed, gave_way=others.message)
    _drop(store, [one for one in merges if one not in done])
    gone = "other writers have changed these files meanwhile" if merges and not done else None
    return Compacted(
        found=found,
        merged=done,
        entry=None if entry is None else entry.sequence,
        failed=failed,
        gave_way=gone,
    )


def _of(groups: int, rewritten: Callable[[int, int], None] | None) -> Callable[[int], None] | None:
    """Return what is told how many groups are done; None where nobody wants to know."""
    if rewritten is None:
        return None
    rewritten(0, groups)
    return lambda done: rewritten(done, groups)


def policy_of(settings: PipelineSettings) -> Policy:
    """Return what is worth being put together."""
    compact, file_size = settings.sink.compact, settings.sink.rolling.file_size
    return Policy(
        file_size=file_size,
        min_files=compact.min_files,
        quiet_ms=round(compact.quiet * 1000),
        # Less would make no file of full size.
        max_bytes=max(compact.max_bytes, 2 * file_size),
        cluster_by=compact.cluster_by,
    )


def is_meant(file: ActiveFile, partition: Partition) -> bool:
    """Whether a file is in the partition. Pure."""
    values = file.partition_values
    return all((values.get(name) or None) == (value or None) for name, value in partition.items())


def _check_columns(
    wanted: Sequence[str], columns: Schema, partition: Partition, partitions: Sequence[str]
) -> None:
    for name in partition:
        if name not in partitions:
            by = ", ".join(partitions) or "nothing"
            raise NoSuchPartition(f"the table is partitioned by {by}, not by {name}")
    kinds = {one.name: one.type for one in columns.fields}
    for name in wanted:
        if kinds.get(name, FieldType.STRUCT) in NESTED or name in partitions:
            raise CannotSort(
                f"compact.cluster_by names {name}, which is no column of the table that rows can "
                "be sorted by"
            )


def _candidates(
    files: Sequence[ActiveFile], origins: KnownOrigins, policy: Policy
) -> list[SmallFile]:
    """Return the files that may be of this journal; of those that were asked for, its own."""
    found = []
    for file in files:
        if file.path not in origins.files:
            # What is not asked for yet is taken for one whose rows say where they came from.
            found.append(replace(_small(file, None, policy), sortable=bool(policy.cluster_by)))
            continue
        known = origins.files[file.path]
        if known is not None and known.record_count == file.rows:
            one = _small(file, known, policy)
            if one.sortable or sum(run.rows for run in known.runs) == file.rows:
                found.append(one)
    return found


def _small(file: ActiveFile, known: FinishedFile | None, policy: Policy) -> SmallFile:
    told = None if known is None else known.statistics.get(FILE)
    values = sorted((name, value or None) for name, value in file.partition_values.items())
    begun = named_at(file.path) if layout.file_id(file.path) is not None else None
    return SmallFile(
        path=file.path,
        size=file.size,
        # A file of which the log does not count the rows is left alone, as is one without a time.
        rows=0 if begun is None else file.live_rows or 0,
        partition=tuple(values),
        written=begun or 0,
        sortable=bool(policy.cluster_by) and told is not None and told.null_count == 0,
    )


def _group(group: Group, active: Mapping[str, ActiveFile]) -> FileGroup:
    files = tuple(active[file.path] for file in group.files)
    return FileGroup(files=files, outputs=group.outputs, sorted_by=group.sorted_by)


def _merge(done: Merged, known: Mapping[str, FinishedFile], store: Reader) -> Merge:
    """Return what a group has become, with the origins of its rows."""
    group = done.group
    names, runs = joined([_live(known[file.path], file, store) for file in group.files])
    if group.sorted_by:
        runs = ()
    return Merge(
        old=tuple(
            MergedFile(
                path=file.path,
                size=file.size,
                rows=file.live_rows or 0,
                vector=file.vector_key,
                deleted=file.deleted,
            )
            for file in group.files
        ),
        new=tuple(replace(file, source_files=names, runs=runs) for file in done.new),
        sorted_by=group.sorted_by,
    )


def _live(known: FinishedFile, file: ActiveFile, store: Reader) -> FinishedFile:
    """Return a file with the origins of its rows that are not deleted."""
    if file.vector is None:
        return known
    gone = ranges_of(deleted_rows(store, file.vector))
    names, runs = runs_without(known.source_files, known.runs, gone)
    return replace(known, source_files=names, runs=runs)


def _still_there(
    merges: Sequence[Merge], now: Standing, waiting: Sequence[Entry], journal: str
) -> tuple[Merge, ...]:
    """Return those whose files are all in the table, and that nobody else is to replace."""
    if now.last.journal != journal:
        return ()
    taken = {old.filename for entry in waiting for old in entry.outgoing}
    active = now.table.files
    return tuple(
        one
        for one in merges
        if all(
            old.path in active
            and old.path not in taken
            and active[old.path].vector_key == old.vector
            for old in one.old
        )
    )


def _drop(store: Store, merges: Sequence[Merge]) -> None:
    drop(store, (file.filename for merge in merges for file in merge.new))
