"""One Spark job: the pool that it shares cores in, its name in Spark's UI, and its cancellation."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from blizzard.model.files import Work, WorkUnit
from blizzard.model.progress import Address, Report
from blizzard.model.rewriting import Concatenate, FileGroup, FillColumn, Rewriting
from blizzard.worker.progress import ProgressClient
from lakebed.storage.store import Store
from lakebed.units import in_words, plural

Item = TypeVar("Item")
Answer = TypeVar("Answer")

Ended = Callable[[int], None]
"""Is told how many items of a job are done."""


def each(
    items: tuple[Item, ...],
    work: Rewriting,
    do: Callable[[Item, Rewriting, Store], Answer],
    *,
    driver: Address | None = None,
    job: str = "",
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that a Python worker of Spark runs to do something with each item.

    Where a driver listens, it is told of each item that is done, as of a file that was read.
    """
    packed = [pickle.dumps(item) for item in items]

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        store = Store(work.sink.uri, work.sink.options)
        for batch in batches:
            for index in batch.column(0).to_numpy().tolist():
                item: Item = pickle.loads(packed[index])  # noqa: S301 - our own driver wrote it
                name = f"{work.marks['pipeline']}/{index}"
                with ProgressClient(driver, name, job=job) as channel:
                    outcome = do(item, work, store)
                    channel.progress.files_read = 1
                yield pa.RecordBatch.from_arrays(
                    [pa.array([index], pa.int64()), pa.array([pickle.dumps(outcome)], pa.binary())],
                    names=["item", "outcome"],
                )

    return run


def counting(ended: Ended) -> Callable[[Report], None]:
    """Return what hears the reports of a job and counts its items; one that is retried, once."""
    done: set[str] = set()

    def heard(report: Report) -> None:
        if report.progress.files_read and report.unit not in done:
            done.add(report.unit)
            ended(len(done))

    return heard


POOL = "spark.scheduler.pool"
GROUP = "spark.jobGroup.id"
DESCRIPTION = "spark.job.description"
TROUBLE = (PySparkException, Py4JError, OSError)
"""What calls of Spark raise: its own errors, and the refused connection of a JVM that is gone."""

Mapped = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""The function that a Python worker of Spark runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLabel:
    """How Spark's UI shows a job, and the group by which it is cancelled."""

    group: str
    pipeline: str
    description: str

    def collect(self, session: SparkSession, count: int, run: Mapped, answer: str) -> list[Row]:
        """Run one task per number below `count`; cancel those still running if this is left early.

        Pool, group and description belong to this Python thread and its JVM thread, so pipelines do
        not see each other's. Group and description are removed at the end: the caller of a session
        that is lent may start jobs in the same thread.
        """
        context = session.sparkContext
        try:
            context.setLocalProperty(POOL, self.pipeline)
            context.setJobGroup(self.group, self.description)
            return session.range(0, count, 1, count).mapInArrow(run, answer).collect()
        except BaseException:
            with suppress(*TROUBLE):
                context.cancelJobGroup(self.group)
            raise
        finally:
            with suppress(*TROUBLE):
                for key in (GROUP, DESCRIPTION):
                    context.setLocalProperty(key, None)  # type: ignore[arg-type]


def batch_description(units: Sequence[WorkUnit], work: Work) -> str:
    """Describe a job by pipeline, batch, files and bytes; a file that tasks share counts once."""
    files = {(file.source, file.path) for unit in units for file in unit.files}
    what = plural(len(files), "file")
    if replayed := sum(unit.replay is not None for unit in units):
        what = plural(replayed, "quarantine file")
    batch = "" if work.batch is None else f", batch {work.batch:,}"
    step = "" if work.look is None else "columns of "
    size = in_words(sum(unit.to_read for unit in units))
    return f"{work.marks['pipeline']}{batch}: {step}{what}" + ("" if replayed else f", {size}")


def rewrite_description(groups: Sequence[FileGroup], work: Rewriting) -> str:
    """Describe a job that rewrites data files by pipeline, transform, files and bytes."""
    files = [file for group in groups for file in group.files]
    size = in_words(sum(file.size for file in files))
    names = {FillColumn: "promotion", Concatenate: "merging"}
    change = names.get(type(work.transform), "removal")
    return f"{work.marks['pipeline']}, {change}: {plural(len(files), 'data file')}, {size}"
