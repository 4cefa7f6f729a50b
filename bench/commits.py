"""What a poll and a commit of ten files cost with so many files in the table already.

Each measure runs in a process of its own, on a local disk, beside the same commit by deltalake and,
where it is asked for, by Spark with Delta. penguin also writes a checkpoint at the end.
The table is made up: one real commit, and a checkpoint that names as many files as asked for.
Run it from the root of the checkout:

    .venv/bin/python -m bench.commits [--most 1000000] [--spark] [--write]

`--write` puts the table into bench/README.md.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.transaction import AddAction, RemoveAction

from bench.section import Section
from lakebed.clock import Clock
from lakebed.deltalog.snapshot import LogCache
from lakebed.layout import DELTA_LOG, LAST_CHECKPOINT, TablePath
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from penguin.delta.table import Log
from penguin.model.commit import Add
from tests.support.tables import Penguin, TableDirectory, opened, rows_of

SECTION = Section("bench/README.md", "commits")
SIZES = (1_000, 10_000, 100_000, 1_000_000)
AT_A_TIME = 50_000
FILES = 10
ROUNDS = 5
STATS = '{"numRecords":1,"minValues":{"id":1},"maxValues":{"id":1},"nullCount":{"id":0}}'

Figures = dict[str, Any]


CALLS = ("head", "fetch", "get", "part", "objects", "level", "create")


class Counted(Store):
    """A store that counts what is asked of it."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri, StorageOptions())
        self.asked: Counter[str] = Counter()
        for name in CALLS:
            setattr(self, name, self._counted(name, getattr(self, name)))

    def _counted(self, name: str, call: Callable[..., object]) -> Callable[..., object]:
        def counted(*given: object, **named: object) -> object:
            self.asked[name] += 1
            return call(*given, **named)

        return counted


def make(folder: Path, active: int) -> None:
    """Make a table whose checkpoint names so many files."""
    table = TableDirectory(folder)
    table.journal().batch(rows_of(1))
    Penguin(table).drain()
    table.delta().create_checkpoint()
    (file,) = (folder / DELTA_LOG).glob("*.checkpoint.parquet")
    whole = pq.read_table(file).combine_chunks()
    adds = whole.filter(pa.compute.is_valid(whole["add"].combine_chunks()))
    with pq.ParquetWriter(file, whole.schema) as writer:
        writer.write_table(whole)
        for first in range(0, active, AT_A_TIME):
            writer.write_table(_copies(adds, range(first, min(active, first + AT_A_TIME))))
    note = folder / LAST_CHECKPOINT
    note.write_text(json.dumps({"version": json.loads(note.read_text())["version"], "size": 1}))


def _copies(adds: pa.Table, numbers: range) -> pa.Table:
    """Return an action of a file for each number, all alike but for their paths."""
    many = adds.take(pa.array([0] * len(numbers)))
    column: Any = many["add"].combine_chunks()
    fields = [column.type.field(place) for place in range(column.type.num_fields)]
    parts = dict(zip([field.name for field in fields], column.flatten(), strict=True))
    parts["path"] = pa.array([f"date=2026-01-01/part-{number:09d}.parquet" for number in numbers])
    parts["stats"] = pa.array([STATS.replace('"id":1', f'"id":{number}') for number in numbers])
    struct = pa.StructArray.from_arrays([parts[field.name] for field in fields], fields=fields)
    return many.set_column(many.schema.get_field_index("add"), "add", struct)


def penguins(folder: Path) -> Figures:
    """Measure penguin: the first commit of a process, then polls and commits of a running one."""
    store = Counted(str(folder))
    log = Log(store, LogCache())
    before = _peak()
    cold = _seconds(lambda: _commit(log, "cold"))
    found: Figures = {"first": cold, "first_requests": store.asked.total()}
    opened(log)
    store.asked.clear()
    found["poll"] = median(_seconds(lambda: opened(log)) for _ in range(ROUNDS))
    found["poll_requests"] = store.asked.total() / ROUNDS
    store.asked.clear()
    found["commit"] = median(_rounds(partial(_commit, log)))
    found["commit_requests"] = store.asked.total() / ROUNDS
    found["mib"] = (_peak() - before) / 1024
    table = opened(log)
    found["checkpoint"] = _seconds(table.checkpoint)
    return found | {"checkpoint_mib": (_peak() - before) / 1024}


def _commit(log: Log, name: str) -> None:
    adds = tuple(
        Add(
            path=TablePath(f"date=2026-01-01/{name}-{number}.parquet"), size=1, rows=1,
            partition_values={"date": "2026-01-01"}, modification_time=1, stats=STATS,
            pipeline="p", sequence=1,
        )
        for number in range(FILES)
    )  # fmt: skip
    opened(log).commit(adds, ((name, 1),), {}, Clock().now())


def libraries(folder: Path) -> Figures:
    """Measure the same commit by deltalake: the first of a process, then those of a running one."""
    before = _peak()

    def commit(name: str) -> None:
        table = DeltaTable(str(folder))
        adds: list[AddAction | RemoveAction] = [
            AddAction(
                path=f"date=2026-01-01/{name}-{number}.parquet",
                size=1,
                partition_values={"date": "2026-01-01"},
                modification_time=1,
                data_change=True,
                stats=STATS,
            )
            for number in range(FILES)
        ]
        table.create_write_transaction(
            adds,
            "append",
            table.schema(),
            partition_by=["date"],
            commit_properties=CommitProperties(app_transactions=[Transaction(name, 1)]),
            post_commithook_properties=PostCommitHookProperties(
                create_checkpoint=False, cleanup_expired_logs=False
            ),
        )

    first = _seconds(lambda: commit("cold"))
    again = median(_rounds(commit))
    return {"first": first, "commit": again, "mib": (_peak() - before) / 1024}


def sparks(folder: Path) -> Figures:
    """Measure an append of ten files by Spark with Delta: the first of a session, then others."""
    from tests.support.delta_spark import session  # noqa: PLC0415 - a JVM, where it is asked for

    spark = session()
    spark.range(1).collect()
    rows = spark.range(0, FILES, 1, FILES).selectExpr(
        "id", "cast(id as string) as name", "to_date('2026-01-01') as date"
    )

    def commit(_name: str) -> None:
        rows.write.format("delta").mode("append").save(str(folder))

    first = _seconds(lambda: commit("cold"))
    return {"first": first, "commit": median(_rounds(commit))}


def _rounds(commit: Callable[[str], None]) -> list[float]:
    return [_seconds(partial(commit, f"w{number}")) for number in range(ROUNDS)]


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


MEASURES: dict[str, Callable[[Path], Figures]] = {
    "penguin": penguins,
    "deltalake": libraries,
    "Spark": sparks,
}


def measure(active: int, names: tuple[str, ...]) -> dict[str, Figures]:
    """Measure each in a process and on a table of its own."""
    found = {}
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            place = str(Path(folder) / "table")
            for step in ("make", name):
                command = [sys.executable, "-m", "bench.commits", step, place, str(active)]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            found[name] = json.loads(done.stdout)
    return found


def table_of(figures: dict[int, dict[str, Figures]]) -> str:
    """Write the figures as a table."""
    heads = ("files in the table", "by", "first commit, ms", "commit, ms", "requests", "poll, ms",
             "requests", "memory, MiB", "checkpoint, s", "memory with it, MiB")  # fmt: skip
    lines = [f"| {' | '.join(heads)} |", f"|---:|---|{'---:|' * 8}"]
    for active, found in figures.items():
        for name, one in found.items():
            poll = f"{one['poll'] * 1000:.2f}" if "poll" in one else ""
            counts = ("commit_requests", "poll_requests", "mib", "checkpoint_mib")
            asked = [f"{one[key]:.0f}" if key in one else "" for key in counts]
            checkpoint = f"{one['checkpoint']:.1f}" if "checkpoint" in one else ""
            lines.append(
                f"| {active:,} | {name} | {one['first'] * 1000:.0f} | {one['commit'] * 1000:.1f} "
                f"| {asked[0]} | {poll} | {asked[1]} | {asked[2]} | {checkpoint} | {asked[3]} |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, and write the page where that is asked for."""
    options = argparse.ArgumentParser()
    options.add_argument("step", nargs="*")
    options.add_argument("--most", type=int, default=SIZES[2])
    options.add_argument("--spark", action="store_true")
    options.add_argument("--write", action="store_true")
    given = options.parse_args()
    if given.step:
        step, folder, active = given.step
        if step == "make":
            make(Path(folder), int(active))
        else:
            print(json.dumps(MEASURES[step](Path(folder))))
        return
    names = tuple(name for name in MEASURES if given.spark or name != "Spark")
    text = table_of({size: measure(size, names) for size in SIZES if size <= given.most})
    print(text)
    if given.write:
        SECTION.write(text)


if __name__ == "__main__":
    main()
