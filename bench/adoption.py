"""What it costs to adopt a folder of so many Parquet files.

The files are links to one small file on a local disk, so that a million of them take no room. Each
measure runs in a process of its own; a million files take half an hour. Run it from the root of
the checkout:

    .venv/bin/python -m bench.adoption [--most 1000000] [--write]

`--write` puts the table into bench/README.md.
"""

import os
import resource
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from bench.by_size import Alone, BySize, Figures
from bench.section import Section
from lakebed.clock import Clock
from lakebed.layout import DELTA_LOG, log_version
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from penguin.adopt.adoption import Adopter
from penguin.adopt.folder import AdoptOptions
from penguin.foreign.footer import TRIAL
from penguin.model.settings import TableSettings

MODULE = "bench.adoption"
SIZES = (1_000, 10_000, 100_000, 1_000_000)
FOLDERS = 100
LINKS = 50_000
"""Links to one file; file systems have a limit to them."""
COLUMNS = 10


def make(folder: Path, files: int) -> None:
    """Make a folder of so many files."""
    data = {f"c{place}": list(range(10)) for place in range(COLUMNS - 1)}
    table = pa.table({**data, "name": [f"name {place}" for place in range(10)]})
    source = folder / "part"
    for number in range(files):
        if number % LINKS == 0:
            source.unlink(missing_ok=True)
            pq.write_table(table, source)
        into = folder / "table" / f"date=2026-01-{1 + number % FOLDERS // 4:02d}-{number % 4}"
        if number < FOLDERS:
            into.mkdir(parents=True)
        os.link(source, into / f"part-{number:08d}.parquet")


def adopt(folder: Path) -> Figures:
    """Adopt a folder, and say what it took."""
    asked: Counter[str] = Counter()
    store = Store(str(folder), StorageOptions())
    part = store.part

    def counted(path: str, start: int, end: int, *, etag: str | None) -> bytes:
        if path.endswith(".parquet"):
            asked.update(reads=1, bytes=end - start)
        return part(path, start, end, etag=etag)

    store.part = counted  # type: ignore[method-assign]
    adopter = Adopter(
        settings=TableSettings(name="bench", table_uri=str(folder)),
        wanted=AdoptOptions(),
        store=store,
        clock=Clock(),
    )
    before, start, ran = _peak(), time.perf_counter(), _cpu()
    found = adopter.adopt()
    end = time.perf_counter()
    TRIAL.close()  # What its process took counts once it has ended.
    return {
        "files": found.totals.files,
        "seconds": end - start,
        "cpu": _cpu() - ran,
        "reads": asked["reads"] / found.totals.files,
        "read": asked["bytes"] / found.totals.files,
        "mib": (_peak() - before) / 1024,
        "version": (folder / log_version(0)).stat().st_size / 2**20,
        "checkpoint": (folder / f"{DELTA_LOG}/{0:020d}.checkpoint.parquet").stat().st_size / 2**20,
    }


def opened(folder: Path) -> Figures:
    """Open the table as a reader does."""
    start = time.perf_counter()
    files = len(DeltaTable(str(folder)).file_uris())
    return {"files": files, "opened": time.perf_counter() - start}


def lines(measured: list[Figures]) -> list[str]:
    """Write the figures as a table."""
    head = (
        "files", "seconds", "CPU, s", "CPU a file, ms", "reads a file", "memory, MiB",
        "memory a file, kB", "version 0, MiB", "checkpoint, MiB", "opened, s",
    )  # fmt: skip
    rows = [f"| {' | '.join(head)} |", "|" + "---:|" * len(head)]
    for one in measured:
        each = (
            f"{one['files']:,}", f"{one['seconds']:.0f}", f"{one['cpu']:.1f}",
            f"{one['cpu'] * 1000 / one['files']:.2f}", f"{one['reads']:.0f}",
            f"{one['mib']:.0f}", f"{one['mib'] * 1024 / one['files']:.2f}",
            f"{one['version']:.1f}", f"{one['checkpoint']:.1f}", f"{one['opened']:.2f}",
        )  # fmt: skip
        rows.append(f"| {' | '.join(each)} |")
    return rows


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _cpu() -> float:
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, whose))


def rows(place: Path, files: int, alone: Alone) -> Iterator[Figures]:
    """Yield what it costs to adopt a folder of so many files."""
    make(place, files)
    table = place / "table"
    yield alone("adopt", table) | alone("opened", table)


def measure(what: str, folder: Path) -> Figures:
    """Do one of the two."""
    return {"adopt": adopt, "opened": opened}[what](folder)


if __name__ == "__main__":
    BySize(
        module=MODULE,
        section=Section("bench/README.md", "adopt"),
        sizes=SIZES,
        measure=measure,
        rows=rows,
        lines=lines,
    ).main()
