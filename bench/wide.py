"""What a second worker of one core brings: two against one, on a standalone cluster.

A master and two workers run on this machine, each worker with all that it starts on a core of its
own. The same files are read with one core and with two, in turns, so that what else the machine
does troubles both; a ratio is that of two runs next to each other. Each run is a whole batch, from
discovery to the journal, with executors that have run a small batch before.

    python -m bench.wide --rounds 3 --write
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.section import Section
from blizzard.execute.spark.runner import SparkRunner
from blizzard.model.settings import SparkSettings
from lakebed.columns.schema import Field, Schema
from lakebed.types import FieldType
from tests.support.builders import pipeline_settings
from tests.support.cluster import ARCHIVE, Cluster, running_cluster
from tests.support.pipelines import pipeline_of

FIGURES = Path(__file__).with_suffix(".json")
SECTION = Section("bench/README.md", "wide")
FILE_BYTES = 16 * 1024 * 1024
"""The planner makes six units of them all, with one core and with two: the work is the same."""
WANTED = 1.5

SCHEMA = Schema(
    (
        Field(name="id", type=FieldType.INT64, nullable=False),
        Field(name="name", type=FieldType.STRING),
        Field(name="amount", type=FieldType.FLOAT64),
        Field(name="flag", type=FieldType.BOOLEAN),
        Field(name="at", type=FieldType.TIMESTAMP),
        Field(name="text", type=FieldType.STRING),
    )
)
Figures = dict[str, Any]


def line(number: int) -> bytes:
    """Make a record of about 190 bytes."""
    record = {
        "id": number,
        "name": f"name {number % 977}",
        "amount": number * 1.25,
        "flag": number % 2 == 0,
        "at": f"2024-01-{number % 28 + 1:02}T12:{number % 60:02}:00.123456Z",
        "text": f"{number * 2654435761 % 2**32:08x}" * 8,
    }
    return json.dumps(record).encode() + b"\n"


def land(folder: Path, files: int, size: int) -> int:
    """Write plain files of a size; give the number of records in all of them."""
    folder.mkdir()
    block = b"".join(line(number) for number in range(5_000))
    blocks = max(1, size // len(block))
    for number in range(files):
        (folder / f"{number:04}.ndjson").write_bytes(block * blocks)
    return files * blocks * 5_000


def batch(runner: SparkRunner, source: Path, table: Path) -> float:
    """Run everything in a folder as one batch into a new table; give its seconds."""
    settings = pipeline_settings(source, table, schema=SCHEMA)
    pipeline = pipeline_of(settings, runner)
    began = time.monotonic()
    if not pipeline.step() or pipeline.statistics.files_failed:
        raise RuntimeError(f"the batch failed: {pipeline.statistics}")
    return time.monotonic() - began


def measure(cluster: Cluster, image: Path, folder: Path, cores: int) -> float:
    """Return the seconds of a batch on so many workers of one core."""
    conf = cluster.conf(
        **{"spark.executorEnv.PYTHONPATH": str(image), "spark.cores.max": str(cores)}
    )
    del conf["spark.archives"]
    runner = SparkRunner(SparkSettings(master=cluster.master, conf=conf))
    try:
        with tempfile.TemporaryDirectory(dir=folder) as tables:
            batch(runner, folder / "few", Path(tables) / "few")
            return batch(runner, folder / "many", Path(tables) / "many")
    finally:
        runner.stop()


def measured(rounds: int, files: int) -> Figures:
    """Measure one worker and two, in turns."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        image = folder / "image"
        image.mkdir()
        subprocess.run(["tar", "-xzf", ARCHIVE, "-C", image], check=True)
        land(folder / "few", 6, FILE_BYTES)
        records = land(folder / "many", files, FILE_BYTES)
        size = sum(file.stat().st_size for file in (folder / "many").iterdir())
        (folder / "cluster").mkdir()
        found = []
        with running_cluster(folder / "cluster", pinned=True) as cluster:
            cluster.whole()
            for number in range(rounds):
                # Whoever comes first in a round comes second in the next.
                order = (1, 2) if number % 2 == 0 else (2, 1)
                others = busy()
                seconds = {cores: measure(cluster, image, folder, cores) for cores in order}
                found.append({"one": seconds[1], "two": seconds[2], "others": round(others, 2)})
                print(f"{found[-1]}, {seconds[1] / seconds[2]:.2f} times", flush=True)
    return {"records": records, "bytes": size, "rounds": found}


def busy(seconds: float = 5.0) -> float:
    """Return how many cores others keep busy while nothing of ours runs: they spoil a ratio."""

    def ticks() -> int:
        fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
        return sum(map(int, fields)) - int(fields[3]) - int(fields[4])

    before = ticks()
    time.sleep(seconds)
    return (ticks() - before) / os.sysconf("SC_CLK_TCK") / seconds


def table_of(found: Figures) -> str:
    """Write the figures as a table."""
    lines = [
        "| round | cores busy before | one worker, records/s | two workers, records/s | ratio |",
        "|---|---:|---:|---:|---:|",
    ]
    records = found["records"]
    for number, one in enumerate(found["rounds"], start=1):
        lines.append(
            f"| {number} | {one['others']:.1f} | {records / one['one']:,.0f} "
            f"| {records / one['two']:,.0f} | {one['one'] / one['two']:.2f} |"
        )
    return "\n".join([*lines, "", f"Median of the ratios: {ratio(found):.2f}."])


def ratio(found: Figures) -> float:
    """Return the median of the rounds' ratios."""
    return float(statistics.median(one["one"] / one["two"] for one in found["rounds"]))


def main() -> None:
    """Measure, show, and write if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--files", type=int, default=48, help="of 16 MiB each")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    found = measured(given.rounds, given.files)
    print(table_of(found))
    print(f"wanted: {WANTED} at least")
    if given.write:
        where = {
            "python": platform.python_version(),
            "machine": platform.machine(),
            "cores": os.cpu_count(),
        }
        FIGURES.write_text(json.dumps({"where": where, **found}, indent=1) + "\n")
        SECTION.write(table_of(found))


if __name__ == "__main__":
    main()
