"""Whatever the rows are: none is outside its file's bounds, and every reader finds every row."""

import json
import tempfile
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakebed.columns.schema import Field, Schema
from lakebed.types import FieldType
from penguin.plan.stats import SKIPPING_PROPERTY
from tests.support.readers import SIGNS, Filtered, value_at
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
PLAIN = {
    "text": FieldType.STRING,
    "big": FieldType.INT64,
    "small": FieldType.INT32,
    "at": FieldType.TIMESTAMP,
    "day": FieldType.DATE,
    "flag": FieldType.BOOLEAN,
    "ratio": FieldType.FLOAT64,
    "half": FieldType.FLOAT32,
}
LATER = frozenset({"big", "at", "flag", "ratio"})
"""Columns that a table may get with its second entry."""


def schema_with(*inside: Field, plain: frozenset[str] = frozenset()) -> Schema:
    """Return a schema with some plain columns and a struct of these fields."""
    return Schema(
        (
            Field(name="id", type=FieldType.INT64, nullable=False),
            *(Field(name=name, type=kind) for name, kind in PLAIN.items() if name in plain),
            Field(name="user", type=FieldType.STRUCT, fields=inside),
            Field(name="tiny", type=FieldType.INT8),
            Field(name="sum", type=FieldType.DECIMAL, precision=38, scale=3),
            Field(name="local", type=FieldType.TIMESTAMP_NTZ),
            Field(name="all", type=FieldType.LIST, items=TAGS.items),
            Field(name="part", type=FieldType.STRING),
        )
    )


FEW = settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TIMES = st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1))  # noqa: DTZ001 - local times
# Bounds are cut at 32 characters; the edges of Unicode and of what is escaped matter most.
TEXT = st.one_of(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=40),
    st.builds(
        lambda letter, count, end: letter * count + end,
        st.sampled_from(["a", "\U0010ffff", "\U00020bb7", "\ud7ff", "\uffff", "ü"]),
        st.integers(30, 34),
        st.sampled_from(["", "a", "\U0010ffff"]),
    ),
)
VALUES: dict[tuple[str, ...], st.SearchStrategy[Any]] = {
    ("text",): TEXT,
    ("big",): st.integers(-(2**63), 2**63 - 1),
    ("small",): st.integers(-(2**31), 2**31 - 1),
    ("at",): TIMES.map(lambda at: at.replace(tzinfo=UTC)),
    ("day",): st.dates(date(1, 1, 1), date(9999, 12, 31)),
    ("flag",): st.booleans(),
    ("ratio",): st.floats(allow_nan=False, allow_infinity=False),
    ("half",): st.floats(allow_nan=False, width=32),
    ("user", "id"): st.integers(-(2**15), 2**15 - 1),
    ("user", "price"): st.decimals(-(10**15), 10**15, places=2),
    ("user", "ratio"): st.floats(allow_nan=False, allow_infinity=False, width=32),
    ("user", "deep", "at"): TIMES,
    ("user", "deep", "text"): TEXT,
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


FILES = st.lists(
    st.tuples(st.sampled_from(["p", None]), st.lists(_record(), min_size=1, max_size=3)),
    min_size=1,
    max_size=4,
)


class Made:
    """A table of generated files whose columns and struct grow, and the rows it must hold."""

    def __init__(
        self,
        root: Path,
        files: list[tuple[str | None, list[Row]]],
        *grows: Schema,
    ) -> None:
        self.table = TableDirectory(root)
        self.grows = grows
        self.rows: list[Row] = []
        self.files: dict[str, list[Row]] = {}
        journal = self.table.journal(schema=grows[0], partitions=("part",))
        for number, schema in enumerate(grows):
            journal.schema = schema
            self._write(journal, files[number :: len(grows)])
            assert Penguin(self.table).drain().codes == {}
        user = _names(_user(grows[-1]).fields)
        known = _names(grows[-1].fields)
        self.paths = [
            path for path in VALUES if path[0] in known and (path[0] != "user" or path[1] in user)
        ]

    def _write(self, journal: Any, files: list[tuple[str | None, list[Row]]]) -> None:
        columns, inside = _names(journal.schema.fields), _names(_user(journal.schema).fields)
        made = []
        for part, records in files:
            rows: list[Row] = []
            for record in records:
                row = {name: value if name in columns else None for name, value in record.items()}
                user = row["user"] and {name: row["user"].get(name) for name in inside}
                rows.append({**row, "id": len(self.rows) + len(rows), "user": user, "part": part})
            self.rows += rows
            made.append(rows)
        entry = journal.batch(*made)
        self.files |= dict(zip((file.filename for file in entry.files), made, strict=True))

    def statistics(self) -> dict[str, Row]:
        """Return what the log says of each file."""
        actions = [
            json.loads(line)
            for version in range(self.table.versions())
            for line in self.table.commit_text(version).splitlines()
        ]
        adds = [action["add"] for action in actions if "add" in action]
        return {add["path"]: json.loads(add["stats"], parse_float=Decimal) for add in adds}

    def by(self, path: tuple[str, ...]) -> Filtered:
        kind: Any = self.grows[-1].arrow().field(path[0]).type
        for name in path[1:]:
            kind = kind.field(name).type
        # Both readers err here, also in tables of their own libraries: docs/penguin.md.
        polars = not (path[0] == "user" and TAGS in _user(self.grows[-1]).fields)
        came_late = path[0] in LATER and path[0] not in _names(self.grows[0].fields)
        nulls = not came_late
        return Filtered(self.table.root, self.rows, path, kind, polars, nulls)


def _names(fields: tuple[Field, ...]) -> set[str]:
    return {one.name for one in fields}


def _user(schema: Schema) -> Field:
    return next(one for one in schema.fields if one.name == "user")


ALL = frozenset(PLAIN)
GROWN = (
    (schema_with(*FIRST, plain=ALL),),
    (schema_with(*FIRST, plain=ALL - LATER), schema_with(*FIRST, LATE, plain=ALL)),
    (
        schema_with(*FIRST, plain=ALL),
        schema_with(*FIRST, LATE, plain=ALL),
        schema_with(*FIRST, LATE, TAGS, plain=ALL),
    ),
)


@FEW
@given(FILES, st.sampled_from(GROWN))
def test_no_row_is_outside_the_bounds_of_its_file(files, grows):
    """W13: at every depth; a null struct is a null of each of its fields."""
    with tempfile.TemporaryDirectory() as folder:
        made = Made(Path(folder) / "table", files, *grows)
        seen = made.statistics()
        assert seen.keys() == made.files.keys()
        for path, told in seen.items():
            rows = made.files[path]
            assert told["numRecords"] == len(rows)
            for place in made.paths:
                values = [value_at(row, place) for row in rows]
                count = value_at(told.get("nullCount", {}), place)
                assert count in (None, values.count(None))
                low = value_at(told.get("minValues", {}), place)
                high = value_at(told.get("maxValues", {}), place)
                assert (low is None) == (high is None)
                if low is not None:
                    low, high = (_as_read(place[-1], bound) for bound in (low, high))
                    assert all(low <= one <= high for one in values if one is not None), place


def _as_read(name: str, bound: Any) -> Any:
    """Read a bound as the protocol writes it."""
    match name:
        case "at" | "local":
            return datetime.fromisoformat(bound)
        case "day":
            return date.fromisoformat(bound)
        case "ratio" | "half":
            return float(bound)
    return bound


@FEW
@given(FILES, st.sampled_from(GROWN), st.data())
def test_every_reader_finds_every_row_under_every_filter(files, grows, data):
    """W13: deltalake's scan, polars, pyarrow, and DuckDB over it."""
    with tempfile.TemporaryDirectory() as folder:
        made = Made(Path(folder) / "table", files, *grows)
        for path in made.paths:
            held = [one for one in (value_at(row, path) for row in made.rows) if one is not None]
            drawn = st.sampled_from(held) | VALUES[path] if held else VALUES[path]
            value = data.draw(drawn, label=".".join(path))
            sign = data.draw(st.sampled_from(sorted(SIGNS)), label="sign")
            made.by(path).compare(sign, value, duck=path[0] not in PLAIN)
            made.by(path).check_nulls()


def test_the_list_of_bounded_fields_follows_a_struct(tmp_path):
    """W13: polars fails on a struct of which a part has statistics."""
    rows: Row = {"user": {"id": 1}, "tiny": 1}
    first, late, tags = (schema_with(*FIRST, *more) for more in ((), (LATE,), (LATE, TAGS)))
    listed = []
    for number, grows in enumerate([[first], [first, late], [first, late, tags]]):
        files: list[tuple[str | None, list[Row]]] = [("p", [rows])] * 3
        made = Made(tmp_path / str(number), files, *grows)
        listed.append(made.table.delta().metadata().configuration[SKIPPING_PROPERTY])
    inside = "user.id,user.price,user.ratio,user.deep.at,user.deep.text"
    grown = f"id,{inside},tiny,sum,local,user.late"
    assert listed == [f"id,{inside},tiny,sum,local", grown, grown]
