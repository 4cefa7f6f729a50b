"""Tables that map their columns, nested columns and odd paths: read by all, or refused before."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebed.types import Evolution
from penguin.events.backlog import FilesLeftOut
from tests.support.foreign import Directory
from tests.support.mapped import COLUMNS, DECLARED, MappedLake, field, make_mapped, row
from tests.support.tables import Penguin

LISTED = {"delta.dataSkippingStatsColumns": "id,name,who"}
MODES = ["name", "id"]


@pytest.fixture
def lake(tmp_path):
    return MappedLake(tmp_path)


def add_of(lake, version):
    lines = map(json.loads, lake.table.commit_text(version).splitlines())
    (add,) = [line["add"] for line in lines if "add" in line]
    return add


@pytest.mark.parametrize("mode", MODES)
def test_files_have_the_names_and_ids_of_the_table_at_every_depth(lake, mode):
    make_mapped(lake.table, mode, properties=LISTED)
    lake.land(1, 2)
    lake.write()
    penguin = Penguin(lake.table).drain()
    assert (penguin.codes, penguin.held) == ({}, {})
    add = add_of(lake, 1)
    schema = pq.read_schema(lake.table.root / add["path"])
    assert schema.names == ["col-1", "col-2", "col-3", "col-6", "col-8"]
    inner = [schema.field("col-3").type.field(place) for place in range(2)]
    assert [one.name for one in inner] == ["col-4", "a"]
    ids = [*map(schema.field, schema.names), *inner]
    assert [int(one.metadata[b"PARQUET:field_id"]) for one in ids] == [1, 2, 3, 6, 8, 4, 5]
    assert schema.field("col-6").type.value_type.field(0).name == "col-7"
    assert schema.field("col-8").type.item_type.field(0).name == "col-9"
    assert add["partitionValues"] == {"col-10": "2026-01-01"}
    assert json.loads(add["stats"]) == {
        "numRecords": 2,
        "minValues": {"col-1": 1, "col-2": "n1", "col-3": {"col-4": 1}},
        "maxValues": {"col-1": 2, "col-2": "n2", "col-3": {"col-4": 2}},
        "nullCount": {"col-1": 0, "col-2": 0, "col-3": {"col-4": 0, "a": 2}},
    }


def test_every_row_is_read_and_found_under_the_names_that_people_see(lake):
    make_mapped(lake.table, "name", properties=LISTED)
    lake.land(1, 2)
    lake.write()
    Penguin(lake.table, options={"checkpoint_interval": 1}).drain()
    found = lake.table.rows()
    assert [{**one, "pairs": dict(one["pairs"])} for one in found] == [
        {**row(number), "date": found[0]["date"]} for number in (1, 2)
    ]
    assert lake.table.ids("id = 2") == [2]


@pytest.mark.parametrize("mode", MODES)
def test_files_that_were_written_under_other_names_are_held_with_the_way_out(lake, mode):
    """Somebody changed the table after they were written: their values would be read as null."""
    make_mapped(lake.table, mode)
    lake.land(1)
    lake.write()
    changed = [COLUMNS[0], field("name", "string", 11), *COLUMNS[2:]]
    (lake.table.root / "_delta_log" / f"{0:020d}.json").unlink()
    make_mapped(lake.table, mode, changed)
    penguin = Penguin(lake.table).drain()
    assert "the files hold name under other name" in penguin.why()
    assert "blizzard redo" in penguin.why()
    # What is written from now on is written under the names of now.
    lake.land(2)
    lake.write()
    assert Penguin(lake.table).drain().codes == {}
    assert add_of(lake, 2)["stats"].count("col-11") == 1


@pytest.mark.parametrize(("mode", "fits"), [("name", True), ("id", False)])
def test_files_that_know_nothing_of_ids_fit_where_names_are_the_same(lake, mode, fits):
    same = [{**one, "metadata": {**one["metadata"], **name(one)}} for one in COLUMNS[:2]]
    make_mapped(lake.table, mode, [*same, COLUMNS[-1]])
    journal = lake.table.journal()
    journal.batch([{"id": 1, "name": "n1", "date": "2026-01-01"}])
    penguin = Penguin(lake.table).drain()
    assert (penguin.held == {}) == fits


def name(one):
    return {"delta.columnMapping.physicalName": one["name"]}


def test_a_column_that_the_table_lacks_is_added_with_spark_and_its_files_wait(lake):
    make_mapped(lake.table, "name", [*COLUMNS[:1], COLUMNS[-1]])
    lake.land(1)
    lake.write()
    penguin = Penguin(lake.table, options={"evolution": Evolution.MERGE}).drain()
    assert "list, name, pairs, who: add columns to the table with Spark" in penguin.why()


def test_files_without_rescued_values_go_into_a_table_without_a_column_for_them(lake):
    make_mapped(lake.table, "name")
    for number, more in enumerate([{}, {"zz": 1}, {}]):
        path = lake.folder / f"landing/date=2026-01-01/{number}.ndjson"
        path.write_text(json.dumps({**row(number), **more}) + "\n")
        lake.write(DECLARED, "  unknown_fields: rescue\n")
        penguin = Penguin(lake.table, options={"evolution": Evolution.MERGE}).drain()
    assert lake.table.ids() == [0, 2]
    assert "_rescued: add columns to the table with Spark" in penguin.why()


def test_values_without_a_column_stay_readable(lake):
    """`_rescued` is a column of the table like any other."""
    fields = [*COLUMNS, field("_rescued", "string", 11)]
    make_mapped(lake.table, "name", fields)
    lake.land(1)
    fewer = DECLARED.replace("    - {name: name, type: string}\n", "")
    lake.write(fewer, "  unknown_fields: rescue\n")
    assert Penguin(lake.table).drain().held == {}
    assert lake.table.rows()[0]["_rescued"] == '{"name":"n1"}'


@pytest.mark.parametrize("unknown", ["rescue", "add", "drop"])
def test_rows_go_to_partitions_by_their_own_values(lake, unknown):
    """What was looked at has `_rescued`, in which nothing repeats itself, and no file has it."""
    make_mapped(lake.table, "name", [*COLUMNS, field("at", "timestamp", 11)])
    for number in (1, 2):
        said = {**row(number), "at": f"2026-01-0{number}T12:00:00Z"}
        lines = (json.dumps({**said, "id": 10 * number + each}) + "\n" for each in range(3))
        (lake.folder / f"landing/{number}.ndjson").write_text("".join(lines))
    declared = f"{DECLARED}    - {{name: at, type: timestamp}}\n"
    lake.write(declared, f"  unknown_fields: {unknown}\n", timestamp_field="at")
    penguin = Penguin(lake.table).drain()
    assert (penguin.codes, penguin.held) == ({}, {})
    found = sorted((one["id"], str(one["date"]), one["name"]) for one in lake.table.rows())
    assert found == [
        (10 * number + each, f"2026-01-0{number}", f"n{number}")
        for number in (1, 2)
        for each in range(3)
    ]


def test_columns_that_say_where_rows_came_from_have_the_names_of_the_table(lake):
    """The values of these columns repeat, and are dictionaries until they are written."""
    kinds = {"_file": "string", "_line": "long", "_batch": "string", "_ingested_at": "timestamp"}
    more = [field(name, kind, 11 + place) for place, (name, kind) in enumerate(kinds.items())]
    make_mapped(lake.table, "name", [*COLUMNS, *more])
    lake.land(1, 2)
    lake.write(schema="  provenance: [file, line, batch, ingested_at]\n")
    penguin = Penguin(lake.table).drain()
    assert (penguin.codes, penguin.held) == ({}, {})
    found = sorted(lake.table.rows(), key=lambda one: one["id"])
    assert [one["_line"] for one in found] == [1, 2]
    assert {one["_file"].rpartition("/")[2] for one in found} == {"1.ndjson"}
    assert None not in {one[name] for one in found for name in ("_batch", "_ingested_at")}
    assert [one["list"] for one in found] == [row(1)["list"], row(2)["list"]]


A = pa.struct([("a", pa.int64())])
B = pa.struct([("b", pa.int64())])
BOTH = pa.struct([("a", pa.int64()), ("b", pa.int64())])
TURNED = pa.struct([("b", pa.int64()), ("a", pa.int64())])
SMALL = pa.struct([("a", pa.int32())])

WRAPS: dict[str, tuple[Callable[[Any], pa.DataType], Callable[[Any], Any]]] = {
    "struct": (lambda kind: kind, lambda value: value),
    "list": (pa.list_, lambda value: [value]),
    "map": (lambda kind: pa.map_(pa.string(), kind), lambda value: {"k": value}),
    "map of lists": (
        lambda kind: pa.map_(pa.string(), pa.list_(kind)),
        lambda value: {"k": [value]},
    ),
}


@pytest.fixture
def table(tmp_path: Path) -> Directory:
    return Directory(tmp_path / "table")


def commit(table, number, kind, value, mode):
    """Let another program write one row, and penguin look at it; say why it is not committed."""
    columns = {"id": pa.array([number]), "x": pa.array([value], kind)}
    table.file(folder="", data=pa.table(columns))
    table.hands.at += 1
    return [one.reason for one in table.penguin(evolution=mode).drain().told(FilesLeftOut)]


def plain(value):
    """Turn the pairs of a map into a dict."""
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return {key: plain(inner) for key, inner in value}
    return [plain(one) for one in value] if isinstance(value, list) else value


def read_by_all(table):
    """Return the rows, by their ids, as deltalake, pyarrow and polars read them alike."""
    delta = table.delta()
    found = [
        pa.table(delta.scan().read_all()).to_pylist(),
        delta.to_pyarrow_dataset().to_table(use_threads=False).to_pylist(),
        pl.scan_delta(str(table.root)).collect().to_dicts(),
    ]
    first, *rest = ({row["id"]: plain(row["x"]) for row in rows} for rows in found)
    assert rest == [first, first]
    return first


@pytest.mark.parametrize("wrap", ["struct", "list"])
@pytest.mark.parametrize(
    ("mode", "kinds", "rows"),
    [
        (Evolution.MERGE, (A, BOTH), ({"a": 1, "b": None}, {"a": 2, "b": 3})),
        (Evolution.MERGE, (A, B), ({"a": 1, "b": None}, {"a": None, "b": 3})),
        (Evolution.OVERWRITE, (A, B), ({"a": 1, "b": None}, {"a": None, "b": 3})),
        (Evolution.OVERWRITE, (BOTH, A), ({"a": 1, "b": None}, {"a": 2, "b": None})),
        (Evolution.OVERWRITE, (A, BOTH, B), ({"a": 1, "b": None}, {"a": 2, "b": 3})),
    ],
)
def test_a_struct_that_changes_is_read_by_every_reader(table, wrap, mode, kinds, rows):
    """HOLES W25: of each file at least one field is in the table's struct."""
    made, put = WRAPS[wrap]
    values = {"a": 1}, {"a": 2, "b": 3}, {"b": 4}
    for number, kind in enumerate(kinds):
        inside = {name: values[number].get(name) for name in (one.name for one in kind)}
        assert commit(table, number, made(kind), put(inside), mode) == []
    found = read_by_all(table)
    assert [found[number] for number in (0, 1)] == [put(row) for row in rows]
    assert len(found) == len(kinds)


@pytest.mark.parametrize(
    ("wrap", "mode", "first", "second"),
    [
        ("map", Evolution.STRICT, A, BOTH),
        ("map", Evolution.MERGE, A, BOTH),
        ("map", Evolution.OVERWRITE, BOTH, A),
        ("map of lists", Evolution.MERGE, BOTH, A),
        ("map of lists", Evolution.OVERWRITE, A, B),
    ],
)
def test_other_fields_of_a_struct_in_a_map_are_refused_before_the_commit(
    table, wrap, mode, first, second
):
    """HOLES W25: committed, deltalake could not scan it, or gave values of one field as another."""
    made, put = WRAPS[wrap]
    commit(table, 0, made(first), put(dict.fromkeys((one.name for one in first), 1)), mode)
    after = put(dict.fromkeys((one.name for one in second), 2))
    (reason,) = commit(table, 1, made(second), after, mode)
    assert "inside a map" in reason
    assert set(read_by_all(table)) == {0}


@pytest.mark.parametrize("wrap", ["map", "map of lists"])
@pytest.mark.parametrize(("first", "second"), [(BOTH, TURNED), (A, SMALL)])
def test_the_same_fields_of_a_struct_in_a_map_go_in(table, wrap, first, second):
    made, put = WRAPS[wrap]
    for number, kind in enumerate((first, second)):
        value = {one.name: 10 * number + place for place, one in enumerate(sorted(kind, key=str))}
        assert commit(table, number, made(kind), put(value), Evolution.MERGE) == []
    wanted = {one.name: 10 + place for place, one in enumerate(sorted(first, key=str))}
    assert read_by_all(table)[1] == put(wanted)


@pytest.mark.parametrize("partitioned", [True, False])
def test_paths_that_readers_take_for_something_else_are_refused_before_the_commit(
    table, partitioned
):
    """HOLES W25: one such path in the log makes the whole table unreadable to Spark or others."""
    odd = {"a:b=1/{name}": "colon", "p=12:30/{name}": "colon", "p=1/a:b.parquet": "colon"}
    odd = {**odd, "p=*/{name}": "star"} if partitioned else {"a:b.parquet": "colon"}
    bad = {table.file(9, path=path.format(name=Path(table.path("")).name)): path for path in odd}
    good = table.file(1, folder="p=1" if partitioned else "")
    told = table.penguin(file_pattern="*.parquet").drain().told(FilesLeftOut)
    left = {path: one for one in told for path in one.paths}
    assert left.keys() == bad.keys()
    assert {one.code for one in told} == {"file_unfit"}
    assert all(odd[path] in left[file].reason for file, path in bad.items())
    assert table.ids() == [1], good


@pytest.mark.parametrize("folder", ["p=12%3A30", "q=1/p=12:30"])
def test_a_colon_that_harms_no_reader_is_taken(table, folder):
    """HOLES W25: escaped as Spark and blizzard do, or below the first folder."""
    table.file(1, folder=folder)
    table.penguin().drain()
    assert [row["p"] for row in table.rows()] == ["12:30"]
    assert pl.scan_delta(str(table.root)).collect()["p"].to_list() == ["12:30"]
