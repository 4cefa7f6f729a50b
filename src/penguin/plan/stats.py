"""Delta statistics of a file, for the fields for which a table keeps them. Pure.

A reader may rely on bounds without testing the rows themselves, and one reader treats a missing
bound as "no row matches". So a file gets bounds only if every column that the table lists
has one, or is null in every row; otherwise it carries counts alone. That reader does not look into
structs, so a field of a struct may lack bounds. docs/penguin.md lists the faulty versions of
readers.
"""

import json
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from lakebed.columns.column_mapping import (
    FieldPath,
    format_path,
    mapping_of,
    path_in_files,
    types_within,
)
from lakebed.deltalog.delta_types import (
    DECIMAL,
    DeltaSchema,
    TableFacts,
    kind_of,
)
from lakebed.documents.records import Bound, FinishedFile
from lakebed.types import RESCUED

SKIPPING_PROPERTY = "delta.dataSkippingStatsColumns"
BOUNDED_TYPES = frozenset(
    {"string", "byte", "short", "integer", "long", "timestamp", "timestamp_ntz", "date"}
)
"""Plain types with bounds in files of any writer; decimals are added in code."""
FLOATS = frozenset({"float", "double"})
"""Types with bounds in blizzard's files only; in foreign files they may be NaN."""
NEVER_BOUNDED = frozenset({"binary"})
"""Plain types without bounds in any file."""
PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LISTED_NAME = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^`,.]+?))\s*(,|\.|$)")

Node = dict[str, Any]


def delta_statistics(file: FinishedFile, *, written: DeltaSchema, table: TableFacts) -> str:
    """Return the statistics of one file as JSON: counts always, bounds if all are sound.

    `written` is the schema of the file; other fields of the table are null in all of its rows.
    """
    inside, kinds = plain_fields(written), plain_fields(table.schema)
    listed = parse_columns(table.configuration.get(SKIPPING_PROPERTY))
    nulls: Node = {}
    lows: Node = {}
    highs: Node = {}
    complete = listed is not None
    columns = mapping_of(table.schema, table.configuration)
    for path in sorted(inside) if listed is None else _fields_on(listed, kinds):
        if path[0] in file.partition_values:
            continue
        in_struct = len(path) > 1
        known = file.statistics.get(format_path(path))
        if known is None and path in inside:
            complete = complete and in_struct
            continue
        count = file.record_count if known is None else known.null_count
        named = path_in_files(path, columns)
        _put(nulls, named, count)
        if count == file.record_count:
            continue
        if known is None or known.minimum is None or known.maximum is None:
            complete = complete and in_struct
            continue
        _put(lows, named, _bound(known.minimum, kinds.get(path)))
        _put(highs, named, _bound(known.maximum, kinds.get(path)))
    document: Node = {"numRecords": file.record_count}
    if complete and lows:
        document |= {"minValues": lows, "maxValues": highs}
    if nulls:
        document["nullCount"] = nulls
    try:
        # An escaped character above U+FFFF is read back as another one, and rows are lost.
        return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except TypeError:
        return _json(document)  # It has a decimal.


def plain_fields(schema: DeltaSchema, above: FieldPath = ()) -> dict[FieldPath, str]:
    """Return the types of plain columns, and of plain fields of structs, by path."""
    found: dict[FieldPath, str] = {}
    for field in schema["fields"]:
        path, kind = (*above, field["name"]), field["type"]
        if kind_of(kind) == "struct":
            found |= plain_fields(kind, path)
        elif kind_of(kind) == "plain":
            found[path] = kind
    return found


def bounded_columns(
    schema: DeltaSchema, partition_columns: Iterable[str], *, floats: bool = True
) -> tuple[FieldPath, ...]:
    """Return the fields that a table keeps bounds for; `floats` if its files contain no NaN.

    Of a struct with a bounded field all plain fields are listed, because polars fails on a struct
    if only some of its fields have statistics. `_rescued` is left out: most files do not have it,
    and no filter on it skips a file.
    """
    apart = frozenset((*partition_columns, RESCUED))
    found: list[FieldPath] = []
    for field in schema["fields"]:
        if field["name"] in apart or kind_of(field["type"]) not in ("plain", "struct"):
            continue
        fields = {
            path: kind
            for path, kind in plain_fields({"fields": [field]}).items()
            if kind not in NEVER_BOUNDED and all(map(_is_portable, path))
        }
        if any(_is_bounded(kind, floats=floats) for kind in fields.values()):
            found += fields
    return tuple(found)


def relisted(before: TableFacts, after: TableFacts, *, floats: bool) -> dict[str, str]:
    """Return a table's configuration with its list of bounded fields after a change of its schema.

    Dropped fields leave the list. New ones are listed if all others are, so that a list chosen by
    the user stays as it is.
    """
    listed = parse_columns(after.configuration.get(SKIPPING_PROPERTY))
    if listed is None:
        return dict(after.configuration)
    existing = {path for path, *_ in types_within(after.schema)}
    left = dict.fromkeys(path for path in listed if path in existing)
    known = plain_fields(before.schema)
    usual = bounded_columns(before.schema, before.partition_columns, floats=False)
    if set(usual) <= _fields_on(listed, known).keys():
        new = bounded_columns(after.schema, after.partition_columns, floats=floats)
        floats_before = {path for path, kind in known.items() if kind in FLOATS}
        covered = floats_before | _fields_on(left, new).keys()
        left |= dict.fromkeys(path for path in new if path not in covered)
    return {**after.configuration, SKIPPING_PROPERTY: format_columns(left)}


def _is_bounded(kind: str, *, floats: bool) -> bool:
    is_number = kind in BOUNDED_TYPES or DECIMAL.fullmatch(kind) is not None
    return is_number or (floats and kind in FLOATS)


def format_columns(paths: Iterable[FieldPath]) -> str:
    """Format the value of the table property; quote names that are not plain."""
    return ",".join(
        ".".join(
            name if PLAIN_NAME.fullmatch(name) else f"`{name.replace('`', '``')}`" for name in path
        )
        for path in paths
    )


def parse_columns(text: str | None) -> tuple[FieldPath, ...] | None:
    """Parse the value of the table property; None if it is unset or malformed."""
    if text is None:
        return None
    paths: list[FieldPath] = []
    path: FieldPath = ()
    end = 0
    while end < len(text):
        found = LISTED_NAME.match(text, end)
        if found is None or found.end() == end:
            return None
        quoted, plain, follows = found.groups()
        path += (quoted.replace("``", "`") if quoted is not None else plain,)
        end = found.end()
        if follows != ".":
            paths.append(path)
            path = ()
    return None if path else tuple(paths)


def _fields_on(listed: Iterable[FieldPath], kinds: Iterable[FieldPath]) -> dict[FieldPath, None]:
    """Return the fields that a list names, directly or by their struct, in order."""
    return {field: None for path in listed for field in kinds if field[: len(path)] == path}


def _is_portable(name: str) -> bool:
    """Whether every reader parses a name in the list correctly; some split it at dots."""
    return "." not in name and name.isprintable()


def _put(node: Node, path: FieldPath, value: object) -> None:
    for name in path[:-1]:
        node = node.setdefault(name, {})
    node[path[-1]] = value


def _bound(value: Bound, kind: str | None) -> object:
    """Return a bound as Delta writes it: decimals as numbers."""
    is_decimal = kind is not None and DECIMAL.fullmatch(kind) is not None
    return Decimal(value) if is_decimal and isinstance(value, str) else value


def _json(value: object) -> str:
    """Return JSON on one line, with all digits of decimals."""
    match value:
        case dict():
            return "{" + ",".join(f"{_json(key)}:{_json(one)}" for key, one in value.items()) + "}"
        case Decimal():
            return format(value, "f")
        case _:
            # An escaped character above U+FFFF is read back as another one, and rows are lost.
            return json.dumps(value, ensure_ascii=False, allow_nan=False)
