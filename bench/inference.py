"""What it costs to find the columns of files, beside what it costs to ingest them.

`python -m bench.inference a b --megabytes 256 --rounds 3`; both are measured in one process, one
after the other, on the same files, and the figure is the ratio of their CPU times.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bench.workloads import WORKLOADS, Workload
from blizzard.model.columns import grown
from blizzard.model.settings import RollingPolicy, UploadSettings
from blizzard.model.source.file import SourceFile
from blizzard.model.work import TaskLimits, Work, WorkUnit
from blizzard.worker.download import OpenedStores
from blizzard.worker.unit import run_unit
from lakebed.clock import Clock
from lakebed.columns.schema import Schema
from lakebed.storage.options import Location, StorageOptions
from lakebed.storage.store import Reader
from lakebed.types import Codec, OnMismatch, UnknownFields


def work_over(folder: Path, table: Path) -> Work:
    """Return the work of a task over a folder of plain files."""
    options = StorageOptions()
    return Work(
        sources={"default": Location(uri=str(folder), options=options)},
        sink=Location(uri=str(table), options=options),
        file_schema=Schema(()),
        unknown_fields=UnknownFields.ADD,
        on_mismatch=OnMismatch.RESCUE,
        rolling=RollingPolicy(),
        upload=UploadSettings(),
        limits={"default": TaskLimits(max_concurrent_files=4, batch_size=8192)},
        marks={"pipeline": "bench", "journal": "bench"},
        clock=Clock(),
    )


def unit_over(folder: Path) -> WorkUnit:
    """Return a unit of all files of a folder."""
    reader = Reader(str(folder), StorageOptions())
    files = tuple(
        SourceFile(
            source="default",
            path=one.path,
            size=one.size,
            etag=one.etag,
            codec=Codec.NONE,
            partition_values={},
            modified=one.modified,
        )
        for one in reader.in_order()
    )
    return WorkUnit(name="bench", partition_values={}, files=files)


def written(workload: Workload, folder: Path, megabytes: int) -> int:
    """Write a plain file of about so many megabytes; return its bytes."""
    import random  # noqa: PLC0415 - the only place of chance

    size = 0
    with (folder / "data.ndjson").open("w") as file:
        for line in workload.lines(random.Random(1), 0, 1 << 40):
            size += file.write(line + "\n")
            if size >= megabytes << 20:
                return size
    return size


def cpu(act: Callable[[], object]) -> float:
    """Return the CPU seconds that something takes."""
    began = time.process_time()
    act()
    return time.process_time() - began


def main() -> None:
    """Measure, and print one line a workload."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("workloads", nargs="*", default=["a", "b"])
    given.add_argument("--megabytes", type=int, default=256)
    given.add_argument("--rounds", type=int, default=3)
    asked = given.parse_args()
    for workload in (WORKLOADS[key] for key in asked.workloads):
        with tempfile.TemporaryDirectory() as place:
            source, table = Path(place, "source"), Path(place, "table")
            for folder in (source, table):
                folder.mkdir()
            size = written(workload, source, asked.megabytes)
            work, unit = work_over(source, table), unit_over(source)
            looking = replace(work, infer_share=1.0)
            seen = run_unit(unit, looking, OpenedStores(looking)).seen
            reading = replace(work, file_schema=grown(Schema(()), seen))
            run_unit(unit, reading, OpenedStores(reading))  # Everything is compiled from here on.
            ratios, looks = [], []
            for _ in range(asked.rounds):
                look = cpu(lambda: run_unit(unit, looking, OpenedStores(looking)))  # noqa: B023
                read = cpu(lambda: run_unit(unit, reading, OpenedStores(reading)))  # noqa: B023
                looks.append(look)
                ratios.append(look / read)
            seconds, ratio = statistics.median(looks), statistics.median(ratios)
            speed = size / 1e6 / seconds
            print(
                f"({workload.key}) {size / 1e6:.0f} MB: a look takes {seconds:.2f} CPU s, "
                f"{speed:.0f} MB/s; {ratio:.2f} of the ingest "
                f"({', '.join(f'{one:.2f}' for one in ratios)})"
            )


if __name__ == "__main__":
    main()
