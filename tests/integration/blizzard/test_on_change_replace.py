"""`source.on_change: replace`: what a file holds now takes the place of its rows."""

import json

import pytest

from blizzard import events
from blizzard.config.load import load
from lakebed.telemetry.events import Event
from tests.support.builders import entries
from tests.support.pipelines import pipeline_of
from tests.support.promotions import ID
from tests.support.retractions import Taken, open_sink
from tests.support.runner import InProcessRunner

REPLACE = {"on_change": "replace"}
QUARANTINE = {"error_handling": {"on_bad_record": "quarantine"}}


@pytest.fixture
def desk(tmp_path):
    desk = Taken(tmp_path, {"fields": [ID], "provenance": ["file"]}, source=REPLACE)
    desk.land("a.ndjson", {"id": 1})
    desk.land("b.ndjson", {"id": 2}, {"id": 3})
    desk.ingest()
    return desk


def why(desk, name):
    return json.loads(desk.cli("why", name, "--output", "json").stdout)


def test_new_content_comes_in_the_place_of_the_old_with_one_version(desk):
    """Changes follow one another, and new files are read beside them."""
    before = desk.version
    desk.land("b.ndjson", {"id": 20})
    assert why(desk, "b.ndjson")["state"] == "waiting"
    desk.blizzard()
    assert sorted(desk.ids()) == [1, 2, 3]
    desk.penguin()
    assert desk.version == before + 1
    assert sorted(desk.ids()) == [1, 20]
    assert sorted(desk.ids(before)) == [1, 2, 3]
    assert why(desk, "b.ndjson")["state"] == "in_table"
    desk.ingest()
    assert desk.version == before + 1
    for time in (1, 2):
        desk.land("a.ndjson", {"id": time * 10})
        desk.land("b.ndjson", {"id": time * 100})
        desk.land(f"new{time}.ndjson", {"id": -time})
        desk.ingest()
    assert sorted(desk.ids()) == [-2, -1, 20, 200]
    count = len(entries(desk.table))
    desk.land("b.ndjson", {"id": 200})
    desk.ingest()
    assert sorted(desk.ids()) == [-2, -1, 20, 200]
    assert len(entries(desk.table)) in (count, count + 1), "the same content is not read again"
    desk.amounts()


@pytest.mark.parametrize("bad", [0, 1])
def test_a_run_counts_the_content_that_replaces_rows_as_read(tmp_path, bad):
    desk = Taken(tmp_path, {"fields": [ID]}, source=REPLACE, more=QUARANTINE)
    desk.land("a.ndjson", {"id": 1})
    desk.land("b.ndjson", {"id": 2}, {"id": 3})
    desk.ingest()
    known = set(desk.table.glob("*.parquet"))
    desk.land("b.ndjson", {"id": 20}, {"id": 21}, {"id": 22}, *[{"id": "bad"}] * bad)
    run = pipeline_of(desk.settings, InProcessRunner(), open_sink=open_sink)
    while run.step():
        pass
    desk.penguin()
    done = run.statistics
    assert (done.files_processed, done.records_processed) == (1, 3)
    assert (done.lines_quarantined, done.files_still_failed) == (bad, 0)
    new = set(desk.table.glob("*.parquet")) - known
    assert (done.parquet_files_written, len(new)) == (2, 2)
    assert done.bytes_written == sum(path.stat().st_size for path in new)
    desk.amounts()


def test_it_waits_for_penguin_where_old_rows_are_not_committed(tmp_path):
    """It is no reason to stop, also where there is no table yet: what else is new is read."""
    desk = Taken(tmp_path, {"fields": [ID], "provenance": ["file"]}, source=REPLACE)
    for first, why_not in ((1, "there is no table yet"), (3, "run penguin first")):
        desk.land(f"{first}.ndjson", {"id": first})
        desk.blizzard()
        desk.land(f"{first}.ndjson", {"id": 10 * first})
        desk.land(f"{first + 1}.ndjson", {"id": first + 1})
        told: list[Event] = []
        desk.blizzard(emit=told.append)
        (waits, *_) = [one for one in told if isinstance(one, events.ReplacementPending)]
        assert why_not in waits.reason
        desk.penguin()
        assert {first, first + 1} <= set(desk.ids())
        desk.ingest()
        assert first not in desk.ids()
    assert sorted(desk.ids()) == [2, 4, 10, 30]
    desk.amounts()


@pytest.mark.parametrize("content", ["not json", ""])
def test_content_that_fails_leaves_the_old_rows_and_is_told_as_failed(desk, content):
    desk.land("b.ndjson", content)
    desk.land("a.ndjson", {"id": 10})
    desk.ingest()
    assert sorted(desk.ids()) == [2, 3, 10]
    failed = [one for one in entries(desk.table)[-1].sources if one.failure is not None]
    assert [one.path for one in failed] == ["b.ndjson"]
    assert why(desk, "b.ndjson")["state"] == "failed"
    desk.land("b.ndjson", {"id": 20})
    desk.ingest()
    assert sorted(desk.ids()) == [10, 20]
    desk.amounts()


def test_rows_that_cannot_be_told_apart_any_more_fail_the_file_and_change_nothing(tmp_path):
    desk = Taken(tmp_path, {"fields": [ID]}, source=REPLACE)
    for number, name in enumerate(("a", "b"), start=1):
        desk.land(f"{name}.ndjson", {"id": number})
        desk.ingest()
    desk.optimize()
    desk.land("b.ndjson", {"id": 20})
    desk.ingest()
    assert sorted(desk.ids()) == [1, 2]
    answer = why(desk, "b.ndjson")
    assert (answer["state"], answer["reason"]) == ("failed", "row_origins_unknown")
    desk.amounts()


def test_the_command_line_does_it_too_and_commits_inline(tmp_path):
    desk = Taken(tmp_path, {"fields": [ID]}, source=REPLACE, commit="inline")
    desk.land("a.ndjson", {"id": 1})
    assert desk.cli("--once").exit_code == 0
    desk.ends_well()
    desk.land("a.ndjson", {"id": 2})
    done = desk.cli("--once")
    assert done.exit_code == 0, done.output
    assert desk.ids() == [2]
    assert load([desk.file], [], {}).pipelines[0].sources[0].on_change.value == "replace"
    desk.amounts()


@pytest.mark.parametrize("on_change", ["replace", "reingest"])
@pytest.mark.parametrize("committed", [True, False])
def test_a_dry_run_names_changed_files_as_what_a_run_does_with_them(tmp_path, on_change, committed):
    source = {"on_change": on_change}
    desk = Taken(tmp_path, {"fields": [ID], "provenance": ["file"]}, source=source)
    desk.land("a.ndjson", {"id": 1})
    desk.ingest() if committed else desk.blizzard()
    desk.land("a.ndjson", {"id": 10})
    for more in (False, True):
        if more:
            desk.land("b.ndjson", {"id": 2})
        done = desk.cli("--dry-run")
        plan = json.loads(desk.cli("--dry-run", "--output", "json").stdout)
        read = {one["path"]: one["reingested"] for unit in plan["units"] for one in unit["files"]}
        replaced = {one["path"]: one["error"] for one in plan["replaced"]}
        assert plan["files"] == len(read)
        new = {"in:b.ndjson": False} if more else {}
        if on_change == "reingest":
            assert (read, replaced) == ({"in:a.ndjson": True, **new}, {})
            assert "the old rows would stay:\n  in:a.ndjson" in done.stdout
        else:
            assert (read, list(replaced)) == (new, ["in:a.ndjson"])
            assert ("the old rows would be replaced:" in done.stdout) == committed
            assert ("there is no table yet" in str(replaced["in:a.ndjson"])) != committed
    desk.blizzard()
    if on_change == "replace":
        assert "nothing to read" not in done.stdout
    last = entries(desk.table)[-1]
    assert (plan["entry"], {one.key for one in last.sources}) == (last.sequence, set(read))
