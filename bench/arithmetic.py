"""From measured costs to a load of so many bytes a day. Pure: all that is known is handed in.

Times are in seconds, sizes in bytes, money in US dollars. What was measured stands in `Costs`, what
was not in `Assumptions` and `Prices` (`bench.figures`); defaults of the two programs are taken from
their settings.
"""

import math
from dataclasses import dataclass, replace

from bench.figures import Asked, Assumptions, Costs, Prices
from blizzard.journal.lease import BEAT_SECS
from blizzard.model.settings import (
    ListingLimits,
    RollingPolicy,
    Sizing,
    SnapshotLimits,
    SourceSettings,
    UploadSettings,
)
from blizzard.plan.planner import units_per_core
from penguin.delta.maintenance import spacing
from penguin.model.settings import TableSettings

LOOKS = ListingLimits()
SNAPSHOTS = SnapshotLimits()
DAY = 86_400
YEAR_DAYS = 365
MONTH_DAYS = 30
GB = 10**9
TB = 10**12
PB = 10**15

ROLLING = RollingPolicy()
UPLOAD = UploadSettings()
SOURCE = SourceSettings(uri="s3://bucket/in")
TABLE = TableSettings(name="events", table_uri="s3://bucket/table")

WRITES = ("put", "list", "begin", "part", "complete")
"""What is charged like a PUT. `get` and `head` cost less, deletes nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """So many bytes of plain NDJSON a day, in gzipped files of a size."""

    plain: float
    file_size: float

    def files(self, given: Assumptions) -> float:
        """Count the source files of a day."""
        return self.plain / given.gz_ratio / self.file_size


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The three settings that decide how a load is cut into batches and data files."""

    max_bytes: float = SOURCE.max_bytes_per_batch
    max_files: float = SOURCE.max_files_per_batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Batches:
    """How one pipeline cuts a day into batches."""

    a_day: float
    plain: float
    """Bytes of plain NDJSON in each."""
    files: float
    """Source files in each."""
    data_files: float
    """Data files of a day."""
    data_file_size: float


def cores_for(load: Load, costs: Costs, given: Assumptions) -> int:
    """Count the cores that keep up, with headroom."""
    return max(1, math.ceil(load.plain / DAY / costs.bytes_per_core * given.headroom))


def advised(load: Load, cores: int, given: Assumptions) -> Limits:
    """Return the settings with which data files come out at 128 MB where a load fills that many.

    A batch starts when it fills `file_size_mb` on each core, if its limits let it grow so far.
    """
    packed = ROLLING.file_size / given.parquet_ratio * cores / given.gz_ratio
    return Limits(
        max_bytes=max(SOURCE.max_bytes_per_batch, packed),
        max_files=max(SOURCE.max_files_per_batch, packed / load.file_size),
    )


def batches_of(load: Load, cores: int, limits: Limits, given: Assumptions) -> Batches:
    """Cut a day into batches as `blizzard.plan` does, under the limits."""
    full = ROLLING.file_size / given.parquet_ratio * cores
    most = min(limits.max_bytes, limits.max_files * load.file_size) * given.gz_ratio
    waited = load.plain / DAY * ROLLING.rollover
    plain = max(load.file_size * given.gz_ratio, min(full, most, waited))
    # A gzipped file cannot be cut, so no unit is smaller than one.
    share = plain / cores
    share /= units_per_core(share * given.parquet_ratio / ROLLING.file_size)
    unit = max(Sizing().smallest_unit, load.file_size * given.gz_ratio, share)
    written = plain / max(1.0, plain / unit) * given.parquet_ratio
    size = written / math.ceil(written / ROLLING.file_size)
    return Batches(
        a_day=load.plain / plain,
        plain=plain,
        files=max(1.0, plain / given.gz_ratio / load.file_size),
        data_files=load.plain * given.parquet_ratio / size,
        data_file_size=size,
    )


def upload_of(size: float, *, part_size: int = UPLOAD.part_size) -> Asked:
    """Count the requests of uploading a data file: in parts, or in one piece where it is small."""
    if not replace(UPLOAD, part_size=part_size).in_parts(math.ceil(size)):
        return {"put": 1.0, "head": 1.0}
    parts = float(math.ceil(size / part_size))
    return {"begin": 1.0, "part": parts, "complete": 1.0, "head": 1.0}


def requests_of(load: Load, found: Batches, costs: Costs, given: Assumptions) -> dict[str, Asked]:
    """Count a day's requests by what they are for."""
    files, asked = load.files(given), costs.requests
    polls = DAY / SOURCE.poll_interval
    # A quick listing lists what arrived within the late window again, of a folder up to so much.
    listed = 1 + min(files / DAY * SOURCE.late_window, LOOKS.names) / LOOKS.page
    swept = files * given.swept_days
    sweeps = sweeps_of(swept)
    commits = commits_of(found)
    keeps = max(found.a_day / SNAPSHOTS.entries, min(found.a_day, files / SNAPSHOTS.names))
    return {
        "finding source files": total(
            times({"list": 1.0}, polls * listed + files / LOOKS.page),
            times(
                {
                    "list": swept / LOOKS.page,
                    "get": swept * (costs.sweep_requests - 1 / LOOKS.page),
                },
                sweeps,
            ),
        ),
        "reading source files": times(asked["source_file"], files),
        "uploading data files": times(upload_of(found.data_file_size), found.data_files),
        "journal, claim, snapshots": total(
            times(asked["batch"], found.a_day),
            times({"get": 1.0, "put": 1.0}, DAY / BEAT_SECS),
            times(asked["keep"], keeps),
        ),
        "penguin": total(
            times(asked["penguin_poll"], max(0.0, DAY / TABLE.poll_interval - commits)),
            times(asked["penguin_commit"], commits),
            times(asked["penguin_file"], found.data_files),
        ),
    }


def alone_seconds(found: Batches, costs: Costs, given: Assumptions) -> float:
    """Return how long the driver works at a batch while no task runs; looks run beside tasks."""
    asked = sum(costs.requests["batch"].values())
    books = found.files * (costs.plan + costs.encode)
    return given.spark_job_secs + asked * given.request_secs + books


def sweeps_of(names: float) -> float:
    """Count the sweeps of a day: every hour, and more often where a source is small."""
    interval = min(SOURCE.sweep_interval, max(1.0, names / LOOKS.page - 1) * SOURCE.poll_interval)
    return DAY / interval


def commits_of(found: Batches) -> float:
    """Count penguin's commits of a day: entries that wait share one."""
    return min(found.a_day, DAY / TABLE.poll_interval)


def times(asked: Asked, count: float) -> Asked:
    """Return so many times the requests."""
    return {kind: number * count for kind, number in asked.items()}


def total(*some: Asked) -> Asked:
    """Add requests up, kind by kind."""
    kinds = dict.fromkeys(kind for asked in some for kind in asked)
    return {kind: sum(asked.get(kind, 0.0) for asked in some) for kind in kinds}


def price_of(asked: Asked, prices: Prices) -> float:
    """Return what requests cost."""
    writes = sum(asked.get(kind, 0.0) for kind in WRITES)
    reads = asked.get("get", 0.0) + asked.get("head", 0.0)
    return (writes * prices.per_1000_writes + reads * prices.per_1000_reads) / 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What a load leaves behind."""

    entry_bytes: float
    journal_a_day: float
    names_a_day: float
    commits_a_day: float
    log_a_day: float
    """Bytes of the commits; checkpoints come on top, one in ten commits or fewer."""
    active: float
    """Files in the table after a month."""
    active_optimized: float


def growth_of(load: Load, found: Batches, costs: Costs, given: Assumptions) -> Growth:
    """Return what a day adds to journal, known names and log, and how many files a month makes."""
    files = load.files(given)
    journal = (
        found.a_day * costs.entry_fixed
        + files * costs.entry_per_source
        + found.data_files * costs.entry_per_data_file
    )
    written = load.plain * given.parquet_ratio * MONTH_DAYS
    return Growth(
        entry_bytes=journal / found.a_day,
        journal_a_day=journal,
        names_a_day=files * costs.name_bytes,
        commits_a_day=commits_of(found),
        log_a_day=found.data_files * costs.commit_bytes,
        active=found.data_files * MONTH_DAYS,
        # The last day's files are still as they were written.
        active_optimized=written / given.optimized_file + found.data_files,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Strain:
    """What a number of active files asks of penguin."""

    memory: float
    commit: float
    """CPU of a commit."""
    checkpoint_bytes: float


def strain_of(active: float, files_per_commit: float, costs: Costs) -> Strain:
    """Return what so many active files cost penguin at each commit."""
    return Strain(
        memory=costs.memory_fixed + active * costs.memory_per_active,
        commit=costs.commit_fixed
        + active * costs.commit_per_active
        + files_per_commit * costs.commit_per_file,
        checkpoint_bytes=active * costs.checkpoint_bytes,
    )


def checkpoints_kept(active: float, commits_a_day: float, costs: Costs) -> float:
    """Return the bytes of checkpoints of a month in which a table grows to so many files.

    They are as far apart as those of a table that has half of them.
    """
    apart = spacing(TABLE.checkpoint_interval, int(active / 2))
    written = commits_a_day * MONTH_DAYS / apart
    return written * active / 2 * costs.checkpoint_bytes
