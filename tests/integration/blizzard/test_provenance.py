"""Columns that say where a row came from, in tables that other programs read."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from blizzard.config.load import load
from blizzard.handoff.publish import Publisher
from blizzard.model.settings import PipelineSettings
from lakebed.clock import Clock
from lakebed.documents.entry import encode
from lakebed.errors import ConfigInvalid
from lakebed.journal import JournalReader
from lakebed.layout import journal_entry
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Created, Store
from penguin.pipeline import InlineCommitter
from tests.support.builders import entries, ndjson, put
from tests.support.pipelines import pipeline_of
from tests.support.readers import rows
from tests.support.runner import InProcessRunner

ALL = ["file", "line", "batch", "ingested_at"]
FIELDS = [{"name": "id", "type": "int64"}]


def settings_of(folder: Path, **schema: Any) -> PipelineSettings:
    document = {
        "source": {"path": str(folder / "in")},
        "sink": {"path": str(folder / "table")},
        "schema": schema,
    }
    (folder / "pipeline.yaml").write_text(json.dumps(document))
    (settings,) = load([folder / "pipeline.yaml"], [], {}).pipelines
    return settings


def run(folder: Path, runner: InProcessRunner | None = None, **schema: Any) -> None:
    """Ingest what has landed, and commit it."""
    uri = str(folder / "table")
    commit = InlineCommitter.of(None, uri, StorageOptions(), emit=lambda _e: None, clock=Clock())
    pipeline = pipeline_of(
        settings_of(folder, **schema),
        runner or InProcessRunner(),
        publisher=Publisher(commit=commit),
    )
    while pipeline.step():
        pass
    assert pipeline.statistics.files_failed == 0


def by_id(folder: Path, *columns: str) -> dict[int, tuple[Any, ...]]:
    found = rows(folder / "table", ["id", *columns])
    return {row["id"]: tuple(row[name] for name in columns) for row in found}


def test_every_row_says_its_file_its_line_its_batch_and_when(tmp_path: Path) -> None:
    put(tmp_path / "in", "a.ndjson", b'{"id":1}\n\n{"id":2}\n')
    put(tmp_path / "in", "b.ndjson", b'{"id":3}\n')
    began = datetime.now(UTC)
    run(tmp_path, fields=FIELDS, provenance=ALL)
    source = str(tmp_path / "in")
    (entry,) = (one for one in entries(tmp_path / "table") if one.files)
    batch = f"default/{entry.journal}/{entry.sequence}"
    assert by_id(tmp_path, "_file", "_line", "_batch") == {
        1: (f"{source}/a.ndjson", 1, batch),
        2: (f"{source}/a.ndjson", 3, batch),
        3: (f"{source}/b.ndjson", 1, batch),
    }
    ((at,),) = set(by_id(tmp_path, "_ingested_at").values())
    assert began <= at <= datetime.now(UTC)
    (file,) = entry.files
    assert (file.statistics["_line"].minimum, file.statistics["_line"].maximum) == (1, 3)
    assert file.statistics["_batch"].null_count == 0
    types = {one.name: str(one.type) for one in DeltaTable(tmp_path / "table").schema().fields}
    assert types["_file"] == 'PrimitiveType("string")'
    assert types["_line"] == 'PrimitiveType("long")'
    assert types["_ingested_at"] == 'PrimitiveType("timestamp")'


def test_columns_that_are_asked_for_later_are_null_in_older_rows(tmp_path: Path) -> None:
    """A field of the records with such a name does not fill the column."""
    put(tmp_path / "in", "a.ndjson", b'{"id":1}\n')
    run(tmp_path, fields=FIELDS)
    put(tmp_path / "in", "b.ndjson", b'{"id":2,"_file":"mine","_FILE":"mine, too"}\n')
    run(tmp_path, fields=FIELDS, provenance=["line", "file"])
    put(tmp_path / "in", "c.ndjson", b'{"id":3}\n')
    run(tmp_path, fields=FIELDS)
    assert by_id(tmp_path, "_file", "_line", "_rescued") == {
        1: (None, None, None),
        2: (str(tmp_path / "in" / "b.ndjson"), 1, '{"_file":"mine","_FILE":"mine, too"}'),
        3: (None, None, None),
    }


def test_a_unit_that_runs_again_writes_the_same_rows(tmp_path: Path) -> None:
    """Spark repeats tasks, and only one of them counts: it does not matter which."""

    class Twice(InProcessRunner):
        def run(self, units: Any, work: Any) -> Any:
            super().run(units, work)
            return super().run(units, work)

    put(tmp_path / "in", "a.ndjson", ndjson([{"id": number} for number in range(5)]))
    run(tmp_path, Twice(), fields=FIELDS, provenance=ALL)
    written = sorted((tmp_path / "table").glob("*.parquet"))
    first, second = (pq.read_table(path) for path in written)
    assert first.num_rows == 5
    assert first.equals(second)


def clean_up(store: Store) -> None:
    """Append what a clean-up appends."""
    reader = JournalReader(store, "default")
    last = reader.stored(reader.numbers()[-1])
    assert last is not None
    entry = replace(last.successor("gc", Clock()), deleted=("gone",))
    assert isinstance(
        store.create(journal_entry("default", entry.sequence), encode(entry)), Created
    )


def test_the_batch_is_the_first_one_at_or_after_its_number(tmp_path: Path) -> None:
    """A command may append an entry while a batch runs, and takes the number of the batch."""
    table = tmp_path / "table"
    put(tmp_path / "in", "a.ndjson", b'{"id":1}\n')
    run(tmp_path, fields=FIELDS, provenance=ALL)

    class Meanwhile(InProcessRunner):
        def run(self, units: Any, work: Any) -> Any:
            clean_up(Store(str(table), StorageOptions()))
            return super().run(units, work)

    put(tmp_path / "in", "b.ndjson", b'{"id":2}\n')
    run(tmp_path, Meanwhile(), fields=FIELDS, provenance=ALL)
    kinds = {one.sequence: one.kind for one in entries(table)}
    ((batch,),) = {by_id(tmp_path, "_batch")[2]}
    number = int(batch.rpartition("/")[2])
    assert kinds[number] == "gc"
    own = min(one for one, kind in kinds.items() if one >= number and kind == "batch")
    (entry,) = (one for one in entries(table) if one.sequence == own)
    assert [record.path for record in entry.sources] == ["b.ndjson"]


@pytest.mark.parametrize("first", [[], ["file"]], ids=["never", "before"])
def test_no_field_of_the_data_becomes_a_provenance_column(tmp_path: Path, first: Any) -> None:
    """Commands that take rows back would trust what a record says of its source."""
    put(tmp_path / "in", "a.ndjson", b'{"id":1}\n')
    run(tmp_path, infer=True, provenance=first)
    put(tmp_path / "in", "b.ndjson", b'{"id":2,"_line":"seven","_FILE":"a.ndjson"}\n')
    run(tmp_path, infer=True)
    assert by_id(tmp_path, "_rescued")[2] == ('{"_line":"seven","_FILE":"a.ndjson"}',)
    names = {one.name for one in DeltaTable(str(tmp_path / "table")).schema().fields}
    assert names == {"id", "_rescued", *(f"_{one}" for one in first)}


def test_names_that_are_taken_are_refused(tmp_path: Path) -> None:
    taken = [*FIELDS, {"name": "_File", "type": "string"}]
    for fields, provenance, told in (
        (taken, ["file"], "_File is a provenance column; give this one another name"),
        (taken, [], "_File is a provenance column; give this one another name"),
        (FIELDS, ["file", "file"], "names a column twice"),
        (FIELDS, ["row"], "must be file, line, batch or ingested_at"),
    ):
        with pytest.raises(ConfigInvalid, match=told):
            settings_of(tmp_path, fields=fields, provenance=provenance)
