"""A column filled from `_rescued`, from the command to the table that readers see."""

import json
from decimal import Decimal

import duckdb
import polars as pl
import pytest
from deltalake import DeltaTable

from blizzard.rewrite.promote import FieldNotPromotable
from blizzard.rewrite.transaction import PromotionPending
from lakebed.errors import SchemaConflict
from lakebed.types import RESCUED
from tests.support.promotions import ID, PRICE, Rescued


@pytest.fixture
def desk(tmp_path):
    desk = Rescued(tmp_path)
    desk.land(
        "a.ndjson",
        '{"id":1,"price":1.50,"user":{"plan":"free"}}',
        '{"id":2,"price":"much"}',
        '{"id":3}',
    )
    desk.ingest()
    desk.land("b.ndjson", {"id": 4, "other": True})
    desk.ingest()
    return desk


def test_values_that_fit_are_in_the_column_and_the_others_stay(desk):
    """Only the files that hold such values are replaced, in one version that changes data."""
    before, old, files = desk.rows(), desk.version, desk.active
    desk.configure({"fields": [ID, PRICE]})
    done = desk.promote("price")
    assert (sum(one.taken for one in done.rewritten), done.rewritten[0].left) == (1, 1)
    assert len(done.found.files) == 1
    assert desk.rows() == before
    desk.penguin()
    assert desk.column("price") == [
        (Decimal("1.50"), '{"user":{"plan":"free"}}'),
        (None, '{"price":"much"}'),
        (None, None),
        (None, '{"other":true}'),
    ]
    assert desk.rows(old) == before
    assert len(desk.active) == len(files) == 2
    assert len(desk.active & files) == 1
    text = (desk.table / f"_delta_log/{desk.version:020d}.json").read_text()
    actions = [json.loads(line) for line in text.splitlines()]
    kinds = [kind for action in actions for kind in action]
    assert kinds == ["commitInfo", "remove", "add", "txn", "txn", "txn"]
    assert actions[0]["commitInfo"]["operation"] == "UPDATE"
    moved = [one[kind] for one in actions for kind in one if kind in ("add", "remove")]
    assert all(each["dataChange"] for each in moved)


def test_the_next_batch_fills_the_same_column_and_another_type_is_refused(desk):
    desk.configure({"fields": [ID, PRICE]})
    desk.promote("price")
    desk.land("c.ndjson", '{"id":5,"price":7.25}')
    desk.ingest()
    assert desk.column("price")[4] == (Decimal("7.25"), None)
    assert desk.column("price")[0][0] == Decimal("1.50")
    desk.configure({"fields": [ID, {"name": "price", "type": "string"}]})
    with pytest.raises(SchemaConflict):
        desk.promote("price")


def test_all_readers_see_the_same_rows_before_and_after(desk):
    def read():
        uri = str(desk.table)
        columns = DeltaTable(uri).schema().to_arrow().names
        rows = [
            sorted(found, key=lambda row: row["id"])
            for found in (
                DeltaTable(uri).to_pyarrow_table().to_pylist(),
                pl.read_delta(uri).to_dicts(),
                _by_duckdb(desk),
            )
        ]
        return [[{name: row.get(name) for name in columns} for row in one] for one in rows]

    first, *others = read()
    assert others == [first, first]
    desk.configure({"fields": [ID, PRICE]})
    desk.promote("price")
    desk.penguin()
    first, *others = read()
    assert others == [first, first]
    assert first[0]["price"] == Decimal("1.50")


def _by_duckdb(desk):
    """Read the active files: DuckDB's extension for Delta is not at hand."""
    paths = [str(desk.table / path) for path in sorted(desk.active)]
    found = duckdb.connect().execute("select * from read_parquet(?, union_by_name = true)", [paths])
    names = [one[0] for one in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def test_a_field_inside_an_object_or_the_whole_object_becomes_a_column(desk):
    """What is not in the struct of the whole object stays."""
    plan = {"name": "plan", "type": "string", "from": "user.plan"}
    user = {"name": "user", "type": "struct", "fields": [{"name": "plan", "type": "string"}]}
    desk.land("c.ndjson", '{"id":5,"user":{"plan":"pro","age": 7}}', '{"id":6,"user":{"age":1}}')
    desk.ingest()
    before = desk.version
    desk.configure({"fields": [ID, plan]})
    desk.promote("plan")
    desk.penguin()
    found = desk.column("plan")
    assert found[0] == ("free", '{"price":1.50}')
    assert found[4:] == [("pro", '{"user.age":7}'), (None, '{"user":{"age":1}}')]
    DeltaTable(str(desk.table)).restore(before)
    desk.configure({"fields": [ID, user]})
    desk.promote("user")
    desk.penguin()
    assert desk.column("user")[0] == ({"plan": "free"}, '{"price":1.50}')
    assert desk.column("user")[4] == ({"plan": "pro"}, '{"user.age":7}')


def test_a_column_that_has_a_value_keeps_it(tmp_path):
    name = {"name": "name", "type": "string", "from": "meta.name"}
    desk = Rescued(tmp_path, {"fields": [ID, name]})
    desk.land("a.ndjson", '{"id":1,"name":"x","meta":{"name":"y"}}', '{"id":2,"name":"z"}')
    desk.ingest()
    desk.configure({"fields": [ID, {"name": "name", "type": "string"}]})
    desk.promote("name")
    desk.penguin()
    assert desk.column("name") == [("y", '{"name":"x"}'), ("z", None)]


def test_what_does_not_fit_may_fit_under_other_rules(tmp_path):
    count = {"name": "n", "type": "int64"}
    desk = Rescued(tmp_path, {"fields": [ID, count], "on_mismatch": "rescue"})
    desk.land("a.ndjson", {"id": 1, "n": "7"}, {"id": 2, "n": 8})
    desk.ingest()
    desk.configure({"fields": [ID, {**count, "coerce": True}], "on_mismatch": "rescue"})
    desk.promote("n")
    desk.penguin()
    assert desk.column("n") == [(7, None), (8, None)]


def test_partitions_stay_what_they_were_and_their_column_is_not_filled(tmp_path):
    desk = Rescued(tmp_path, partition_by={"prefix_template": "date=%Y-%m-%d"})
    desk.land("date=2024-01-01/a.ndjson", {"id": 1, "x": 1})
    desk.land("date=2024-01-02/b.ndjson", {"id": 2, "x": 2})
    desk.ingest()
    before = [row["date"] for row in desk.rows()]
    desk.configure({"fields": [ID, {"name": "date", "type": "date"}]})
    with pytest.raises(FieldNotPromotable, match="partition column"):
        desk.promote("date")
    desk.configure({"fields": [ID, {"name": "x", "type": "int64"}]})
    desk.promote("x")
    desk.penguin()
    assert [(row["x"], row["date"]) for row in desk.rows()] == [(1, before[0]), (2, before[1])]
    folders = {path.partition("/")[0] for path in desk.active}
    assert folders == {"date=2024-01-01", "date=2024-01-02"}
    found = DeltaTable(str(desk.table)).to_pyarrow_table(filters=[("id", "=", 2)])
    assert found.num_rows == 1


def test_a_column_is_added_by_its_type_where_columns_are_added(tmp_path):
    desk = Rescued(tmp_path)
    desk.land("a.ndjson", '{"id":1,"price":1.50}')
    desk.ingest()
    desk.configure({"fields": [ID], "unknown_fields": "add"})
    desk.promote("price", "decimal(10,2)")
    # Penguin has not committed it yet, and still the next batch knows the column and its type.
    desk.land("b.ndjson", '{"id":2,"price":2.25}')
    desk.ingest()
    assert desk.column("price") == [(Decimal("1.50"), None), (Decimal("2.25"), None)]


STRUCT = {"name": "user", "type": "struct", "fields": [{"name": "plan", "type": "string"}]}


def test_what_cannot_be_promoted_says_why_and_writes_nothing(desk):
    adds = {"fields": [ID], "unknown_fields": "add"}
    files = {path for path in desk.table.rglob("*") if path.is_file()}
    for schema, field, kind, says in (
        ({"fields": [ID]}, "price", "int64", "add it to schema.fields"),
        ({"fields": [ID, PRICE]}, "price", "int64", "leave out --type"),
        ({"fields": [ID, {**PRICE, "nullable": False}]}, "price", None, "nullable: true"),
        (adds, "a.b", "int64", "inside a struct"),
        ({"fields": [ID, STRUCT]}, "user.plan", None, "a column that reads its values from"),
        (adds, "tags[]", "int64", "a list or a map cannot be filled"),
        (adds, "price", "struct", "not possible here"),
        (adds, "price", None, "--type"),
        (adds, "ID", "int64", "not a name"),
    ):
        desk.configure(schema)
        with pytest.raises(FieldNotPromotable) as refused:
            desk.promote(field, kind)
        assert says in str(refused.value), field
    assert {path for path in desk.table.rglob("*") if path.is_file()} == files


def test_a_promotion_waits_for_the_one_before(desk):
    desk.configure({"fields": [ID, PRICE]})
    desk.promote("price")
    with pytest.raises(PromotionPending, match="run penguin"):
        desk.promote("price")
    desk.penguin()
    again = desk.promote("price")
    assert (again.entry, again.rewritten[0].left) == (None, 1)


def test_values_of_every_type_are_as_they_were(tmp_path):
    fields = [
        ID,
        *({"name": name, "type": name} for name in ("int8", "int16", "int32", "float32")),
        *({"name": name, "type": name} for name in ("float64", "boolean", "date", "json")),
        *({"name": name, "type": name} for name in ("timestamp", "timestamp_ntz", "binary")),
        {"name": "decimal", "type": "decimal(38,10)"},
        {"name": "list", "type": "list", "items": {"type": "struct", "fields": [PRICE]}},
        {"name": "map", "type": "map", "values": "string"},
        {"name": "struct", "type": "struct", "fields": [PRICE, {"name": "s", "type": "string"}]},
    ]
    record = {
        "id": 1,
        "int8": -128,
        "int16": 32767,
        "int32": -1,
        "float32": 0.5,
        "float64": 1e300,
        "boolean": False,
        "date": "1582-10-15",
        "json": {"a": [None]},
        "binary": "AP8=",
        "timestamp": "2024-01-01T00:00:00.123456Z",
        "timestamp_ntz": "1969-12-31T23:59:59.999999",
        "decimal": -1.5,
        "list": [{"price": 1}, None, {"price": None}],
        "map": {"k": "v", "": None},
        "struct": {"price": 2.25, "s": "\U00020000"},
    }
    desk = Rescued(tmp_path, {"fields": fields})
    desk.land("a.ndjson", {**record, "new": 1}, {"id": 2, "new": 2}, {**record, "id": 3})
    desk.ingest()
    before = desk.rows()
    desk.configure({"fields": [*fields, {"name": "new", "type": "int64"}]})
    desk.promote("new")
    desk.penguin()
    after = desk.rows()
    assert [row.pop("new") for row in after] == [1, 2, None]
    for row in before:
        row[RESCUED] = None
    assert after == before


def test_names_of_folders_that_need_escapes(tmp_path):
    region = {"name": "region", "type": "string"}
    at = {"name": "at", "type": "timestamp"}
    by = {"prefix_template": "region=%s/date=%Y-%m-%d", "timestamp_field": "at"}
    desk = Rescued(tmp_path, {"fields": [ID, region, at]}, partition_by=by)
    regions = ("a b", "50%", "ü=1", "a+b&c#d", "'x'")
    facts = {"at": "2024-01-01T00:00:00Z", "x": 1}
    desk.land("a.ndjson", *({"id": n, "region": r, **facts} for n, r in enumerate(regions)))
    desk.ingest()
    before = desk.rows()
    desk.configure({"fields": [ID, region, at, {"name": "x", "type": "int64"}]})
    desk.promote("x")
    desk.penguin()
    assert desk.rows() == [{**row, "x": 1, RESCUED: None} for row in before]
    found = pl.read_delta(str(desk.table)).sort("id").to_dicts()
    assert found == desk.rows()
    # The log names the new files as the store does, so they can be replaced once more.
    desk.promote("x")


def test_the_table_is_the_same_after_a_checkpoint_and_a_vacuum(desk):
    desk.configure({"fields": [ID, PRICE]})
    desk.promote("price")
    desk.penguin()
    before = desk.rows()
    table = DeltaTable(str(desk.table))
    table.create_checkpoint()
    gone = table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert len(gone) == 1
    assert desk.rows() == before
    found = DeltaTable(str(desk.table)).to_pyarrow_table(filters=[("price", "=", Decimal("1.50"))])
    assert found["id"].to_pylist() == [1]


@pytest.mark.unbalanced("rows_removed")
@pytest.mark.parametrize("how", ["put together", "rewritten"])
def test_files_that_others_have_put_together_or_rewritten_are_looked_into(desk, how):
    """deltalake notes texts as views in the files that a DELETE leaves."""
    table = DeltaTable(str(desk.table))
    table.optimize.compact() if how == "put together" else table.delete("id = 3")
    desk.configure({"fields": [ID, PRICE]})
    done = desk.promote("price")
    assert len(done.found.unknown) == 1
    desk.penguin()
    assert desk.column("price")[0] == (Decimal("1.50"), '{"user":{"plan":"free"}}')
    assert len(desk.rows()) == (4 if how == "put together" else 3)


def test_arrays_that_were_empty_before_their_column_came_are_filled_in(tmp_path):
    desk = Rescued(tmp_path, {"fields": [ID], "unknown_fields": "add"})
    desk.land("a.ndjson", '{"id":1,"tags":[],"by":{}}', '{"id":2,"tags":null}')
    desk.ingest()
    desk.land("b.ndjson", '{"id":3,"tags":["x"]}')
    desk.ingest()
    assert desk.column("tags")[0] == (None, '{"tags":[],"by":{}}')
    desk.promote("tags")
    desk.penguin()
    assert desk.column("tags") == [([], '{"by":{}}'), (None, None), (["x"], None)]


@pytest.mark.unbalanced("rows_removed")
@pytest.mark.parametrize(("deleted", "state"), [("id <= 3", "removed"), ("id = 2", "altered")])
def test_rows_that_another_engine_deletes_after_a_promotion_are_missed(desk, deleted, state):
    desk.configure({"fields": [ID, PRICE]})
    desk.promote("price")
    desk.penguin()
    DeltaTable(str(desk.table)).delete(deleted)
    (listed,) = desk.cli("files", "--state", state, "--output", "json").stdout.splitlines()
    assert json.loads(listed)["path"] == "a.ndjson"
    assert desk.cli("audit").exit_code == 1
