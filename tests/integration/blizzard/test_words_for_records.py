"""A record of a JSON document is called a record, and a line a line, wherever they are shown."""

from pathlib import Path

import pytest
import yaml

from tests.support.open_table import ID, OpenTable

QUARANTINE = {"on_bad_record": "quarantine"}


def does(desk: OpenTable, *command: str, code: int = 0) -> str:
    done = desk.cli(*command)
    assert done.exit_code == code, done.output
    return " ".join(str(done.stdout).split())


@pytest.fixture
def documents(tmp_path: Path) -> OpenTable:
    desk = OpenTable(tmp_path / "desk", {"fields": [ID]}, error_handling=QUARANTINE)
    configured = yaml.safe_load(desk.file.read_text())
    configured["source"]["format"] = "json"
    desk.file.write_text(yaml.safe_dump(configured))
    desk.land("a.json", '[{"id": 1},\n{"id": 2},\n{"id": "x"}]')
    desk.ingest()
    return desk


def test_rows_of_documents_come_from_records(documents: OpenTable) -> None:
    assert "a.json, record 2" in does(documents, "trace", "--where", "id = 2")


def test_bad_records_of_documents_are_listed_as_records(documents: OpenTable) -> None:
    listed = does(documents, "dlq", "list")
    assert "1 bad record is in quarantine" in listed
    assert "1 record of 1 file" in listed
    assert "for example default:a.json, record at line 3" in listed
    assert "a.json, record at line 3: id: found" in does(documents, "dlq", "show", "a.json")
    assert "1 record would be read again" in does(documents, "dlq", "replay", "--all", code=1)
    assert "1 record discarded" in does(documents, "dlq", "discard", "--all", "--yes")


def test_lines_are_lines(tmp_path: Path) -> None:
    desk = OpenTable(tmp_path / "desk", {"fields": [ID]}, error_handling=QUARANTINE)
    desk.land("a.ndjson", {"id": 1}, {"id": "x"})
    desk.ingest()
    assert "a.ndjson, line 1" in does(desk, "trace", "--where", "id = 1")
    assert "1 line of 1 file" in does(desk, "dlq", "list")
    assert "1 line discarded" in does(desk, "dlq", "discard", "--all", "--yes")
