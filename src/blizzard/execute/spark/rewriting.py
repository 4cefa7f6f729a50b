"""Data files that are rewritten as Spark tasks: one task does one file, or one group of them."""

import pickle
from collections.abc import Callable, Iterator
from typing import TypeVar

import pyarrow as pa

from blizzard.model.progress import Address, Report
from blizzard.model.rewriting import Rewriting
from blizzard.worker.progress import ProgressClient
from lakebed.storage.store import Store

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Changes = TypeVar("Changes", bound=Rewriting)

Ended = Callable[[int], None]
"""Is told how many items of a job are done."""


def each(
    items: tuple[Item, ...],
    work: Changes,
    do: Callable[[Item, Changes, Store], Answer],
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
