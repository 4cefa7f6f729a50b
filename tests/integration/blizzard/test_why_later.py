"""`blizzard why` of bad lines that were dealt with, and of files that no start would read."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.open_table import ID, OpenTable

QUARANTINE = {"on_bad_record": "quarantine"}


def table(folder: Path, **error_handling: Any) -> OpenTable:
    given = QUARANTINE | error_handling
    return OpenTable(folder / "desk", {"fields": [ID]}, error_handling=given)


@pytest.fixture
def desk(tmp_path: Path) -> OpenTable:
    return table(tmp_path)


def configure(desk: OpenTable, section: str, **given: Any) -> None:
    document = yaml.safe_load(desk.file.read_text())
    document[section] |= given
    desk.file.write_text(yaml.safe_dump(document))


def does(desk: OpenTable, *command: str) -> str:
    done = desk.cli(*command)
    assert done.exit_code == 0, done.output
    return str(done.stdout)


def why(desk: OpenTable, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(does(desk, "why", name, "--output", "json"))
    return found


def test_rows_that_a_replay_added_are_counted_with_their_entry_and_data_file(
    desk: OpenTable,
) -> None:
    desk.land("a.ndjson", {"id": 1}, {"id": "2"}, {"id": "3"}, '{"id":')
    desk.land("b.ndjson", {"id": "9"})
    desk.ingest()
    configure(desk, "schema", coerce=True)
    does(desk, "dlq", "replay", "a.ndjson", "--yes")

    answer = why(desk, "a.ndjson")
    assert answer["state"] == "journaled"
    assert "(3 rows from 4 lines), and penguin has yet to commit entry 2." in answer["answer"]
    desk.penguin()

    answer = why(desk, "a.ndjson")
    assert answer["answer"] == (
        "It is in the table: 3 rows from 4 lines, read with entry 1 and replayed with entry 2, in "
        "Delta versions 1, 2. 3 bad lines of it were quarantined. 1 bad line of this name is "
        "waiting in quarantine."
    )
    (done,) = answer["resolved"]
    assert (done["entry"], done["kind"], done["lines"], done["rows"]) == (2, "replay", 2, 2)
    assert (done["version"], done["committed"]) == (2, True)
    assert [(one["entry"], one["rows"], one["state"]) for one in answer["data_files"]] == [
        (1, 1, "in_table"),
        (2, 2, "in_table"),
    ]
    told = " ".join(does(desk, "why", "a.ndjson").split())
    assert "UTC: replay of 2 bad lines, 2 rows; Delta version 2" in told
    assert why(desk, "b.ndjson")["resolved"] == []


def test_a_file_whose_only_rows_are_replayed_ones_is_in_with_them(desk: OpenTable) -> None:
    desk.land("a.ndjson", {"id": "1"})
    desk.ingest()
    assert why(desk, "a.ndjson")["reason"] == "no_rows"
    configure(desk, "schema", coerce=True)
    does(desk, "dlq", "replay", "--all", "--yes")
    answer = why(desk, "a.ndjson")
    assert answer["state"] == "journaled"
    assert "read with entry 1 and replayed with entry 2 (1 row from 1 line)" in answer["answer"]
    desk.penguin()
    assert why(desk, "a.ndjson")["state"] == "in_table"


def test_lines_that_were_discarded_or_are_skipped_are_told_apart(desk: OpenTable) -> None:
    desk.land("a.ndjson", {"id": 1}, {"id": "x"}, {"id": "y"}, {"id": "2", "gone": 1}, '{"id":')
    desk.ingest()
    configure(desk, "source", skip_records={"with_key": ["gone"]})
    does(desk, "dlq", "replay", "--all", "--yes")
    does(desk, "dlq", "discard", "--all", "--yes")
    answer = why(desk, "a.ndjson")
    assert answer["bad_lines"] == 0
    assert [(one["kind"], one["lines"], one["filtered"]) for one in answer["resolved"]] == [
        ("replay", 1, 1),
        ("discard", 3, 0),
    ]


def test_records_of_a_document_are_called_records(desk: OpenTable) -> None:
    configure(desk, "source", format="json")
    desk.land("a.json", '[{"id": 1}, {"id": "2"}]')
    desk.ingest()
    answer = why(desk, "a.json")
    assert "1 row from 2 records" in answer["answer"]
    assert "1 bad record of it was quarantined" in answer["answer"]
    assert [read["counted"] for read in answer["read"]] == ["records"]


def test_a_file_with_too_many_bad_lines_says_which_limit_can_be_raised(tmp_path: Path) -> None:
    desk = table(tmp_path, max_bad_records=1)
    desk.land("a.ndjson", {"id": "1"}, {"id": "2"})
    desk.ingest()
    answer = why(desk, "a.ndjson")
    assert answer["state"] == "failed"
    assert "raise error_handling.max_bad_records or max_bad_ratio" in answer["next"][0]["advice"]


def test_a_file_that_one_bad_line_keeps_out_says_how_to_quarantine_it(
    tmp_path: Path,
) -> None:
    desk = table(tmp_path, on_bad_record="fail")
    desk.land("a.ndjson", {"id": 1}, {"id": "2"})
    desk.ingest()
    way = why(desk, "a.ndjson")["next"][0]
    assert way["yaml"] == "error_handling:\n  on_bad_record: quarantine"


@pytest.mark.unbalanced("journal_missing", "file_unnamed")
def test_where_a_start_would_be_refused_nothing_is_said_to_wait(desk: OpenTable) -> None:
    desk.land("a.ndjson", {"id": 1})
    desk.ingest()
    desk.land("b.ndjson", {"id": 2})
    assert why(desk, "b.ndjson")["state"] == "waiting"
    shutil.rmtree(desk.table / "_blizzard" / "default" / "journal")

    for name in ("a.ndjson", "b.ndjson"):
        answer = why(desk, name)
        assert (answer["state"], answer["reason"]) == ("waiting", "journal_lost")
        assert "a start would be refused now" in answer["answer"]
        assert "blizzard journal new" in answer["answer"]
        assert answer["running"] is None


def test_rows_and_bad_records_of_documents_are_called_records(tmp_path: Path) -> None:
    desk = OpenTable(tmp_path / "desk", {"fields": [ID]}, error_handling=QUARANTINE)
    configured = yaml.safe_load(desk.file.read_text())
    configured["source"]["format"] = "json"
    desk.file.write_text(yaml.safe_dump(configured))
    desk.land("a.json", '[{"id": 1},\n{"id": 2},\n{"id": "x"}]')
    desk.ingest()
    for command, code, *shown in (
        (("trace", "--where", "id = 2"), 0, "a.json, record 2"),
        (
            ("dlq", "list"),
            0,
            "1 bad record is in quarantine",
            "1 record of 1 file",
            "for example default:a.json, record at line 3",
        ),
        (("dlq", "show", "a.json"), 0, "a.json, record at line 3: id: found"),
        (("dlq", "replay", "--all"), 1, "1 record would be read again"),
        (("dlq", "discard", "--all", "--yes"), 0, "1 record discarded"),
    ):
        done = desk.cli(*command)
        assert done.exit_code == code, done.output
        for words in shown:
            assert words in " ".join(done.stdout.split())
