"""What the live page costs: looks at one and at a hundred pipelines, after a day and after a year.

A lake is written to a local disk: journals of one entry every five minutes, with a snapshot, and
logs of the last day. Then it is looked at as the page does it. CPU seconds are those of the process
that serves, which does nothing else. Run it from the root of the checkout:

    .venv/bin/python -m bench.live [--seconds 60] [--write]

`--write` puts the tables into docs/live.md and the figures into bench/live.json.
"""

import argparse
import json
import os
import tempfile
import threading
import time
import tracemalloc
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.section import Section
from blizzard.config import load as blizzard_config
from blizzard.events import BatchProgress, BatchStarted, UnitReported
from blizzard.journal.checkpoint import SnapshotWriter, read_ledger
from lakebed.clock import Clock
from lakebed.documents.entry import Entry, Receipt, digest, encode
from lakebed.documents.records import SourceRecord
from lakebed.layout import journal_entry, log_version, receipt
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Reader, Store
from lakebed.telemetry.events import Emit
from lakebed.types import Handoff
from liveview.answer_cache import Timeouts
from liveview.answers import Answers
from liveview.lake import joined
from liveview.live import Live
from liveview.observer import Observer
from penguin.config import load as penguin_config
from tests.support.builders import ID_AND_NAME
from tests.support.live_lake import LiveLake

FIGURES = Path(__file__).parent / "live.json"
SECTION = Section("docs/live.md", "live")
DAY = 288
"""Entries of a day, one every five minutes."""
YEAR = 100_000
FILES = 10
TAIL = 50
FIRST_LOOKS = 10.0
"""Seconds, and one for each pipeline, after which a page that was opened has seen everything."""

Figures = dict[str, float]


def entries(store: Store, pipeline: str, count: int) -> None:
    """Write a journal that ends now."""
    now = datetime.now(UTC)
    previous: str | None = None
    keeps = SnapshotWriter(store=store, pipeline=pipeline, clock=Clock())
    for number in range(count):
        at = now - timedelta(minutes=5) * (count - 1 - number)
        written = round((at - timedelta(minutes=1)).timestamp() * 1000)
        entry = Entry(
            kind="batch" if number else "open",
            pipeline=pipeline,
            journal="j",
            sequence=number,
            run="r",
            created=at.isoformat(),
            previous=previous,
            handoff=Handoff.JOURNAL,
            source_uris={"default": f"{store.uri}-in"},
            table_schema=ID_AND_NAME.delta(),
            partition_columns=(),
            sources=tuple(
                SourceRecord(
                    source="default",
                    path=f"{at:%Y/%m/%d}/{number:06}-{file}.ndjson.gz",
                    size=1_000_000,
                    etag=None,
                    lines=1000,
                    rows=1000,
                    modified=written,
                )
                for file in range(FILES if number else 0)
            ),
        )
        body = encode(entry)
        previous = digest(body)
        store.replace(journal_entry(pipeline, number), body)
        if number == count - TAIL:
            keeps.write(read_ledger(store, pipeline, spill=keeps.spill))
    done = Receipt(journal="j", sequence=count - 1, digest=previous or "")
    store.replace(receipt(pipeline), encode(done))


def log(store: Store, pipeline: str, count: int) -> None:
    """Write a log whose versions of the last day commit an entry each."""
    now = time.time()
    schema = json.dumps(ID_AND_NAME.delta())
    first: list[dict[str, Any]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": pipeline,
                "format": {"provider": "parquet", "options": {}},
                "schemaString": schema,
                "partitionColumns": [],
                "configuration": {},
                "createdTime": 0,
            }
        },
    ]
    last = min(DAY, count - 1)
    for version in range(last + 1):
        entry = count - 1 - last + version
        info = {
            "timestamp": round((now - 300 * (last - version)) * 1000),
            "operation": "WRITE",
            "penguin.writer": "penguin",
            "penguin": {"entries": {pipeline: {"first": entry, "last": entry}}},
        }
        add = {
            "path": f"{version}.parquet",
            "size": 1_000_000,
            "partitionValues": {},
            "modificationTime": 0,
            "dataChange": True,
            "stats": json.dumps({"numRecords": 10_000}),
        }
        actions = [{"commitInfo": info}, *(first if version == 0 else [{"add": add}])]
        body = "".join(json.dumps(action) + "\n" for action in actions)
        store.replace(log_version(version), body.encode())


def lake(root: Path, pipelines: int, count: int) -> LiveLake:
    """Write a lake of so many pipelines with so many entries each."""
    names = tuple(f"p{number:03}" for number in range(pipelines))
    made = LiveLake(root, names=names)
    for name in names:
        store = Store(f"{root}/{name}-table", StorageOptions(), make_folder=True)
        store.replace("_blizzard/protocol/0.json", b'{"format":1,"handoff":"journal"}\n')
        entries(store, name, count)
        log(store, name, count)
    return made


class Counted(Reader):
    """A reader that counts requests, as a store would be asked."""

    requests = 0

    def get(self, path: str) -> bytes | None:
        """Count it."""
        Counted.requests += 1
        return super().get(path)


def looks(made: LiveLake) -> Figures:
    """Measure the first looks, and those that follow when nothing is new."""
    blizzard = blizzard_config.load([made.file], [], os.environ)
    penguin = penguin_config.load([made.file], [], os.environ)
    clock = Clock()
    observer = Observer(
        joined(blizzard, penguin),
        Live("blizzard", version="0", seconds=clock.seconds),
        "blizzard",
        clock=clock,
        opening=lambda place: Counted(place.uri, place.options),
        opening_table=lambda table: Counted(table.table_uri, table.storage_options),
        patience=Timeouts(first=600),
    )
    answers = Answers(observer)
    name = next(iter(made.names))
    found: Figures = {}

    def measure(what: str, act: Any) -> None:  # noqa: ANN401 - whatever is looked at
        Counted.requests = 0
        began, cpu = time.perf_counter(), time.process_time()
        act()
        found[f"{what} seconds"] = round(time.perf_counter() - began, 3)
        found[f"{what} cpu"] = round(time.process_time() - cpu, 3)
        found[f"{what} requests"] = Counted.requests

    # What lists sources and adds up tables goes on beside; only the journals and logs are measured.
    observer.slow.close()
    measure("first overview", observer.overview)
    measure("next overview", observer.overview)
    measure("pipeline", lambda: answers.pipeline(name))
    measure("batches", lambda: answers.batches(name, before=None, limit=50))
    measure("search", lambda: answers.files(name, search="-7.ndjson", limit=50))
    measure("journey", lambda: answers.journey(name, path=_one_file(made)))
    measure("throughput", lambda: answers.throughput(name, hours=24, points=96))
    measure("table", lambda: answers.table(name + "-t"))
    measure("versions", lambda: answers.versions(name + "-t", before=None, limit=50))
    observer.close()
    return found


def memory(made: LiveLake) -> Figures:
    """Measure what looks keep in memory, and the most that they take."""
    blizzard = blizzard_config.load([made.file], [], os.environ)
    penguin = penguin_config.load([made.file], [], os.environ)
    clock = Clock()
    tracemalloc.start()
    observer = Observer(
        joined(blizzard, penguin),
        Live("blizzard", version="0", seconds=clock.seconds),
        "blizzard",
        clock=clock,
        patience=Timeouts(first=600),
    )
    observer.slow.close()
    observer.overview()
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    observer.close()
    return {"kept MB": round(kept / 1e6, 1), "peak MB": round(peak / 1e6, 1)}


def _one_file(made: LiveLake) -> str:
    name = made.names[0]
    store = Reader(f"{made.root}/{name}-table", StorageOptions())
    last = read_ledger(store, name).sequence
    body = store.get(journal_entry(name, last - 10)) or b"{}"
    path: str = json.loads(body)["sources"][0]["path"]
    return f"default:{path}"


def events(emit: Emit, name: str, units: int, stop: threading.Event) -> None:
    """Report as the tasks of a running batch do, twice a second each."""
    planned = tuple((f"u{number}", 10, 10_000_000) for number in range(units))
    size = 10_000_000 * units
    emit(
        BatchStarted(
            pipeline=name, entry=1, files=10 * units, bytes=size, units=units, planned=planned
        )
    )
    done = 0
    while not stop.wait(0.5):
        done += 1
        for unit, _files, _bytes in planned:
            emit(UnitReported(pipeline=name, unit=unit, bytes_read=done * 1000, records=done))
            emit(BatchProgress(pipeline=name, bytes_read=done * 1000, records=done))


def served(made: LiveLake, seconds: float, *, looking: bool) -> Figures:
    """Measure the process that serves while a batch of 20 units runs in the first pipeline."""
    with made.served() as (pages, _site, emit):
        stop = threading.Event()
        running = threading.Thread(target=events, args=(emit, made.names[0], 20, stop))
        running.start()
        if looking:
            pages.get("/api/v1/overview")
            threading.Thread(target=_page, args=(pages, made.names[0], stop), daemon=True).start()
            # First looks are measured apart: they come once.
            time.sleep(FIRST_LOOKS + len(made.names))
        began, cpu = time.perf_counter(), time.process_time()
        time.sleep(seconds)
        took, used = time.perf_counter() - began, time.process_time() - cpu
        stop.set()
        running.join()
    return {"cpu percent of a core": round(100 * used / took, 2)}


def _page(pages: Any, name: str, stop: threading.Event) -> None:  # noqa: ANN401
    """Look as an open page does: the overview, and the view of a pipeline every five seconds."""

    def views() -> None:
        while not stop.wait(5):
            for path in ("", "/batches", "/throughput"):
                pages.get(f"/api/v1/pipelines/{name}{path}")

    threading.Thread(target=views, daemon=True).start()
    while not stop.wait(2):
        pages.get("/api/v1/overview")


def listener() -> Figures:
    """Measure what the listener adds to an event."""
    live = Live("blizzard", version="0", seconds=time.time)
    live.emit(
        BatchStarted(pipeline="p", entry=1, files=1, bytes=1, units=1, planned=(("u", 1, 1),))
    )
    report = UnitReported(pipeline="p", unit="u", bytes_read=1)
    began = time.process_time()
    for _ in range(200_000):
        live.emit(report)
    return {"microseconds an event": round((time.process_time() - began) / 0.2, 2)}


SIZES = ((1, DAY), (1, YEAR), (100, DAY))


def main() -> None:
    """Measure, and print or write."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=60.0)
    arguments.add_argument("--write", action="store_true")
    given = arguments.parse_args()
    found: dict[str, Figures] = {"listener": listener()}
    for pipelines, count in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            made = lake(Path(folder), pipelines, count)
            key = f"{pipelines} x {count}"
            found[key] = looks(made) | memory(made)
            if count == DAY:
                found[key] |= {
                    "idle": served(made, given.seconds, looking=False)["cpu percent of a core"],
                    "open": served(made, given.seconds, looking=True)["cpu percent of a core"],
                }
        print(key, json.dumps(found[key]), flush=True)
    if given.write:
        FIGURES.write_text(json.dumps(found, indent=2) + "\n")
        SECTION.write(table(found))


WHAT = (
    ("first overview", "the overview, for the first time"),
    ("next overview", "the overview, again"),
    ("pipeline", "one pipeline"),
    ("batches", "50 batches"),
    ("search", "a search for files"),
    ("journey", "the journey of a file"),
    ("throughput", "24 hours of throughput"),
    ("table", "one table"),
    ("versions", "50 versions"),
)


def table(found: dict[str, Figures]) -> str:
    """Return the figures as the page has them."""
    keys = [f"{pipelines} x {count}" for pipelines, count in SIZES]
    titles = ("1 pipeline, a day", "1 pipeline, 100,000 entries", "100 pipelines, a day")
    lines = [
        f"| seconds (CPU seconds, requests) | {' | '.join(titles)} |",
        "|---|---|---|---|",
    ]
    for key, what in WHAT:
        cells = []
        for size in keys:
            one = found[size]
            cells.append(
                f"{one[f'{key} seconds']:.3f} ({one[f'{key} cpu']:.3f}, {one[f'{key} requests']:,})"
            )
        lines.append(f"| {what} | {' | '.join(cells)} |")
    kept = [f"{found[size]['kept MB']} ({found[size]['peak MB']})" for size in keys]
    lines.append(f"| MB kept (at most) | {' | '.join(kept)} |")
    for what, key in (("the page is closed", "idle"), ("one page is open", "open")):
        cells = [f"{found[size][key]}" if key in found[size] else "" for size in keys]
        lines.append(f"| % of a core, a batch of 20 units runs, {what} | {' | '.join(cells)} |")
    took = found["listener"]["microseconds an event"]
    lines += [
        "",
        f"The listener takes {took} µs an event. `make bench-live` measures all of this.",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
