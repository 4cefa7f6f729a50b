"""Row groups that other writers have noted with views are read in plain types."""

import pyarrow as pa
import pyarrow.parquet as pq

from blizzard.worker.table_file import read_group

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
