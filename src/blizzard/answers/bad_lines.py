"""Lines that wait in quarantine: groups, settings that accept them, and searches. Read-only.

Settings are tried from the smallest change to the largest. None changes the table, and except for
truncated times none changes a value: values that do not fit go to `_rescued`.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from blizzard.answers.answer import CommandPrefix, WayOut, confirmed
from blizzard.answers.progress import PipelineEvidence
from blizzard.journal.source_names import FileUnknown, files_in_full, files_meant
from blizzard.model.bad_lines import GROUP_DIGITS, LineFault, SelectedLines, WaitingFile
from blizzard.model.columns import with_found
from blizzard.model.event_time import RowPartitions, row_partitions
from blizzard.model.predicate import Combined, Comparison, Operator, Predicate, PredicateInvalid
from blizzard.model.settings import MAX_LINE_BYTES
from blizzard.worker.ndjson.exact import ExactPath
from blizzard.worker.ndjson.lines import Block
from blizzard.worker.output.partitioner import refused_rows
from blizzard.worker.quarantine.reader import QuarantinedLine, lines_in
from blizzard.worker.table_file import Columns, matches
from lakebed.columns.schema import Field, Schema
from lakebed.layout import file_name
from lakebed.storage.store import Reader
from lakebed.types import FieldType, OnBadRecord, OnMismatch, UnknownFields

TIMES = (FieldType.TIMESTAMP, FieldType.TIMESTAMP_NTZ, FieldType.DATE)
MOST_LINES = 1000
"""The most lines of a group to try settings on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules that decide whether a line can be read."""

    schema: Schema
    unknown: UnknownFields
    on_mismatch: OnMismatch
    by: RowPartitions | None = None
    """The partition values that rows give, which must be writable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineFiles:
    """The quarantine files of one pipeline with waiting lines."""

    store: Reader | None
    """None if there is no table yet."""
    rules: Rules
    """The current rules."""
    files: tuple[WaitingFile, ...] = ()

    def lines(self, selected: SelectedLines) -> Iterator[tuple[WaitingFile, QuarantinedLine]]:
        """Yield the selected lines in the order in which they were quarantined."""
        for waiting in self.files:
            if self.store is None or not selected.may_be_in(waiting):
                continue
            for line in lines_in(self.store, waiting.file):
                if selected.includes(line.fault.group, line.key):
                    yield waiting, line


def quarantine_of(evidence: PipelineEvidence) -> QuarantineFiles:
    """Return the quarantine of a pipeline from its journal. Pure."""
    settings, history = evidence.settings, evidence.history
    known = with_found(settings.schema, history.columns)
    template = settings.sink.template
    by = row_partitions(template, settings.schema, settings.sink.timestamp_field)
    # Partition columns come from the paths of source files, not from their lines.
    inside = known.without(frozenset(template.keys if template else ())).fields
    schema = Schema(inside + (by.read if by else ()))
    return QuarantineFiles(
        store=evidence.store,
        rules=Rules(
            schema=schema,
            unknown=settings.unknown_fields,
            on_mismatch=settings.on_mismatch,
            by=by,
        ),
        files=history.books.waiting_files(),
    )


@dataclass(slots=True)
class FaultGroup:
    """Lines with the same fault."""

    fault: LineFault
    sample: QuarantinedLine
    """The first line."""
    lines: int = 0
    files: set[str] = field(default_factory=set)
    """The keys of their source files."""
    tried: list[bytes] = field(default_factory=list)
    """The first lines, on which settings are tried."""


def groups_of(quarantine: QuarantineFiles, selected: SelectedLines) -> list[FaultGroup]:
    """Group the selected lines by fault, largest group first."""
    found: dict[LineFault, FaultGroup] = {}
    for _file, line in quarantine.lines(selected):
        group = found.setdefault(line.fault, FaultGroup(line.fault, line))
        group.lines += 1
        group.files.add(line.key)
        if len(group.tried) < MOST_LINES:
            group.tried.append(line.raw)
    return sorted(found.values(), key=lambda one: (-one.lines, one.fault.group))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """A configuration change, and how many of the tried lines it accepts."""

    key: str | None
    """The setting; None if the current configuration accepts the lines."""
    value: str | bool | None
    lines: int
    tried: int


def fix_for(raws: Sequence[bytes], rules: Rules) -> Fix | None:
    """Return the smallest change that accepts the most lines; None if none accepts any."""
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


def way_out_for(group: str, fix: Fix | None, cli: CommandPrefix) -> WayOut:
    """Return what to do about a group of bad lines, given its fix. Pure."""
    dlq = f"{cli.blizzard} dlq"
    replay = f"{dlq} replay {group}"
    if fix is None:
        show = f"{dlq} show {group} --output json > bad-lines.json"
        return WayOut(
            advice="No setting accepts them. Save them, and put corrected lines into the source as "
            "a new file; then discard the old ones.",
            commands=(show, *confirmed(f"{dlq} discard {group}")),
        )
    of = "them" if fix.lines == fix.tried else f"{fix.lines:,} of {fix.tried:,}"
    if fix.key is None:
        advice = f"The current configuration accepts {of}. Replay the lines."
        return WayOut(advice=advice, commands=confirmed(replay))
    return WayOut(
        advice=f"This setting accepts {of}. Change it, then replay the lines.",
        yaml=_as_yaml(fix.key, str(fix.value).lower()),
        commands=confirmed(replay),
    )


def _as_yaml(key: str, value: str) -> str:
    """Write a setting as YAML of a pipeline's configuration."""
    section, *names = key.split(".")
    if names[0] == "fields":
        name = ".".join(names[1:-1])
        return f"{section}:\n  fields:\n    - name: {name}\n      {names[-1]}: {value}"
    return f"{section}:\n  {'.'.join(names)}: {value}"


def _changes(rules: Rules) -> Iterator[tuple[str | None, str | bool | None, Rules]]:
    yield None, None, rules
    coerced = Schema(tuple(map(_coerced, rules.schema.fields)))
    yield "schema.coerce", True, replace(rules, schema=coerced)
    for one in rules.schema.fields:
        if one.type in TIMES and not one.reading.truncate:
            cut = replace(one, reading=replace(one.reading, truncate=True))
            fields = Schema(tuple(cut if each is one else each for each in rules.schema.fields))
            yield f"schema.fields.{one.name}.truncate", True, replace(rules, schema=fields)
    rescue = UnknownFields.RESCUE
    yield "schema.unknown_fields", rescue.value, replace(rules, unknown=rescue)
    mismatch = OnMismatch.RESCUE
    yield "schema.on_mismatch", mismatch.value, replace(rules, on_mismatch=mismatch)


def _coerced(one: Field) -> Field:
    """Return a field with `coerce` set, including its inner fields."""
    return replace(
        one,
        reading=replace(one.reading, coerce=True),
        fields=tuple(map(_coerced, one.fields)),
        items=None if one.items is None else _coerced(one.items),
    )


def _readable(raws: Sequence[bytes], rules: Rules) -> int:
    """Count the lines that give rows by these rules, using the exact decoder."""
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


@dataclass(slots=True)
class LineSearch:
    """Searches quarantined lines for a condition.

    Most such lines cannot be read in full: values that do not fit are left out. A line may match if
    a value of the condition occurs elsewhere in it, or if it is not JSON.
    """

    predicate: Predicate
    columns: Schema
    """The columns that records give."""
    _path: ExactPath = field(init=False)
    _values: re.Pattern[bytes] | None = field(init=False)
    _kinds: Mapping[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        """Prepare the decoder."""
        self._path = ExactPath(
            # A required value that does not fit must not keep the others from being read.
            Schema(tuple(map(_optional, self.columns.fields))),
            max_line_bytes=MAX_LINE_BYTES,
            unknown=UnknownFields.DROP,
            on_mismatch=OnMismatch.RESCUE,
            on_bad_record=OnBadRecord.QUARANTINE,
        )
        self._values = values_in(self.predicate)
        self._kinds = {one.name: one.arrow_type() for one in self.columns.fields}

    def may_match(self, raw: bytes) -> bool:
        """Whether the condition holds for a line, or may hold."""
        holds = self._holds(raw)
        if holds:
            return True
        return holds is None if self._values is None else self._values.search(raw) is not None

    def _holds(self, raw: bytes) -> bool | None:
        """Whether the condition holds for a line; None if it cannot be read."""
        rows = self._path.read(Block(text=raw + b"\n", first_line=1, lines=1)).batch
        if rows.num_rows != 1:
            return None
        table: pa.Table = pa.Table.from_batches([rows])
        try:
            found: Any = matches(self.predicate, Columns(table, 1, {}, self._kinds))
        except PredicateInvalid:
            return None  # The table's type differs from that of the records by now.
        return bool(found[0].as_py())


def _optional(column: Field) -> Field:
    return replace(column, nullable=True, fields=tuple(map(_optional, column.fields)))


def values_in(predicate: Predicate) -> re.Pattern[bytes] | None:
    """Return a pattern for the values of a condition; None without any. Pure."""
    found = set(_texts(predicate))
    return re.compile(b"|".join(sorted(found))) if found else None


def _texts(predicate: Predicate) -> Iterator[bytes]:
    match predicate:
        case Combined(parts=parts):
            for part in parts:
                yield from _texts(part)
        case Comparison(operator=Operator.EQUAL, value=str(value)) if value:
            yield re.escape(value.encode())
            # As JSON, with and without escapes for non-ASCII characters.
            for ascii_only in (True, False):
                text = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
                yield re.escape(text.encode())
        case Comparison(operator=Operator.EQUAL, value=value) if not isinstance(value, bool | str):
            yield rb"(?<![\d.])" + re.escape(str(value).encode()) + rb"(?![\d.])"
        case _:
            pass


_GROUP = re.compile(f"[0-9a-f]{{{GROUP_DIGITS}}}")


def resolved(
    names: Iterable[str], scopes: Sequence[PipelineEvidence], *, parts: bool = True
) -> dict[str, dict[str, str]]:
    """Resolve names to source file keys, by pipeline, each with the name as typed.

    Groups, quarantine files and unknown names are returned unchanged.
    """
    found: dict[str, dict[str, str]] = {scope.settings.name: {} for scope in scopes}
    for name in names:
        for pipeline, key in _meant(name, scopes, parts=parts):
            found[pipeline][key] = name
    return found


def _meant(name: str, scopes: Sequence[PipelineEvidence], *, parts: bool) -> list[tuple[str, str]]:
    as_it_is = [(scope.settings.name, name) for scope in scopes]
    if any(_is_quarantine_file(name, scope) for scope in scopes):
        return as_it_is
    if _GROUP.fullmatch(name) and not files_in_full(name, scopes):
        return as_it_is
    try:
        files = files_meant(name, scopes, parts=parts)
    except FileUnknown:
        return as_it_is
    return [(scope.settings.name, key) for scope, key in files] or as_it_is


def _is_quarantine_file(name: str, scope: PipelineEvidence) -> bool:
    files = (waiting.file.filename for waiting in scope.history.books.waiting_files())
    return any(name in (file, file_name(file)) for file in files)
