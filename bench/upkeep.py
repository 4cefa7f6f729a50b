"""What `penguin fsck` and `penguin vacuum` cost on a table of so many files.

The files are links to one small file, so that a million of them take no room; the log is a version
that adds them all, one that removes a hundredth of them a month ago, and a checkpoint. Each measure
runs in a process of its own. Run it from the root of the checkout:

    .venv/bin/python -m bench.upkeep [--most 1000000] [--write]

`--write` puts the table into bench/README.md.
"""

import json
import math
import os
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from bench.adoption import FOLDERS, make
from bench.by_size import Alone, BySize, Figures
from bench.section import Section
from lakebed.layout import log_version
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from lakebed.types import DiscoverBy
from penguin.model.settings import TableSettings
from penguin.upkeep.fsck import check
from penguin.upkeep.vacuum import VacuumOrder

SIZES = (10_000, 100_000, 1_000_000)
REMOVED = 100
"""Of so many files one was removed."""
MONTH = 30 * 86_400
PAGE_SIZE = 1_000
"""Names in one answer of a bucket that is listed."""
READS = ("get", "fetch", "head", "get_range", "part")
WRITES = ("create", "replace", "delete")


def make_table(folder: Path, files: int) -> Path:
    """Make a table of so many files, of which some were removed long ago."""
    make(folder, files)
    table = folder / "table"
    names = [
        f"date=2026-01-{1 + number % FOLDERS // 4:02d}-{number % 4}/part-{number:08d}.parquet"
        for number in range(files)
    ]
    size = (table / names[0]).stat().st_size
    log = table / "_delta_log"
    log.mkdir()
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in (("c0", "long"), ("date", "string"))
    ]
    metadata = {
        "id": "bench",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": ["date"],
        "configuration": {},
        "createdTime": 1,
    }
    at = int((time.time() - MONTH) * 1000)
    with (table / log_version(0)).open("w") as version:
        protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
        for one in ({"protocol": protocol}, {"metaData": metadata}):
            version.write(f"{json.dumps(one)}\n")
        for name in names:
            facts = {"size": size, "modificationTime": at, "dataChange": True}
            values = {"date": name.partition("/")[0].removeprefix("date=")}
            stats = json.dumps({"numRecords": 10})
            add = {"path": name, "partitionValues": values, **facts, "stats": stats}
            version.write(f"{json.dumps({'add': add})}\n")
    with (table / log_version(1)).open("w") as version:
        for name in names[::REMOVED]:
            remove = {"path": name, "deletionTimestamp": at, "dataChange": True, "size": size}
            version.write(f"{json.dumps({'remove': remove})}\n")
    DeltaTable(str(table)).create_checkpoint()
    for path in (*log.iterdir(), *(table / name for name in names)):
        os.utime(path, (at / 1000, at / 1000))
    return table


class Counting(Store):
    """A store that counts what is asked of it."""

    asked: Counter[str]


def _counted(name: str) -> Callable[..., Any]:
    def call(self: Counting, *given: Any, **named: Any) -> Any:  # noqa: ANN401 - whatever it is
        # A local disk is walked file by file; a bucket says in its listing what is asked here.
        if not (name == "head" and str(given[0]).endswith(".parquet")):
            self.asked[name] += 1
        return getattr(Store, name)(self, *given, **named)

    return call


for _name in (*READS, *WRITES):
    setattr(Counting, _name, _counted(_name))


def measure(what: str, folder: Path) -> Figures:
    """Do one thing to a table, and say what it took."""
    store = Counting(str(folder), StorageOptions())
    store.asked = Counter()
    # Where penguin looks for files in the folders, every version of the log is read, too.
    settings = TableSettings(name="bench", table_uri=str(folder), discovery=DiscoverBy.JOURNAL)
    order = VacuumOrder(settings=settings)
    start, ran = time.perf_counter(), _cpu()
    files = 0
    if what == "fsck":
        found = check(store)
        files = found.files
        if found.damaged:
            raise AssertionError("every file is there")
    else:
        done = order.plan(store) if what == "vacuum" else order.carry_out(store)
        if done is None:
            raise AssertionError("there is a table")
        files = done.files
    return {
        "what": what,
        "found": files,
        "seconds": time.perf_counter() - start,
        "cpu": _cpu() - ran,
        "mib": _peak() / 1024,
        "reads": sum(store.asked[name] for name in READS),
        "writes": sum(store.asked[name] for name in WRITES),
    }


def lines(measured: list[Figures]) -> list[str]:
    """Write the figures as a table."""
    head = (
        "files", "what", "files found", "seconds", "CPU, s", "CPU a file, µs", "memory, MiB",
        "pages of listings", "reads", "writes and deletes",
    )  # fmt: skip
    rows = [f"| {' | '.join(head)} |", "|---:|---|" + "---:|" * (len(head) - 2)]
    for one in measured:
        each = (
            f"{one['files']:,}", one["what"], f"{one['found']:,}", f"{one['seconds']:.1f}",
            f"{one['cpu']:.1f}", f"{one['cpu'] * 1e6 / one['files']:.0f}", f"{one['mib']:.0f}",
            f"{one['pages']:,}", f"{one['reads']:,}", f"{one['writes']:,}",
        )  # fmt: skip
        rows.append(f"| {' | '.join(each)} |")
    return rows


def _peak() -> int:
    # What `getrusage` says includes the process that started this one.
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def rows(place: Path, files: int, alone: Alone) -> Iterator[Figures]:
    """Yield what each costs on a table of so many files."""
    table = make_table(place, files)
    for what, looks in (("fsck", 1), ("vacuum", 1), ("vacuum --yes", 2)):
        pages = looks * (math.ceil(files / PAGE_SIZE) + 1)
        yield alone(what, table) | {"files": files, "pages": pages}


if __name__ == "__main__":
    BySize(
        module="bench.upkeep",
        section=Section("bench/README.md", "upkeep"),
        sizes=SIZES,
        measure=measure,
        rows=rows,
        lines=lines,
    ).main()
