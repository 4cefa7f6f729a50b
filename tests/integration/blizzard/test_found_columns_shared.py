"""Found columns where somebody else has a say: another pipeline, a strict table, an operator."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from deltalake import DeltaTable

from blizzard.config import load as blizzard_config
from blizzard.model.settings import PipelineSettings
from blizzard.pipeline_log import PipelineLog
from blizzard.repair.redo import RedoRequest, redo
from lakebed.types import RESCUED
from tests.support.builders import entries
from tests.support.open_table import ID, OpenTable
from tests.support.pipelines import pipeline_of
from tests.support.runner import InProcessRunner

ADD = {"fields": [ID], "unknown_fields": "add"}


class Two(OpenTable):
    """Two pipelines that write one table."""

    def __init__(self, folder: Path, schema: dict[str, Any] | None) -> None:
        super().__init__(folder, schema)
        pipelines = {}
        for name in ("a", "b"):
            (folder / name).mkdir()
            pipelines[name] = {
                "sources": {name: {"path": str(folder / name)}},
                "sink": {"path": str(self.table)},
            }
            if schema is not None:
                pipelines[name]["schema"] = schema
        tables = {"t": {"table_uri": str(self.table)}}
        self.file.write_text(yaml.safe_dump({"pipelines": pipelines, "tables": tables}))
        self.folder = folder

    def land(self, name: str, *records: Any) -> None:
        body = "".join(json.dumps(each) + "\n" for each in records)
        (self.folder / name).write_text(body)

    def settings_of(self, pipeline: str) -> PipelineSettings:
        every = blizzard_config.load([self.file], [], {}).pipelines
        return next(each for each in every if each.name == pipeline)

    def write(self, pipeline: str) -> None:
        running = pipeline_of(self.settings_of(pipeline), InProcessRunner())
        while running.step():
            pass

    def read_again(self, pipeline: str) -> int | None:
        held = frozenset(path.stem for path in self.table.glob("*.parquet"))
        fates = PipelineLog(self.settings_of(pipeline)).fates
        held = frozenset(name for name in held if fates([name])[name] is not None)
        _found, number = redo(
            self.store, pipeline, fates, clock=self.clock, wanted=RedoRequest(files=held)
        )
        return number

    @property
    def sink(self):
        return blizzard_config.load([self.file], [], {}).pipelines[0].sink


def test_of_two_types_for_one_column_the_first_stays_and_a_redo_brings_the_other_in(tmp_path):
    """Nothing is lost: what does not fit the column of the table is in `_rescued` in the end."""
    desk = Two(tmp_path, ADD)
    desk.land("a/1.ndjson", {"id": 1, "n": 1})
    desk.land("b/1.ndjson", {"id": 2, "n": "two"}, {"id": 3, "n": "three", "m": {"x": 1}})
    desk.write("a")
    desk.write("b")
    desk.penguin()
    assert [row["id"] for row in desk.rows()] == [1]
    said = desk.order("held").stdout
    assert "n: the table has type long, the files have type string" in " ".join(said.split())

    # The next batch knows better already, whether or not somebody looks at what is held.
    desk.land("b/2.ndjson", {"id": 4, "n": "four"}, {"id": 5, "n": 5})
    desk.write("b")
    desk.penguin()
    assert {row["id"]: row["n"] for row in desk.rows()} == {1: 1, 4: None, 5: 5}

    assert desk.read_again("b") is not None
    desk.penguin()
    desk.write("b")
    desk.penguin()
    rows = {row["id"]: row for row in desk.rows()}
    assert sorted(rows) == [1, 2, 3, 4, 5]
    assert (rows[2]["n"], rows[2][RESCUED]) == (None, '{"n":"two"}')
    assert (rows[3]["n"], rows[3]["m"]) == (None, {"x": 1})
    assert rows[4][RESCUED] == '{"n":"four"}'
    assert len(desk.rows()) == 5


def test_two_pipelines_may_find_different_fields_of_one_struct(tmp_path):
    desk = Two(tmp_path, None)
    desk.land("a/1.ndjson", {"id": 1, "user": {"age": 7, "tags": [{"k": 1}]}})
    desk.land("b/1.ndjson", {"id": 2, "user": {"name": "x", "tags": [{"v": "y"}]}})
    desk.write("a")
    desk.write("b")
    desk.penguin()
    desk.land("b/2.ndjson", {"id": 3, "user": {"name": "z", "age": 8}})
    desk.write("b")
    desk.penguin()
    rows = {row["id"]: row["user"] for row in desk.rows()}
    assert (rows[1]["age"], rows[1]["tags"]) == (7, [{"k": 1, "v": None}])
    assert (rows[2]["name"], rows[2]["tags"]) == ("x", [{"k": None, "v": "y"}])
    assert (rows[3]["name"], rows[3]["age"]) == ("z", 8)


def test_a_column_of_json_texts_stays_one_though_the_table_calls_it_a_string(tmp_path):
    desk = OpenTable(tmp_path, ADD)
    desk.land("a.ndjson", {"id": 1, "n": 1}, {"id": 2, "n": "x"})
    desk.ingest()
    desk.land("b.ndjson", {"id": 3, "n": [True]})
    desk.ingest()
    assert [row["n"] for row in desk.rows()] == ["1", '"x"', "[true]"]


@pytest.fixture
def strict(tmp_path):
    desk = OpenTable(tmp_path, ADD)
    desk.land("a.ndjson", {"id": 1})
    desk.ingest()
    evolves(desk, "strict")
    return desk


def evolves(desk: OpenTable, mode: str) -> None:
    document = yaml.safe_load(desk.file.read_text())
    document["tables"]["t"]["schema_evolution"] = mode
    desk.file.write_text(yaml.safe_dump(document))


def held(desk: OpenTable) -> str:
    return " ".join(desk.order("held").stdout.split())


def test_a_strict_table_holds_a_new_column_by_name_until_it_is_let_in(strict):
    strict.land("b.ndjson", {"id": 2, "n": 7})
    strict.ingest()
    assert [row["id"] for row in strict.rows()] == [1]
    assert "n: the table does not have it, the files have type long" in held(strict)
    assert "add it with ALTER TABLE, or let it in once with schema_evolution: merge" in held(strict)
    evolves(strict, "merge")
    assert strict.order("release", "--all").exit_code == 0
    evolves(strict, "strict")
    strict.land("c.ndjson", {"id": 3})
    strict.ingest()
    assert strict.rows() == [{"id": 1, "n": None}, {"id": 2, "n": 7}, {"id": 3, "n": None}]


def test_a_strict_table_holds_rescued_values_by_name_and_says_how_to_go_without(tmp_path):
    desk = OpenTable(tmp_path, {"fields": [ID]})
    desk.land("a.ndjson", {"id": 1})
    desk.ingest()
    evolves(desk, "strict")
    desk.land("b.ndjson", {"id": 2, "n": 7})
    desk.ingest()
    assert [row["id"] for row in desk.rows()] == [1]
    assert f"{RESCUED}: the table does not have it" in held(desk)
    assert "unknown_fields: drop leaves such values out instead" in held(desk)
    evolves(desk, "merge")
    assert desk.order("release", "--all").exit_code == 0
    evolves(desk, "strict")
    desk.land("c.ndjson", {"id": 3})
    desk.ingest()
    assert [row[RESCUED] for row in desk.rows()] == [None, '{"n":7}', None]


@pytest.mark.parametrize("mode", ["strict", "overwrite"])
def test_a_pipeline_without_rescued_values_leaves_the_column_in_the_table(tmp_path, mode):
    """Files have `_rescued` only where something is in it: whoever has none asks for nothing."""
    desk = Two(tmp_path, {"fields": [ID]})
    desk.land("a/1.ndjson", {"id": 1, "x": 1})
    desk.write("a")
    desk.penguin()
    evolves(desk, mode)
    desk.land("b/1.ndjson", {"id": 2})
    desk.write("b")
    desk.penguin()
    assert [row[RESCUED] for row in desk.rows()] == ['{"x":1}', None]


def test_a_redo_reads_a_batch_with_added_columns_again(tmp_path):
    desk = OpenTable(tmp_path, ADD)
    desk.land("a.ndjson", {"id": 1})
    desk.ingest()
    known = set(desk.table.glob("*.parquet"))
    desk.land("b.ndjson", {"id": 2, "n": 7, "tags": []})
    desk.blizzard()
    named = {file.filename for file in entries(desk.table)[-1].files}
    for path in set(desk.table.glob("*.parquet")) - known:
        if path.name in named:
            path.unlink()
    desk.penguin()
    _found, number = desk.redo()
    assert number is not None
    assert entries(desk.table)[number].columns == entries(desk.table)[number - 1].columns
    desk.ingest()
    assert desk.rows()[1] == {"id": 2, "n": 7, RESCUED: '{"tags":[]}'}
    assert DeltaTable(str(desk.table)).schema().to_json().count('"n"') == 1


def test_a_journal_that_takes_over_knows_the_columns_that_were_found(tmp_path):
    desk = OpenTable(tmp_path, None)
    desk.land("a.ndjson", {"id": 1, "n": 1, "m": 1, "e": {}}, {"id": 0, "m": "x"})
    desk.ingest()
    before = entries(desk.table)[-1]
    assert before.rescues
    desk.ends_well()
    document = yaml.safe_load(desk.file.read_text())
    sources = {"default": document.pop("source")}
    document["pipelines"] = {"renamed": {"sources": sources, "sink": document.pop("sink")}}
    desk.file.write_text(yaml.safe_dump(document))
    made = desk.cli("journal", "new", "--from", "default", "--yes")
    assert made.exit_code == 0, made.output
    opening = entries(desk.table, "renamed")[0]
    assert (opening.columns, opening.table_schema) == (before.columns, before.table_schema)
    desk.land("b.ndjson", {"id": 2, "n": "text", "m": True, "new": 1})
    desk.ingest()
    assert desk.rows()[2] == {
        "id": 2, "n": None, "m": "true", "new": 1, RESCUED: '{"n":"text"}'
    }  # fmt: skip
    assert desk.types["m"] == "string"


def test_a_source_that_is_added_leaves_the_found_columns_known(tmp_path):
    """In a table that `overwrite` replaces, an entry without files would take them out."""
    desk = OpenTable(tmp_path, None)
    evolves(desk, "overwrite")
    desk.land("a.ndjson", {"id": 1, "n": 1, "e": {}})
    desk.ingest()
    types = desk.types
    document = yaml.safe_load(desk.file.read_text())
    (tmp_path / "more").mkdir()
    sources = {"default": document.pop("source"), "more": {"path": str(tmp_path / "more")}}
    document["pipelines"] = {"default": {"sources": sources, "sink": document.pop("sink")}}
    desk.file.write_text(yaml.safe_dump(document))
    desk.ingest()
    assert desk.types == types
    assert entries(desk.table)[-1].columns is not None
