"""Which change of the configuration lets bad lines in: found by reading them with it. No writes.

The changes are tried from the smallest to the largest. None of them changes the table, and but for
times that are cut off none changes a value: what does not fit its column is kept in `_rescued`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from blizzard.model.event_time import RowPartitions
from blizzard.model.limits import MAX_LINE_BYTES
from blizzard.worker.ndjson.exact import ExactPath
from blizzard.worker.ndjson.lines import Block
from blizzard.worker.output.partitioner import refused_rows
from lakebed.columns.schema import Field, Schema
from lakebed.types import FieldType, OnBadRecord, OnMismatch, UnknownFields

TIMES = (FieldType.TIMESTAMP, FieldType.TIMESTAMP_NTZ, FieldType.DATE)
MOST_LINES = 1000
"""Lines of a group that are tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What decides whether a line can be read."""

    schema: Schema
    unknown: UnknownFields
    on_mismatch: OnMismatch
    by: RowPartitions | None = None
    """What the rows give of their partitions, which must be possible to write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """A change of the configuration, and how many of the lines that were tried it lets in."""

    key: str | None
    """The setting; None where the lines can be read as things are configured now."""
    value: str | bool | None
    lines: int
    tried: int


def fix_for(raws: Sequence[bytes], rules: Rules) -> Fix | None:
    """Return the smallest change that lets in as many of the lines as any; None where none does."""
    if not raws:
        return None
    best: Fix | None = None
    for key, value, changed in _changes(rules):
        lines = _readable(raws, changed)
        if lines > (0 if best is None else best.lines):
            best = Fix(key=key, value=value, lines=lines, tried=len(raws))
        if lines == len(raws):
            break
    return best


def advice(group: str, fix: Fix | None) -> str:
    """Say what to do about a group of bad lines, given what lets them in. Pure."""
    if fix is None:
        return (
            f"no setting lets them in: correct the lines that blizzard dlq show {group} prints, "
            f"one for one, and run blizzard dlq replay {group} --from FILE; blizzard dlq discard "
            f"{group} gives them up"
        )
    of = "them" if fix.lines == fix.tried else f"{fix.lines:,} of {fix.tried:,}"
    if fix.key is None:
        return f"blizzard dlq replay {group} reads {of} as things are configured now"
    value = str(fix.value).lower()
    return f"{fix.key}: {value} lets {of} in; then run blizzard dlq replay {group}"


def _changes(rules: Rules) -> Iterator[tuple[str | None, str | bool | None, Rules]]:
    yield None, None, rules
    coerced = _each(rules.schema.fields, _coerced)
    yield "schema.coerce", True, replace(rules, schema=Schema(coerced))
    for field in rules.schema.fields:
        if field.type in TIMES and not field.reading.truncate:
            cut = replace(field, reading=replace(field.reading, truncate=True))
            fields = tuple(cut if one is field else one for one in rules.schema.fields)
            yield (
                f"schema.fields.{field.name}.truncate",
                True,
                replace(rules, schema=Schema(fields)),
            )
    rescue = UnknownFields.RESCUE
    yield "schema.unknown_fields", rescue.value, replace(rules, unknown=rescue)
    mismatch = OnMismatch.RESCUE
    yield "schema.on_mismatch", mismatch.value, replace(rules, on_mismatch=mismatch)


def _each(fields: Iterable[Field], change: Callable[[Field], Field]) -> tuple[Field, ...]:
    """Change fields and all that are inside of them."""
    return tuple(
        change(
            replace(
                field,
                fields=_each(field.fields, change),
                items=None if field.items is None else _each((field.items,), change)[0],
            )
        )
        for field in fields
    )


def _coerced(field: Field) -> Field:
    return replace(field, reading=replace(field.reading, coerce=True))


def _readable(raws: Sequence[bytes], rules: Rules) -> int:
    """Count the lines that are rows by these rules, by the path that defines what a line means."""
    path = ExactPath(
        rules.schema,
        max_line_bytes=MAX_LINE_BYTES,
        unknown=rules.unknown,
        on_mismatch=rules.on_mismatch,
        on_bad_record=OnBadRecord.QUARANTINE,
    )
    body = b"".join(raw + b"\n" for raw in raws)
    rows = path.read(Block(text=body, first_line=1, lines=len(raws))).batch
    return rows.num_rows - (0 if rules.by is None else len(refused_rows(rows, rules.by)))
