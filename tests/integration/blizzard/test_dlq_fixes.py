"""The change of configuration that `blizzard dlq list` suggests is one that lets the lines in."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.open_table import ID, OpenTable

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
        assert "no setting lets them in" in desk.cli("dlq", "list").stdout
        return
    assert group["fix"] == {"key": key, "value": value, "lines": 1, "tried": 1}
    told = desk.cli("dlq", "list").stdout
    assert f"{key}: {str(value).lower()} lets them in" in told
    apply(desk, key, value)

    (now,) = groups(desk)
    assert now["fix"] == {"key": None, "value": None, "lines": 1, "tried": 1}
    assert desk.cli("dlq", "replay", group["group"], "--yes").exit_code == 0
    desk.penguin()
    assert sorted(row["id"] for row in desk.rows()) == [1, 7]
    assert groups(desk) == []


def test_rows_whose_partition_cannot_be_written_have_no_fix(tmp_path: Path) -> None:
    desk = OpenTable(
        tmp_path / "desk",
        {"fields": [ID, AT, {"name": "region", "type": "string"}]},
        error_handling={"on_bad_record": "quarantine"},
        partition_by={"prefix_template": "region=%s", "timestamp_field": "at"},
    )
    at = '"at": "2024-01-01T00:00:00Z"'
    desk.land(
        "a.ndjson",
        f'{{"id": 1, {at}, "region": "eu"}}',
        f'{{"id": 2, {at}, "region": "{"x" * 300}"}}',
    )
    desk.ingest()
    (group,) = groups(desk)

    assert (group["code"], group["fix"]) == ("partition_value_too_long", None)


def test_where_only_some_lines_come_in_it_says_how_many(tmp_path: Path) -> None:
    schema = {"fields": [ID], "unknown_fields": "fail"}
    desk = desk_of(tmp_path / "desk", schema, '{"id": "7"}', '{"id": "8", "x": 1}')
    (group,) = groups(desk)

    assert group["fix"] == {"key": "schema.coerce", "value": True, "lines": 1, "tried": 2}
    assert "schema.coerce: true lets 1 of 2 in" in desk.cli("dlq", "list").stdout
