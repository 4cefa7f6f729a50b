"""Deletion vectors, row ids and plain types of files that are rewritten."""

import struct
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blizzard.worker.find_rows import marked, places_in, ranges_of
from blizzard.worker.table_file import RowIds, TableFile, read_group
from lakebed.documents.deletion_vector import DeletionVector, from_z85
from lakebed.documents.records import FirstRow, RowColumns
from tests.support.deletion_vectors import bitmap, z85

PLACES = {
    "none": [],
    "array": [0, 1, 7, 65_535],
    "full array": [*range(0, 2 * 4096, 2)],
    "bitset": [*range(0, 2 * 4097, 2)],
    "whole container": [*range(65_536)],
    "many containers": [*range(5, 9 * 65_536, 30_011)],
    "three containers": [3, 65_536, 2 * 65_536 + 9],
    "array and bitset": [9, *range(65_536, 3 * 65_536, 3)],
    "more than 32 bits": [1, 2, (1 << 32) - 1, 1 << 32, (1 << 33) + 70_000],
}


@pytest.mark.parametrize("runs", [False, True], ids=["plain", "runs"])
@pytest.mark.parametrize("places", PLACES.values(), ids=PLACES)
def test_every_container_is_read(places: list[int], runs: bool) -> None:
    assert places_in(bitmap(places, runs=runs)).tolist() == places


@given(st.sets(st.integers(0, (1 << 34) - 1) | st.integers(0, 200_000)), st.booleans())
def test_any_bitmap_is_read(places: set[int], runs: bool) -> None:
    assert places_in(bitmap(places, runs=runs)).tolist() == sorted(places)


@pytest.mark.parametrize("damage", [b"", b"\0" * 12, bitmap([1, 2, 3])[:-2]])
def test_what_is_no_bitmap_is_an_error(damage: bytes) -> None:
    with pytest.raises((ValueError, struct.error)):
        places_in(damage)


def test_text_in_z85_is_read_as_it_is_written() -> None:
    body = bitmap([3, 4, 7, 11, 18, 29])
    assert from_z85(z85(body))[: len(body)] == body
    with pytest.raises(ValueError, match="Z85"):
        from_z85("abc~e")


def test_the_example_of_the_protocol_is_read() -> None:
    told = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
    assert places_in(from_z85(told)[:44]).tolist() == [3, 4, 7, 11, 18, 29]
    path = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4}
    vector = DeletionVector.of({**path, "sizeInBytes": 40, "cardinality": 6})
    assert vector is not None
    assert vector.file == "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert (vector.offset, vector.size, vector.rows) == (4, 40, 6)


@given(st.sets(st.integers(0, 40)))
def test_ranges_have_the_same_places(places: set[int]) -> None:
    given_places = np.array(sorted(places), np.int64)
    ranges = ranges_of(given_places)
    assert [place for start, end in ranges for place in range(start, end)] == sorted(places)
    assert all(end < start for (_, end), (start, _) in pairwise(ranges))
    assert np.flatnonzero(marked(given_places, 10, 20)).tolist() == [
        place - 10 for place in sorted(places) if 10 <= place < 30
    ]


KEPT = RowColumns(ids="_ids", versions="_versions")
IDS = RowIds(KEPT, FirstRow(id=100, version=7))


@pytest.fixture
def opened(tmp_path):
    def write(**columns):
        path = tmp_path / "file.parquet"
        pq.write_table(pa.table(columns), path, row_group_size=2)
        return pq.ParquetFile(path)

    return write


def told(file):
    groups = [group.read() for group in TableFile(file, None, IDS).row_groups()]
    rows = pa.concat_tables(groups).to_pylist()
    return [(row["id"], row["_ids"], row["_versions"]) for row in rows]


def test_rows_are_numbered_from_the_first_of_the_file_on_over_all_row_groups(opened):
    assert told(opened(id=[1, 2, 3, 4, 5])) == [
        (1, 100, 7), (2, 101, 7), (3, 102, 7), (4, 103, 7), (5, 104, 7)
    ]  # fmt: skip


def test_what_a_file_says_of_a_row_comes_first(opened):
    """Of a row that was changed when it was moved it says the id alone."""
    file = opened(_ids=[3, None, 9], id=[1, 2, 3], _versions=[None, 4, 2])
    assert told(file) == [(1, 3, 7), (2, 101, 4), (3, 9, 2)]


def test_some_columns_are_read_without_ids_and_ids_alone(opened):
    file = TableFile(opened(id=[1, 2, 3], _ids=[7, 8, 9]), None, IDS)
    assert file.names == ["id", "_ids", "_versions"]
    _first, last = file.row_groups()
    assert last.read(["id"]).to_pydict() == {"id": [3]}
    assert last.read(["_ids"]).to_pydict() == {"_ids": [9]}


VIEW = pa.string_view()


def test_texts_and_bytes_are_plain_inside_of_columns_too(tmp_path):
    noted: dict[str, pa.DataType] = {
        "text": VIEW,
        "bytes": pa.binary_view(),
        "struct": pa.struct([pa.field("inner", VIEW)]),
        "list": pa.list_(VIEW),
    }
    row = {"text": "a", "bytes": b"b", "struct": {"inner": "c"}, "list": ["d", None]}
    pq.write_table(pa.Table.from_pylist([row], pa.schema(noted)), tmp_path / "a.parquet")
    with pq.ParquetFile(tmp_path / "a.parquet") as file:
        assert file.schema_arrow.field("text").type == VIEW
        table = read_group(file, 0)
        assert read_group(file, 0, ["text"]).column_names == ["text"]
    assert "view" not in str(table.schema)
    assert table.take([0]).to_pylist() == [row]
