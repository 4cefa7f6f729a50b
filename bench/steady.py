"""How large data files come out in a steady flow, as a share of `file_size_mb`.

    .venv/bin/python -m bench.steady [--polls 90] [--only NAME] [--write]

Source files arrive at every poll of a running pipeline, whose clock is moved by ten seconds each
time. Everything is a thirty-second of its usual size: data files of 4 MiB are asked for instead of
128, row groups and units are as much smaller, so a few thousand files show what days would. The
first batches of a pipeline, which knows nothing of its data yet, count as all others do.
"""

import argparse
import json
import os
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from isal import igzip

from bench.ours import declared
from bench.section import Section
from bench.workloads import EVENTS, SHOP, Lines, events, shop
from blizzard.config import load
from blizzard.model.settings import PipelineSettings, Sizing
from lakebed.columns.schema import Schema
from lakebed.units import mebibytes
from tests.support.builders import Bench
from tests.support.runner import InProcessRunner

FIGURES = Path(__file__).parent / "steady.json"
SECTION = Section("docs/performance.md", "steady")
SHRUNK = 32
FILE_SIZE = mebibytes(128) // SHRUNK
POLL = 10.0
POOL = 12
"""Different source files of a flow; each arrives again and again under another name."""
USUAL = Sizing()

Figures = dict[str, dict[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What arrives, and where it goes."""

    name: str
    records: int
    """In each source file."""
    a_poll: int
    """Source files that arrive at each poll."""
    schema: Schema = SHOP
    lines: Lines = shop
    cores: int = 2
    plain: bool = False
    folders: int = 0
    """Over how many partitions the paths spread the source files; 0 where they say none."""
    hours: int = 0
    """Over how many hours rows are spread, a partition each; 0 where they give no partition."""


FLOWS = (
    Flow(name="gzip", records=4_000, a_poll=9),
    Flow(name="plain", records=4_000, a_poll=9, plain=True),
    Flow(name="nested, gzip", records=300, a_poll=8, schema=EVENTS, lines=events),
    Flow(name="gzip, 3 partitions by path", records=4_000, a_poll=9, folders=3),
    Flow(name="gzip, 4 partitions by row", records=4_000, a_poll=9, hours=4),
    Flow(name="gzip, 8 cores, less than they wait for", records=4_000, a_poll=9, cores=8),
    Flow(name="gzip, source files of a third of a data file", records=80_000, a_poll=1),
    Flow(name="gzip, less than a file in 5 minutes", records=1_000, a_poll=1),
)


def sizes(flow: Flow, polls: int, under: Path) -> list[int]:
    """Let source files arrive for so many polls; return the sizes of the data files, in order."""
    settings = settings_of(flow, under)
    bench = Bench(settings, once=False, runner=InProcessRunner(parallelism=flow.cores))
    pipeline = bench.pipeline()
    bodies = list(_bodies(flow))
    for poll in range(polls):
        for number in range(flow.a_poll):
            folder = under / "in"
            if flow.folders:
                folder /= f"region=r{number % flow.folders}"
            folder.mkdir(parents=True, exist_ok=True)
            name = f"{poll:05d}-{number:03d}.ndjson{'' if flow.plain else '.gz'}"
            (folder / name).write_bytes(bodies[(poll * flow.a_poll + number) % POOL])
        while pipeline.step():
            pass
        bench.hands.at += POLL
    return [file.size for entry in bench.entries() for file in entry.files]


def settings_of(flow: Flow, under: Path) -> PipelineSettings:
    """Return what a user would write, with everything a thirty-second of its size."""
    fields = "".join(
        f"\n    - {json.dumps(declared(field) | {'name': field.name})}"
        for field in flow.schema.fields
    )
    by = ""
    if flow.hours:
        by = '\n  partition_by: {prefix_template: "date=%Y-%m-%d/hour=%H", timestamp_field: at}'
    elif flow.folders:
        by = '\n  partition_by: {prefix_template: "region=%s"}'
    file = under / "pipeline.yaml"
    (under / "in").mkdir(parents=True, exist_ok=True)
    file.write_text(
        f"source:\n  path: {under / 'in'}\n"
        f"sink:\n  path: {under / 'table'}\n  file_size_mb: {FILE_SIZE >> 20}\n"
        f"  row_group_size_bytes: {mebibytes(128) // SHRUNK}{by}\n"
        f"schema:\n  fields:{fields}\n"
    )
    (settings,) = load.load([file], [], os.environ).pipelines
    sizing = replace(
        USUAL,
        smallest_unit=USUAL.smallest_unit // SHRUNK,
        largest_unit=USUAL.largest_unit // SHRUNK,
        decoded_budget=USUAL.decoded_budget // SHRUNK,
        staged_bytes=USUAL.staged_bytes // SHRUNK,
    )
    return replace(settings, sizing=sizing)


def _bodies(flow: Flow) -> Iterator[bytes]:
    for number in range(POOL):
        chance = random.Random(number)
        lines = flow.lines(chance, number * flow.records, flow.records)
        if flow.hours:
            lines = (_within(line, flow.hours, chance) for line in lines)
        plain = "".join(f"{line}\n" for line in lines).encode()
        yield plain if flow.plain else igzip.compress(plain, compresslevel=3)


def _within(line: str, hours: int, chance: random.Random) -> str:
    record = json.loads(line)
    record["at"] = f"2024-01-01T{chance.randrange(hours):02d}{record['at'][13:]}"
    return json.dumps(record)


def distribution(found: Sequence[int], *, asked: int = FILE_SIZE) -> dict[str, float]:
    """Return how sizes compare with the one that was asked for. Pure."""
    shares = [size / asked for size in found]
    return {
        "files": len(shares),
        "median": round(median(shares), 2),
        "below_half": round(sum(share < 0.5 for share in shares) / len(shares), 2),
        "largest": round(max(shares), 2),
        "ideal": round(sum(shares), 1),
    }


def table(figures: Mapping[str, Figures]) -> Iterator[str]:
    """Yield a row for every flow: as it is now, and as it was before files were kept alike."""
    yield (
        "| flow | data files | if all were full | median | below half | largest "
        "| before: data files | median | below half |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    for name, one in figures["now"].items():
        was = figures["before"].get(name)
        old = f"{was['files']:.0f} | {was['median']:.2f} | {was['below_half']:.0%}" if was else "||"
        yield (
            f"| {name} | {one['files']:.0f} | {one['ideal']:.0f} | {one['median']:.2f} "
            f"| {one['below_half']:.0%} | {one['largest']:.2f} | {old} |"
        )


def write(figures: Mapping[str, Figures]) -> None:
    """Put the table into the page, and the figures beside the others."""
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n")
    SECTION.write("\n".join(table(figures)))


def main() -> None:
    """Run the flows, and show what came of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--polls", type=int, default=180, help="how often source files arrive")
    parser.add_argument("--only", help="only the flow of this name")
    parser.add_argument("--write", action="store_true", help="write the page and the figures")
    options = parser.parse_args()
    now: Figures = {}
    for flow in FLOWS:
        if options.only in (None, flow.name):
            with tempfile.TemporaryDirectory() as under:
                now[flow.name] = distribution(sizes(flow, options.polls, Path(under)))
    figures = {"before": json.loads(FIGURES.read_text())["before"], "now": now}
    for line in table(figures):
        print(line)
    if options.write:
        write(figures)


if __name__ == "__main__":
    main()
