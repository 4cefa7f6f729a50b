"""A table as its readers see it."""

import json
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from math import isinf
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable

from lakebed.documents.entry import Entry
from tests.support.builders import entries as journal_entries


def rows(table: Path, columns: list[str] | None = None, predicate: str | None = None) -> list[Any]:
    """Read with deltalake's own scan; a table that does not exist yet has no rows."""
    if not (table / "_delta_log").exists():
        return []
    found = pa.table(DeltaTable(str(table)).scan(columns, predicate).read_all())
    return found.to_pylist()


def ids(table: Path, predicate: str | None = None) -> list[int]:
    """Return the ids of all rows, sorted: doubled ones show twice, lost ones are missing."""
    return sorted(row["id"] for row in rows(table, ["id"], predicate))


def polars_ids(table: Path, condition: pl.Expr | None = None) -> list[int]:
    """Return the same with polars."""
    frame = pl.scan_delta(str(table))
    if condition is not None:
        frame = frame.filter(condition)
    return sorted(frame.select("id").collect()["id"].to_list())


def parquet_ids(entries: Iterable[Entry], table: Path) -> list[int]:
    """Return the ids of all rows in the data files that journal entries name."""
    found: list[Any] = []
    for entry in entries:
        for file in entry.files:
            found += pq.read_table(table / file.filename, columns=["id"])["id"].to_pylist()
    return sorted(found)


def journaled_ids(table: Path) -> list[int]:
    """Return the ids of all rows in the data files that the journal of a table names."""
    return parquet_ids(journal_entries(table), table)


def added(table: Path) -> list[str]:
    """Return the path of every file that the log has added, as often as it has."""
    return [
        json.loads(line)["add"]["path"]
        for path in (table / "_delta_log").glob("*.json")
        for line in path.read_text().splitlines()
        if "add" in json.loads(line)
    ]


def arrow_ids(table: Path, condition: Any) -> list[int]:
    """Return the ids of the rows under a filter with pyarrow's dataset."""
    # With threads of its own this reader can end a process by an abort.
    dataset = DeltaTable(str(table)).to_pyarrow_dataset()
    table_of_ids = dataset.to_table(columns=["id"], filter=condition, use_threads=False)
    found: list[Any] = table_of_ids["id"].to_pylist()
    return sorted(found)


def duck_ids(table: Path, condition: str, value: Any) -> list[int]:
    """Return the ids of the rows under a condition on a value with DuckDB over pyarrow's."""
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("rows", DeltaTable(str(table)).to_pyarrow_dataset())
        asked = f"SELECT id FROM rows WHERE {condition}"
        return sorted(number for (number,) in connection.execute(asked, [value]).fetchall())


SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def value_at(row: Any, path: tuple[str, ...]) -> Any:
    """Return a column or a field of a struct: null where the struct is."""
    for name in path:
        row = None if row is None else row.get(name)
    return row


def literal(value: Any, kind: Any) -> str:
    """Write a value as deltalake's own SQL has it."""
    match value:
        case datetime():
            zone = "None" if value.tzinfo is None else 'Some("UTC")'
            return f"arrow_cast('{value.isoformat()}', 'Timestamp(Microsecond, {zone})')"
        case date():
            return f"arrow_cast('{value.isoformat()}', 'Date32')"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case Decimal():
            return f"arrow_cast('{value:f}', 'Decimal128({kind.precision}, {kind.scale})')"
        case float() if isinf(value):
            return f"arrow_cast('{value}', 'Float64')"
    return str(value)


@dataclass(frozen=True)
class Filtered:
    """A column or a field of a struct, by which every reader is asked for rows."""

    table: Path
    rows: Sequence[Mapping[str, Any]]
    path: tuple[str, ...]
    kind: Any
    """Arrow's type of the field."""
    polars: bool = True
    arrow_nulls: bool = True
    """Whether these readers do not err here, as docs/penguin.md tells."""

    @property
    def _sql(self) -> str:
        return self.path[0] + "".join(f"['{name}']" for name in self.path[1:])

    @property
    def _expression(self) -> pl.Expr:
        found = pl.col(self.path[0])
        for name in self.path[1:]:
            found = found.struct.field(name)
        return found

    def compare(self, sign: str, value: Any, *, duck: bool = False) -> None:
        """Assert that readers find the rows that compare with a value in a way."""
        test, is_decimal = SIGNS[sign], isinstance(value, Decimal)
        values = [(row["id"], value_at(row, self.path)) for row in self.rows]
        wanted = [number for number, one in values if one is not None and test(one, value)]
        assert ids(self.table, f"{self._sql} {sign} {literal(value, self.kind)}") == wanted
        if self.polars:
            given = pl.lit(value, pl.Decimal(38, self.kind.scale)) if is_decimal else value
            assert polars_ids(self.table, test(self._expression, given)) == wanted
        scalar = pa.scalar(value, self.kind)
        assert arrow_ids(self.table, test(ds.field(*self.path), scalar)) == wanted
        if duck:
            column = ".".join(f'"{name}"' for name in self.path)
            asked = f"CAST(? AS DECIMAL(38,{self.kind.scale}))" if is_decimal else "?"
            given = f"{value:f}" if is_decimal else value
            assert duck_ids(self.table, f"{column} {sign} {asked}", given) == wanted

    def check_nulls(self) -> None:
        """Assert that readers find the rows that have nothing there, and those that have."""
        for is_null, words in ((True, "IS NULL"), (False, "IS NOT NULL")):
            wanted = [
                row["id"] for row in self.rows if (value_at(row, self.path) is None) is is_null
            ]
            assert ids(self.table, f"{self._sql} {words}") == wanted
            if self.polars:
                found = self._expression
                condition = found.is_null() if is_null else found.is_not_null()
                assert polars_ids(self.table, condition) == wanted
            if self.arrow_nulls:
                at = ds.field(*self.path)
                assert arrow_ids(self.table, at.is_null() if is_null else at.is_valid()) == wanted
