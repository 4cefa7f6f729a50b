"""`blizzard dlq replay` reads lines as a batch would read them under the present configuration."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from blizzard.rewrite.replay import replay
from lakebed.clock import Clock
from lakebed.errors import ColumnsPromoted
from tests.support.builders import entries
from tests.support.open_table import ID, OpenTable
from tests.support.pipelines import pipeline_of
from tests.support.runner import InProcessRunner

QUARANTINE = {"on_bad_record": "quarantine"}


def configure(desk: OpenTable, section: str, **given: Any) -> None:
    document = yaml.safe_load(desk.file.read_text())
    document[section] = document.get(section, {}) | given
    desk.file.write_text(yaml.safe_dump(document))


def does(desk: OpenTable, *command: str) -> str:
    done = desk.cli(*command)
    assert done.exit_code == 0, done.output
    return str(done.stdout)


def quarantine(desk: OpenTable) -> dict[str, int]:
    status = json.loads(does(desk, "status", "--output", "json"))
    found: dict[str, int] = status["quarantine"]
    assert sum(found.values()) == status["totals"]["quarantined"]
    return found


@pytest.fixture
def bulk(tmp_path: Path) -> OpenTable:
    """A bulk file whose action lines were set aside, before anybody said what they are."""
    required = {**ID, "nullable": False}
    desk = OpenTable(tmp_path / "desk", {"fields": [required]}, error_handling=QUARANTINE)
    desk.land("a.ndjson", {"index": {}}, {"id": 1}, {"index": {}}, {"id": "2"}, '{"id":')
    desk.ingest()
    configure(desk, "source", skip_records={"only_key": ["index"]})
    configure(desk, "schema", coerce=True)
    return desk


def test_lines_that_a_rule_passes_over_wait_no_longer_and_give_no_row(bulk: OpenTable) -> None:
    told = does(bulk, "dlq", "replay", "--all", "--yes")
    bulk.penguin()

    assert "1 line became rows" in told
    assert "2 lines passed over by source.skip_records, without a row" in told
    assert "1 line still cannot be read" in told
    assert [row["id"] for row in bulk.rows()] == [1, 2]
    (resolved,) = entries(bulk.table)[-1].resolved
    assert (resolved.lines, resolved.rows, resolved.filtered) == (3, 1, {"default:a.ndjson": 2})
    assert quarantine(bulk) == {"waiting": 1, "replayed": 1, "filtered": 2, "discarded": 0}
    assert "balanced" in does(bulk, "audit")


def test_lines_that_are_all_passed_over_leave_an_entry_without_data_files(bulk: OpenTable) -> None:
    groups = map(json.loads, does(bulk, "dlq", "list", "--output", "json").splitlines())
    (name,) = [one["group"] for one in groups if one["code"] == "required_field_missing"]
    found = json.loads(does(bulk, "dlq", "replay", name, "--yes", "--output", "json"))
    bulk.penguin()

    assert (found["lines"], found["filtered"], found["left"]) == (0, 2, 0)
    assert entries(bulk.table)[-1].files == ()
    assert quarantine(bulk) == {"waiting": 2, "replayed": 0, "filtered": 2, "discarded": 0}
    assert "balanced" in does(bulk, "audit")


ADDS = {"fields": [ID], "unknown_fields": "add", "on_mismatch": "fail"}


@pytest.fixture
def adds(tmp_path: Path) -> OpenTable:
    """A line with a field that no column takes, set aside for another fault."""
    desk = OpenTable(tmp_path / "desk", ADDS, error_handling=QUARANTINE)
    desk.land("a.ndjson", {"id": 1}, {"id": "2", "more": 2.5})
    desk.ingest()
    configure(desk, "schema", coerce=True)
    return desk


def test_new_fields_get_a_column_where_a_batch_would_add_it(adds: OpenTable) -> None:
    does(adds, "dlq", "replay", "--all", "--yes")
    adds.penguin()

    assert adds.types == {"id": "long", "more": "double"}
    assert adds.rows() == [{"id": 1, "more": None}, {"id": 2, "more": 2.5}]
    entry = entries(adds.table)[-1]
    assert entry.columns is not None
    assert [one.name for one in entry.columns.fields] == ["id", "more"]
    assert not entry.rescues

    adds.land("b.ndjson", {"id": 3, "more": 3.5})
    adds.ingest()
    assert [row["more"] for row in adds.rows()] == [None, 2.5, 3.5]
    assert "balanced" in does(adds, "audit")


def test_without_declared_columns_they_are_found_in_the_lines(tmp_path: Path) -> None:
    desk = OpenTable(tmp_path / "desk", {"infer": True}, error_handling=QUARANTINE)
    desk.land("a.ndjson", '{"id": 1, "id": 2}')
    desk.ingest()
    (folder,) = desk.table.glob("_blizzard/*/quarantine")
    assert len(list(folder.iterdir())) == 1
    told = does(desk, "dlq", "replay", "--all", "--yes")
    assert "1 line still cannot be read" in told


def test_a_batch_that_ran_without_a_column_of_a_replay_is_read_again(adds: OpenTable) -> None:
    adds.land("b.ndjson", {"id": 3, "more": 7})

    class Beside(InProcessRunner):
        replayed = False

        def run(self, units: Any, work: Any) -> Any:
            done = super().run(units, work)
            if not self.replayed:
                self.replayed = True
                replay(adds.store, adds.settings, None, InProcessRunner(), clock=Clock())
            return done

    pipeline = pipeline_of(adds.settings, Beside())
    with pytest.raises(ColumnsPromoted, match=r"entry 2, replay"):
        pipeline.step()
    while pipeline.step():
        pass
    adds.penguin()
    assert [(row["id"], row["more"]) for row in adds.rows()] == [(1, None), (2, 2.5), (3, 7.0)]
    assert "balanced" in does(adds, "audit")
