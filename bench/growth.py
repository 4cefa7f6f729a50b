"""What discovery, planning, a start, the books and penguin's commit cost as the history grows.

Each measure runs in a process of its own, over a store in memory that counts its requests as S3
would be asked (a page of 1,000 names a listing), or over a local disk for penguin. CPU seconds and
memory are of that process. Run it from the root of the checkout:

    .venv/bin/python -m bench.growth [--most 1000000] [--only MEASURE ...] [--write | --draw]

`--write` puts the table into bench/README.md, the figures into bench/growth.json and the plot
into docs/images/growth.svg; with `--only` the figures of the other measures stay as they are.
`--draw` measures nothing: it makes table and plot from the figures.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bench import journals, plots
from bench.figures import Figures
from bench.measuring import measured, peak_of
from bench.section import DOCS, Section
from blizzard.discover.lister import SourceLister
from blizzard.discover.scan import DiscoveryContext
from blizzard.journal import segments
from blizzard.journal.ledger import Ledger
from blizzard.model.settings import RollingPolicy
from blizzard.model.source.file import IngestedFile, SourceFile
from blizzard.plan.planner import Planner
from lakebed.clock import Clock
from lakebed.documents.records import SourceRecord
from lakebed.layout import data_file
from lakebed.types import Codec
from tests.support.bucket import LONG_AGO, Bucket
from tests.support.builders import NOON, source_settings
from tests.support.tables import Penguin, TableDirectory, rows_of

PLOT = DOCS / "images" / "growth.svg"
FIGURES = Path(__file__).parent / "growth.json"
SECTION = Section("bench/README.md", "growth")
SIZES = (1_000, 10_000, 100_000, 1_000_000)
FILES_PER_ENTRY = 100
LEAST_SECONDS = 0.001
"""Less was not measured, and stands in the plot as this."""


def names(count: int) -> list[str]:
    """Name source files as a day's folders hold them."""
    return [f"date=2024-{n // 25_000:04d}/{n:08d}.ndjson.gz" for n in range(count)]


class Source:
    """A source of so many files, all of them done or all of them new."""

    def __init__(self, count: int, *, done: bool) -> None:
        self.bucket = Bucket(names(count))
        self.table = Bucket(uri="s3://bucket/table")
        self.history = Ledger()
        self.lister = SourceLister(
            source=source_settings("s3://bucket/in"), template=None, partition_fields={}
        )
        if done:
            listed = (
                IngestedFile(
                    key=f"default:{name}",
                    size=10,
                    etag=f"e-{name}",
                    entry=number // FILES_PER_ENTRY,
                )
                for number, name in enumerate(self.bucket.names)
            )
            segment = segments.write_segment(
                self.table, "default", (name.row for name in listed), Clock().fresh_id()
            )
            self.history = Ledger(store=self.table, pipeline="default", segments=[segment])

    def look(self, *, seconds: float = 0.0) -> int:
        """Look at the source; give how many files a batch would take."""
        context = DiscoveryContext(
            store=self.bucket,
            lookup=self.history.lookup(),
            unfinished=self.history.unfinished,
            since=NOON,
            now=NOON.fromtimestamp(NOON.timestamp() + seconds, NOON.tzinfo),
        )
        return len(self.lister.discover(context).take)

    def requests(self) -> int:
        """Count what was asked of source and table since the last time."""
        asked = sum(self.bucket.requests.values()) + sum(self.table.requests.values())
        self.bucket.requests.clear()
        self.table.requests.clear()
        return asked


def idle_poll(count: int) -> Figures:
    """Measure a poll that finds nothing new."""
    source = Source(count, done=True)
    source.look()
    source.requests()
    found: Figures = {}
    with measured(found):
        source.look(seconds=10)
    found["requests"] = source.requests()
    found["bytes"] = peak_of(lambda: source.look(seconds=20))
    return found


def first_look(count: int) -> Figures:
    """Measure a first look at files that are all new, of which a batch takes 10,000 at most."""
    source = Source(count, done=False)
    found: Figures = {}
    with measured(found):
        source.look()
    found["requests"] = source.requests()
    found["bytes"] = peak_of(Source(count, done=False).look) if count <= SIZES[2] else None
    return found


def sweep(count: int) -> Figures:
    """Measure a comparison of the whole source with all that is known, as each start makes one."""
    source = Source(count, done=True)
    source.requests()
    found: Figures = {}
    with measured(found):
        source.look()
    found["requests"] = source.requests()
    found["bytes"] = peak_of(Source(count, done=True).look) if count <= SIZES[2] else None
    return found


def planning(count: int) -> Figures:
    """Measure the plan of a batch of so many files."""
    files = [
        SourceFile(
            source="default",
            path=name,
            size=2_000,
            etag=None,
            codec=Codec.GZIP,
            partition_values={},
            modified=LONG_AGO,
        )
        for name in names(count)
    ]
    found: Figures = {"requests": 0}
    with measured(found):
        Planner(parallelism=2, file_size=RollingPolicy().file_size).plan(files)
    found["bytes"] = (
        peak_of(lambda: Planner(parallelism=2, file_size=RollingPolicy().file_size).plan(files))
        if count <= SIZES[2]
        else None
    )
    return found


def commit(count: int) -> Figures:
    """Measure penguin's commits of so many files that wait, on a local disk."""
    with tempfile.TemporaryDirectory() as folder:
        table = TableDirectory(Path(folder) / "table")
        journal = table.journal()
        one = journal.file(rows_of(1))
        body = (table.root / one.filename).read_bytes()
        clock = Clock()
        for _ in range(count // FILES_PER_ENTRY):
            paths = [
                data_file(one.partition_values, clock.fresh_id()) for _ in range(FILES_PER_ENTRY)
            ]
            for path in paths:
                (table.root / path).write_bytes(body)
            rows = FILES_PER_ENTRY
            source = SourceRecord(source="in", path="a", size=1, etag=None, lines=rows, rows=rows)
            files = tuple(replace(one, filename=path) for path in paths)
            journal.write(journal.entry(files=files, sources=(source,)))
            journal.bodies[:-1] = [b""] * (len(journal.bodies) - 1)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found: Figures = {"requests": None}
        with measured(found):
            done = Penguin(table).drain()
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        found["bytes"] = grown * 1024
        found["commits"] = done.run.totals.commits
        return found


MEASURES: dict[str, tuple[Callable[[int], Figures], int, str]] = {
    "idle_poll": (idle_poll, SIZES[3], "a poll that finds nothing new; n files are ingested"),
    "first_look": (first_look, SIZES[3], "the first look at n new files"),
    "sweep": (sweep, SIZES[3], "a sweep over n ingested files"),
    "planning": (planning, SIZES[2], "the plan of a batch of n files"),
    "start": (journals.start, SIZES[2], "a start after n entries"),
    "status": (journals.status, SIZES[2], "`status` after n entries; the sources are empty"),
    "dlq_list": (journals.dlq_list, SIZES[2], "`dlq list` after n entries"),
    "failed": (journals.failed, SIZES[2], "a snapshot; n files failed and nobody mends them"),
    "commit": (commit, SIZES[2], "penguin commits n waiting files"),
}


def main() -> None:
    """Measure everything up to a size, each in a process of its own, and show it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--most", type=int, default=SIZES[2])
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=tuple(MEASURES))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--draw", action="store_true")
    parser.add_argument("--one", nargs=2, metavar=("MEASURE", "SIZE"))
    given = parser.parse_args()
    if given.one:
        act, _most, _words = MEASURES[given.one[0]]
        print(json.dumps(act(int(given.one[1]))))
        return
    if given.draw:
        show(json.loads(FIGURES.read_text())["figures"])
        return
    known = json.loads(FIGURES.read_text())["figures"]
    found = []
    for name, (_act, most, _words) in MEASURES.items():
        if name not in given.only:
            found += [one for one in known if one["measure"] == name]
            continue
        for size in (size for size in SIZES if size <= min(most, given.most)):
            command = [sys.executable, "-m", "bench.growth", "--one", name, str(size)]
            told = subprocess.run(command, check=True, capture_output=True, text=True)
            found.append({"measure": name, "n": size, **json.loads(told.stdout)})
            print(found[-1], flush=True)
    if given.write:
        where = {
            "python": platform.python_version(),
            "machine": platform.machine(),
            "cores": os.cpu_count(),
        }
        FIGURES.write_text(json.dumps({"where": where, "figures": found}, indent=1) + "\n")
        show(found)


def show(found: list[Figures]) -> None:
    """Put the figures into the documentation, as a table and as a plot."""
    SECTION.write(table_of(found))
    with plots.style():
        panels = panels_of(found)
        figure = plots.log_log(panels, columns=3, across="n")
        plots.save(figure, PLOT, mark=plots.mark_of(panels))


def panels_of(found: list[Figures]) -> list[plots.Panel]:
    """Return a panel for each measure: CPU seconds and, where they were counted, requests."""
    panels = []
    for name, (_act, _most, words) in MEASURES.items():
        of_it = [one for one in found if one["measure"] == name]
        lines = {
            "CPU seconds": [(one["n"], max(LEAST_SECONDS, one["cpu_seconds"])) for one in of_it]
        }
        asked = [(one["n"], one["requests"]) for one in of_it if one["requests"]]
        if asked:
            lines["requests"] = asked
        if any("written" in one for one in of_it):
            lines["KiB written"] = [(one["n"], one["written"] / 1024) for one in of_it]
        # A poll is of so many files, whatever it finds: the long words stand in the table.
        panels.append(plots.Panel(title=words.partition(";")[0].replace("`", ""), lines=lines))
    return panels


def table_of(found: list[Figures]) -> str:
    """Write the figures as a table."""
    lines = [
        "| what | n | requests | CPU s | memory MiB | written KiB |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for one in found:
        memory = "" if one["bytes"] is None else f"{one['bytes'] / 2**20:.1f}"
        asked = "" if one["requests"] is None else f"{one['requests']:,}"
        written = f"{one['written'] / 1024:.0f}" if "written" in one else ""
        words = MEASURES[one["measure"]][2]
        lines.append(
            f"| {words} | {one['n']:,} | {asked} | {one['cpu_seconds']:.2f} | {memory} "
            f"| {written} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
