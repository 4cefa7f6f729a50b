"""What the live page costs a real run: off, served while the page is closed, and open in a browser.

The same source files are ingested on a local Spark in several batches, committed by blizzard
itself, round after round, each round with the page in each of its states. An open page is a client
in another process that polls the overview, and asks for what the view of a pipeline asks for, when
it would. What is measured goes from the start of the first batch to the end of the last: CPU
seconds of the process and everything it started, and, by the clocks of the threads that serve the
page, what these took. The second is precise; two runs differ by more than the page costs. Run it
from the root of the checkout:

    .venv/bin/python -m bench.open_page [--rounds 5] [--files 30] [--write]

`--write` puts the table into docs/live.md and the figures into bench/open_page.json.
"""

import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any, Literal

from bench import tree
from bench.ours import CORES, declared
from bench.race import DATA
from bench.section import Section
from bench.workloads import WORKLOADS, generated
from blizzard.cli.app import app
from blizzard.cli.surroundings import Surroundings
from blizzard.events import BatchStarted
from lakebed.telemetry.events import Event, LastStepTaken
from tests.support.ports import reserved_port

FIGURES = Path(__file__).parent / "open_page.json"
SECTION = Section("docs/live.md", "open page")
WORKLOAD = WORKLOADS["b"]
SCALE = 1
BATCHES = 5
POLL = 2.0
"""Seconds between two requests for the overview."""
LEAST_PAUSE = 2.0
"""Seconds between two requests for one document, as the page keeps to."""
SERVING = {
    "metrics": "accepting",
    "live refresh": "looking",
    "live window": "looking",
    "process_request_thread": "answering",
}
"""What the threads do that serve the page, by their names or parts of them."""

State = Literal["off", "unseen", "open"]
STATES: tuple[State, ...] = ("off", "unseen", "open")
TITLES = {"off": "off", "unseen": "served, the page is closed", "open": "open in a browser"}

Figures = dict[str, float]


class Clocks:
    """What the threads of this process have used, those included that have ended."""

    def __init__(self) -> None:
        self._ended = dict.fromkeys(SERVING.values(), 0.0)
        self._lock = threading.Lock()
        run = threading.Thread.run

        def timed(thread: threading.Thread) -> None:
            run(thread)
            if (what := serves(thread.name)) is not None:
                with self._lock:
                    self._ended[what] += time.thread_time()

        threading.Thread.run = timed  # type: ignore[method-assign,assignment]

    def serving(self) -> Figures:
        """Return the CPU seconds of the threads that serve the page, by what they do."""
        found = dict(self._ended)
        for thread in threading.enumerate():
            if (what := serves(thread.name)) is not None and thread.ident is not None:
                with suppress(OSError):
                    found[what] += time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
        return found


def serves(name: str) -> str | None:
    """Return what a thread of this name does for the page; None where that is nothing. Pure."""
    return next((what for part, what in SERVING.items() if part in name), None)


def ingest(config: Path) -> Figures:
    """Run blizzard as its command does, and return what it took from batch to batch."""
    clocks = Clocks()
    found: Figures = {"events": 0, "batches": 0}
    first: list[Figures] = []

    def now() -> Figures:
        process = os.getpid()
        return {
            "seconds": time.perf_counter(),
            "cpu": tree.cpu_seconds(process),
            **clocks.serving(),
        }

    def heard(event: Event) -> None:
        found["events"] += 1
        if isinstance(event, BatchStarted):
            found["batches"] += 1
            if not first:
                first.append(now())
        elif isinstance(event, LastStepTaken) and "cpu" not in found:
            found.update({what: round(value - first[0][what], 4) for what, value in now().items()})

    arguments = ["-c", str(config), "--once", "--output", "json"]
    app(arguments, obj=Surroundings(also=heard), standalone_mode=False)
    return found


def configuration(under: Path, state: State, files: int, ports: tuple[int, int]) -> Path:
    """Write what a user would write, and land the source files."""
    pool = sorted(generated(WORKLOAD, SCALE, DATA).iterdir())
    source = under / "in"
    source.mkdir()
    for number in range(files):
        (source / f"part-{number:05d}.ndjson.gz").hardlink_to(pool[number % len(pool)])
    document = {
        "pipelines": {
            "events": {
                "source": {"path": str(source), "max_files_per_batch": -(-files // BATCHES)},
                "sink": {"path": str(under / "table"), "commit": "inline"},
                "schema": {
                    "fields": [
                        declared(field) | {"name": field.name} for field in WORKLOAD.schema.fields
                    ]
                },
            }
        },
        "tables": {"events": {"table_uri": str(under / "table")}},
        "spark": {"master": f"local[{CORES}]"},
        "metrics": {
            "enabled": state != "off",
            "blizzard_address": f"127.0.0.1:{ports[0]}",
            "penguin_address": f"127.0.0.1:{ports[1]}",
        },
    }
    file = under / "pipeline.yaml"
    file.write_text(json.dumps(document))
    return file


def documents(overview: Mapping[str, Any], now: float) -> Iterator[tuple[str, str]]:
    """Yield what the view of a pipeline asks for, each with the stamp under which it is kept."""
    summary = next(one for one in overview["pipelines"] if one["name"] == "events")
    last = summary["last_entry"]
    kept = ("last_entry", "failed_files", "held_entries", "quarantined_lines", "health")
    yield "", " ".join(str(summary.get(each)) for each in kept)
    yield "/throughput?hours=24&points=96", f"{last} {now // 3600}"
    measured = summary["freshness"]["measured_files"]
    if measured:
        yield "/freshness?hours=24&points=96", f"{last} {measured} {now // 3600}"
    yield "/days?limit=31", str(last)


class Browser(threading.Thread):
    """Polls the view of a pipeline for as long as somebody serves it."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._port = port
        self.over = threading.Event()
        self.requests = 0
        self.overviews = 0
        self._held: dict[str, str] = {}
        self._asked: dict[str, float] = {}

    def run(self) -> None:
        """Poll the overview, over and over."""
        while not self.over.wait(POLL):
            with suppress(OSError, http.client.HTTPException):
                overview = json.loads(self._get("/api/v1/overview").read())
                self.overviews += 1
                self._view(overview)

    def _view(self, overview: Mapping[str, Any]) -> None:
        now = time.time()
        for path, stamp in documents(overview, now):
            if self._held.get(path) != stamp and now - self._asked.get(path, 0) >= LEAST_PAUSE:
                self._held[path], self._asked[path] = stamp, now
                self.requests += 1
                self._get(f"/api/v1/pipelines/events{path}").read()

    def _get(self, path: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        connection.request("GET", path)
        return connection.getresponse()


def one(state: State, files: int) -> Figures:
    """Run once, with the page in this state."""
    with (
        tempfile.TemporaryDirectory(dir=DATA) as folder,
        reserved_port() as port,
        reserved_port() as other,
    ):
        under = Path(folder)
        config = configuration(under, state, files, (port, other))
        browser = Browser(port)
        if state == "open":
            browser.start()
        done = subprocess.run(
            [sys.executable, "-m", "bench.open_page", "--ingest", str(config)],
            capture_output=True,
            text=True,
            check=False,
        )
        browser.over.set()
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        found: Figures = json.loads(done.stdout.splitlines()[-1])
        return found | {"requests": browser.requests, "overviews": browser.overviews}


def order(number: int) -> Sequence[State]:
    """Return the states in another order each round. Pure."""
    turned = STATES[number % 3 :] + STATES[: number % 3]
    return turned if number % 2 == 0 else turned[::-1]


def page(run: Figures) -> float:
    """Return the CPU seconds that the page took. Pure."""
    return sum(run[what] for what in set(SERVING.values()))


def share(run: Figures) -> float:
    """Return the same in percent of what the run took without it. Pure."""
    return 100 * page(run) / (run["cpu"] - page(run))


def table(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the table of the page."""
    yield (
        "| the page | CPU seconds of the run: median (least, most) | of these, the threads that "
        "serve | percent of the run: median (least, most) | percent of a core |"
    )
    yield "|---|---:|---:|---:|---:|"
    for state in STATES:
        runs: list[Figures] = found["runs"][state]
        cpu, shares = [each["cpu"] for each in runs], [share(each) for each in runs]
        of_a_core = median(100 * page(each) / each["seconds"] for each in runs)
        yield (
            f"| {TITLES[state]} | {median(cpu):.1f} ({min(cpu):.1f}, {max(cpu):.1f}) "
            f"| {median(map(page, runs)):.3f} "
            f"| {median(shares):.2f} ({min(shares):.2f}, {max(shares):.2f}) | {of_a_core:.2f} |"
        )


def write(found: Mapping[str, Any]) -> None:
    """Put the table into the page, and the figures beside the others."""
    FIGURES.write_text(json.dumps(found, indent=1) + "\n")
    SECTION.write("\n".join(table(found)))


def main() -> None:
    """Run the rounds, and show what came of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", type=int, default=30, help="source files of a run")
    parser.add_argument("--write", action="store_true", help="write the page and the figures")
    parser.add_argument("--ingest", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ingest is not None:
        print(json.dumps(ingest(options.ingest)))
        return
    runs: dict[State, list[Figures]] = {state: [] for state in STATES}
    for number in range(options.rounds):
        for state in order(number):
            runs[state].append(one(state, options.files))
            print(number, state, json.dumps(runs[state][-1]), flush=True)
    rows = options.files * WORKLOAD.at(SCALE).records
    found = {"rows": rows, "batches": BATCHES, "rounds": options.rounds, "runs": runs}
    for line in table(found):
        print(line)
    if options.write:
        write(found)


if __name__ == "__main__":
    main()
