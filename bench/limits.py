"""What breaks first as a load grows, and how much a day it takes to get there. Pure."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from bench.arithmetic import (
    DAY,
    MONTH_DAYS,
    ROLLING,
    SOURCE,
    TABLE,
    WRITES,
    YEAR_DAYS,
    Batches,
    Limits,
    Load,
    batches_of,
    cores_for,
    upload_of,
)
from bench.figures import Assumptions, Costs
from blizzard.journal.segments import SegmentRef, to_merge
from blizzard.model.settings import ListingLimits

WANTED = ROLLING.file_size
"""The size of a data file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """One thing that ends, at which number, and which load a day gets there."""

    what: str
    at: float
    unit: str
    load: float
    """Plain NDJSON a day, in bytes."""
    within: str
    """How long that load has to last."""


def breaks(file_size: float, costs: Costs, given: Assumptions) -> list[Break]:
    """Return what breaks for gzipped source files of a size, the least load first."""
    return sorted(_breaks(file_size, costs, given), key=lambda one: one.load)


def _breaks(file_size: float, costs: Costs, given: Assumptions) -> Iterator[Break]:
    """Yield each break: `plain` is what a source file holds, `table_file` what a data file does."""
    plain = file_size * given.gz_ratio
    table_file = WANTED / given.parquet_ratio
    cores = most_cores(file_size, given)
    yield Break(
        what="the default batch no longer fills the data files of all cores",
        at=cores,
        unit="cores",
        load=cores * costs.bytes_per_core * DAY / given.headroom,
        within="at once",
    )
    stall = ROLLING.rollover / costs.merge
    yield Break(
        what="merging all known names holds a batch up for longer than `rollover_timeout_secs`",
        at=stall,
        unit="source files of a pipeline",
        load=stall / YEAR_DAYS * plain,
        within="a year",
    )
    memory = (given.penguin_memory - costs.memory_fixed) / costs.memory_per_active
    yield Break(
        what="penguin needs more than 8 GB",
        at=memory,
        unit="active files",
        load=memory / MONTH_DAYS * table_file,
        within="a month, no OPTIMIZE",
    )
    rate = most_committed(costs)
    yield Break(
        what="penguin commits fewer files than are written",
        at=rate * DAY * MONTH_DAYS,
        unit="active files",
        load=rate * DAY * table_file,
        within="a month, no OPTIMIZE",
    )
    swept = SOURCE.sweep_interval / (costs.sweep + given.page_secs / ListingLimits().page)
    yield Break(
        what="a sweep takes longer than `sweep_interval_secs`",
        at=swept,
        unit="source files within the horizon",
        load=swept / given.swept_days * plain,
        within=f"{given.swept_days} days",
    )
    driver = 1 / driver_seconds(costs)
    yield Break(
        what="the driver's one thread is busy with the books alone",
        at=driver,
        unit="source files a second",
        load=driver * DAY * plain,
        within="at once",
    )
    upload = sum(upload_of(WANTED).get(kind, 0.0) for kind in WRITES)
    yield Break(
        what="S3 slows down writes below one prefix",
        at=given.s3_writes_per_prefix,
        unit="PUTs a second",
        load=given.s3_writes_per_prefix / upload * DAY * table_file,
        within="at once",
    )
    yield Break(
        what="S3 slows down reads below one prefix",
        at=given.s3_reads_per_prefix,
        unit="GETs a second",
        load=given.s3_reads_per_prefix * DAY * plain,
        within="at once",
    )


def most_cores(file_size: float, given: Assumptions) -> float:
    """Count the cores for which a batch of default limits still fills a data file for each."""
    packed = min(SOURCE.max_bytes_per_batch, SOURCE.max_files_per_batch * file_size)
    return packed * given.gz_ratio * given.parquet_ratio / WANTED


def most_committed(costs: Costs) -> float:
    """Return the files a second at which a month's table makes full commits as slow as filling.

    A commit of m files beside n active ones takes f + a n + b m, and n is a month of files.
    """
    most = TABLE.max_files_per_commit
    each = costs.commit_fixed + most * costs.commit_per_file
    grows = costs.commit_per_active * DAY * MONTH_DAYS
    # rate * (each + grows * rate) = most
    return (math.sqrt(each * each + 4 * grows * most) - each) / (2 * grows)


def rebuild_seconds(load: Load, found: Batches, costs: Costs, given: Assumptions) -> float:
    """Return how long it takes to read a year's journal, entry by entry, without its snapshot."""
    entries = found.a_day * YEAR_DAYS
    files = load.files(given) * YEAR_DAYS
    # The names are written to segments again on the way.
    return entries * given.request_secs + files * (costs.decode + costs.merge)


def driver_seconds(costs: Costs) -> float:
    """Return the driver's CPU for a source file: find, plan, journal, keep its name."""
    return costs.first_look + costs.plan + costs.encode + costs.merge * rewrites(1000)


def rewrites(keeps: int) -> float:
    """Return how often a name is written on average while so many equal lots of names are kept."""
    segments: list[SegmentRef] = []
    written = 0
    for number in range(keeps):
        segments.append(SegmentRef(id=str(number), names=1, digest=""))
        written += 1
        count = to_merge(segments)
        if count > 1:
            names = sum(segment.names for segment in segments[-count:])
            segments[-count:] = [SegmentRef(id=f"{number}m", names=names, digest="")]
            written += names
    return written / keeps


def default_size(load: Load, costs: Costs, given: Assumptions) -> float:
    """Return how large data files are with nothing set."""
    return batches_of(load, cores_for(load, costs, given), Limits(), given).data_file_size
