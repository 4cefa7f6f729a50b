"""Blizzard and its peers over the same files on the same two cores, round after round.

Every contestant has a process of its own that stays warm; in each round each of them runs once, so
that a busy machine disturbs all alike, and what counts is the ratio. Rows are counted afterwards:
who does not have them all is not faster but wrong. Run it from the root of the checkout:

    .venv/bin/python -m bench.race [--all] [--workloads a,b] [--rounds N] [--write]

`--write` puts tables and plots into docs/performance.md and the figures into bench/results.json.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow.dataset as ds

from bench import hard, page, tree
from bench.ours import declared
from bench.workloads import HARD, WORKLOADS, Workload, generated, plain_bytes

FIGURES = Path(__file__).parent / "results.json"
DATA = Path(os.environ.get("BENCH_DATA", Path(tempfile.gettempdir()) / "blizzard-bench"))
FETCHED = ("chDB", "DataFusion", "Daft")
"""They are no dependencies of this project: `make bench` fetches them into a place of their own."""
PEERS = Path(__file__).parent.parent / ".tools" / "peers" / "bin" / "python"
INSTALLED = ("blizzard", "bare processes", "Spark", "DuckDB", "Polars")
WARM = INSTALLED + FETCHED
COLD = ("blizzard, cold", "Spark, cold")
STREAM = ("Spark stream",)
SMALL = 0.1
"""What everybody runs once before it counts: enough for every process of it to be warm."""
SLOW_ROUNDS = {"Spark": 2}
"""Whoever takes as long as all others together runs in the first rounds only, and the whole before
it counts: what Java compiles in its first run at full size would be half of two rounds."""
LIBRARIES = ("pyspark", "pyarrow", "deltalake", "duckdb", "polars", "isal", "numba")

Figures = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """One workload, who runs it and how often."""

    workload: Workload
    scale: float
    rounds: int
    contestants: tuple[str, ...]
    warm_ups: int = 0
    """Whole runs of everybody before it counts, beside the one that is small."""


QUICK = (
    Race(workload=WORKLOADS["a"], scale=1, rounds=7, contestants=WARM),
    Race(workload=WORKLOADS["a"], scale=1, rounds=1, contestants=COLD),
    Race(workload=WORKLOADS["b"], scale=1, rounds=5, contestants=WARM),
    # With long strings some take a third longer until they have run a few times.
    Race(workload=WORKLOADS["c"], scale=0.25, rounds=9, contestants=INSTALLED, warm_ups=4),
    *(
        Race(workload=WORKLOADS[key], scale=0.25, rounds=5, contestants=INSTALLED)
        for key in ("f-zstd", "f-plain", "g")
    ),
    # Whole: it is about many files, and what a batch costs by itself is not to be most of it.
    Race(workload=WORKLOADS["d"], scale=1, rounds=9, contestants=INSTALLED, warm_ups=1),
)
ALL = (
    Race(workload=WORKLOADS["a"], scale=1, rounds=5, contestants=WARM + STREAM),
    Race(workload=WORKLOADS["a"], scale=1, rounds=3, contestants=COLD),
    *(
        Race(workload=WORKLOADS[key], scale=1, rounds=3, contestants=WARM)
        for key in ("b", "c", "d", "f-zstd", "f-plain", "g")
    ),
    Race(workload=WORKLOADS["e"], scale=1, rounds=2, contestants=WARM),
)


class Running:
    """A contestant's process."""

    def __init__(self, name: str) -> None:
        self.name = name
        command = [sys.executable, "-m", "bench.contestant", name]
        if name in FETCHED:
            command = [str(PEERS), str(Path(__file__).parent / "fetched.py"), name]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._answer()

    def run(self, workload: Workload, source: Path, table: Path) -> Figures:
        """Let it run once; give what it took, or why it could not."""
        assert self._process.stdin is not None
        before = tree.cpu_seconds(self._process.pid)
        with tree.watched(self._process.pid) as memory:
            job = {
                "workload": workload.key,
                "source": str(source),
                "table": str(table),
                "by_hour": workload.by_hour,
                "fields": [declared(one) | {"name": one.name} for one in workload.schema.fields],
            }
            self._process.stdin.write(json.dumps(job) + "\n")
            self._process.stdin.flush()
            answer = self._answer()
        answer["cpu"] = tree.cpu_seconds(self._process.pid) - before
        answer["worker_mib"] = [size >> 20 for size in memory.worker]
        answer["whole_mib"] = max(memory.whole, default=0) >> 20
        return answer

    def _answer(self) -> Figures:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"{self.name} ended without an answer")
        return dict(json.loads(line))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for each in reversed(tree.processes(self._process.pid)):
            subprocess.run(["kill", "-9", str(each)], check=False, capture_output=True)
        self._process.wait()


def rows_in(table: Path) -> int:
    """Count what is there."""
    if not table.exists():
        return 0
    return ds.dataset(table, format="parquet", exclude_invalid_files=True).count_rows()


class Field:
    """Everybody who runs. Each starts when it is first needed, and stays warm for what follows."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._running: dict[str, Running] = {}

    def __getitem__(self, name: str) -> Running:
        if name not in self._running:
            self._running[name] = self._stack.enter_context(Running(name))
        return self._running[name]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()


def run_race(race: Race, field: Field, results: Figures) -> None:
    """Run all rounds of a race, and put what they took into the results."""
    workload = race.workload.at(race.scale)
    source = generated(race.workload, race.scale, DATA)
    little = generated(race.workload, SMALL, DATA)
    found = results.setdefault(
        race.workload.key,
        {
            "title": race.workload.title,
            "scale": race.scale,
            "rows": workload.rows,
            "bytes": plain_bytes(race.workload, race.scale, DATA),
            "contestants": {},
        },
    )
    with tempfile.TemporaryDirectory(dir=DATA) as scratch:
        able = []
        for each in [field[name] for name in able_of(race.contestants)]:
            # One that starts anew each time is never warm.
            is_cold = each.name in COLD
            whole = race.warm_ups or int(each.name in SLOW_ROUNDS)
            took: Figures = {}
            for first in () if is_cold else (little, *[source] * whole):
                took = each.run(race.workload, first, table := _fresh(scratch))
                shutil.rmtree(table.parent)
                if "error" in took:
                    break
            entry = found["contestants"].setdefault(
                each.name, {"seconds": [], "cpu": [], "whole_mib": 0, "worker_mib": []}
            )
            if "error" in took:
                entry["error"] = took["error"]
            else:
                able.append(each)
        for number in range(race.rounds):
            for each in able:
                if number >= SLOW_ROUNDS.get(each.name, race.rounds):
                    continue
                table = _fresh(scratch)
                took = each.run(race.workload, source, table)
                entry = found["contestants"][each.name]
                if "error" in took or (rows := rows_in(table)) != workload.rows:
                    entry["error"] = took.get("error") or f"{rows} of {workload.rows} rows"
                else:
                    entry["seconds"].append(round(took["seconds"], 3))
                    entry["cpu"].append(round(took["cpu"], 2))
                    entry["whole_mib"] = max(entry["whole_mib"], took["whole_mib"])
                    entry["worker_mib"] = took["worker_mib"]
                shutil.rmtree(table.parent)
                said = entry.get("error") or f"{took['seconds']:.1f} s, CPU {took['cpu']:.1f} s"
                print(f"{race.workload.key:8} {number + 1}  {each.name:16} {said}", flush=True)


def able_of(names: Sequence[str]) -> list[str]:
    """Return those who are there."""
    return [name for name in names if name not in FETCHED or PEERS.exists()]


def hard_figures(names: Sequence[str], field: Field) -> Figures:
    """Return what became of hard values, by contestant and kind."""
    figures: Figures = {}
    with tempfile.TemporaryDirectory(dir=DATA) as scratch:
        folders = hard.generated(Path(scratch))
        for name in names:
            for kind, source in folders.items():
                table = _fresh(scratch)
                error = field[name].run(HARD, source, table).get("error")
                ours = "default" if name in ("blizzard", "bare processes") else None
                found = None if error else hard.found_in(table, ours)
                verdict = hard.judged(hard.lines_of(kind), found)
                figures.setdefault(name, {})[kind] = asdict(verdict) | {"error": error}
    return figures


def _fresh(scratch: str) -> Path:
    """Return a place for a table, beside which nothing lies of an earlier run."""
    return Path(tempfile.mkdtemp(dir=scratch)) / "table"


def machine() -> dict[str, object]:
    """Return where the figures come from."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(": ")[1] for line in lines if line.startswith("model name")), "")
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in LIBRARIES},
    }


def recorded() -> Figures:
    """Return the figures of earlier runs."""
    return dict(json.loads(FIGURES.read_text()))


def record(results: Figures, values: Figures | None = None) -> None:
    """Replace the figures of what was run; what was not run keeps those it has.

    Done after each workload: a run that is interrupted loses no more than the one under way.
    """
    earlier = recorded()
    figures = {
        "machine": machine(),
        "workloads": dict(sorted((earlier["workloads"] | results).items())),
        "hard": earlier["hard"] if values is None else values,
    }
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n")


def main() -> None:
    """Run what is asked for, and show it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="the long ones, too, at full size")
    parser.add_argument("--workloads", help="only these, with commas between")
    parser.add_argument("--rounds", type=int, help="so many rounds of each")
    parser.add_argument("--scale", type=float, help="this part of each workload")
    parser.add_argument("--warm", action="store_true", help="without cold starts")
    parser.add_argument("--write", action="store_true", help="write the page and the figures")
    parser.add_argument("--draw", action="store_true", help="write the page from the figures alone")
    options = parser.parse_args()
    if options.draw:
        page.write(recorded())
        return
    wanted = options.workloads.split(",") if options.workloads else [*WORKLOADS, "h"]
    DATA.mkdir(parents=True, exist_ok=True)
    results: Figures = {}
    with Field() as field:
        for race in ALL if options.all else QUICK:
            is_left_out = options.warm and race.contestants == COLD
            if race.workload.key in wanted and not is_left_out:
                scale, rounds = options.scale or race.scale, options.rounds or race.rounds
                run_race(replace(race, scale=scale, rounds=rounds), field, results)
                if options.write:
                    record(results)
        values = hard_figures(able_of(WARM), field) if "h" in wanted else recorded()["hard"]
    figures = {"machine": machine(), "workloads": results, "hard": values}
    for line in (*page.table(figures), *hard.table(values)):
        print(line)
    if options.write:
        record(results, values)
        page.write(recorded())


if __name__ == "__main__":
    main()
