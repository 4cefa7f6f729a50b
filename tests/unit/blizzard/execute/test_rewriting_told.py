"""Tasks that rewrite files tell the driver of each that is done."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from blizzard.execute.spark.job import counting, each
from blizzard.model.files import Location
from blizzard.model.progress import Address, Progress, Report
from blizzard.model.rewriting import Rewriting
from blizzard.model.settings import UploadSettings
from blizzard.worker.progress import ProgressServer
from lakebed.clock import Clock
from lakebed.storage.store import Store
from lakebed.types import ParquetCodec
from tests.support.builders import no_options
from tests.support.waits import until

ITEMS = ("a", "b", "c")


def shouted(item: str, _work: Rewriting, _store: Store) -> str:
    return item.upper()


def done_by_tasks(folder: Path, driver: Address | None, job: str) -> int:
    """Do every item as tasks do; return how many answers there are."""
    work = Rewriting(
        sink=Location(uri=str(folder), options=no_options()),
        codec=ParquetCodec.ZSTD,
        upload=UploadSettings(),
        marks={"pipeline": "web"},
        clock=Clock(),
    )
    run = each(ITEMS, work, shouted, driver=driver, job=job)
    batch = pa.RecordBatch.from_arrays([pa.array(range(len(ITEMS)), pa.int64())], names=["id"])
    return sum(answer.num_rows for answer in run(iter([batch])))


def listening(heard: Callable[[Report], None]) -> ProgressServer:
    return ProgressServer("127.0.0.1", stop_requested=lambda: False, heard=heard)


def test_the_driver_counts_what_is_done_while_the_job_runs(tmp_path: Path) -> None:
    counts: list[int] = []
    jobs: set[str] = set()
    count = counting(counts.append)

    def hear(report: Report) -> None:
        jobs.add(report.job)
        count(report)

    server = listening(hear)
    try:
        assert done_by_tasks(tmp_path, server.address, "j-1") == len(ITEMS)
        # A task does not wait for long until its last word is heard.
        until(lambda: len(counts) == len(ITEMS))
    finally:
        server.close()
    assert counts == [1, 2, 3]
    assert jobs == {"j-1"}


def test_nobody_is_called_where_nobody_listens(tmp_path: Path) -> None:
    assert done_by_tasks(tmp_path, None, "") == len(ITEMS)


def test_an_item_that_is_done_again_counts_once() -> None:
    counts: list[int] = []
    hear = counting(counts.append)
    for unit, done in (("web/0", 0), ("web/0", 1), ("web/0", 1), ("web/1", 0), ("web/1", 1)):
        hear(Report(unit=unit, progress=Progress(files_read=done)))
    assert counts == [1, 2]
