"""What is printed, for a person and for a machine."""

import json

import pytest

from blizzard.discovery import Finding
from blizzard.show import FEW, explanation, results
from blizzard.sight import Explanation
from lake.arguments import Output
from tests.support.builders import facts, failure, record, source_file, unit


def found(files=(), **finding) -> Explanation:
    usual = dict.fromkeys(("overwritten", "resting", "misplaced"), ())
    return Explanation(
        pipeline="events",
        table_uri="s3://bucket/table",
        entry=4,
        findings={"default": Finding(take=tuple(files), **(usual | {"left_over": 0} | finding))},
        units=(unit(files, name="0"),) if files else (),
    )


def test_a_plan_says_what_would_be_read_into_which_table(capsys):
    explanation(found([source_file("a.ndjson", size=2048)]), Output.TEXT)
    shown = capsys.readouterr().out
    assert "pipeline events: batch 4 would read 1 files (2.0 KiB) in 1 units" in shown
    assert "s3://bucket/table" in shown
    assert "read   default:a.ndjson  2.0 KiB" in shown


def test_a_plan_says_why_a_file_is_left_out(capsys):
    plan = found(
        overwritten=(facts("o.ndjson"),),
        resting=(record("r.ndjson", failure=failure()),),
        misplaced=(record("m.ndjson", failure=failure()),),
        left_over=7,
    )
    explanation(plan, Output.TEXT)
    shown = capsys.readouterr().out
    assert "leave  default:o.ndjson  ingested before, changed since" in shown
    assert "leave  default:r.ndjson  failed before: it went wrong" in shown
    assert "leave  default:m.ndjson  it went wrong" in shown
    assert "7 more files are left for the batches after it" in shown


def test_a_long_plan_is_cut_and_says_so(capsys):
    explanation(found([source_file(f"{number}.ndjson") for number in range(FEW + 5)]), Output.TEXT)
    shown = capsys.readouterr().out
    assert shown.count("  read ") == FEW
    assert "… and 5 more" in shown


def test_a_plan_for_a_machine_is_one_line_of_json_with_everything(capsys):
    files = [source_file(f"{number}.ndjson") for number in range(FEW + 5)]
    explanation(
        found(files, resting=(record("r.ndjson", failure=failure()),), left_over=2), Output.JSON
    )
    shown = capsys.readouterr().out
    assert shown.count("\n") == 1
    document = json.loads(shown)
    assert len(document["units"][0]["files"]) == FEW + 5
    assert document["left_out"] == [
        {"path": "default:r.ndjson", "reason": "failed before: it went wrong"}
    ]
    assert (document["entry"], document["left_for_later"]) == (4, 2)


ROW = {"pipeline": "events", "files_processed": 3, "bytes_written": 2048, "error": None}


def test_results_for_a_machine_are_a_json_object_a_line(capsys):
    results([ROW, ROW | {"error": "no space\nleft"}], Output.JSON)
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["error"] for line in lines] == [None, "no space\nleft"]


def test_results_for_a_person_name_the_pipeline_and_leave_out_what_is_not(capsys):
    results([ROW], Output.TEXT)
    shown = capsys.readouterr().out
    assert "pipeline events" in shown
    assert "2.0 KiB" in shown
    assert "error" not in shown


@pytest.mark.parametrize("output", Output)
def test_an_error_is_part_of_the_result(capsys, output):
    results([ROW | {"error": "no space is left"}], output)
    assert "no space is left" in capsys.readouterr().out
