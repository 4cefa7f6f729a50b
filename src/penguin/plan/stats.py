"""A file's facts as Delta statistics, for the columns a table keeps them for. Pure.

A reader may trust a bound so far that it skips the rows' own test, and one reader takes a missing
bound for "no row matches". So bounds are given for a file only if every column that the table
lists for them has one, or is null in every row; otherwise the file carries counts alone.
"""

import json
import re
from collections.abc import Iterable, Mapping

from lakebed.documents.data_file import Bound, FinishedFile
from lakebed.types import RESCUED
from penguin.model.table import DeltaSchema

SKIPPING_PROPERTY = "delta.dataSkippingStatsColumns"
BOUNDED_TYPES = frozenset({"string", "integer", "long", "timestamp", "date"})
PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LISTED_NAME = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^`,]+?))\s*(?:,|$)")


def delta_statistics(
    file: FinishedFile, *, columns: frozenset[str], listed: tuple[str, ...] | None
) -> str:
    """Write the statistics of one file: counts always, bounds where all of them are sound.

    `columns` are those the file was written with; any other column of the table is null in all
    of its rows. `listed` are the columns the table keeps bounds for, None where it does not say.
    """
    nulls: dict[str, int] = {}
    lows: dict[str, Bound] = {}
    highs: dict[str, Bound] = {}
    complete = listed is not None
    for name in sorted(columns) if listed is None else listed:
        if name in file.partition_values:
            continue
        known = file.statistics.get(name)
        if known is None and name in columns:
            complete = False
            continue
        nulls[name] = file.record_count if known is None else known.null_count
        if nulls[name] == file.record_count:
            continue
        if known is None or known.minimum is None or known.maximum is None:
            complete = False
            continue
        lows[name], highs[name] = known.minimum, known.maximum
    document: dict[str, object] = {"numRecords": file.record_count}
    if complete and lows:
        document |= {"minValues": lows, "maxValues": highs}
    if nulls:
        document["nullCount"] = nulls
    # An escaped character above U+FFFF is read back as another one, and rows are lost by it.
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def columns_with_bounds(schema: DeltaSchema, partition_columns: Iterable[str]) -> tuple[str, ...]:
    """List the columns for which blizzard's files always carry bounds.

    A name with a dot is left out: a footer cannot tell it from a field inside a struct. So is
    `_rescued`: most files do not have it, and the others would lose the bounds of all columns.
    """
    apart = frozenset((*partition_columns, RESCUED))
    return tuple(
        field["name"]
        for field in schema["fields"]
        if isinstance(field["type"], str)  # a nested type is an object
        and field["type"] in BOUNDED_TYPES
        and field["name"] not in apart
        and "." not in field["name"]
        and field["name"].isprintable()
    )


def only_shown(configuration: Mapping[str, str], schema: DeltaSchema) -> dict[str, str]:
    """Take the columns that a schema does not have out of the table's list of bounded ones."""
    listed = parse_columns(configuration.get(SKIPPING_PROPERTY))
    if listed is None:
        return dict(configuration)
    shown = {field["name"] for field in schema["fields"]}
    left = tuple(name for name in listed if name in shown)
    return {**configuration, SKIPPING_PROPERTY: format_columns(left)}


def format_columns(names: Iterable[str]) -> str:
    """Write the value of the table property; names that are not plain are quoted."""
    return ",".join(
        name if PLAIN_NAME.fullmatch(name) else f"`{name.replace('`', '``')}`" for name in names
    )


def parse_columns(text: str | None) -> tuple[str, ...] | None:
    """Read the value of the table property; None where it is not set or not understood."""
    if text is None:
        return None
    names, end = [], 0
    while end < len(text):
        found = LISTED_NAME.match(text, end)
        if found is None or found.end() == end:
            return None
        quoted, plain = found.groups()
        if quoted is None and "." in plain:
            return None  # a field inside a struct, of which entries carry no statistics
        names.append(quoted.replace("``", "`") if quoted is not None else plain)
        end = found.end()
    return tuple(names)
