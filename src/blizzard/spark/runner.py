"""Work units as Spark tasks, by `mapInArrow`: one task runs one unit.

Side effects in a task are sound here: a job returns exactly one result per partition, from the
winning attempt, and nothing that an attempt wrote means anything until the driver journals that
result. Units travel in the function that is mapped over `spark.range`, so no RDD is needed.
"""

import pickle
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import SparkSession

from blizzard.flow import UnitOutcome, Work, WorkUnit
from blizzard.settings import SparkSettings
from blizzard.spark.session import start
from blizzard.worker import OpenedStores, run_unit

ANSWER = "unit bigint, outcome binary"


@dataclass(slots=True)
class SparkRunner:
    """Runs units on Spark. The session starts with the first batch, not before."""

    settings: SparkSettings
    starting: Callable[[], None] = lambda: None
    """Called when the session is about to start, which takes some seconds."""
    _session: SparkSession | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def session(self) -> SparkSession:
        """Give the process's one session."""
        with self._lock:
            if self._session is None:
                self.starting()
                self._session = start(self.settings)
            return self._session

    @property
    def parallelism(self) -> int:
        """Say how many tasks Spark runs at the same time."""
        return int(self.session.sparkContext.defaultParallelism)

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        """Run every unit as a task of one job; give the outcomes in the order of the units."""
        count = len(units)
        answers = (
            self.session.range(0, count, 1, count)
            .mapInArrow(task(tuple(units), work), ANSWER)
            .collect()
        )
        by_unit = {row.unit: pickle.loads(row.outcome) for row in answers}  # noqa: S301 - our own workers wrote it
        return [by_unit[index] for index in range(count)]

    def stop(self) -> None:
        """End the session, if there is one."""
        if self._session is not None:
            self._session.stop()


def task(
    units: tuple[WorkUnit, ...], work: Work
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Give the function that a Python worker of Spark runs."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Ctrl-C reaches the whole process group; an orderly end finishes what is in hand, so
        # the workers must outlive it. The driver decides.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        stores = OpenedStores(work)
        for batch in batches:
            for index in batch.column(0).to_numpy().tolist():
                outcome = run_unit(units[index], work, stores)
                yield pa.RecordBatch.from_arrays(
                    [pa.array([index], pa.int64()), pa.array([pickle.dumps(outcome)], pa.binary())],
                    names=["unit", "outcome"],
                )

    return run
