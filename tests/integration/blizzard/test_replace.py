"""Rows replaced by what a source file holds now, in one process with the real programs."""

import json
import re
import shlex

import pytest
import yaml
from deltalake import DeltaTable

from blizzard.rewrite.replace import ContentNotRead
from blizzard.rewrite.retract import SourceNotRetractable
from lakebed.errors import ObjectMissing, SourcesReplaced
from tests.support.builders import entries, put
from tests.support.pipelines import pipeline_of
from tests.support.promotions import ID
from tests.support.retractions import Taken
from tests.support.runner import InProcessRunner

QUARANTINE = {"error_handling": {"on_bad_record": "quarantine"}}


def landed(tmp_path, *given, **more):
    desk = Taken(tmp_path, *given, **more)
    desk.land("a.ndjson", {"id": 1}, {"id": 2})
    desk.land("b.ndjson", {"id": 3}, {"id": 4})
    desk.ingest()
    return desk


def why(desk, name):
    return json.loads(desk.cli("why", name, "--output", "json").stdout)


def status(desk):
    return json.loads(desk.cli("status", "--output", "json").stdout)


def test_new_content_takes_the_place_of_the_old_in_one_version(tmp_path):
    desk = landed(tmp_path)
    before = desk.version
    desk.land("b.ndjson", {"id": 30}, {"id": 40}, {"id": 50})
    done = desk.replace("b.ndjson", by="b.ndjson")
    assert dict(done.rows) == {"in:b.ndjson": 2}
    assert why(desk, "b.ndjson")["state"] == "journaled"
    desk.penguin()
    assert desk.version == before + 1
    assert sorted(desk.ids()) == [1, 2, 30, 40, 50]
    assert sorted(desk.ids(before)) == [1, 2, 3, 4]
    assert desk.amounts() == {"in_table": 5, "replaced": 2, "retracted": 2}
    (told, *_others) = DeltaTable(str(desk.table)).history(1)
    assert told["penguin"]["retracted"] == {"rows": 2}
    answer = why(desk, "b.ndjson")
    assert (answer["state"], answer["read"][0]["rows"]) == ("in_table", 3)
    assert "Entry 2 replaced its earlier content with it" in answer["answer"]
    assert answer["retraction"]["replaced"]
    desk.writes_a_snapshot()
    assert why(desk, "b.ndjson")["state"] == "in_table"
    desk.ingest()
    assert sorted(desk.ids()) == [1, 2, 30, 40, 50]


def test_another_file_takes_the_place_and_is_not_read_again(tmp_path):
    desk = landed(tmp_path)
    desk.land("late/c.ndjson", {"id": 9})
    desk.replace("a.ndjson", "b.ndjson", by="in:late/c.ndjson")
    desk.ingest()
    assert desk.ids() == [9]
    assert why(desk, "a.ndjson")["state"] == "retracted"
    assert why(desk, "late/c.ndjson")["state"] == "in_table"


def test_a_file_that_was_read_already_comes_anew(tmp_path):
    desk = landed(tmp_path)
    desk.replace("a.ndjson", by="b.ndjson")
    desk.penguin()
    assert sorted(desk.ids()) == [3, 4]
    assert desk.amounts() == {"in_table": 2, "retracted": 4}


def test_each_partition_gets_its_own(tmp_path):
    desk = Taken(tmp_path, partition_by={"prefix_template": "date=%Y-%m-%d"})
    for day in (1, 2):
        desk.land(f"date=2024-01-0{day}/a.ndjson", {"id": day})
        desk.land(f"date=2024-01-0{day}/b.ndjson", {"id": day + 10})
    desk.ingest()
    name = "date=2024-01-02/a.ndjson"
    desk.land(name, {"id": 22})
    desk.replace(name, by=name)
    desk.penguin()
    assert sorted((row["id"], str(row["date"])) for row in desk.rows()) == [
        (1, "2024-01-01"),
        (11, "2024-01-01"),
        (12, "2024-01-02"),
        (22, "2024-01-02"),
    ]


def test_bad_lines_of_the_old_content_are_given_up_and_those_of_the_new_wait(tmp_path):
    desk = Taken(tmp_path, {"fields": [ID]}, more=QUARANTINE)
    desk.land("a.ndjson", {"id": 1}, {"id": "old"})
    desk.ingest()
    desk.land("a.ndjson", {"id": 2}, {"id": "new"}, {"id": "newer"})
    desk.replace("a.ndjson", by="a.ndjson")
    desk.penguin()
    assert desk.ids() == [2]
    desk.amounts()
    found = status(desk)
    assert found["quarantine"] == {"waiting": 2, "replayed": 0, "filtered": 0, "discarded": 1}
    assert found["totals"]["rows"] == 2
    assert (found["totals"]["files"], found["totals"]["lines"]) == (2, 5)


def test_content_that_cannot_come_in_leaves_the_old_rows(tmp_path):
    """Nor what is not there, or not committed yet."""
    desk = landed(tmp_path, {"fields": [ID]}, more=QUARANTINE)
    before = desk.version, len(entries(desk.table))
    for content in ("not json", "", '{"id": "bad"}'):
        desk.land("b.ndjson", content)
        with pytest.raises(ContentNotRead, match="nothing was changed"):
            desk.replace("b.ndjson", by="b.ndjson")
    with pytest.raises(ObjectMissing, match="no source has a file"):
        desk.replace("a.ndjson", by="in:nowhere.ndjson")
    desk.penguin()
    assert (desk.version, len(entries(desk.table))) == before
    assert desk.ids() == [1, 2, 3, 4]
    desk.land("c.ndjson", {"id": 5})
    desk.blizzard()
    with pytest.raises(SourceNotRetractable, match="run penguin first"):
        desk.replace("c.ndjson", by="a.ndjson")


def test_rows_that_were_taken_back_come_again_with_their_own_file(tmp_path):
    """And the same content in the place of itself changes no row."""
    desk = landed(tmp_path)
    desk.take_back("b.ndjson")
    for _time in range(2):
        desk.replace("b.ndjson", by="b.ndjson")
        desk.penguin()
        assert sorted(desk.ids()) == [1, 2, 3, 4]
    assert desk.amounts()["in_table"] == 4


def test_an_entry_that_cannot_be_applied_adds_nothing_and_can_be_done_again(tmp_path):
    desk = landed(tmp_path, {"fields": [ID], "provenance": ["file"]})
    desk.land("c.ndjson", {"id": 5})
    desk.ingest()
    desk.land("b.ndjson", {"id": 30})
    desk.replace("b.ndjson", by="b.ndjson")
    desk.optimize()
    desk.penguin()
    assert sorted(desk.ids()) == [1, 2, 3, 4, 5]
    assert desk.amounts()["given_up"] == 1
    found = status(desk)
    assert (found["discarded_files"], found["discarded_rows"]) == (1, 1)
    answer = why(desk, "b.ndjson")
    assert (answer["state"], answer["reason"]) == ("changed", "not_applied")
    assert "the old rows are as they were" in answer["answer"]
    (reason,) = answer["retraction"]["reasons"]
    assert reason in answer["answer"]
    assert answer["next"][0]["commands"][0].endswith(" retract in:b.ndjson --replace in:b.ndjson")
    again = desk.cli("redo", "--file", "b.ndjson", "--yes")
    assert "blizzard retract with --replace again" in " ".join(again.output.split())
    desk.ingest()
    assert sorted(desk.ids()) == [1, 2, 3, 4, 5]
    desk.replace("b.ndjson", by="b.ndjson")
    desk.penguin()
    assert sorted(desk.ids()) == [1, 2, 5, 30]
    desk.amounts()


def test_new_files_that_are_gone_before_the_commit_are_told_as_the_reason(tmp_path):
    desk = landed(tmp_path)
    desk.land("b.ndjson", {"id": 30})
    desk.replace("b.ndjson", by="b.ndjson")
    (new,) = entries(desk.table)[-1].files
    (desk.table / new.filename).unlink()
    desk.penguin()
    assert sorted(desk.ids()) == [1, 2, 3, 4]
    answer = why(desk, "b.ndjson")
    assert answer["retraction"]["reasons"] == [f"{new.filename}: the file is gone"]
    assert f"({new.filename}: the file is gone). No row of the new" in answer["answer"]


def test_a_schema_that_the_table_refuses_leaves_the_old_rows(tmp_path):
    desk = landed(tmp_path)
    desk.configure({"fields": [{"name": "id", "type": "string"}]})
    desk.land("b.ndjson", {"id": "x"})
    desk.replace("b.ndjson", by="b.ndjson")
    desk.penguin()
    assert sorted(desk.ids()) == [1, 2, 3, 4]
    desk.amounts()


def test_a_batch_that_reads_the_same_file_meanwhile_gives_way(tmp_path):
    desk = landed(tmp_path)
    desk.land("c.ndjson", {"id": 9})

    class Overtaken(InProcessRunner):
        def run(self, units, work):
            desk.replace("b.ndjson", by="c.ndjson")
            return super().run(units, work)

    with pytest.raises(SourcesReplaced, match="entry 2"):
        pipeline_of(desk.settings, Overtaken()).step()
    desk.ingest()
    assert sorted(desk.ids()) == [1, 2, 9]
    desk.amounts()


def test_the_command_shows_first_and_then_does_it(tmp_path):
    desk = landed(tmp_path, {"fields": [ID]})
    desk.land("c.ndjson", "{nope")
    desk.ingest()
    shown = " ".join(desk.cli("retract", "b.ndjson", "--replace", "c.ndjson").output.split())
    assert "in:c.ndjson failed before: " in shown
    assert "[not_json]; if it fails again, the old rows stay" in shown
    desk.land("b.ndjson", {"id": 30})
    shown = desk.cli("retract", "b.ndjson", "--replace", "b.ndjson")
    assert shown.exit_code == 1
    assert "to be replaced with the rows of in:b.ndjson" in shown.output
    assert "add --yes to do it; in:b.ndjson is read now" in shown.output
    done = desk.cli("retract", "b.ndjson", "--replace", "b.ndjson", "--yes", "--output", "json")
    assert done.exit_code == 0, done.output
    row = json.loads(done.stdout)
    assert (row["replaced_by"], row["new_rows"], row["rows"]) == ("in:b.ndjson", 1, 2)
    desk.penguin()
    assert sorted(desk.ids()) == [1, 2, 30]


def test_printed_commands_name_the_source_where_two_have_the_same_path(tmp_path):
    desk = Taken(tmp_path, {"fields": [ID], "provenance": ["file"]})
    document = yaml.safe_load(desk.file.read_text())
    document["pipelines"]["default"]["sources"]["more"] = {"path": str(tmp_path / "more")}
    desk.file.write_text(yaml.safe_dump(document))
    for name, content in (("a", '{"id": 2}'), ("bad", '{"id": 3}')):
        put(tmp_path / "more", f"{name}.ndjson", content.encode())
    desk.land("a.ndjson", {"id": 1})
    desk.land("bad.ndjson", "{nope")
    desk.ingest()
    desk.land("a.ndjson", {"id": 10})
    (path,) = re.findall(r"\S*bad.ndjson$", desk.cli("dlq", "list").stdout, re.MULTILINE)
    for name in (path, "in:a.ndjson"):
        (way, *_others) = [one for one in why(desk, name)["next"] if one["commands"]]
        done = desk.cli(*shlex.split(way["commands"][-1])[3:])
        assert done.exit_code == 0, done.output
    desk.penguin()
    assert sorted(desk.ids()) == [2, 3, 10]
