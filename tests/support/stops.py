"""A runner that stops each unit after so many records, and small files that are cut."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from blizzard.model.files import UnitOutcome, Work, WorkUnit
from blizzard.model.progress import Done, Progress
from blizzard.plan import units as planning
from blizzard.worker import unit as worker
from blizzard.worker.ndjson import decoder, lines
from blizzard.worker.stores import OpenedStores
from blizzard.worker.unit import run_unit

NEVER = 10**9
NOT_BEGUN = 0


@dataclass
class Told:
    """A line on which the driver asks for a stop once so many records are told."""

    records: int
    progress: Progress = field(default_factory=Progress)
    done: Done = field(default_factory=Done)
    attempt: str = ""
    hand_in: bool = False

    @property
    def stop_soon(self) -> bool:
        return self.progress.records >= self.records

    def report(self) -> None: ...


@dataclass
class Stopped:
    """Runs units in this process; each is stopped after so many records, by its number."""

    stops: Callable[[int], int]
    parallelism: int = 2

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        stores = OpenedStores(work)
        return [
            run_unit(unit, work, stores, Told(self.stops(number)))
            for number, unit in enumerate(units)
        ]


def all_at(records: int) -> Stopped:
    return Stopped(lambda _unit: records)


def cut_small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut small files, call each of them large, and decode a few lines at a time."""
    monkeypatch.setattr(planning, "SMALLEST_UNIT", 4_000)
    monkeypatch.setattr(planning, "units_per_core", lambda _share, _size: 3)
    monkeypatch.setattr(worker, "DECODED_BUDGET", 1)
    monkeypatch.setattr(lines, "BLOCK_BYTES", 700)
    monkeypatch.setattr(decoder, "SHORT_BYTES", 100)
