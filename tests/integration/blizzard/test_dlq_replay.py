"""`blizzard dlq replay` and `discard`: lines that wait become rows or are given up, each once."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from blizzard.repair.gc import GarbageKind, collect
from lakebed.clock import Clock
from lakebed.deltalog.files import named_files
from tests.support.builders import entries
from tests.support.open_table import ID, OpenTable

QUARANTINE = {"on_bad_record": "quarantine"}
NAME = {"name": "name", "type": "string"}


def configure(desk: OpenTable, **schema: Any) -> None:
    """Change the schema section."""
    document = yaml.safe_load(desk.file.read_text())
    document["schema"] |= schema
    desk.file.write_text(yaml.safe_dump(document))


@pytest.fixture
def desk(tmp_path: Path) -> OpenTable:
    desk = OpenTable(tmp_path / "desk", {"fields": [ID, NAME]}, error_handling=QUARANTINE)
    desk.land("a.ndjson", {"id": 1}, {"id": "2"}, '{"id":', {"id": 3, "name": 4})
    desk.land("b.ndjson", {"id": "5"}, {"id": "x"})
    desk.ingest()
    configure(desk, coerce=True)
    return desk


def ids(desk: OpenTable) -> list[int]:
    return sorted(row["id"] for row in desk.rows())


def waiting(desk: OpenTable) -> list[str]:
    found = desk.cli("dlq", "list", "--output", "json")
    assert found.exit_code == 0, found.output
    groups = [json.loads(line)["group"] for line in found.stdout.splitlines()]
    shown = desk.cli("dlq", "show", *groups, "--output", "json") if groups else None
    return sorted(json.loads(line)["raw"] for line in shown.stdout.splitlines()) if shown else []


def counts(desk: OpenTable) -> dict[str, int]:
    status = json.loads(desk.cli("status", "--output", "json").stdout)
    found: dict[str, int] = status["quarantine"]
    assert sum(found.values()) == status["totals"]["quarantined"]
    assert found.pop("filtered") == 0
    return found


def does(desk: OpenTable, *command: str) -> str:
    done = desk.cli("dlq", *command)
    assert done.exit_code == 0, done.output
    return str(done.stdout)


def test_what_can_be_read_now_becomes_rows_and_the_rest_waits_on(desk: OpenTable) -> None:
    """To do it twice changes nothing; gc takes what waits no longer."""
    told = does(desk, "replay", "--all", "--yes")
    assert "3 lines became rows" in told
    assert "2 lines still cannot be read and keep waiting" in told
    assert ids(desk) == [1]
    assert "0 lines became rows" in does(desk, "replay", "--all", "--yes")
    assert len(entries(desk.table)) == 3
    desk.penguin()

    assert ids(desk) == [1, 2, 3, 5]
    shown = " ".join(desk.cli("journal", "show", "2").stdout.split())
    assert "entry 2 (replay)" in shown
    assert "resolved:" in shown
    assert counts(desk) == {"waiting": 2, "replayed": 3, "discarded": 0}
    found = desk.cli("dlq", "show", "a.ndjson", "b.ndjson", "--output", "json")
    assert [
        (json.loads(line)["path"].rpartition("/")[2], json.loads(line)["line"])
        for line in found.stdout.splitlines()
    ] == [("a.ndjson", 3), ("b.ndjson", 2)]

    log = lambda: named_files(str(desk.table), desk.sink.storage_options)  # noqa: E731
    gone = collect(desk.store, "default", log, clock=Clock(), older_than=timedelta(0)).pieces
    assert [one.kind for one in gone].count(GarbageKind.QUARANTINE) == 1
    assert waiting(desk) == ['{"id":', '{"id": "x"}']
    assert ids(desk) == [1, 2, 3, 5]


def test_the_lines_of_a_file_can_be_replayed_alone(desk: OpenTable) -> None:
    does(desk, "replay", "b.ndjson", "--yes")
    desk.penguin()
    assert ids(desk) == [1, 5]
    assert waiting(desk) == ['{"id":', '{"id": "2"}', '{"id": "x"}', '{"id": 3, "name": 4}']

    does(desk, "replay", "a.ndjson", "--yes")
    desk.penguin()
    assert ids(desk) == [1, 2, 3, 5]
    assert counts(desk) == {"waiting": 2, "replayed": 3, "discarded": 0}


def test_a_group_can_be_discarded_and_never_comes_back(desk: OpenTable) -> None:
    (group,) = (
        json.loads(line)["group"]
        for line in desk.cli("dlq", "list", "--output", "json").stdout.splitlines()
        if json.loads(line)["field"] == "id"
    )
    assert "3 lines discarded" in does(desk, "discard", group, "--yes")
    assert waiting(desk) == ['{"id":', '{"id": 3, "name": 4}']
    gone = desk.cli("dlq", "discard", group, "--yes")
    assert gone.exit_code == 1
    assert f"no bad lines of {group} are waiting" in gone.stderr

    does(desk, "replay", "--all", "--yes")
    desk.ingest()
    assert ids(desk) == [1, 3]
    assert counts(desk) == {"waiting": 1, "replayed": 1, "discarded": 3}
    assert "1 line discarded" in does(desk, "discard", "--all", "--yes")
    assert (waiting(desk), counts(desk)["waiting"]) == ([], 0)


def test_without_yes_nothing_is_done(desk: OpenTable) -> None:
    before = len(entries(desk.table))
    for command in ("replay", "discard"):
        told = desk.cli("dlq", command, "--all")
        unclear = desk.cli("dlq", command)
        assert (told.exit_code, unclear.exit_code) == (1, 2)
        assert "5 lines would be" in told.stdout
        assert "add --yes to do it" in told.stdout
    assert len(entries(desk.table)) == before


def test_a_unit_whose_lines_were_replayed_is_not_read_again(tmp_path: Path) -> None:
    """Its rows would be in the table twice."""
    desk = OpenTable(tmp_path / "desk", {"fields": [ID, NAME]}, error_handling=QUARANTINE)
    desk.land("a.ndjson", {"id": 1})
    desk.ingest()
    known = set(desk.table.glob("*.parquet"))
    desk.land("b.ndjson", {"id": 2}, {"id": "3"})
    desk.blizzard()
    (lost,) = set(desk.table.glob("*.parquet")) - known
    lost.unlink()
    desk.penguin()
    configure(desk, coerce=True)
    does(desk, "replay", "--all", "--yes")
    desk.penguin()

    found, entry = desk.redo()
    assert entry is None
    assert "has replayed or discarded bad lines" in str(found.units[0].why_not)
    assert ids(desk) == [1, 3]


@pytest.mark.parametrize("handoff", ["journal", "staging", "direct"])
def test_a_replay_is_handed_off_whatever_the_hand_off_of_batches_is(
    tmp_path: Path, handoff: str
) -> None:
    by = {"prefix_template": "date=%Y-%m-%d"}
    desk = OpenTable(
        tmp_path / "desk",
        {"fields": [ID]},
        error_handling=QUARANTINE,
        partition_by=by,
        handoff=handoff,
    )
    desk.land("date=2024-01-01/a.ndjson", {"id": 1}, {"id": "2"})
    desk.land("date=2024-01-02/a.ndjson", {"id": "3"})
    desk.blizzard()
    configure(desk, coerce=True)
    does(desk, "replay", "--all", "--yes")
    desk.penguin()
    assert ids(desk) == [1, 2, 3]
    desk.land("date=2024-01-03/a.ndjson", {"id": 4})
    desk.ingest()

    assert [
        (row["id"], str(row["date"])) for row in sorted(desk.rows(), key=lambda r: r["id"])
    ] == [(1, "2024-01-01"), (2, "2024-01-01"), (3, "2024-01-02"), (4, "2024-01-03")]


def test_values_without_a_column_are_rescued_and_the_table_keeps_the_column(
    desk: OpenTable,
) -> None:
    desk.land("c.ndjson", {"id": [9], "more": 1}, {"id": "9", "more": 1})
    configure(desk, coerce=False)
    desk.ingest()
    configure(desk, coerce=True)
    does(desk, "replay", "c.ndjson", "--yes")
    desk.land("d.ndjson", {"id": 10})
    desk.ingest()

    assert [one.rescues for one in entries(desk.table)[-2:]] == [True, False]
    (row,) = (row for row in desk.rows() if row["id"] == 9)
    assert row["_rescued"] == '{"more":1}'
    assert 10 in ids(desk)


def test_rows_that_give_their_partition_find_it_and_impossible_ones_wait_on(tmp_path: Path) -> None:
    region = {"name": "region", "type": "string"}
    at = {"name": "at", "type": "timestamp"}
    desk = OpenTable(
        tmp_path / "desk",
        {"fields": [ID, at, region]},
        error_handling=QUARANTINE,
        partition_by={"prefix_template": "region=%s", "timestamp_field": "at"},
    )
    long = "x" * 300
    desk.land(
        "a.ndjson",
        {"id": 1, "region": "eu"},
        {"id": "2", "region": "us"},
        {"id": "3", "region": long},
        {"id": 4, "region": long},
    )
    desk.ingest()
    configure(desk, coerce=True)
    does(desk, "replay", "--all", "--yes")
    desk.penguin()

    assert sorted((row["id"], row["region"]) for row in desk.rows()) == [(1, "eu"), (2, "us")]
    assert [json.loads(raw)["id"] for raw in waiting(desk)] == ["3", 4]


def test_lines_that_no_setting_accepts_are_saved_corrected_landed_and_discarded(
    desk: OpenTable,
) -> None:
    (broken,) = [
        row["group"]
        for row in map(json.loads, desk.cli("dlq", "list", "--output", "json").output.splitlines())
        if row["code"] == "not_json"
    ]
    shown = " ".join(desk.cli("dlq", "list").output.split())
    assert "put corrected lines into the source as a new file; then discard the old ones" in shown
    assert f"dlq discard {broken} --yes" in shown
