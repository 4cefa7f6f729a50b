"""What a document weighs, what a batch and a commit ask of an S3, and what a large log costs.

All of it is of this machine and of a table of twenty columns. The requests are counted by a proxy
in front of an S3 on loopback, those of the Delta library included. Run it from the root:

    .venv/bin/python -m bench.sizes [--write]

`--write` puts the figures into bench/sizes.json, from which `bench.scaling` computes.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from bench.asked import requests
from bench.twenty import WIDE, a_row, source_record
from blizzard.journal import segments
from blizzard.journal.checkpoint import SnapshotWriter
from blizzard.journal.ledger import Ledger
from blizzard.model.source.file import IngestedFile
from lakebed.clock import Clock
from lakebed.deltalog.delta_types import TableFacts
from lakebed.documents.entry import Entry, decode_entry, encode
from lakebed.documents.records import Bound, ColumnStatistics, FinishedFile
from lakebed.layout import DELTA_LOG, LAST_CHECKPOINT, data_file
from penguin.delta.table import Log
from penguin.model.commit import Add
from penguin.plan.stats import delta_statistics
from tests.support.bucket import Bucket
from tests.support.tables import Journal, Penguin, Row, TableDirectory, opened

FIGURES = Path(__file__).parent / "sizes.json"
ACTIVE = (1_000, 10_000, 100_000)
SOME = 1_000
WAITING = 100
"""Data files of the commit that is measured."""
PER_COMMIT = 10_000

Figures = dict[str, Any]


def documents() -> Figures:
    """Weigh what blizzard writes down: entries, snapshots, known names."""
    with tempfile.TemporaryDirectory() as folder:
        table = TableDirectory(Path(folder) / "table")
        journal = table.journal(schema=WIDE)
        file = journal.file([a_row(number) for number in range(1000)])
        return {"entry": _entry(journal, file), **_known()}


def _entry(journal: Journal, file: FinishedFile) -> Figures:
    """Weigh an entry: itself, a source file more, and a data file more."""

    def weighed(sources: int, files: int) -> bytes:
        records = tuple(source_record(number) for number in range(sources))
        keys = tuple(record.key for record in records)
        # Each source file is named by the data file with its rows.
        share = -(-sources // files) if files else 0
        named = tuple(
            replace(file, size=134_217_728, record_count=2_000_000,
                    source_files=keys[at * share : (at + 1) * share])
            for at in range(files)
        )  # fmt: skip
        return encode(journal.entry(sources=records, files=named))

    empty, one = len(weighed(0, 0)), len(weighed(0, 1))
    full = weighed(10 * SOME, 1)
    return {
        "fixed_bytes": empty,
        "bytes_per_source_file": round((len(full) - one) / (10 * SOME), 1),
        "bytes_per_data_file": one - empty,
        "encode_seconds_per_source_file": _seconds(lambda: weighed(10 * SOME, 1)) / (10 * SOME),
        "decode_seconds_per_source_file": _seconds(lambda: decode_entry(full, "")) / (10 * SOME),
    }


def _known() -> Figures:
    """Weigh the names of ingested files, their index and a snapshot, and time a merge."""
    names = [
        IngestedFile(key=record.key, size=record.size, etag=record.etag).row
        for record in map(source_record, range(100 * SOME))
    ]
    store = Bucket(uri="s3://bucket/table")
    clock = Clock()
    old = segments.write_segment(store, "default", names[::2], clock.fresh_id())
    new = segments.write_segment(store, "default", names[1::2], clock.fresh_id())

    def merge() -> None:
        both = segments.merged((old, new))
        segments.write_segment(store, "default", both, clock.fresh_id())

    weights = {path.rpartition("/")[2]: len(body) for path, body in store.bodies.items()}
    index, whole = (
        sum(size for name, size in weights.items() if name.endswith(".json") is is_index)
        for is_index in (True, False)
    )
    return {
        "known_names": {
            "bytes_per_name": round(whole / len(names), 1),
            "index_bytes_per_name": round(index / len(names), 2),
            "merge_seconds_per_name": _seconds(merge) / len(names),
        },
        "keep": _keep(),
    }


def _keep() -> Figures:
    """Count what writing a snapshot with new names asks of the store, merges included."""
    store = Bucket(uri="s3://bucket/table")
    keeper = SnapshotWriter(store=store, pipeline="default", clock=Clock())
    with tempfile.TemporaryDirectory() as folder:
        journal = TableDirectory(Path(folder) / "table").journal(schema=WIDE)
        history = Ledger(store=store, pipeline="default")
        history.learn(journal.entry(sequence=0, kind="open", previous=None), journal.bodies[0])
    rounds = 20
    for number in range(rounds):
        records = (source_record(number * SOME + each) for each in range(SOME))
        history.recent = {
            record.key: IngestedFile(key=record.key, size=record.size, etag=record.etag)
            for record in records
        }
        keeper.write(history)
    counted = {kind: asked / rounds for kind, asked in sorted(store.requests.items())}
    return {"requests": counted}


def _seconds(act: Callable[[], object]) -> float:
    """Return the CPU seconds of an act, the least of three."""
    taken = []
    for _ in range(3):
        began = time.process_time()
        act()
        taken.append(time.process_time() - began)
    return min(taken)


def log(active: int) -> Figures:
    """Measure a commit, an idle poll and a checkpoint of a table with so many active files."""
    with tempfile.TemporaryDirectory() as folder:
        table = TableDirectory(Path(folder) / "table")
        journal = table.journal(schema=WIDE)
        rows = [a_row(number) for number in range(100)]
        entry = journal.batch(rows)
        Penguin(table).drain()
        for first in range(0, active, PER_COMMIT):
            count = min(PER_COMMIT, active - first)
            handle = opened(Log(table.store))
            adds = tuple(_adds(entry, handle.facts, range(first, first + count)))
            handle.commit(adds, (), {}, Clock().now())
        body = max((table.root / DELTA_LOG).glob("*.json"), key=lambda path: path.stat().st_size)
        opened(Log(table.store)).checkpoint()
        note = json.loads((table.root / LAST_CHECKPOINT).read_text())
        (checkpoint,) = (table.root / DELTA_LOG).glob("*.checkpoint*.parquet")
        journal.batch(*([rows] * WAITING))
        told = _told("--commit", str(table.root))
        return {
            "active": active,
            "commit_bytes_per_file": round(body.stat().st_size / min(active, PER_COMMIT), 1),
            "checkpoint_bytes_per_file": round(checkpoint.stat().st_size / note["size"], 1),
            **told,
        }


def _adds(entry: Entry, facts: TableFacts, numbers: range) -> Iterator[Add]:
    """Yield add actions of files that nobody will read, each with bounds of its own."""
    clock = Clock()
    (file,) = entry.files
    for number in numbers:
        path = data_file(file.partition_values, clock.fresh_id())
        other = replace(file, statistics=_varied(file.statistics, number))
        yield Add(
            path=path,
            size=134_217_728 - number % 9973 * 1001,
            rows=2_000_000,
            partition_values=file.partition_values,
            modification_time=file.modification_time + number * 613,
            stats=delta_statistics(other, written=entry.table_schema, table=facts),
            pipeline="events",
            sequence=0,
        )


def _varied(statistics: Mapping[str, ColumnStatistics], number: int) -> dict[str, ColumnStatistics]:
    """Return the bounds as another file would have them: those of ids, links and numbers differ."""
    low, high = a_row(number * 2_000_003), a_row(number * 2_000_003 + 1_999_999)

    def bound(name: str, given: Bound, row: Row) -> Bound:
        value = row[name]
        if isinstance(value, datetime):
            return value.isoformat(timespec="milliseconds")
        same = given is None or len(str(value)) < 6
        return given if same or not isinstance(value, str | int) else value

    return {
        name: replace(
            one, minimum=bound(name, one.minimum, low), maximum=bound(name, one.maximum, high)
        )
        for name, one in statistics.items()
    }


def commit(root: Path) -> Figures:
    """Commit what waits for a table, look again, write a checkpoint: CPU and memory of each.

    The first look after the start still asks the log for something; the one after it is like all
    that follow.
    """
    penguin = Penguin(TableDirectory(root))
    before = _most_memory()
    found: Figures = {"waiting": WAITING}
    for name, act in (
        ("commit_cpu_seconds", penguin.step),
        ("first_poll_cpu_seconds", penguin.step),
        ("idle_poll_cpu_seconds", penguin.step),
        ("checkpoint_cpu_seconds", lambda: opened(Log(penguin.table.store)).checkpoint()),
    ):
        began = time.process_time()
        act()
        found[name] = round(time.process_time() - began, 3)
    found["memory_bytes"] = _most_memory() - before
    return found


def _most_memory() -> int:
    """Return the most memory that this process has had; what started it does not count."""
    status = Path("/proc/self/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) * 1024


def _told(*arguments: str) -> Any:  # noqa: ANN401 - whatever was measured
    """Measure something in a process of its own."""
    command = [sys.executable, "-m", "bench.sizes", *arguments]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def main() -> None:
    """Measure everything, and show it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--commit", type=Path, metavar="TABLE", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.commit:
        print(json.dumps(commit(given.commit)))
        return
    found = {
        "where": {
            "python": platform.python_version(),
            "machine": platform.machine(),
            "cores": os.cpu_count(),
        },
        "documents": documents(),
        "requests": requests(),
        "log": [log(active) for active in ACTIVE],
    }
    print(json.dumps(found, indent=1))
    if given.write:
        FIGURES.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
