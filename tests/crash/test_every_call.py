"""A store that dies before or after its n-th call, for every n; then a restart.

The process is the pipeline with the in-process runner and penguin on the same table. Once dead it
answers nothing any more, as a killed process does; the restart finds what the store really holds.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from blizzard.config import load as blizzard_config
from blizzard.model.files import Work
from blizzard.model.settings import BlizzardSettings, PipelineSettings
from lakebed.clock import Clock
from lakebed.documents.entry import Entry
from lakebed.layout import outbox
from lakebed.storage.store import Reader, Store
from lakebed.types import Handoff
from penguin.config import load as penguin_config
from penguin.inline import last_committed
from tests.support.builders import entries
from tests.support.dying import Died, Fate, dying
from tests.support.landing import Landing, config
from tests.support.pipelines import pipeline_of
from tests.support.readers import ids
from tests.support.runner import InProcessRunner
from tests.support.tables import commit_table

# As many lives as a life makes calls: minutes, on a machine that has other things to do.
pytestmark = pytest.mark.timeout(900)

MOST_CALLS = 200
LATE = "date=2024-01-01/late.ndjson"


class WorkerStores:
    """The worker's stores, of which the sink may die."""

    def __init__(self, work: Work, fate: Fate) -> None:
        self.work = work
        self.fate = fate

    def source(self, name: str) -> Reader:
        place = self.work.sources[name]
        return Reader(place.uri, place.options)

    def sink(self) -> Store:
        return dying(Store(self.work.sink.uri, self.work.sink.options), self.fate)


def blizzard(settings: BlizzardSettings, fate: Fate) -> None:
    for each in settings.pipelines:
        pipeline = pipeline_of(
            each,
            InProcessRunner(lambda work: WorkerStores(work, fate)),
            open_sink=lambda place: dying(Store(place.uri, place.options, make_folder=True), fate),
            is_committed=partial(in_the_log, each),
        )
        while pipeline.step():
            pass


def in_the_log(settings: PipelineSettings, entry: Entry) -> bool:
    sink = settings.sink
    last = last_committed(sink.table_uri, sink.storage_options, entry.pipeline, entry.journal)
    return last is not None and last >= entry.sequence


def penguin(file: Path, fate: Fate) -> None:
    for table in penguin_config.load([file], [], {}).tables:
        store = dying(Store(table.table_uri, table.storage_options), fate)
        commit_table(table, store, lambda _event: None, Clock())


def both(file: Path, landing: Landing, fate: Fate) -> None:
    """One life: two batches, each committed."""
    settings = blizzard_config.load([file], [], {})
    blizzard(settings, fate)
    penguin(file, fate)
    if not (landing.folder / "late.ndjson").exists():
        landing.land("late.ndjson", 5)
    blizzard(settings, fate)
    penguin(file, fate)


def one_after_the_other(file: Path, landing: Landing, fate: Fate) -> None:
    """One life: two batches of blizzard, handed off, then penguin."""
    settings = blizzard_config.load([file], [], {})
    blizzard(settings, fate)
    if not (landing.folder / LATE).exists():
        landing.land(LATE, 1)
    blizzard(settings, fate)
    penguin(file, fate)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("handoff", [Handoff.STAGING, Handoff.DIRECT])
def test_death_at_any_call_of_a_hand_off_leaves_every_row_in_the_table_once(
    tmp_path: Path, handoff: Handoff, after: bool
) -> None:
    """Over metas, moves and deletions, with two files to an entry (D02, D11, L07, L23)."""
    deaths = 0
    for number in moments(after=after):
        folder = tmp_path / f"{number}"
        table = folder / "table"
        landing = Landing(folder / "landing")
        for name in ("date=2024-01-01/a.ndjson", "date=2024-01-02/b.ndjson"):
            landing.land(name, 1)
        file = config(folder, sink=f"handoff: {handoff}", partitioned=True)
        fates = [Fate(number, after=after)]
        if number % 4 == 0:
            # A second death comes during the recovery from the first.
            fates.append(Fate(number // 2, after=after))
        life = partial(one_after_the_other, file, landing)
        died = 0
        for fate in fates:
            died += not survives(life, fate)
            if table.exists():
                # Another penguin looks at what the dead have left, and the table can be read.
                penguin(file, Fate.none())
            assert set(ids(table)) <= set(landing.ids), f"died at call {number}"
        life(Fate.none())

        assert ids(table) == landing.ids, f"died at call {number}"
        assert not list(table.glob("_staging/pending/*")), f"died at call {number}"
        named = {name for entry in entries(table) for name in waiting_for(entry)}
        assert not [name for name in named if (table / name).exists()], f"died at call {number}"
        if not died:
            break
        deaths += died
    else:
        pytest.fail(f"a life makes more than {MOST_CALLS} calls")
    assert deaths > (12 if after else 40), "the store really died, at many places"


def waiting_for(entry: Entry) -> list[str]:
    """Give the places of an entry's files in the outbox."""
    return [outbox(entry.pipeline, file.filename) for file in entry.files]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_death_at_any_call_leaves_every_row_in_the_table_once(tmp_path: Path, after: bool) -> None:
    """Over journal, uploads, hand-off and receipt, twice in a row (D01, D02, D11, L01)."""
    deaths = 0
    for number in moments(after=after):
        folder = tmp_path / f"{number}"
        landing = Landing(folder / "landing")
        for name in ("a.ndjson", "b.ndjson.gz"):
            landing.land(name, 5)
        file = config(folder)
        died = 0
        for call in (number, max(1, number // 2)):
            # The second death comes during the recovery from the first.
            died += not survives(partial(both, file, landing), Fate(call, after=after))
        both(file, landing, Fate.none())

        assert ids(folder / "table") == landing.ids, f"died at call {number}"
        if not died:
            break
        deaths += died
    else:
        pytest.fail(f"a life makes more than {MOST_CALLS} calls")
    assert deaths > (12 if after else 40), "the store really died, at many places"


def moments(*, after: bool) -> range:
    """Give the calls to die at: before each of them, or after some.

    To die after a call is to die before the next, but for what no store sees in between.
    """
    return range(1, MOST_CALLS, 3 if after else 1)


def survives(life: Callable[[Fate], None], fate: Fate) -> bool:
    """Say whether a life came to its end."""
    try:
        life(fate)
    except Died:
        return False
    return not fate.died
