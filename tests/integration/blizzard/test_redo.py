"""A data file is gone before its commit: its sources are read again, and every row is once."""

import contextlib
import json
from dataclasses import replace
from datetime import timedelta

import pytest
from deltalake import DeltaTable
from typer.testing import CliRunner

from blizzard.model.settings import Sizing, SnapshotLimits
from blizzard.repair.gc import collect
from blizzard.repair.redo import plan_redo
from lakebed import layout
from lakebed.deltalog.files import named_files
from lakebed.errors import JournalConflict
from penguin.cli.app import app as penguin_app
from tests.support.builders import AtEveryStep, entries
from tests.support.desk import Desk
from tests.support.dying import Died, lives
from tests.support.pipelines import pipeline_of
from tests.support.readers import ids
from tests.support.runner import InProcessRunner


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
    assert "add --yes" in shown.stdout
    done = desk.cli("redo", "--yes")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "the next batch reads 1 source file again" in done.stdout
    desk.blizzard(later=60)
    desk.penguin()
    assert ids(desk.table) == desk.landing.ids
    assert desk.fates([name]) == {name: 2}
    assert "no data file is known to be missing" in desk.cli("redo").stdout
    held = CliRunner().invoke(penguin_app, ["held", "-c", str(desk.file)])
    assert held.stdout == "nothing is held\n"
    (status,) = map(json.loads, desk.cli("status", "--output", "json").stdout.splitlines())
    assert status["totals"]["rows"] == len(desk.landing.ids), "each row counts once"
    assert status["sources"][0]["totals"] == status["totals"] | {
        "batches": status["sources"][0]["totals"]["batches"]
    }
    assert status["parquet_files"] == len(DeltaTable(desk.table).file_uris())
    desk.blizzard(later=3600)
    desk.penguin()
    assert ids(desk.table) == desk.landing.ids


@pytest.mark.parametrize("lost", ["nothing", "names"])
def test_a_running_blizzard_whose_source_is_quiet_hears_of_a_redo_at_its_next_poll(desk, lost):
    """HOLES L38, W48: also where the names that were derived from the journal are deleted."""
    desk.loses_a_file()
    desk.penguin()
    at_once = Sizing(snapshots=SnapshotLimits(names=1))
    running = pipeline_of(replace(desk.settings, sizing=at_once), InProcessRunner())
    running = replace(running, pace=AtEveryStep(drain=True))
    assert not running.step()
    segments = list((desk.table / layout.known_folder(desk.settings.name)).iterdir())
    assert segments
    assert desk.redo()[1] is not None
    if lost == "names":
        for path in segments:
            path.unlink()
    assert running.step()
    assert not running.step()
    desk.penguin()
    assert ids(desk.table) == desk.landing.ids


def test_a_running_blizzard_stops_at_its_next_poll_when_another_has_appended(desk):
    """HOLES L38: whatever was appended is heard of, not only a redo."""
    desk.landing.land("a.ndjson", 5)
    desk.blizzard()
    running = pipeline_of(desk.settings, InProcessRunner())
    assert not running.step()
    desk.landing.land("b.ndjson", 5)
    desk.blizzard()
    with pytest.raises(JournalConflict, match="has appended entry 2"):
        running.step()


def test_a_redo_that_is_under_way_is_not_begun_again(desk):
    """D04: the log still says held while penguin has yet to commit the entry."""
    desk.loses_a_file()
    assert plan_redo(desk.store, desk.settings.name, desk.fates).units == (), "nothing is held yet"
    assert "no data file is known to be missing" in desk.cli("redo", "--yes").stdout
    desk.penguin()
    assert desk.redo()[1] is not None
    assert desk.redo()[1] is None
    desk.blizzard(later=60)
    found, entry = desk.redo()
    assert entry is None
    assert "under way" in found.units[0].why_not
    desk.penguin()
    assert ids(desk.table) == desk.landing.ids


def test_a_clean_up_after_a_redo_gives_up_nothing_again(desk):
    """HOLES D27: its entry carries none of the names that the redo gave up."""
    desk.loses_a_file()
    desk.penguin()
    desk.redo()
    name = layout.dead_letters(desk.clock.now(), desk.clock.fresh_id())
    folder = layout.dead_letter_folder(desk.settings.name)
    desk.store.replace(f"{folder}/{name}", b"{}\n")
    done = collect(
        desk.store,
        desk.settings.name,
        lambda: named_files(str(desk.table), desk.sink.storage_options),
        clock=desk.clock,
        older_than=timedelta(0),
    )
    redone, cleaned = entries(desk.table)[-2:]
    assert (redone.kind, cleaned.kind, cleaned.sequence) == ("redo", "gc", done.entry)
    assert redone.redone
    assert cleaned.redone == ()


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
    desk = Desk(tmp_path / "desk")
    desk.loses_a_file()
    desk.penguin()
    desk.redo()
    desk.blizzard(later=60)
    for fate in lives(desk.folder):
        with contextlib.suppress(Died):
            desk.penguin(fate)
        desk.penguin()
        assert ids(desk.table) == desk.landing.ids, f"died at call {fate.call}"
