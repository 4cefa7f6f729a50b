"""Every value of a source file, found again in the table: by other means than those that read it.

The files are read by `json` and the table by deltalake. The configuration says which column a field
is in and of which type; how a value of that type is written, is known here. A value is known by its
path in the record, and a row by all of its values, so a value that is changed, lost, doubled or in
another row makes a difference.
"""

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from tests.support.real_data.kind import Kind

RESCUED = "_rescued"
PER_SECOND = ((10**11, 1), (10**14, 10**3), (10**17, 10**6), (10**20, 10**9))
"""Which numbers are seconds, milliseconds, microseconds and nanoseconds of our days."""
FORMS = ("%a %b %d %H:%M:%S %z %Y", "%d/%b/%Y:%H:%M:%S %z")
NULLS = {"", "-"}
"""What people write for null, in all kinds of files."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FINER_THAN_MICROS = re.compile(r"[.,]\d{6}\d*[1-9]")
NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
STEP = re.compile(r"`((?:[^`]|``)*)`|\[([0-9]+)\]|([^.\[\]`]+)")

Path = tuple[str | int, ...]
Leaf = tuple[Path, Hashable]
Leaves = Iterator[Leaf]
Row = Mapping[str, Any]
Key = frozenset[tuple[Leaf, int]]


class Literal(str):
    """A number as it is written."""

    __slots__ = ()


def parsed(text: str | bytes) -> Any:
    """Parse JSON without reading its numbers; a member that is there twice is an error."""
    return json.loads(
        text, parse_int=Literal, parse_float=Literal, object_pairs_hook=_without_doubles
    )


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs), "a member is there twice"
    return dict(pairs)


def records_in(
    kind: Kind, files: Mapping[str, bytes], parse: Callable[[bytes], Any] = parsed
) -> Iterator[Any]:
    """Yield the records of files by what is known of their kind."""
    actions = set(kind.source.get("skip_records", {"only_key": []})["only_key"])
    for name, data in files.items():
        plain = gzip.decompress(data) if name.endswith(".gz") else data
        if kind.source.get("format") == "json":
            found = parse(plain)[kind.source["records"]]
        else:
            found = map(parse, plain.split(b"\n")[:-1])
        yield from (each for each in found if len(each) != 1 or not actions & set(each))


@dataclass(frozen=True, kw_only=True)
class Way:
    """A column, or a field inside one: its type in the table, and what the configuration says."""

    name: str
    type: pa.DataType
    said: Mapping[str, Any] = field(default_factory=dict)
    fields: tuple["Way", ...] = ()
    items: "Way | None" = None

    @property
    def source(self) -> str:
        (name,) = self.said.get("from", [self.name])
        return str(name)

    @property
    def is_json(self) -> bool:
        return bool(self.said["type"] == "json")

    def below(self, step: str | int) -> "Way | None":
        """Return the way of a member or an element; None where there is no column for it."""
        if self.items is not None:
            return self.items if isinstance(step, int) == pa.types.is_list(self.type) else None
        return next((one for one in self.fields if one.source == step), None)


def ways(schema: pa.Schema, said: Sequence[Mapping[str, Any]]) -> Way:
    """Return the columns of a table as the fields of one way."""
    fields = [each for each in schema if each.name != RESCUED]
    return _way("", pa.struct(fields), {"type": "struct", "fields": said})


def _way(name: str, kind: pa.DataType, said: Mapping[str, Any] | str) -> Way:
    said = {"type": said} if isinstance(said, str) else said
    if pa.types.is_struct(kind):
        inner = {one["name"]: one for one in said["fields"]}
        assert {each.name for each in kind} == set(inner), "the table has other columns"
        below = tuple(_way(each.name, each.type, inner[each.name]) for each in kind)
        return Way(name=name, type=kind, said=said, fields=below)
    if pa.types.is_list(kind):
        return Way(name=name, type=kind, said=said, items=_way("", kind.value_type, said["items"]))
    if pa.types.is_map(kind):
        return Way(name=name, type=kind, said=said, items=_way("", kind.item_type, said["values"]))
    return Way(name=name, type=kind, said=said)


def leaves(value: Any, way: Way | None, path: Path = ()) -> Leaves:
    """Yield the values of a JSON value, each with its path and with what its column makes of it."""
    way = None if way is not None and way.is_json else way
    match value:
        case dict():
            for name, inner in value.items():
                yield from leaves(inner, way.below(name) if way else None, (*path, name))
        case list():
            yield path, ("length", len(value))
            for index, inner in enumerate(value):
                yield from leaves(inner, way.below(index) if way else None, (*path, index))
        case None:
            pass
        case _ if way is None or value not in NULLS & set(way.said.get("null_values", ())):
            yield path, (meaning(value, way) if way else None) or raw(value)


def raw(value: Any) -> Hashable:
    """Return a value as JSON has it."""
    kind = "number" if isinstance(value, Literal) else type(value).__name__
    return kind, f"{value}"


def meaning(value: Any, way: Way) -> Hashable:  # noqa: PLR0911 - one for each type
    """Return what a value is in a column of this type; None where it cannot be in it."""
    kind = way.type
    if way.said.get("coerce") and isinstance(value, str):
        if _is_text(kind):
            return "text", str(value)
        if pa.types.is_boolean(kind):
            return {"true": ("boolean", True), "false": ("boolean", False)}.get(value)
        value = Literal(value) if NUMBER.fullmatch(value) else value
    is_number = isinstance(value, Literal)
    with suppress(ValueError, InvalidOperation):
        if pa.types.is_timestamp(kind):
            return _moment(value)
        if pa.types.is_date(kind) and not is_number:
            return "day", date.fromisoformat(value)
        if pa.types.is_floating(kind) and is_number:
            return "float", float(value).hex()
        if (pa.types.is_integer(kind) or pa.types.is_decimal(kind)) and is_number:
            return "exact", Decimal(value)
        if pa.types.is_boolean(kind) and isinstance(value, bool):
            return "boolean", value
        if _is_text(kind) and isinstance(value, str) and not is_number:
            return "text", value
    return None


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_string_view(kind)


def _moment(value: Any) -> Hashable:
    """Return the moment that a person would read, whatever the configuration calls its form."""
    if isinstance(value, Literal):
        micros = Decimal(value) * 10**6 / next(n for most, n in PER_SECOND if Decimal(value) < most)
        return ("time", int(micros)) if micros == int(micros) else None
    if FINER_THAN_MICROS.search(value):
        return None
    for form in FORMS:
        with suppress(ValueError):
            return _in_micros(datetime.strptime(value, form))  # noqa: DTZ007 - with a zone
    return _in_micros(datetime.fromisoformat(value))


def _in_micros(at: datetime) -> Hashable:
    name = "local" if at.tzinfo is None else "time"
    return name, (at.replace(tzinfo=at.tzinfo or UTC) - EPOCH) // timedelta(microseconds=1)


def cells(cell: Any, way: Way, path: Path = ()) -> Leaves:
    """Yield the values in a cell, each with the path that it must have had in its record."""
    if cell is None:
        return
    if way.fields:
        for one in way.fields:
            yield from cells(cell[one.name], one, (*path, one.source))
    elif way.is_json:
        yield from leaves(parsed(cell), None, path)
    elif way.items is not None and pa.types.is_map(way.type):
        for name, inner in cell:
            yield from cells(inner, way.items, (*path, name))
    elif way.items is not None:
        yield path, ("length", len(cell))
        for index, inner in enumerate(cell):
            yield from cells(inner, way.items, (*path, index))
    else:
        yield path, _in_cell(cell)


def _in_cell(cell: Any) -> Hashable:
    match cell:
        case bool():
            return "boolean", cell
        case int() | Decimal():
            return "exact", Decimal(cell)
        case float():
            return "float", cell.hex()
        case datetime():
            return _in_micros(cell)
        case date():
            return "day", cell
    return "text", cell


def rescued(row: Row, way: Way) -> Leaves:
    """Yield the values that are in no column."""
    for path, value in parsed(row.get(RESCUED) or "{}").items():
        at: Way | None = way
        steps: list[str | int] = []
        for quoted, index, name in STEP.findall(path):
            steps.append(int(index) if index else name or quoted.replace("``", "`"))
            at = at and at.below(steps[-1])
        yield from leaves(value, at, tuple(steps))


def key(values: Iterable[Leaf]) -> Key:
    """Return all values of a record; one that is there twice counts twice."""
    return frozenset(Counter(values).items())


def differences(records: Iterable[Any], rows: Sequence[Row], way: Way) -> list[str]:
    """Return what is in the records and not in the rows, or the other way round."""
    came = Counter(key(leaves(record, way)) for record in records)
    there = Counter(key((*cells(row, way), *rescued(row, way))) for row in rows)
    lost, added = list((came - there).elements()), list((there - came).elements())
    told = [f"{len(lost)} records without a row, {len(added)} rows without a record"]
    for one in lost[:3]:
        nearest = min(added, key=lambda each: len(one ^ each), default=frozenset())
        told += [f"came: {each}" for each in sorted(one - nearest, key=str)]
        told += [f"there: {each}" for each in sorted(nearest - one, key=str)]
    return told if lost or added else []
