"""What is printed, for a person and for a machine."""

import json

import pytest

from blizzard.cli.results import results
from lakebed.arguments import Output

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
