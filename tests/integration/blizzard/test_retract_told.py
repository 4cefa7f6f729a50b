"""What is told of a retraction: by the command, why, status, the journal, trace and penguin."""

import json

import pytest
import yaml
from deltalake import DeltaTable

from blizzard.rewrite.retract import RowOriginsUnknown, SourceNotRetractable
from blizzard.rewrite.transaction import PromotionPending
from penguin.pipeline import InlineCommitter
from tests.support.builders import entries
from tests.support.commands import recorded
from tests.support.retractions import Taken
from tests.support.runner import RewriteRace


@pytest.fixture
def desk(tmp_path):
    desk = Taken(tmp_path)
    desk.land("a.ndjson", {"id": 1}, {"id": 2})
    desk.land("b.ndjson", {"id": 3}, {"id": 4})
    desk.ingest()
    return desk


def told(desk, *arguments):
    shown = desk.cli(*arguments, "--output", "json")
    assert shown.exit_code == 0, shown.output
    return json.loads(shown.stdout)


def why(desk, name):
    return told(desk, "why", name)


def test_it_shows_what_would_be_done_then_does_it_and_all_count_the_rows(desk):
    shown = desk.cli("retract", "a.ndjson")
    assert shown.exit_code == 1
    assert "pipeline default: 2 rows of 1 source file" in shown.stdout
    assert "to be rewritten without them" in shown.stdout
    assert "add --yes to do it" in shown.stdout
    assert all(len(line) <= 80 for line in shown.stdout.splitlines())
    assert [one.kind for one in entries(desk.table)][-1] == "batch"
    shown = desk.cli("retract", "a.ndjson", "--yes")
    assert shown.exit_code == 0, shown.output
    assert "was rewritten without them" in shown.stdout
    assert "entry 2 takes the rows out once penguin has committed it" in shown.stdout
    assert "-> run penguin" in shown.stdout
    assert "time travel still reads them until VACUUM" in shown.stdout
    desk.penguin()
    assert desk.ids() == [3, 4]
    again = desk.cli("retract", "a.ndjson", "--yes")
    assert again.exit_code == 0
    assert "none of its rows is in the table; nothing was changed" in again.stdout
    (source,) = recorded(desk.cli("journal", "show", "2").stdout)["sources"]
    assert (source["path"], source["rows"], source["retracted"]) == ("a.ndjson", 2, True)
    row = told(desk, "trace", "--where", "id = 4")
    assert row["source"].endswith("b.ndjson")
    assert (row["line"], row["entry"]) == (2, 1)


def test_its_json_has_these_keys(desk):
    row = told(desk, "retract", "b.ndjson", "--yes")
    assert list(row) == [
        *("pipeline", "table_uri", "entry", "sources", "rows", "bad_lines"),
        *("removed", "rewritten", "searched"),
        *("replaced_by", "new_rows", "new_bad_lines"),
    ]
    assert (row["entry"], row["rows"]) == (2, 2)
    assert row["sources"] == [{"source": "in", "path": "b.ndjson", "rows": 2}]


def test_a_pipeline_that_commits_itself_commits_it_or_what_it_has_not_committed_waits(tmp_path):
    desk = Taken(tmp_path, commit="inline")
    for number, name in enumerate("abc"):
        desk.land(f"{name}.ndjson", {"id": number})
    desk.ingest()
    shown = desk.cli("retract", "c.ndjson", "--yes")
    assert "entry 2 is committed" in shown.stdout, shown.output
    assert desk.ids() == [0, 1]
    desk.retract("a.ndjson")  # It died before the commit.
    (way,) = why(desk, "a.ndjson")["next"]
    assert way["commands"] == [f"blizzard -c {desk.file}"]
    with pytest.raises(PromotionPending, match="run blizzard first"):
        desk.retract("b.ndjson")
    assert "1 entry is waiting to be committed" in desk.cli("status").stdout
    sink = desk.settings.sink
    InlineCommitter.of(
        None, sink.table_uri, sink.storage_options, emit=lambda _event: None, clock=desk.clock
    )()
    assert desk.ids() == [1]
    assert why(desk, "a.ndjson")["state"] == "retracted"


def test_why_says_when_rows_were_taken_back_and_when_they_came_back_with_a_restore(desk):
    before = desk.version
    desk.retract("b.ndjson")
    waiting = why(desk, "b.ndjson")
    assert waiting["state"] == "in_table"
    assert "Entry 2 takes its rows back, and is not committed yet" in waiting["answer"]
    desk.penguin()
    answer = why(desk, "b.ndjson")
    assert answer["state"] == "retracted"
    assert "Its rows were taken back in entry 2 on " in answer["answer"]
    assert answer["retraction"]["version"] == desk.version
    assert "no VACUUM deletes their files before" in answer["answer"]
    assert answer["retraction"]["deleted_from"] > answer["retraction"]["committed_at"]
    assert why(desk, "a.ndjson")["state"] == "in_table"
    shown = desk.cli("why", "b.ndjson")
    assert "2 rows to be taken out of the table; committed" in shown.stdout
    DeltaTable(str(desk.table)).restore(before)
    answer = why(desk, "b.ndjson")
    assert (answer["state"], answer["retraction"]["came_back"]) == ("in_table", True)
    assert "Its retraction in entry 2 took rows out that were put back" in answer["answer"]
    assert "and they came back" in " ".join(desk.cli("why", "b.ndjson").stdout.split())
    desk.take_back("b.ndjson")
    assert desk.ids() == [1, 2]
    answer = why(desk, "b.ndjson")
    assert (answer["state"], answer["retraction"]["came_back"]) == ("retracted", False)


@pytest.mark.unbalanced("rows_removed")
def test_rows_that_are_out_of_the_table_are_named_since_a_replay_puts_them_back(desk):
    desk.land("c.ndjson", {"id": 5})
    desk.ingest()
    DeltaTable(str(desk.table)).restore(desk.version - 1)
    assert "removed rows" not in desk.cli("retract", "a.ndjson").stdout
    shown = desk.cli("retract", "c.ndjson", "--yes").stdout
    assert f"version {desk.version} removed rows of 1 source file" in shown
    assert "none of its rows is in the table; nothing was changed" in shown
    assert desk.order("replay", "--yes").exit_code == 0
    assert desk.cli("retract", "c.ndjson", "--yes").exit_code == 0
    desk.penguin()
    assert desk.ids() == [1, 2, 3, 4]
    assert "removed rows" not in desk.cli("retract", "c.ndjson").stdout


def test_why_says_that_bad_lines_were_given_up_with_the_rows(tmp_path):
    desk = Taken(tmp_path, more={"error_handling": {"on_bad_record": "quarantine"}})
    desk.land("a.ndjson", {"id": 1}, {"id": "x"}, {"id": "y"})
    desk.land("b.ndjson", {"id": 2}, {"id": "z"})
    desk.ingest()
    desk.take_back("a.ndjson")
    answer = why(desk, "a.ndjson")
    assert [(one["kind"], one["lines"], one["rows"]) for one in answer["resolved"]] == [
        ("retract", 2, 0)
    ]
    assert answer["answer"].endswith("2 bad lines of it were quarantined.")
    assert answer["bad_lines"] == 0
    assert not any("dlq" in str(way) for way in answer["next"])
    assert "retract of 2 bad lines" in desk.cli("why", "a.ndjson").stdout
    assert why(desk, "b.ndjson")["resolved"] == []


def test_one_that_somebody_overtook_has_no_effect_and_can_be_run_again(tmp_path):
    desk = Taken(tmp_path)
    desk.land("a.ndjson", {"id": 1})
    desk.ingest()
    desk.land("b.ndjson", {"id": 2})
    desk.ingest()
    version = desk.version
    desk.retract("b.ndjson")
    desk.optimize()
    desk.penguin()
    assert desk.ids() == [1, 2]
    answer = why(desk, "b.ndjson")
    assert "Its retraction in entry 3 had no effect" in answer["answer"]
    retract = f"blizzard -c {desk.file} retract in:b.ndjson"
    assert [way["commands"] for way in answer["next"]] == [[retract, f"{retract} --yes"]]
    assert "run blizzard retract again" in desk.cli("journal", "show", "3").stdout
    DeltaTable(str(desk.table)).restore(version)
    desk.take_back("b.ndjson")
    assert desk.ids() == [1]


def test_an_optimize_while_files_are_rewritten_is_noticed(desk):
    def optimizes():
        desk.land("d.ndjson", {"id": 9})
        desk.ingest()
        desk.optimize()

    with pytest.raises(RowOriginsUnknown, match="Nothing was changed"):
        desk.retract("b.ndjson", runner=RewriteRace(before=optimizes))
    assert desk.ids() == [1, 2, 3, 4, 9]


def test_rows_that_penguin_holds_are_to_be_settled_first(desk):
    document = yaml.safe_load(desk.file.read_text())
    document["pipelines"]["default"]["schema"] = {"fields": [{"name": "id", "type": "string"}]}
    desk.file.write_text(yaml.safe_dump(document))
    desk.land("d.ndjson", {"id": "9"})
    desk.ingest()
    with pytest.raises(SourceNotRetractable, match=r"penguin holds .* penguin release .* first"):
        desk.retract("d.ndjson")
    desk.take_back("b.ndjson")
    assert desk.ids() == [1, 2]
