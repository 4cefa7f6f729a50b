"""What a start costs: CPU seconds of each command in a fresh process, beside bare imports.

CPU seconds are those of the whole process tree, of the round that took the least: a neighbour on
the machine adds to them, and takes nothing away. Rounds are interleaved. Run it from the root of
the checkout:

    .venv/bin/python -m bench.cold [--rounds 7] [--spark 3] [--write] [--against CHECKOUT]

`--spark` also compares `blizzard --once` on one small file with a bare SparkSession and one trivial
job, so many times; `--write` puts the tables into bench/README.md. `--against` measures our
commands as they are in another checkout, too, in turns, and prints the medians of both.
"""

import argparse
import ctypes
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.section import Section
from tests.support.tables import Penguin, TableDirectory, rows_of

PR_SET_CHILD_SUBREAPER = 36
BARE_SESSION = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[*]").getOrCreate()
spark.range(1).mapInArrow(lambda batches: batches, "id bigint").collect()
spark.stop()
"""
PIPELINE = """\
pipelines:
  events:
    source: {{path: {folder}/landing}}
    sink: {{path: {folder}/table}}
    schema: {{fields: [{{name: id, type: int64}}]}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one process, with all its descendants, took."""

    wall: float
    """Until the program itself ended."""
    cpu: float


def measured(command: list[str], checkout: Path | None = None) -> Measured:
    """Run a command to the end of every descendant: the JVM outlives the program.

    With a checkout, the programs are those of its `src`.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # An installed package is compiled.
    if checkout is not None:
        environment["PYTHONPATH"] = str(checkout.resolve() / "src")
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    )
    wall = 0.0
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            break
        if pid == process.pid:
            wall = time.monotonic() - began
            if status:
                sys.exit(f"failed: {' '.join(command)}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Measured(wall=wall, cpu=cpu)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """A command that is measured, and what is done before each of its rounds."""

    name: str
    command: list[str]
    before: Callable[[], object] = lambda: None


def light(folder: Path) -> list[Contest]:
    """Return what needs no Spark."""
    return [
        Contest(name="`python -c pass`", command=_python("pass")),
        Contest(name="`import pyarrow`", command=_python("import pyarrow")),
        Contest(name="`import deltalake`", command=_python("import deltalake")),
        Contest(name="`blizzard --version`", command=_module("blizzard", "--version")),
        Contest(name="`blizzard --help`", command=_module("blizzard", "--help")),
        Contest(name="`penguin --help`", command=_module("penguin", "--help")),
        *(
            Contest(
                name=f"`penguin --once`, one entry waiting, {what}",
                command=_module("penguin", "--once", "-c", str(folder / "penguin.yaml")),
                before=_waiting(folder, commits),
            )
            for what, commits in (("a table of one commit", 1), ("the table to be made", 0))
        ),
    ]


def questions(folder: Path) -> list[Contest]:
    """Return commands that ask about a small lake, with a file that waits to be read."""
    lake = folder / "lake"
    (lake / "landing").mkdir(parents=True)
    (lake / "landing" / "a.ndjson").write_text('{"id":1}\n')
    TableDirectory(lake / "table").journal().batch(rows_of(1))
    config = lake / "blizzard.yaml"
    config.write_text(PIPELINE.format(folder=lake))
    asked = (("status",), ("files",), ("why", "a.ndjson"))
    return [
        Contest(
            name=f"`blizzard {' '.join(words)}`, a small lake",
            command=_module("blizzard", *words, "-c", str(config)),
        )
        for words in asked
    ]


def with_spark(folder: Path) -> list[Contest]:
    """Return a bare session with one trivial job, and our own run on one small file."""
    (folder / "landing").mkdir()
    (folder / "landing" / "a.ndjson").write_text('{"id":1}\n')
    config = folder / "blizzard.yaml"
    config.write_text(PIPELINE.format(folder=folder))
    return [
        Contest(name="a bare SparkSession, one trivial job", command=_python(BARE_SESSION)),
        Contest(
            name="`blizzard --once`, one small file",
            command=_module("blizzard", "--once", "-c", str(config)),
            before=lambda: shutil.rmtree(folder / "table", ignore_errors=True),
        ),
    ]


def _python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def _module(*command: str) -> list[str]:
    return [sys.executable, "-m", *command]


def _waiting(folder: Path, commits: int) -> Callable[[], None]:
    """Return what makes a table with an entry that waits."""

    def make() -> None:
        shutil.rmtree(folder / "waiting", ignore_errors=True)
        table = TableDirectory(folder / "waiting")
        for number in range(commits):
            table.journal().batch(rows_of(number))
            Penguin(table).drain()
        table.journal().batch(rows_of(commits))
        (folder / "penguin.yaml").write_text(f"tables: {{events: {{table_uri: {table.root}}}}}\n")

    return make


def in_rounds(contests: list[Contest], rounds: int) -> dict[str, list[Measured]]:
    """Measure each in every round, one after the other."""
    found: dict[str, list[Measured]] = {one.name: [] for one in contests}
    for _ in range(rounds):
        for one in contests:
            one.before()
            found[one.name].append(measured(one.command))
    return found


def beside(contests: list[Contest], other: Path, rounds: int) -> str:
    """Measure each command of ours here and in another checkout, in turns; write the medians."""
    here = Path(__file__).parent.parent
    lines = ["| what | CPU s there | CPU s here | ratio |", "|---|---:|---:|---:|"]
    for one in contests:
        if one.command[1] != "-m":
            continue
        found: dict[Path, list[float]] = {other: [], here: []}
        for number in range(rounds):
            for checkout in (other, here) if number % 2 else (here, other):
                one.before()
                found[checkout].append(measured(one.command, checkout).cpu)
        there, ours = median(found[other]), median(found[here])
        lines.append(f"| {one.name} | {there:.2f} | {ours:.2f} | {ours / there:.2f} |")
    return "\n".join(lines) + "\n"


def light_table(found: dict[str, list[Measured]]) -> str:
    """Write the CPU seconds of each command as a table."""
    least = {name: min(one.cpu for one in rounds) for name, rounds in found.items()}
    rows = [f"| {name} | {cpu:.2f} |" for name, cpu in least.items()]
    return "\n".join(["| what | CPU s |", "|---|---:|", *rows]) + "\n"


def spark_table(found: dict[str, list[Measured]]) -> str:
    """Write the medians of both, and ours as a share of the bare session's."""
    lines = ["| what | wall s | CPU s |", "|---|---:|---:|"]
    medians = {
        name: (median(one.wall for one in rounds), median(one.cpu for one in rounds))
        for name, rounds in found.items()
    }
    lines += [f"| {name} | {wall:.1f} | {cpu:.1f} |" for name, (wall, cpu) in medians.items()]
    bare, ours = medians.values()
    lines.append(f"| ratio | {ours[0] / bare[0]:.2f} | {ours[1] / bare[1]:.2f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, and write the page where that is asked for."""
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--spark", type=int, default=0)
    options.add_argument("--write", action="store_true")
    options.add_argument("--against", type=Path)
    given = options.parse_args()
    # As the heir of a JVM that outlives its program we learn what it used.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    texts = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        contests = [*light(folder), *questions(folder)]
        if given.against:
            print(beside(contests, given.against, given.rounds))
        elif given.rounds:
            texts["cold"] = light_table(in_rounds(contests, given.rounds))
            print(texts["cold"], flush=True)
        if given.spark:
            subprocess.run([sys.executable, "-m", "blizzard", "warm"], check=True)
            texts["start"] = spark_table(in_rounds(with_spark(folder), given.spark))
            print(texts["start"])
    for mark, text in texts.items() if given.write else ():
        Section("bench/README.md", mark).write(text)


if __name__ == "__main__":
    main()
