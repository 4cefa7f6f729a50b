"""Columns of few texts as numbers of a dictionary: the same rows, the same statistics."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blizzard.model.settings import RollingPolicy
from blizzard.worker.ndjson.compiled.few_texts import MOST, numbered
from blizzard.worker.output.encoding import encoding_of
from blizzard.worker.output.parquet import RollingWriter
from lakebed.clock import Clock
from lakebed.documents.parquet_footer import statistics
from lakebed.types import ParquetCodec

TEXTS = st.text(max_size=10).filter(lambda text: len(text.encode()) <= 32)
CELLS = st.lists(st.none() | st.sampled_from(["", "a", "view", "8 bytes!", "x" * 32]) | TEXTS)


def chunked(rows: list[str | None], size: int, skipped: int = 0) -> Any:
    """Return the rows in parts of so many, each part of a larger array."""
    whole = pa.array([*["before"] * skipped, *rows], pa.string())
    parts = [whole.slice(at, size) for at in range(skipped, len(whole), size)]
    return pa.chunked_array(parts, pa.string())


@given(rows=CELLS, size=st.integers(1, 20), skipped=st.integers(0, 9))
def test_numbers_mean_the_texts_that_they_were_made_of(
    rows: list[str | None], size: int, skipped: int
) -> None:
    found: Any = numbered(chunked(rows, size, skipped))
    assert found.to_pylist() == rows
    values = found.chunk(0).dictionary.to_pylist() if found.num_chunks else []
    assert sorted(values) == sorted({text for text in rows if text is not None})


@pytest.mark.parametrize("most", [MOST - 1, MOST, MOST + 1])
def test_so_many_texts_have_a_number_and_no_more(most: int) -> None:
    rows: list[str | None] = [f"value-{number % most}" for number in range(500)]
    found = numbered(chunked(rows, 100))
    assert (found is None) == (most > MOST)
    assert found is None or found.to_pylist() == rows


def test_long_texts_and_such_that_differ_in_the_middle_alone_are_left_to_parquet() -> None:
    assert numbered(chunked(["short", "y" * 33], 2)) is None
    alike: list[str | None] = [f"service-{number % 40:04}.example" for number in range(200)]
    assert numbered(chunked(alike, 50)) is None


AT_THE_EDGE = """
import numpy as np, pyarrow as pa
from blizzard.worker.ndjson.compiled import few_texts
from tests.support.edge import EdgeNumpy
few_texts.np = EdgeNumpy(at_end=True)
for rows in ([], [""], ["a"], ["", None, "view"], ["x" * 32, "yz"], ["search"] * 300):
    column = pa.chunked_array([pa.array(rows, pa.string())])
    assert few_texts.numbered(column).to_pylist() == rows, rows
"""


def test_nothing_is_read_behind_the_last_text() -> None:
    subprocess.run([sys.executable, "-c", AT_THE_EDGE], check=True)


def table_of(texts: list[str | None]) -> pa.Table:
    return pa.table({"number": pa.array(range(len(texts))), "action": pa.array(texts, pa.string())})


def written(tables: list[pa.Table], folder: Path, **policy: Any) -> list[Path]:
    """Write tables, each as a row group of its own."""
    writer = RollingWriter(
        schema=tables[0].schema,
        policy=RollingPolicy(**policy),
        marks={},
        folder=folder,
        clock=Clock(),
    )
    closed = []
    for table in tables:
        for batch in table.to_batches(max_chunksize=1_000):
            writer.take(batch, "a")
        closed += list(writer.flush())
    closed += list(writer.close())
    return [file.path for file in closed]


ACTIONS = ["view", "search", "basket", "buy", None, ""]
CHANCE = np.random.default_rng(7)


def some(texts: list[Any], count: int) -> list[str | None]:
    return [texts[place] for place in CHANCE.integers(0, len(texts), count)]


def test_a_file_is_the_same_as_one_of_plain_texts(tmp_path: Path) -> None:
    tables = [table_of(some(ACTIONS, 12_000)), table_of(some(["zebra", *ACTIONS], 100))]
    assert encoding_of(tables[0], ParquetCodec.SNAPPY).few_texts == ("action",)
    (path,) = written(tables, tmp_path)
    plain = tmp_path / "plain.parquet"
    with pq.ParquetWriter(plain, tables[0].schema, store_schema=False) as writer:
        for table in tables:
            writer.write_table(table)

    rows, expected = pq.read_table(path), pa.concat_tables(tables)
    assert rows.schema.field("action").type == pa.string()
    assert rows.to_pylist() == expected.to_pylist()
    found, usual = pq.read_metadata(path), pq.read_metadata(plain)
    assert statistics(found) == statistics(usual)
    for number in range(2):
        column = found.row_group(number).column(1)
        assert column.statistics == usual.row_group(number).column(1).statistics
        assert column.has_dictionary_page
        assert set(column.encodings) == {"PLAIN", "RLE", "RLE_DICTIONARY"}
    assert b"ARROW:schema" not in (found.metadata or {})


def test_where_few_texts_become_many_another_file_begins(tmp_path: Path) -> None:
    many = [f"value-{number}" for number in range(1_000)]
    tables = [table_of(some(ACTIONS, 12_000)), table_of(some(many, 4_000)), table_of(["x", "y"])]
    first, second = written(tables, tmp_path)
    assert pq.read_table(first).to_pylist() == tables[0].to_pylist()
    assert pq.read_table(second).to_pylist() == pa.concat_tables(tables[1:]).to_pylist()


def test_a_file_that_begins_with_few_rows_has_plain_texts(tmp_path: Path) -> None:
    tables = [table_of(some(ACTIONS, 100)), table_of([f"value-{n}" for n in range(4_000)])]
    (path,) = written(tables, tmp_path)
    assert pq.read_table(path).to_pylist() == pa.concat_tables(tables).to_pylist()
