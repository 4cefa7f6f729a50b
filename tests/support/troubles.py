"""What can go wrong in a lake: each brings real programs into that state, and lets time pass."""

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from blizzard.execute.runner import WorkersDied
from blizzard.handoff.publish import HandoffResult, Publisher
from blizzard.model.settings import QuarantineLimits
from blizzard.model.work import UnitOutcome, Work, WorkUnit
from lakebed.deltalog.log_contents import RETENTION_PROPERTY
from lakebed.documents.entry import Entry
from lakebed.errors import CommitUnconfirmed, StoreFull, StoreUnavailable
from lakebed.layout import journal_entry
from lakebed.storage.store import Store
from penguin.delta.table import WritableTable
from tests.support.builders import ndjson, rows
from tests.support.foreign import DAY, Directory
from tests.support.runner import InProcessRunner
from tests.support.tables import before_commit, log_of
from tests.support.watched_lake import NAME, Lake

BAD = b'{"id": "one"}\n'


def as_usual(_lake: Lake) -> None:
    """Change nothing."""


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """How a lake is set up, what befalls it after some good minutes, and which alerts fire."""

    befalls: Callable[[Lake], None]
    fires: frozenset[str]
    setup: Callable[[Lake], None] = as_usual


@dataclass
class Hanging(InProcessRunner):
    """Runs units; those of some files do not come to an end until they are let go."""

    reached: threading.Event = field(default_factory=threading.Event)
    let_go: threading.Event = field(default_factory=threading.Event)

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        if any(file.path.startswith("hangs") for unit in units for file in unit.files):
            self.reached.set()
            assert self.let_go.wait(300)
        return super().run(units, work)


@dataclass
class Dying(InProcessRunner):
    """Loses its workers with every job of more than one file."""

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        if sum(len(unit.files) for unit in units) > 1:
            raise WorkersDied("the workers died")
        return super().run(units, work)


@dataclass(frozen=True)
class Publishes(Publisher):
    """Hands files off, as long as a mark is not there."""

    away: Path

    def publish(self, store: Store, last: Entry, *, redo: bool) -> HandoffResult:
        if self.away.exists():
            raise StoreUnavailable("no answer", path="outbox")
        return Publisher().publish(store, last, redo=redo)


class Filling(Store):
    """A store on a disk that is full once a mark is there."""

    def create(self, path: str, body: bytes) -> Any:
        if (Path(self.uri).parent / "full").exists():
            raise StoreFull("no room is left", path=path)
        return super().create(path, body)


class NoCheckpoint(WritableTable):
    """A table whose checkpoints cannot be written."""

    def checkpoint(self) -> None:
        raise CommitUnconfirmed("no room is left")


def _lands(
    *names: str, body: bytes | None = None, minutes: int = 2, mark: str = ""
) -> Callable[[Lake], None]:
    """Return how files land, once a mark is there if so, and some minutes pass."""

    def befalls(lake: Lake) -> None:
        if mark:
            (lake.root / mark).touch()
        for name in names:
            lake.land(name, body)
        lake.minutes(minutes)

    return befalls


def _half_a_file(lake: Lake) -> None:
    """Let another program leave half of a file in the table's folder."""
    path = lake.root / "others" / DAY / f"{lake.hands.clock.fresh_id()}.parquet"
    path.write_bytes(b"PAR1 half of an upload")
    os.utime(path, (lake.hands.at, lake.hands.at))
    lake.minutes(3)


def _goes_on(lake: Lake) -> None:
    lake.minutes(40, landing="b")


def _blizzard_dies(lake: Lake) -> None:
    lake.blizzard.die()
    lake.minutes(8)


def _penguin_dies(lake: Lake) -> None:
    lake.penguin.die()
    lake.minutes(8)


def _source_goes(lake: Lake) -> None:
    lake.source.rename(lake.root / "elsewhere")
    lake.minutes(2)


def _batch_hangs(lake: Lake) -> None:
    runner = lake.bench.runner
    assert isinstance(runner, Hanging)
    lake.land("hangs.ndjson")
    lake.blizzard.hang(runner.reached, let_go=runner.let_go)
    lake.minutes(40)


def _link_appears(lake: Lake) -> None:
    (lake.source / "link.ndjson").symlink_to(lake.source / "nothing-there.ndjson")
    lake.minutes(2)


def _entry_is_damaged(lake: Lake) -> None:
    lake.land("more.ndjson")
    number = len(lake.bench.entries())
    lake.blizzard.turn()
    (lake.root / "table" / journal_entry(NAME, number)).write_bytes(b"{")
    lake.penguin.turn()
    lake.minutes(1)


def _lose_a_file(lake: Lake) -> None:
    """Lose a data file that is journaled, before it is committed."""
    lake.land("more.ndjson")
    lake.blizzard.turn()
    (lost,) = lake.bench.entries()[-1].files
    (lake.root / "table" / lost.filename).unlink()


def _file_is_lost(lake: Lake) -> None:
    _lose_a_file(lake)
    lake.minutes(2)


def _file_is_held_for_long(lake: Lake) -> None:
    _lose_a_file(lake)
    lake.minutes(35)


def _files_land(lake: Lake) -> None:
    lake.minutes(3, landing="c")


def _runner(runner: InProcessRunner) -> Callable[[Lake], None]:
    def setup(lake: Lake) -> None:
        lake.bench.runner = runner

    return setup


def _publisher(lake: Lake) -> None:
    lake.bench.publisher = Publishes(lake.root / "away")


def _quarantine(lake: Lake) -> None:
    lake.change(quarantine=QuarantineLimits())


def _short_retention(lake: Lake) -> None:
    lake.table = replace(lake.table, properties={RETENTION_PROPERTY: "interval 1 hours"})


def _no_checkpoints(lake: Lake) -> None:
    lake.table = replace(lake.table, checkpoint_interval=8)
    lake.log = log_of(NoCheckpoint)


def _refusing(lake: Lake) -> None:
    lake.log = before_commit(lambda: _refuse(lake), times=1000)


def _refuse(lake: Lake) -> None:
    if (lake.root / "refuses").exists():
        raise CommitUnconfirmed("the store takes no version")


def _table_of_others(lake: Lake) -> None:
    """Let penguin commit to a table that no blizzard writes."""
    others = Directory(lake.root / "others", lake.hands)
    others.file(1)
    lake.table = replace(lake.table, table_uri=str(others.root))


def _filling(lake: Lake) -> None:
    lake.bench.store = Filling


def _trouble(
    befalls: Callable[[Lake], None], *fires: str, setup: Callable[[Lake], None] = as_usual
) -> Trouble:
    return Trouble(befalls=befalls, fires=frozenset(fires), setup=setup)


def troubles() -> dict[str, Trouble]:
    """Return all of them by name; the first is none."""
    return {
        "all is well": _trouble(_goes_on),
        "blizzard is killed": _trouble(_blizzard_dies, "BlizzardDown"),
        "penguin is killed": _trouble(_penguin_dies, "PenguinDown"),
        "the source is gone": _trouble(_source_goes, "BlizzardFailing"),
        "a file is bad": _trouble(_lands("bad.ndjson", body=BAD), "BlizzardSourceFilesFailed"),
        "a line is bad": _trouble(
            _lands("bad.ndjson", body=ndjson(rows(1)) + BAD), "BlizzardBadLines", setup=_quarantine
        ),
        "a batch hangs": _trouble(
            _batch_hangs, "BlizzardStuck", "BlizzardLate", setup=_runner(Hanging())
        ),
        "files cannot be handed off": _trouble(
            _lands("stays.ndjson", mark="away", minutes=45),
            "BlizzardNotHandedOff",
            "BlizzardFailing",
            "BlizzardStuck",
            "BlizzardLate",
            setup=_publisher,
        ),
        "a link is in the source": _trouble(_link_appears, "BlizzardNamesSkipped"),
        "a file is overwritten": _trouble(
            _lands("a-0000.ndjson", body=ndjson(rows(9))), "BlizzardFilesOverwritten"
        ),
        "workers die": _trouble(
            _lands("x.ndjson", "y.ndjson"), "BlizzardWorkersDied", setup=_runner(Dying())
        ),
        "a new field comes": _trouble(
            _lands("wider.ndjson", body=b'{"id": 1, "surprise": 2}\n'),
            "BlizzardValuesWithoutColumn",
        ),
        "an entry is damaged": _trouble(_entry_is_damaged, "PenguinPipelineStopped"),
        "a data file is lost": _trouble(_file_is_lost, "PenguinFilesHeld"),
        "a file is held for long": _trouble(
            _file_is_held_for_long,
            "PenguinFilesHeld",
            "PenguinFilesInDanger",
            setup=_short_retention,
        ),
        "no version is taken": _trouble(
            _lands("more.ndjson", mark="refuses", minutes=32),
            "PenguinFailing",
            "PenguinStuck",
            "PenguinLate",
            setup=_refusing,
        ),
        "checkpoints fail": _trouble(
            _files_land, "PenguinCheckpointsFailing", setup=_no_checkpoints
        ),
        "half a file of others": _trouble(
            _half_a_file, "PenguinOtherFilesLeftOut", setup=_table_of_others
        ),
        "the disk is full": _trouble(
            _lands("more.ndjson", mark="full"), "LakeDiskFull", "BlizzardFailing", setup=_filling
        ),
    }
