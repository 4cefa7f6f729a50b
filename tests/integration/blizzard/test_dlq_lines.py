"""`blizzard dlq list` and `show`: the lines that are quarantined, in groups and one by one."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from blizzard.handoff.publish import Publisher
from blizzard.rewrite.replay import discard
from lakebed.clock import Clock
from penguin.pipeline import InlineCommitter
from tests.support.audits import audited, told
from tests.support.builders import Bench, no_options
from tests.support.open_table import ID, OpenTable

QUARANTINE = {"on_bad_record": "quarantine"}
TAGS = {"name": "tags", "type": "list", "items": "int64"}


@pytest.fixture
def desk(tmp_path: Path) -> OpenTable:
    desk = OpenTable(tmp_path / "desk", {"fields": [ID, TAGS]}, error_handling=QUARANTINE)
    desk.land("a.ndjson", {"id": 1}, {"id": "x"}, {"id": 2, "tags": [1, "y"]})
    desk.land("b.ndjson", {"id": "z"}, {"id": 3, "tags": ["y"]}, '{"id": "w"}')
    desk.ingest()
    return desk


def printed(desk: OpenTable, *command: str) -> list[dict[str, Any]]:
    found = desk.cli(*command, "--output", "json")
    assert found.exit_code == 0, found.output
    return [json.loads(line) for line in found.stdout.splitlines()]


def test_lines_with_the_same_fault_are_a_group_the_largest_first(desk: OpenTable) -> None:
    """Its name is the same in every run, and keys keep their order."""
    wrong, tags = printed(desk, "dlq", "list")

    assert (wrong["code"], wrong["field"]) == ("wrong_type", "id")
    assert (wrong["expected"], wrong["found"]) == ("an integer (int64)", "a string")
    assert (wrong["lines"], wrong["files"]) == (3, 2)
    assert wrong["sample"]["path"] == f"{desk.landing.folder}/a.ndjson"
    assert (wrong["sample"]["line"], wrong["sample"]["raw"]) == (2, '{"id": "x"}')
    assert (tags["field"], tags["lines"], tags["files"]) == ("tags[]", 2, 2)
    (line,) = printed(desk, "dlq", "show", "a.ndjson")[:1]
    assert " ".join(wrong) == "pipeline group code field expected found lines files fix sample"
    assert list(wrong["sample"]) == list(line)
    assert (
        " ".join(line)
        == "path line offset size raw raw_base64 code message field expected found group"
    )
    told = desk.cli("dlq", "list").stdout
    assert "pipeline default: no failures" in told
    assert "pipeline default: 5 bad lines are in quarantine, in 2 groups" in told
    assert "3 lines of 2 files: id: found a string, expected an integer (int64)" in told
    assert 'for example default:a.ndjson, line 2: {"id": "x"}' in told
    desk.land("c.ndjson", {"id": "more"})
    desk.ingest()
    names = [wrong["group"], tags["group"]]
    assert [row["group"] for row in printed(desk, "dlq")] == names


def test_show_prints_the_lines_of_a_group_or_of_a_file(desk: OpenTable) -> None:
    (wrong, _tags) = printed(desk, "dlq", "list")
    lines = printed(desk, "dlq", "show", wrong["group"])
    assert [line["raw"] for line in lines] == ['{"id": "x"}', '{"id": "z"}', '{"id": "w"}']
    assert {line["group"] for line in lines} == {wrong["group"]}

    uri = f"{desk.landing.folder}/b.ndjson"
    for name in ("b.ndjson", "default:b.ndjson", uri, f"file://{uri}"):
        lines = printed(desk, "dlq", "show", name)
        assert [(line["path"], line["line"]) for line in lines] == [(uri, 1), (uri, 2), (uri, 3)]
    told = desk.cli("dlq", "show", "b.ndjson", "--limit", "1").stdout
    assert f"{uri}, line 1: id: found a string" in told
    assert '  {"id": "z"}\n' in told
    assert "... and 2 more; --limit shows more" in told


def test_what_is_not_waiting_is_told_and_no_number(desk: OpenTable) -> None:
    found = desk.cli("dlq", "show", "c.ndjson", "b.ndjson")
    assert found.exit_code == 1
    assert "error: no bad lines of c.ndjson are waiting" in found.stderr
    for verb in ("replay", "discard"):
        found = desk.cli("dlq", verb, "nowhere.ndjson")
        assert (found.exit_code, found.stdout) == (1, "")
        assert "error: no bad lines of nowhere.ndjson are waiting" in found.stderr


def test_bytes_that_are_no_text_are_printed_all_the_same(desk: OpenTable) -> None:
    raw = b'{"id": "\xff\x1b[31m"}'
    desk.landing.write("c.ndjson", raw + b"\n")
    desk.ingest()
    (line,) = printed(desk, "dlq", "show", "c.ndjson")

    assert (line["code"], line["raw"]) == ("not_utf8", None)
    assert base64.b64decode(line["raw_base64"]) == raw
    assert '  {"id": "\\xff\\x1b[31m"}' in desk.cli("dlq", "show", "c.ndjson").stdout


@pytest.mark.unbalanced("quarantine_gone")
def test_a_quarantine_file_that_is_damaged_or_gone_is_an_error(desk: OpenTable) -> None:
    (path,) = (desk.table / "_blizzard/default/quarantine").iterdir()
    path.write_bytes(b"PAR1" + bytes(path.stat().st_size - 8) + b"PAR1")
    found = desk.cli("dlq", "list")
    assert found.exit_code == 1
    assert "this is not a Parquet file; restore it from a backup" in found.stderr
    assert audited(desk.table, deep=False).is_balanced
    assert all("its footer cannot be read" in one for one in told(audited(desk.table)))
    path.unlink()
    for order in (["list"], ["show", "b.ndjson"], ["replay", "--all"], ["discard", "--all"]):
        found = desk.cli("dlq", *order)
        assert found.exit_code == 1, order
        assert "a file with bad lines is gone" in found.stderr, order


def test_a_new_journal_goes_on_with_the_lines_that_wait(desk: OpenTable) -> None:
    before = printed(desk, "dlq", "list")
    document = yaml.safe_load(desk.file.read_text())
    tables = document.pop("tables")
    desk.file.write_text(yaml.safe_dump({"pipelines": {"heir": document}, "tables": tables}))
    renewed = desk.cli("journal", "new", "--from", "default", "--yes")
    assert renewed.exit_code == 0, renewed.output

    assert printed(desk, "dlq", "list") == [row | {"pipeline": "heir"} for row in before]
    (status,) = printed(desk, "status")
    assert status["quarantine"]["waiting"] == 5


def test_a_day_that_is_in_tells_of_the_bad_lines_that_wait(desk: OpenTable) -> None:
    (found,) = printed(desk, "files", "--check")
    (day,) = found["groups"]
    assert (day["complete"], day["quarantined_lines"]) == (True, 5)
    assert day["sentence"].endswith(". 5 bad lines are in quarantine")
    assert "5 bad lines are in quarantine" in desk.cli("files").stdout.replace("\n", " ")

    assert desk.cli("dlq", "discard", "b.ndjson", "--yes").exit_code == 0
    (found,) = printed(desk, "files")
    (day,) = found["groups"]
    assert day["quarantined_lines"] == 2


def test_an_idle_blizzard_commits_what_a_command_appends(tmp_path: Path) -> None:
    desk = OpenTable(
        tmp_path / "desk", {"fields": [ID]}, error_handling=QUARANTINE, commit="inline"
    )
    desk.land("a.ndjson", {"id": 1}, {"id": "x"})
    commit = InlineCommitter.of(
        None, str(desk.table), no_options(), emit=lambda _event: None, clock=Clock()
    )
    running = Bench(desk.settings, publisher=Publisher(commit=commit)).pipeline()
    assert running.step()
    assert discard(desk.store, desk.settings, None, clock=Clock()).lines == 1
    (before,) = printed(desk, "status")
    assert (before["last_entry"], before["uncommitted_entries"]) == (2, 1)

    assert not running.step()

    (after,) = printed(desk, "status")
    assert (after["last_entry"], after["uncommitted_entries"]) == (2, 0)


def test_replayed_lines_count_as_rows_wherever_rows_are_counted(desk: OpenTable) -> None:
    """`status`, `files` and the table say the same number, also of lines replayed in two steps."""
    desk.land("c.ndjson", {"id": 7}, {"id": "8"})
    desk.ingest()
    for order in (["c.ndjson"], ["--all"]):
        desk.configure({"fields": [ID | {"coerce": True}, TAGS], "on_mismatch": "rescue"})
        assert desk.cli("dlq", "replay", *order, "--yes").exit_code == 0
        desk.penguin()
        rows = len(desk.rows())
        (status,) = printed(desk, "status")
        assert status["totals"]["rows"] == status["sources"][0]["totals"]["rows"] == rows
        (found,) = printed(desk, "files")
        assert [group["rows"] for group in found["groups"]] == [rows]
    assert (
        "in all 2 batches, 3 files, 8 rows, 6 bad lines (6 replayed)" in desk.cli("status").output
    )


@pytest.mark.parametrize("order", [["discard", "--all"], ["replay", "--all"]])
def test_with_inline_commits_no_entry_of_bad_lines_waits(desk: OpenTable, order: list[str]) -> None:
    document = yaml.safe_load(desk.file.read_text())
    document["sink"]["commit"] = "inline"
    document["schema"]["on_mismatch"] = "rescue"
    desk.file.write_text(yaml.safe_dump(document))
    assert desk.cli("dlq", *order, "--yes").exit_code == 0
    (status,) = printed(desk, "status")
    assert (status["last_entry"], status["uncommitted_entries"]) == (2, 0)
