"""A folder of Parquet files becomes a Delta table that every reader reads."""

import json
import threading
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from lakebed.documents.parquet_footer import TAIL
from lakebed.errors import ListingUnordered
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from penguin.model.settings import FolderUnfit
from tests.support.adoptions import Counting, Meddling, ParquetFolder
from tests.support.foreign import Directory
from tests.support.readers import added, ids, polars_ids, rows
from tests.support.tables import Penguin, TableDirectory, rows_of


@pytest.fixture
def folder(tmp_path: Path) -> ParquetFolder:
    """Return two days with two files each, as another program left them."""
    folder = ParquetFolder(tmp_path / "table")
    for day in (1, 2):
        for part in (1, 2):
            folder.file(f"date=2024-01-0{day}/part-{part}.parquet", [day * 10 + part])
    return folder


def test_the_table_has_the_rows_of_the_files_and_no_file_is_touched(folder):
    """A dry run finds the same, and writes nothing."""
    everything = sorted(folder.root.rglob("*"))
    seen = folder.look()
    assert sorted(folder.root.rglob("*")) == everything
    before = folder.files()
    found = folder.adopt()
    assert (seen.version, seen.totals) == (None, found.totals)
    assert (found.version, found.totals.files, found.totals.rows) == (0, 4, 4)
    columns = ["id", "name", "date"]
    assert sorted(map(str, rows(folder.root, columns))) == sorted(map(str, folder.rows(columns)))
    assert polars_ids(folder.root) == ids(folder.root) == [11, 12, 21, 22]
    assert folder.files() == before
    log = folder.root / "_delta_log"
    first = log / "00000000000000000000.json"
    told = json.loads(first.read_text().splitlines()[0])["commitInfo"]
    assert told["operation"] == "CONVERT"
    size = sum(size for size, _ in before.values())
    assert told["penguin"]["adopted"] == {"files": 4, "rows": 4, "bytes": size}
    checkpoint = "00000000000000000000.checkpoint.parquet"
    assert {path.name for path in log.iterdir()} == {first.name, checkpoint, "_last_checkpoint"}
    first.unlink()
    # The checkpoint alone says the same as the version.
    assert ids(folder.root) == polars_ids(folder.root) == [11, 12, 21, 22]


def test_readers_skip_files_by_the_bounds_of_their_footers(folder):
    folder.adopt()
    actions = pa.table(DeltaTable(str(folder.root)).get_add_actions(flatten=True)).to_pylist()
    assert {(one["min.id"], one["max.id"], one["num_records"]) for one in actions} == {
        (one, one, 1) for one in (11, 12, 21, 22)
    }
    for file in folder.root.glob("date=2024-01-01/*"):
        file.write_bytes(b"nobody needs to read this")
    assert ids(folder.root, "id > 20") == [21, 22]
    assert polars_ids(folder.root, pl.col("date") == "2024-01-02") == [21, 22]


def test_at_most_two_reads_a_file_and_no_more_than_its_footer(tmp_path):
    folder = ParquetFolder(tmp_path / "table")
    small = folder.file("small.parquet", [1])
    wide: dict[str, list[Any]] = {f"c{place}": ["x" * 50] * 3 for place in range(1500)}
    large = folder.file("wide.parquet", pa.table({"id": [2, 3, 4], **wide}))
    store = Counting(str(folder.root))
    folder.adopt(store)
    size = (folder.root / large).stat().st_size
    assert store.reads == {small: 1, large: 2}
    assert store.bytes[small] == (folder.root / small).stat().st_size
    assert TAIL < store.bytes[large] < TAIL + size


def test_bounds_are_kept_for_the_first_columns_only(tmp_path):
    folder = ParquetFolder(tmp_path / "table")
    folder.file("a.parquet", pa.table({f"c{place:03d}": [place] for place in range(50)}))
    found = folder.adopt()
    assert found.table is not None
    listed = found.table.configuration["delta.dataSkippingStatsColumns"].split(",")
    assert listed == [f"c{place:03d}" for place in range(32)]
    assert rows(folder.root, predicate="c049 = 49")


def test_partition_values_are_decoded_typed_and_null(tmp_path):
    folder = ParquetFolder(tmp_path / "table")
    folder.file("day=2024-01-01/m=07/city=S%C3%A3o%3A1/a.parquet", [1])
    folder.file("day=2024-01-02/m=11/city=__HIVE_DEFAULT_PARTITION__/b.parquet", [2])
    columns = {"day": "date", "m": "integer", "city": "string"}
    folder.adopt(partition_columns=tuple(columns), partition_types=columns)
    expected = [
        {"id": 1, "day": date(2024, 1, 1), "m": 7, "city": "São:1"},
        {"id": 2, "day": date(2024, 1, 2), "m": 11, "city": None},
    ]
    assert sorted(rows(folder.root, list(expected[0])), key=lambda row: row["id"]) == expected
    frame = pl.scan_delta(str(folder.root)).select(list(expected[0])).sort("id").collect()
    assert frame.to_dicts() == expected


def test_a_partition_column_inside_the_files_gives_its_type(tmp_path):
    folder = ParquetFolder(tmp_path / "table")
    day = date(2024, 1, 1)
    folder.file("day=2024-01-01/a.parquet", pa.table({"id": [1], "day": [day]}))
    folder.adopt()
    assert rows(folder.root, ["id", "day"]) == [{"id": 1, "day": day}]


def test_columns_of_all_files_are_there_with_the_type_that_reads_them_all(tmp_path):
    folder = ParquetFolder(tmp_path / "table")
    for place, (kind, number) in enumerate([(pa.int32(), 7), (pa.int64(), 2**40), (pa.int16(), 3)]):
        for copy in range(3 - place):  # The narrowest is not what decides, and neither is the first
            body: dict[str, Any] = {"id": pa.array([number], kind), f"only{place}": [1.5]}
            folder.file(f"{place}-{copy}.parquet", pa.table(body))
    found = folder.adopt()
    assert found.table is not None
    assert [one["name"] for one in found.table.schema["fields"]] == [
        *("id", "only0", "only1", "only2"),
    ]
    assert ids(folder.root) == polars_ids(folder.root) == [3, 7, 7, 7, 2**40, 2**40]
    assert ids(folder.root, "id > 100") == [2**40, 2**40]


def test_every_plain_type_is_read_as_it_was_written(tmp_path):
    folder = ParquetFolder(tmp_path / "table")
    row = {
        "id": 1,
        "d": Decimal("12.34"),
        "at": datetime(2024, 1, 1, 12, 30),  # noqa: DTZ001 - a local time
        "on": date(2024, 1, 1),
        "b": b"x",
        "s": {"in": [1, None]},
        "m": [("k", 1.5)],
        "cat": "a",
    }
    kinds: dict[str, Any] = {
        "id": pa.int64(),
        "d": pa.decimal128(10, 2),
        "at": pa.timestamp("us"),
        "on": pa.date32(),
        "b": pa.binary(),
        "s": pa.struct([("in", pa.list_(pa.int32()))]),
        "m": pa.map_(pa.string(), pa.float64()),
        "cat": pa.dictionary(pa.int32(), pa.string()),
    }
    table = pa.Table.from_pylist([row], schema=pa.schema(kinds))
    folder.file("a.parquet", table)
    folder.adopt()
    assert rows(folder.root) == [row]
    assert polars_ids(folder.root, pl.col("d") > 12) == [1]


def test_penguin_and_blizzard_go_on_with_the_table(folder):
    """Files that came later are committed; those that were adopted are not, whoever looks."""
    folder.adopt(partition_types={"date": "date"})
    visitor = Directory(folder.root)
    visitor.penguin(file_pattern="*.parquet").drain()
    assert visitor.versions() == 1
    folder.file("date=2024-01-03/part-1.parquet", [31])
    visitor.penguin(file_pattern="*.parquet").drain()
    assert ids(folder.root) == [11, 12, 21, 22, 31]
    table = TableDirectory(folder.root)
    table.journal().batch(rows_of(41, 42))
    Penguin(table).drain()
    assert ids(folder.root) == polars_ids(folder.root) == [11, 12, 21, 22, 31, 41, 42]
    assert len(added(folder.root)) == len(set(added(folder.root)))


def test_two_at_once_make_one_table(folder):
    """whoever is second finds the table, and says so."""
    found = []
    gate = threading.Barrier(2)

    def run() -> None:
        store = Store(str(folder.root), StorageOptions())
        create = store.create

        def together(path: str, body: bytes) -> object:
            if path.startswith("_delta_log/0"):
                gate.wait(300)
            return create(path, body)

        store.create = together  # type: ignore[method-assign, assignment]
        found.append(folder.adopt(store))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.before for one in found) == [False, True]
    assert {(one.version, one.totals.files) for one in found} == {(0, 4)}
    assert ids(folder.root) == [11, 12, 21, 22]


@pytest.mark.parametrize("change", ["gone", "replaced", "new"])
def test_a_file_that_comes_goes_or_changes_before_the_commit_is_noticed(folder, change):
    """Nothing is done then; the next attempt has what is there."""

    def meddle() -> None:
        match change:
            case "gone":
                (folder.root / "date=2024-01-01/part-1.parquet").unlink()
            case "replaced":
                folder.file("date=2024-01-01/part-2.parquet", [120, 121])
            case _:
                folder.file("date=2024-01-03/part-1.parquet", [31])

    with pytest.raises(FolderUnfit, match="changed meanwhile"):
        folder.adopter(Meddling(str(folder.root), meddle)).adopt()
    assert not (folder.root / "_delta_log").exists()
    folder.adopt()
    expected = {
        "gone": [12, 21, 22],
        "replaced": [11, 21, 22, 120, 121],
        "new": [11, 12, 21, 22, 31],
    }
    assert ids(folder.root) == expected[change]


def test_a_folder_in_a_store_that_lists_in_no_order_is_sorted(folder):
    """The first listing finds out; it is made once more as a whole."""

    class Unordered(Store):
        def in_order(self, *given, **named):
            first, second, *_ = super().in_order(*given, **named)
            yield first
            raise ListingUnordered("the store lists in no order", path=second.path)

    found = folder.adopt(Unordered(str(folder.root), StorageOptions()))
    assert (found.version, found.totals.files) == (0, 4)
    assert ids(folder.root) == [11, 12, 21, 22]
