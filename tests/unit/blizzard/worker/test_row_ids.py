"""The ids of the rows of a file: what the file says of a row, or else what follows from the log."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blizzard.worker.table_file import RowIds, TableFile
from lakebed.columns.row_tracking import FirstRow, RowColumns

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
    groups = [TableFile(file, None, IDS).read(one) for one in range(file.num_row_groups)]
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
    assert file.read(1, ["id"]).to_pydict() == {"id": [3]}
    assert file.read(1, ["_ids"]).to_pydict() == {"_ids": [9]}
