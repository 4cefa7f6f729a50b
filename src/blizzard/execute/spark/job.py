"""One Spark job: its scheduler pool, its description in Spark's UI, and its cancellation."""

import pickle
import secrets
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from blizzard.model.progress import Address, Report
from blizzard.model.rewriting import Concatenate, FileGroup, FillColumn, Rewriting
from blizzard.model.work import Work, WorkUnit
from blizzard.worker.progress import ProgressClient
from lakebed.units import in_words, plural

Item = TypeVar("Item")
Do = Callable[[Item, ProgressClient], object]
"""Processes one item and returns its outcome."""
Ended = Callable[[int], None]
"""Called with the number of finished items of a job."""

POOL = "spark.scheduler.pool"
GROUP = "spark.jobGroup.id"
DESCRIPTION = "spark.job.description"
ANSWER = "item bigint, outcome binary"
TROUBLE = (PySparkException, Py4JError, OSError)
"""Errors of calls to Spark, including the refused connection of a dead JVM."""


def counting(ended: Ended) -> Callable[[Report], None]:
    """Return a report handler that counts the finished items of a job, each once."""
    done: set[str] = set()

    def heard(report: Report) -> None:
        if report.progress.files_read and report.unit not in done:
            done.add(report.unit)
            ended(len(done))

    return heard


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkJob(Generic[Item]):
    """A job with one task per item."""

    name: str
    """The job group, for cancellation."""
    pipeline: str
    description: str
    items: Mapping[str, Item]
    begin: Callable[[], Do[Item]]
    """Called once per task; returns the function that processes an item."""
    driver: Address | None = None
    """The address for reports; None without reports."""

    def collect(self, session: SparkSession) -> list[Row]:
        """Run the tasks; cancel the running ones on any error.

        Pool, group and description are properties of this thread, so pipelines do not affect each
        other. Group and description are reset at the end, since the owner of a borrowed session may
        start jobs in the same thread.
        """
        context, count = session.sparkContext, len(self.items)
        try:
            context.setLocalProperty(POOL, self.pipeline)
            context.setJobGroup(self.name, self.description)
            return session.range(0, count, 1, count).mapInArrow(self.task(), ANSWER).collect()
        except BaseException:
            with suppress(*TROUBLE):
                context.cancelJobGroup(self.name)
            raise
        finally:
            with suppress(*TROUBLE):
                for key in (GROUP, DESCRIPTION):
                    context.setLocalProperty(key, None)  # type: ignore[arg-type]

    def task(self) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """Return the function that a Python worker of Spark runs.

        Every task receives all items and unpickles only its own.
        """
        packed = [(name, pickle.dumps(item)) for name, item in self.items.items()]
        begin, pipeline, driver, job = self.begin, self.pipeline, self.driver, self.name

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            # Ctrl-C reaches the whole process group. Workers ignore it, since a graceful stop
            # finishes running work; the driver decides.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            do = begin()
            context = TaskContext.get()
            again = context is not None and context.attemptNumber() > 0
            for batch in batches:
                for index in batch.column(0).to_numpy().tolist():
                    name, body = packed[index]
                    item: Item = pickle.loads(body)  # noqa: S301 - our own driver wrote it
                    unit = f"{pipeline}/{name}"
                    with ProgressClient(driver, unit, job=job, again=again) as channel:
                        outcome = pickle.dumps(do(item, channel))
                    answer = {"item": index, "outcome": outcome}
                    yield pa.RecordBatch.from_pylist([answer], schema=_ANSWER)

        return run


def idle_job(description: str, tasks: int = 1) -> SparkJob[None]:
    """Return a job whose tasks start a Python worker and do nothing."""
    return SparkJob(
        name=secrets.token_hex(8),
        pipeline="default",
        description=description,
        items=dict.fromkeys(map(str, range(tasks))),
        begin=lambda: lambda _item, _channel: None,
    )


_COLUMNS: Any = [("item", pa.int64()), ("outcome", pa.binary())]
_ANSWER = pa.schema(_COLUMNS)


def batch_description(units: Sequence[WorkUnit], work: Work) -> str:
    """Describe a job by pipeline, batch, files and bytes; a shared file counts once."""
    files = {(file.source, file.path) for unit in units for file in unit.files}
    what = plural(len(files), "file")
    if replayed := sum(unit.replay is not None for unit in units):
        what = plural(replayed, "quarantine file")
    batch = "" if work.batch is None else f", batch {work.batch:,}"
    step = "" if work.infer_share is None else "columns of "
    size = in_words(sum(unit.to_read for unit in units))
    return f"{work.marks['pipeline']}{batch}: {step}{what}" + ("" if replayed else f", {size}")


def rewrite_description(groups: Sequence[FileGroup], work: Rewriting) -> str:
    """Describe a job that rewrites data files by pipeline, transform, files and bytes."""
    files = [file for group in groups for file in group.files]
    size = in_words(sum(file.size for file in files))
    names = {FillColumn: "promotion", Concatenate: "merging"}
    change = names.get(type(work.transform), "removal")
    return f"{work.marks['pipeline']}, {change}: {plural(len(files), 'data file')}, {size}"
