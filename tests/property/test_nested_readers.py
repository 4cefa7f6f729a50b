"""Fields inside structs, and the types beside them: no reader loses a row by their bounds."""

import json
import tempfile
from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakebed.columns.schema import Field, Schema
from lakebed.types import FieldType, SkippingColumns
from penguin.plan.stats import SKIPPING_PROPERTY
from tests.support.tables import Penguin, Row, TableDirectory

FIRST = (
    Field(name="id", type=FieldType.INT16),
    Field(name="price", type=FieldType.DECIMAL, precision=18, scale=2),
    Field(name="ratio", type=FieldType.FLOAT64),
    Field(
        name="deep",
        type=FieldType.STRUCT,
        fields=(
            Field(name="at", type=FieldType.TIMESTAMP_NTZ),
            Field(name="text", type=FieldType.STRING),
        ),
    ),
)
LATE = Field(name="late", type=FieldType.INT32)
TAGS = Field(name="tags", type=FieldType.LIST, items=Field(name="element", type=FieldType.INT8))


def schema_with(*inside: Field) -> Schema:
    """Return the schema with a struct of these fields."""
    return Schema(
        (
            Field(name="id", type=FieldType.INT64, nullable=False),
            Field(name="user", type=FieldType.STRUCT, fields=inside),
            Field(name="tiny", type=FieldType.INT8),
            Field(name="sum", type=FieldType.DECIMAL, precision=38, scale=3),
            Field(name="local", type=FieldType.TIMESTAMP_NTZ),
            Field(name="all", type=FieldType.LIST, items=TAGS.items),
        )
    )


FEW = settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TIMES = st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1))  # noqa: DTZ001 - local times
VALUES: dict[tuple[str, ...], st.SearchStrategy[Any]] = {
    ("user", "id"): st.integers(-(2**15), 2**15 - 1),
    ("user", "price"): st.decimals(-(10**15), 10**15, places=2),
    ("user", "ratio"): st.floats(allow_nan=False, allow_infinity=False, width=32),
    ("user", "deep", "at"): TIMES,
    ("user", "deep", "text"): st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=40),
    ("user", "late"): st.integers(-(2**31), 2**31 - 1),
    ("tiny",): st.integers(-(2**7), 2**7 - 1),
    ("sum",): st.integers(-(10**38) + 1, 10**38 - 1).map(lambda digits: Decimal(f"{digits}E-3")),
    ("local",): TIMES,
}


def _record(path: tuple[str, ...] = ()) -> st.SearchStrategy[Row]:
    """Draw the fields below a path; a struct may be null, and so may each field."""
    names = dict.fromkeys(one[len(path)] for one in VALUES if one[: len(path)] == path)
    inner = {
        name: VALUES[(*path, name)] if (*path, name) in VALUES else _record((*path, name))
        for name in names
    }
    return st.fixed_dictionaries({name: st.none() | kind for name, kind in inner.items()})


FILES = st.lists(st.lists(_record(), min_size=1, max_size=3), min_size=1, max_size=4)
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": lambda one, other: one == other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}


def value_at(row: Row, path: tuple[str, ...]) -> Any:
    found: Any = row
    for name in path:
        found = None if found is None else found.get(name)
    return found


class Made:
    """A table of generated files whose struct grows, and the rows it must hold."""

    def __init__(
        self,
        root: Path,
        files: list[list[Row]],
        *grows: tuple[Field, ...],
        skipping: SkippingColumns = SkippingColumns.ALL,
    ) -> None:
        self.table = TableDirectory(root)
        self.polars_errs = TAGS in grows[-1] and skipping is SkippingColumns.ALL
        """Whether polars fails on filters on the struct: docs/penguin.md."""
        self.rows: list[Row] = []
        self.files: dict[str, list[Row]] = {}
        journal = self.table.journal(schema=schema_with(*grows[0]), partitions=())
        for number, inside in enumerate(grows):
            journal.schema = schema_with(*inside)
            self._write(journal, files[number :: len(grows)], {one.name for one in inside})
            assert Penguin(self.table, {"skipping": skipping}).drain().codes == {}
        self.paths = [path for path in VALUES if path[0] != "user" or path[1] in _names(inside)]

    def _write(self, journal: Any, files: list[list[Row]], inside: set[str]) -> None:
        made = []
        for records in files:
            rows: list[Row] = []
            for record in records:
                user = record["user"]
                kept = user and {name: user[name] for name in user if name in inside}
                rows.append({**record, "id": len(self.rows) + len(rows), "user": kept})
            self.rows += rows
            made.append(rows)
        entry = journal.batch(*made)
        self.files |= dict(zip((file.filename for file in entry.files), made, strict=True))

    def statistics(self) -> Iterator[tuple[str, Row]]:
        """Yield what the log says of each file."""
        for version in range(self.table.versions()):
            for line in self.table.commit_text(version).splitlines():
                action = json.loads(line)
                if "add" in action:
                    text = action["add"]["stats"]
                    yield action["add"]["path"], json.loads(text, parse_float=Decimal)


def _names(fields: tuple[Field, ...]) -> set[str]:
    return {one.name for one in fields}


GROWN = ((FIRST,), (FIRST, (*FIRST, LATE)), (FIRST, (*FIRST, LATE), (*FIRST, LATE, TAGS)))


@FEW
@given(FILES, st.sampled_from(GROWN))
def test_no_row_is_outside_the_bounds_of_its_file(
    files: list[list[Row]], grows: tuple[tuple[Field, ...], ...]
) -> None:
    """W13: at every depth; a null struct is a null of each of its fields."""
    with tempfile.TemporaryDirectory() as folder:
        made = Made(Path(folder) / "table", files, *grows)
        seen = dict(made.statistics())
        assert seen.keys() == made.files.keys()
        for path, told in seen.items():
            rows = made.files[path]
            for place in made.paths:
                values = [value_at(row, place) for row in rows]
                count = value_at(told.get("nullCount", {}), place)
                assert count in (None, values.count(None))
                low = value_at(told.get("minValues", {}), place)
                high = value_at(told.get("maxValues", {}), place)
                assert (low is None) == (high is None)
                if low is None:
                    continue
                if place[-1] == "ratio":
                    low, high = float(low), float(high)
                if isinstance(low, str) and place[-1] in ("at", "local"):
                    low, high = datetime.fromisoformat(low), datetime.fromisoformat(high)
                assert all(low <= value <= high for value in values if value is not None), place


def sql_literal(value: Any, kind: Any) -> str:
    match value:
        case datetime():
            return f"arrow_cast('{value.isoformat()}', 'Timestamp(Microsecond, None)')"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case Decimal():
            assert pa.types.is_decimal(kind)
            digits = f"{kind.precision}, {kind.scale}"
            return f"arrow_cast('{value:f}', 'Decimal128({digits})')"
        case _:
            return f"{value!r}"


@FEW
@given(FILES, st.sampled_from(GROWN), st.sampled_from(SkippingColumns), st.data())
def test_every_reader_finds_every_row_under_every_filter(
    files: list[list[Row]],
    grows: tuple[tuple[Field, ...], ...],
    skipping: SkippingColumns,
    data: st.DataObject,
) -> None:
    """W13: deltalake's scan, polars, pyarrow, and DuckDB over it."""
    with tempfile.TemporaryDirectory() as folder:
        made = Made(Path(folder) / "table", files, *grows, skipping=skipping)
        for path in made.paths:
            held = [one for one in (value_at(row, path) for row in made.rows) if one is not None]
            drawn = st.sampled_from(held) | VALUES[path] if held else VALUES[path]
            value = data.draw(drawn, label=".".join(path))
            sign = data.draw(st.sampled_from(sorted(COMPARISONS)), label="sign")
            _compare(made, path, sign, value)
            _check_nulls(made, path)


def _kind_of(path: tuple[str, ...]) -> Any:
    kind: Any = schema_with(*FIRST, LATE).arrow().field(path[0]).type
    for name in path[1:]:
        kind = kind.field(name).type
    return kind


def _polars(path: tuple[str, ...]) -> pl.Expr:
    found = pl.col(path[0])
    for name in path[1:]:
        found = found.struct.field(name)
    return found


def _compare(made: Made, path: tuple[str, ...], sign: str, value: Any) -> None:
    test, kind = COMPARISONS[sign], _kind_of(path)
    present = [(row["id"], value_at(row, path)) for row in made.rows]
    expected = [number for number, one in present if one is not None and test(one, value)]
    column = path[0] + "".join(f"['{name}']" for name in path[1:])
    assert made.table.ids(f"{column} {sign} {sql_literal(value, kind)}") == expected
    given = pl.lit(value, pl.Decimal(38, kind.scale)) if pa.types.is_decimal(kind) else value
    if not (made.polars_errs and path[0] == "user"):
        assert _polars_found(made, test(_polars(path), given)) == expected
    scalar = pa.scalar(value, kind)
    assert _arrow_found(made, test(ds.field(*path), scalar)) == expected
    assert _duck_found(made, path, sign, value) == expected


def _check_nulls(made: Made, path: tuple[str, ...]) -> None:
    nulls = [row["id"] for row in made.rows if value_at(row, path) is None]
    column = path[0] + "".join(f"['{name}']" for name in path[1:])
    assert made.table.ids(f"{column} IS NULL") == nulls
    if not (made.polars_errs and path[0] == "user"):
        assert _polars_found(made, _polars(path).is_null()) == nulls
    assert _arrow_found(made, ds.field(*path).is_null()) == nulls


def _polars_found(made: Made, condition: pl.Expr) -> list[int]:
    frame = pl.scan_delta(str(made.table.root)).filter(condition).select("id").collect()
    return sorted(frame["id"].to_list())


def _arrow_found(made: Made, condition: Any) -> list[int]:
    # With threads of its own this reader can end a process by an abort.
    found = made.table.delta().to_pyarrow_dataset().to_table(filter=condition, use_threads=False)
    return sorted(row["id"] for row in found.to_pylist())


def _duck_found(made: Made, path: tuple[str, ...], sign: str, value: Any) -> list[int]:
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("rows", made.table.delta().to_pyarrow_dataset())
        column = ".".join(f'"{name}"' for name in path)
        kind = "DECIMAL(38,3)" if isinstance(value, Decimal) else None
        asked = f"CAST(? AS {kind})" if kind else "?"
        given = f"{value:f}" if kind else value
        found = connection.execute(
            f"SELECT id FROM rows WHERE {column} {sign} {asked}", [given]
        ).fetchall()
    return sorted(number for (number,) in found)


@pytest.mark.parametrize("skipping", SkippingColumns)
def test_the_list_of_bounded_fields_follows_a_struct(
    tmp_path: Path, skipping: SkippingColumns
) -> None:
    """W13: polars fails on a struct of which a part has statistics."""
    rows: Row = {"user": {"id": 1}, "tiny": 1}
    listed = []
    for number, grows in enumerate(GROWN):
        made = Made(tmp_path / str(number), [[rows], [rows], [rows]], *grows, skipping=skipping)
        listed.append(made.table.delta().metadata().configuration[SKIPPING_PROPERTY])
    inside = "user.id,user.price,user.ratio,user.deep.at,user.deep.text"
    careful = skipping is SkippingColumns.CAREFUL
    assert listed == [
        f"id,{inside},tiny,sum,local",
        f"id,{inside},user.late,tiny,sum,local",
        "id,tiny,sum,local" if careful else f"id,{inside},user.late,tiny,sum,local",
    ]
