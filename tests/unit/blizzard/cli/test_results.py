"""What is printed, for a person and for a machine."""

import json
from dataclasses import replace

import pytest

from blizzard.cli.run.results import ResultRow, results
from blizzard.handoff.held_rows import Counts
from blizzard.run_totals import Statistics
from lakebed.terminal.arguments import Output

ROW = ResultRow(
    pipeline="events",
    table_uri="/lake/events",
    statistics=Statistics(files_processed=3, records_processed=48_211, bytes_written=2048),
    aside=Counts(held_files=1),
    error=None,
)
KEYS = (
    "pipeline table_uri files_processed records_processed bytes_written parquet_files_written "
    "delta_commits checkpoints_saved lines_quarantined files_failed files_still_failed held_files "
    "held_rows "
    "discarded_files discarded_rows error"
)


def test_results_for_a_machine_are_a_json_object_a_line(capsys):
    results([ROW, replace(ROW, error="no space\nleft")], Output.JSON)
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["error"] for one in found] == [None, "no space\nleft"]
    assert (found[0]["bytes_written"], found[0]["held_files"]) == (2048, 1)
    assert {" ".join(one) for one in found} == {KEYS}


def test_results_for_a_person_name_the_pipeline_and_leave_out_what_is_not(capsys):
    results([ROW], Output.TEXT)
    shown = capsys.readouterr().out
    assert "pipeline events" in shown
    assert "2.0 KiB" in shown
    assert "48,211" in shown
    assert "error" not in shown
    assert "delta_commits" not in shown
    results([ROW], Output.TEXT, inline=["events"])
    assert "delta_commits" in capsys.readouterr().out


@pytest.mark.parametrize("output", Output)
def test_an_error_is_part_of_the_result(capsys, output):
    results([replace(ROW, error="no space is left")], output)
    assert "no space is left" in capsys.readouterr().out
