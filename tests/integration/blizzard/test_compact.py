"""Small data files put together, and what `blizzard status` says of it."""

import json

import pytest
from deltalake import DeltaTable, write_deltalake

from blizzard.events import FilesCompacted
from tests.support.builders import entries
from tests.support.compactions import crowded
from tests.support.erasures import FIELDS
from tests.support.promotions import ID

TOLD = {**FIELDS, "provenance": ["file", "line"]}


@pytest.fixture
def desk(tmp_path):
    return crowded(tmp_path)


def last_version(desk):
    log = desk.table / "_delta_log" / f"{desk.version:020}.json"
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_small_files_become_one_in_one_version_that_changes_no_data(desk):
    before = desk.version
    done = desk.tidy()
    assert done.entry is not None
    assert (len(desk.active), desk.version) == (1, before + 1)
    assert desk.ids() == list(range(10))
    assert desk.amounts() == {"in_table": 10, "replaced": 10}
    assert desk.audited().totals.rows == 10
    last = entries(desk.table)[-1]
    assert (last.kind, last.left_out, last.files) == ("compact", 0, ())
    (merge,) = last.rewrites
    assert (len(merge.old), len(merge.new), merge.rows) == (5, 1, 10)
    assert desk.ids(before) == list(range(10))
    changes = [
        one[kind]["dataChange"]
        for one in last_version(desk)
        for kind in ("add", "remove")
        if kind in one
    ]
    assert changes == [False] * 6
    (told,) = DeltaTable(str(desk.table)).history(1)
    assert told["operation"] == "OPTIMIZE"
    assert told["penguin"]["compacted"] == {"files": 5, "into": 1}
    again = desk.tidy()
    assert (again.entry, again.found.groups, desk.version) == (None, (), before + 1)


def test_few_files_and_large_ones_are_left_alone(tmp_path):
    large = crowded(tmp_path / "large", file_size_mb=0.0005)
    assert (large.worth().small, large.tidy().entry) == (0, None)
    desk = crowded(tmp_path / "few", files=2)
    assert desk.tidy().entry is None
    assert "sink.compact.min_files" in desk.cli("compact").output
    desk.land("3.ndjson", {"id": 6, "user": "x"})
    desk.ingest()
    assert desk.tidy().entry is not None
    assert len(desk.active) == 1


def test_files_that_are_just_written_are_left_alone(tmp_path):
    desk = crowded(tmp_path, compact={"quiet_secs": 3600})
    assert desk.tidy().entry is None
    told = " ".join(desk.cli("compact").output.split())
    assert "5 of them are younger than 3600 seconds (sink.compact.quiet_secs); --now" in told
    assert desk.said("compact")["young_files"] == 5
    at_once = desk.said("compact", "--now")
    assert [one["files"] for one in at_once["groups"]] == [5]
    assert len(desk.active) == 5


def test_each_partition_is_by_itself(tmp_path):
    desk = crowded(tmp_path, partition_by={"prefix_template": "date=%Y-%m-%d"}, files=0)
    for day in ("2024-01-01", "2024-01-02"):
        for number in range(4):
            desk.land(f"date={day}/{number}.ndjson", {"id": number, "user": day})
            desk.ingest()
    desk.tidy()
    assert sorted(path.partition("/")[0] for path in desk.active) == [
        "date=2024-01-01",
        "date=2024-01-02",
    ]
    assert desk.amounts() == {"in_table": 8, "replaced": 8}


def test_files_with_other_columns_and_types_become_one_with_those_of_the_table(tmp_path):
    small = {"name": "count", "type": "int32"}
    inside = {"name": "place", "type": "struct", "fields": [{"name": "x", "type": "int64"}]}
    more = {**inside, "fields": [*inside["fields"], {"name": "y", "type": "string"}]}
    desk = crowded(tmp_path, {"fields": [ID, inside]}, files=0)
    for number in range(2):
        desk.land(f"{number}.ndjson", {"id": number, "place": {"x": number}})
        desk.ingest()
    desk.configure({"fields": [ID, more, small]})
    for number in range(2, 4):
        desk.land(f"{number}.ndjson", {"id": number, "place": {"x": 1, "y": "a"}, "count": 7})
        desk.ingest()
    before = desk.rows()
    assert desk.tidy().failed == ()
    assert (len(desk.active), desk.rows()) == (1, before)


def test_files_of_other_writers_are_left_alone(desk):
    written = DeltaTable(str(desk.table))
    some = written.to_pyarrow_table().slice(0, 1)
    for _time in range(6):
        write_deltalake(str(desk.table), some, mode="append")
    foreign = {path for path in desk.active if path.startswith("part-")}
    desk.tidy()
    assert len(foreign) == 6
    assert foreign < desk.active
    assert len(desk.active) == 7


def test_files_of_another_pipeline_are_left_to_it(tmp_path):
    ours = crowded(tmp_path)
    theirs = crowded(tmp_path, pipeline="other", files=0)
    for number in range(5):
        theirs.land(f"{number}.ndjson", {"id": 100 + number, "user": "z"})
        theirs.ingest()
    assert len(ours.active) == 10
    ours.tidy()
    assert len(ours.active) == 6
    theirs.tidy()
    assert len(ours.active) == 2
    assert ours.ids() == [*range(10), *range(100, 105)]
    assert ours.amounts() == {"in_table": 15, "replaced": 15}


def test_a_compaction_has_a_version_of_its_own(desk):
    """Readers that follow changes pass over a version without any as a whole."""
    desk.compact()
    desk.land("later.ndjson", {"id": 99, "user": "x"})
    desk.blizzard()
    desk.land("latest.ndjson", {"id": 100, "user": "x"})
    desk.blizzard()
    before = desk.version
    desk.penguin()
    told = DeltaTable(str(desk.table)).history(2)
    assert [one["operation"] for one in told] == ["WRITE", "OPTIMIZE"]
    assert desk.version == before + 2
    assert desk.ids() == [*range(10), 99, 100]


def test_the_command_shows_first_and_does_it_when_asked(desk):
    shown = desk.cli("compact")
    assert (shown.exit_code, len(desk.active)) == (1, 5)
    assert "5 data files" in shown.stdout
    assert "would become 1" in shown.stdout
    done = desk.cli("compact", "--yes")
    assert done.exit_code == 0, done.output
    assert "5 data files became 1" in done.stdout
    desk.penguin()
    assert len(desk.active) == 1
    again = desk.cli("compact")
    assert (again.exit_code, "nothing is worth compacting" in again.stdout) == (0, True)
    assert desk.said("compact")["groups"] == []


def test_a_run_compacts_by_itself_at_its_end(tmp_path):
    desk = crowded(tmp_path)
    told = desk.runs_by_itself()
    (event,) = [one for one in told if isinstance(one, FilesCompacted)]
    assert (event.files, event.into) == (5, 1)
    desk.penguin()
    assert len(desk.active) == 1
    assert desk.ids() == list(range(10))
