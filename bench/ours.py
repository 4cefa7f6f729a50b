"""Blizzard as a contestant: warm on Spark, cold from the command line, and without Spark."""

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from bench.workloads import Workload
from blizzard.config import load
from blizzard.execute.runner import Runner
from blizzard.execute.spark.runner import SparkRunner
from blizzard.model.rewriting import FileGroup, RewriteOutcome, Rewriting
from blizzard.model.settings import SparkSettings
from blizzard.model.work import UnitOutcome, Work, WorkUnit
from blizzard.service import Service
from blizzard.worker.download import OpenedStores
from blizzard.worker.unit import run_unit
from lakebed.columns.schema import Field
from lakebed.polling import Stop
from lakebed.terminal.program import NEW_OBJECTS

CORES = 2


def configuration(workload: Workload, source: Path, table: Path) -> Path:
    """Write what a user would write; commits included."""
    fields = "".join(
        f"\n    - {json.dumps(declared(field) | {'name': field.name})}"
        for field in workload.schema.fields
    )
    by_hour = """
  partition_by:
    prefix_template: "date=%Y-%m-%d/hour=%H"
    timestamp_field: at"""
    file = table.with_suffix(".yaml")
    file.write_text(
        f"source:\n  path: {source}\n"
        f"sink:\n  path: {table}\n  commit: inline{by_hour if workload.by_hour else ''}\n"
        + ("error_handling:\n  on_bad_record: quarantine\n" if workload.hard else "")
        + f"schema:\n{'  on_mismatch: rescue' if workload.hard else ''}\n  fields:{fields}\n"
    )
    return file


def declared(field: Field) -> dict[str, object]:
    """Return a type as a user writes it."""
    written: dict[str, object] = {"type": field.type.value}
    if field.fields:
        written["fields"] = [declared(each) | {"name": each.name} for each in field.fields]
    if field.items is not None:
        written["items"] = declared(field.items)
    return written


class Ours:
    """The product as it runs for ever, on some runner: journal, commit and all."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        gc.set_threshold(NEW_OBJECTS)  # As the programs do when they start.

    def run(self, workload: Workload, source: Path, table: Path) -> None:
        """Read everything there is, and commit it."""
        settings = load.load([configuration(workload, source, table)], [], os.environ)
        service = Service(
            settings=settings,
            emit=lambda _event: None,
            stop=Stop(),
            once=True,
            make_runner=SparkRunner,
        )
        for result in service.run_on(self._runner, lambda _event: None):
            if result.error is not None or result.statistics.files_failed:
                raise RuntimeError(f"blizzard failed: {result.error or result.statistics}")


def on_spark(slots: int = CORES) -> Ours:
    """Return blizzard on a local Spark that runs so many tasks at once."""
    return Ours(SparkRunner(SparkSettings(master=f"local[{slots}]")))


def without_spark() -> Ours:
    """Return the same on bare processes: what Spark costs is the difference."""
    return Ours(Processes())


class Processes:
    """Runs units in processes that stay."""

    parallelism = CORES

    def __init__(self) -> None:
        # A process that is forked from one with threads may hang: these are not.
        self._pool = ProcessPoolExecutor(
            CORES, mp_context=get_context("spawn"), initializer=_as_spark_workers
        )

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        """Run all units and give their outcomes, in the order of the units."""
        return list(self._pool.map(_run, units, [work] * len(units)))

    def rewrite(
        self,
        groups: Sequence[FileGroup],
        work: Rewriting,
        *,
        ended: Callable[[int], None] | None = None,
    ) -> list[RewriteOutcome]:
        """Refuse: no benchmark rewrites data files."""
        raise NotImplementedError


def _as_spark_workers() -> None:
    """Look for garbage as rarely as Spark's workers do, and never in what was imported."""
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS)


def _run(unit: WorkUnit, work: Work) -> UnitOutcome:
    return run_unit(unit, work, OpenedStores(work))


class FromTheCommandLine:
    """`blizzard --once` in a process of its own: Spark's start counts."""

    def run(self, workload: Workload, source: Path, table: Path) -> None:
        """Read everything there is, and commit it."""
        file = configuration(workload, source, table)
        file.write_text(f"{file.read_text()}spark:\n  master: local[{CORES}]\n")
        command = [sys.executable, "-m", "blizzard", "-c", str(file), "--once"]
        subprocess.run(command, check=True, capture_output=True)
