"""`blizzard dlq replay` reads lines as a batch would, and `dlq list` suggests what lets them in."""

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
    """A bulk file whose action lines were quarantined, before anybody said what they are."""
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

    assert "1 line became a row" in told
    assert "2 lines skipped by source.skip_records, without a row" in told
    assert "1 line still cannot be read" in told
    assert [row["id"] for row in bulk.rows()] == [1, 2]
    (resolved,) = entries(bulk.table)[-1].resolved
    assert (resolved.lines, resolved.rows, resolved.filtered) == (3, 1, {"default:a.ndjson": 2})
    assert quarantine(bulk) == {"waiting": 1, "replayed": 1, "filtered": 2, "discarded": 0}
    assert "balanced" in does(bulk, "audit")


def test_lines_that_are_all_skipped_leave_an_entry_without_data_files(bulk: OpenTable) -> None:
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
    """A line with a field that no column takes, quarantined for another fault."""
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


AT = {"name": "at", "type": "timestamp"}
STRICT = {"name": "name", "type": "string", "nullable": False}
CASES: dict[str, tuple[dict[str, Any], str, str | None, Any]] = {
    "coerce": ({"fields": [ID]}, '{"id": "7"}', "schema.coerce", True),
    # The column is required in the table by now.
    "required": ({"fields": [ID, STRICT]}, '{"id": 7}', None, None),
    "truncate": (
        {"fields": [ID, AT]},
        '{"id": 7, "at": "2024-01-01T00:00:00.1234567Z"}',
        "schema.fields.at.truncate",
        True,
    ),
    "unknown field": (
        {"fields": [ID], "unknown_fields": "fail"},
        '{"id": 7, "new": 1}',
        "schema.unknown_fields",
        "rescue",
    ),
    "mismatch": ({"fields": [ID, AT]}, '{"id": 7, "at": [1]}', "schema.on_mismatch", "rescue"),
    "a list inside": (
        {"fields": [ID, {"name": "n", "type": "list", "items": "int64"}]},
        '{"id": 7, "n": [1, "2"]}',
        "schema.coerce",
        True,
    ),
    "no JSON": ({"fields": [ID]}, '{"id": ', None, None),
}


def desk_of(folder: Path, schema: dict[str, Any], *lines: str) -> OpenTable:
    desk = OpenTable(folder, schema, error_handling={"on_bad_record": "quarantine"})
    desk.land("a.ndjson", *lines)
    desk.ingest()
    return desk


def groups(desk: OpenTable) -> list[dict[str, Any]]:
    found = desk.cli("dlq", "list", "--output", "json")
    assert found.exit_code == 0, found.output
    return [json.loads(line) for line in found.stdout.splitlines()]


def apply(desk: OpenTable, key: str, value: Any) -> None:
    """Change the configuration as it is suggested."""
    document = yaml.safe_load(desk.file.read_text())
    match key.split("."):
        case ["schema", name]:
            document["schema"][name] = value
        case ["schema", "fields", field, name]:
            (one,) = (each for each in document["schema"]["fields"] if each["name"] == field)
            one[name] = value
    desk.file.write_text(yaml.safe_dump(document))


@pytest.mark.parametrize(("schema", "line", "key", "value"), CASES.values(), ids=list(CASES))
def test_what_is_suggested_lets_the_lines_in(
    tmp_path: Path, schema: dict[str, Any], line: str, key: str | None, value: Any
) -> None:
    first = '{"id": 1, "name": "n"}' if STRICT in schema["fields"] else '{"id": 1}'
    desk = desk_of(tmp_path / "desk", schema, first, line)
    (group,) = groups(desk)
    if key is None:
        assert group["fix"] is None
        assert "No setting accepts them." in desk.cli("dlq", "list").stdout
        return
    assert group["fix"] == {"key": key, "value": value, "lines": 1, "tried": 1}
    told = desk.cli("dlq", "list").stdout
    assert "This setting accepts them." in told
    assert f"{key.rpartition('.')[2]}: {str(value).lower()}" in told
    apply(desk, key, value)

    (now,) = groups(desk)
    assert now["fix"] == {"key": None, "value": None, "lines": 1, "tried": 1}
    assert desk.cli("dlq", "replay", group["group"], "--yes").exit_code == 0
    desk.penguin()
    assert sorted(row["id"] for row in desk.rows()) == [1, 7]
    assert groups(desk) == []


def test_rows_whose_partition_cannot_be_written_have_no_fix_and_some_lines_come_in(
    tmp_path: Path,
) -> None:
    desk = OpenTable(
        tmp_path / "desk",
        {"fields": [ID, AT, {"name": "region", "type": "string"}], "unknown_fields": "fail"},
        error_handling={"on_bad_record": "quarantine"},
        partition_by={"prefix_template": "region=%s", "timestamp_field": "at"},
    )
    at = '"at": "2024-01-01T00:00:00Z"'
    desk.land(
        "a.ndjson",
        f'{{"id": 1, {at}, "region": "eu"}}',
        f'{{"id": 2, {at}, "region": "{"x" * 300}"}}',
        f'{{"id": "7", {at}, "region": "eu"}}',
        f'{{"id": "8", {at}, "region": "eu", "x": 1}}',
    )
    desk.ingest()
    some, none = groups(desk)

    assert some["fix"] == {"key": "schema.coerce", "value": True, "lines": 1, "tried": 2}
    assert "This setting accepts 1 of 2." in desk.cli("dlq", "list").stdout
    assert (none["code"], none["fix"]) == ("partition_value_too_long", None)
