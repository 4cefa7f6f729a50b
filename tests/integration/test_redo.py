"""A data file is gone before its commit: its sources are read again, and every row is once."""

import contextlib
from datetime import timedelta

import pytest
from typer.testing import CliRunner

from blizzard import config as blizzard_config
from blizzard.cli import app
from blizzard.redo import look, redo
from lake.clock import Clock
from lake.storage import Store
from penguin import config as penguin_config
from penguin import inline
from penguin.cli import app as penguin_app
from penguin.pipeline import TableRun, commit_table
from tests.support.dying import Died, Fate, dying
from tests.support.landing import Landing, config
from tests.support.pipelines import pipeline_of
from tests.support.readers import ids
from tests.support.runner import InProcessRunner


class Desk:
    """Both programs on one table, in this process."""

    def __init__(self, folder):
        folder.mkdir(exist_ok=True)
        self.landing = Landing(folder / "landing")
        self.table = folder / "table"
        self.file = config(folder)
        self.clock = Clock()

    @property
    def store(self):
        return Store(str(self.table), self.sink.storage_options)

    @property
    def sink(self):
        return self.settings.sink

    @property
    def settings(self):
        (settings,) = blizzard_config.load([self.file], [], {}).pipelines
        return settings

    def blizzard(self, *, later=0.0):
        class Later(Clock):
            def now(self):
                return super().now() + timedelta(seconds=later)

        pipeline = pipeline_of(self.settings, InProcessRunner(), clock=Later())
        while pipeline.step():
            pass

    def penguin(self, fate=None):
        (table,) = penguin_config.load([self.file], [], {}).tables
        store = Store(table.table_uri, table.storage_options)
        commit_table(table, dying(store, fate) if fate else store, lambda _: None, self.clock)

    def fates(self, names):
        return inline.fates(str(self.table), self.sink.storage_options, names)

    def redo(self):
        return redo(self.store, self.settings.name, self.fates, clock=self.clock)

    def loses_a_file(self):
        """Two batches; a data file of the second is gone before penguin sees it."""
        self.landing.land("a.ndjson", 5)
        self.blizzard()
        self.penguin()
        known = set(self.table.glob("*.parquet"))
        self.landing.land("b.ndjson", 5)
        self.blizzard()
        (new,) = set(self.table.glob("*.parquet")) - known
        new.unlink()
        return new.stem

    def cli(self, *arguments):
        return CliRunner().invoke(app, [*arguments, "-c", str(self.file)])


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)


def test_sources_of_a_file_that_is_gone_are_read_again_and_every_row_is_once(desk):
    """W21: held and redone, never a dangling add."""
    name = desk.loses_a_file()
    desk.penguin()
    assert len(ids(desk.table)) == 5
    shown = desk.cli("redo")
    assert shown.exit_code == 1
    assert "the next batch would read 1 source file again" in shown.stdout
    assert "say --yes" in shown.stdout
    done = desk.cli("redo", "--yes")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "the next batch reads 1 source file again" in done.stdout
    desk.blizzard(later=60)
    desk.penguin()
    assert ids(desk.table) == desk.landing.ids
    assert desk.fates([name]) == {name: 2}
    assert "no data file is missing" in desk.cli("redo").stdout
    held = CliRunner().invoke(penguin_app, ["held", "-c", str(desk.file)])
    assert held.stdout == "nothing is held\n"
    desk.blizzard(later=3600)
    desk.penguin()
    assert ids(desk.table) == desk.landing.ids


def test_a_redo_that_is_under_way_is_not_begun_again(desk):
    """D04: the log still says held while penguin has yet to commit the entry."""
    desk.loses_a_file()
    desk.penguin()
    assert desk.redo()[1] is not None
    assert desk.redo()[1] is None
    desk.blizzard(later=60)
    found, entry = desk.redo()
    assert entry is None
    assert "under way" in found.units[0].why_not
    desk.penguin()
    assert ids(desk.table) == desk.landing.ids


def test_before_penguin_has_held_the_file_there_is_nothing_to_redo(desk):
    desk.loses_a_file()
    assert look(desk.store, desk.settings.name, desk.fates).units == ()
    assert "no data file is missing" in desk.cli("redo", "--yes").stdout


def test_a_file_that_is_put_back_after_the_redo_never_goes_in(desk):
    """D18: its rows come from the sources; its mark says that it is gone."""
    desk.landing.land("a.ndjson", 5)
    desk.blizzard()
    (file,) = desk.table.glob("*.parquet")
    body = file.read_bytes()
    file.unlink()
    desk.penguin()
    assert desk.redo()[1] is not None
    file.write_bytes(body)
    desk.penguin()
    desk.blizzard(later=60)
    desk.penguin()
    assert ids(desk.table) == desk.landing.ids


def test_a_file_that_was_released_meanwhile_stops_its_pipeline_rather_than_double_it(desk):
    """D18: two operators; the one who releases is first."""
    desk.landing.land("a.ndjson", 5)
    desk.blizzard()
    (file,) = desk.table.glob("*.parquet")
    body = file.read_bytes()
    file.unlink()
    desk.penguin()
    assert desk.redo()[1] is not None
    file.write_bytes(body)
    released = CliRunner().invoke(penguin_app, ["release", "--all", "-c", str(desk.file)])
    assert released.exit_code == 0
    desk.blizzard(later=60)
    (table,) = penguin_config.load([desk.file], [], {}).tables
    run = TableRun(
        settings=table, emit=lambda _: None, clock=desk.clock, open_store=lambda: desk.store
    )
    while run.step():
        pass
    (stopped,) = run.stopped.values()
    assert "is not held: its rows may be in the table" in str(stopped.error)
    assert ids(desk.table) == desk.landing.ids


def test_a_file_that_fails_again_is_not_forgotten(desk):
    """L04: what was done before the redo does not count, also after another failure."""
    desk.loses_a_file()
    desk.penguin()
    desk.redo()
    source = desk.landing.folder / "b.ndjson"
    body = source.read_bytes()
    source.write_bytes(b"no record\n")
    desk.blizzard(later=60)
    source.write_bytes(body)
    desk.blizzard(later=86_400)
    desk.penguin()
    assert ids(desk.table) == desk.landing.ids


def test_death_at_any_call_of_penguin_around_a_redo_leaves_every_row_once(tmp_path):
    """W21, D11."""
    for number in range(1, 60):
        desk = Desk(tmp_path / f"{number}")
        desk.loses_a_file()
        desk.penguin()
        desk.redo()
        desk.blizzard(later=60)
        fate = Fate(number, after=bool(number % 2))
        with contextlib.suppress(Died):
            desk.penguin(fate)
        desk.penguin()
        assert ids(desk.table) == desk.landing.ids, f"died at call {number}"
        if not fate.died:
            return
    pytest.fail("a life makes more than 60 calls")
