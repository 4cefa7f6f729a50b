"""A record of a JSON document is called a record, and a line a line, wherever they are shown."""

from pathlib import Path

import yaml

from tests.support.open_table import ID, OpenTable

QUARANTINE = {"on_bad_record": "quarantine"}


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
