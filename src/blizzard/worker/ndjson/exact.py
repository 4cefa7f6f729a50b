"""The exact path: decode one line at a time in plain Python. It defines what a line means."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from types import MappingProxyType

import pyarrow as pa

from blizzard.model.bad_lines import any_element, element_path, member_path
from blizzard.model.settings import MAX_DEPTH
from blizzard.worker.ndjson import grammar
from blizzard.worker.ndjson.fields import (
    NOWHERE,
    Converter,
    MemberPlace,
    converter,
    is_kept,
    places_inside,
    places_of,
)
from blizzard.worker.ndjson.grammar import BadMember, Member, NotJson
from blizzard.worker.ndjson.lines import (
    BLANK,
    TOO_LONG,
    BadLine,
    BadRecord,
    Block,
    Decoded,
    bad_record,
    line_too_long,
    shown,
)
from blizzard.worker.ndjson.values import Cell, JsonValue, Nested, ValueRefused, kind_of
from lakebed.columns.schema import Field, Schema
from lakebed.types import KEEPING, NESTED_TYPES, FieldType, OnBadRecord, OnMismatch, UnknownFields


@dataclass(frozen=True, slots=True)
class _FieldPlan:
    """How to read the values of a field."""

    field: Field
    name: str
    """The last step of its path, quoted if necessary."""
    elsewhere: Mapping[str, MemberPlace]
    """The members of its value that other fields read."""
    is_kept: bool
    """Whether another field holds its value as JSON text."""
    take: Converter | None
    """The converter of its values; None if nested or JSON."""
    level: "_LevelPlan | None"
    """The fields of a struct."""
    items: "_FieldPlan | None"
    """The elements of a list or the values of a map."""


@dataclass(frozen=True, slots=True)
class _LevelPlan:
    """The fields of an object, and the members that they read."""

    fields: tuple[_FieldPlan, ...]
    places: Mapping[str, MemberPlace]


def _level_plan(fields: tuple[Field, ...], elsewhere: Mapping[str, MemberPlace]) -> _LevelPlan:
    places = places_of(fields, elsewhere)
    plans = (
        _field_plan(one, places_inside(places, one.path), is_kept=is_kept(places, one.path))
        for one in fields
    )
    return _LevelPlan(tuple(plans), places)


def _field_plan(
    one: Field, elsewhere: Mapping[str, MemberPlace] = NOWHERE, *, is_kept: bool = False
) -> _FieldPlan:
    is_value = one.type not in NESTED_TYPES and one.type is not FieldType.JSON
    return _FieldPlan(
        field=one,
        name=member_path("", one.path[-1]),
        elsewhere=elsewhere,
        is_kept=is_kept,
        take=converter(one) if is_value else None,
        level=_level_plan(one.fields, elsewhere) if one.type is FieldType.STRUCT else None,
        items=None if one.items is None else _field_plan(one.items),
    )


class ExactPath:
    """Decodes blocks line by line."""

    def __init__(
        self,
        schema: Schema,
        *,
        max_line_bytes: int,
        unknown: UnknownFields = UnknownFields.DROP,
        on_mismatch: OnMismatch = OnMismatch.FAIL,
        on_bad_record: OnBadRecord = OnBadRecord.FAIL,
    ) -> None:
        self._level = _level_plan(schema.fields, NOWHERE)
        self._rescues = unknown in KEEPING or on_mismatch is OnMismatch.RESCUE
        self._schema = (schema.with_rescued() if self._rescues else schema).arrow()
        self._unknown = unknown
        self._on_mismatch = on_mismatch
        self._on_bad_record = on_bad_record
        self._max_line_bytes = max_line_bytes

    def read(self, block: Block) -> Decoded:
        """Return the block's rows; raise the first bad line, or quarantine all bad lines."""
        return self.read_some(block, spans_of(block))

    def read_some(self, block: Block, lines: Iterable["Span"]) -> Decoded:
        """Return the rows of some lines of a block; see `read`."""
        rows: list[Sequence[object]] = []
        dropped: Counter[str] = Counter()
        rescued: Counter[str] = Counter()
        bad_records: list[BadRecord] = []
        blank = 0
        read = 0
        for number, start, end in lines:
            read += 1
            line = _Line(number, self._unknown, self._on_mismatch)
            try:
                cells = self._cells(line, block.text[start:end])
            except BadLine as bad:
                if self._on_bad_record is OnBadRecord.FAIL or bad.code == TOO_LONG:
                    raise
                raw = block.raw(start, end)
                bad_records.append(bad_record(bad, raw, offset=block.offset + start))
                continue
            if cells is None:
                blank += 1
                continue
            rows.append(cells)
            dropped.update(any_element(path) for path in line.dropped)
            rescued.update(any_element(path) for path, _ in line.rescued)
        columns: Sequence[Sequence[object]] = list(zip(*rows, strict=True))
        arrays = [
            pa.array(column, kind.type)
            for column, kind in zip(columns or [()] * len(self._schema), self._schema, strict=True)
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        return Decoded(
            batch=batch,
            size=batch.nbytes,
            lines=read,
            blank=blank,
            dropped=dict(dropped),
            rescued=dict(rescued),
            bad=tuple(bad_records),
        )

    def _cells(self, line: "_Line", data: bytes) -> list[Cell | None] | None:
        """Return the cells of a line, None if it is blank, or raise `BadLine`."""
        if len(data) > self._max_line_bytes:
            raise line_too_long(line.number, self._max_line_bytes)
        if not data.strip(BLANK):
            return None
        cells = line.object(self._level, line.members_of(data), "")
        line.forget_taken()
        if self._rescues:
            cells.append(line.rescued_text())
        return cells


Span = tuple[int, int, int]
"""The number of a line, and its start and end in the block."""


def spans_of(block: Block) -> Iterator[Span]:
    """Yield the spans of a block's lines."""
    text, number, start = block.text, block.first_line, 0
    while start < block.end:
        end = text.find(b"\n", start, block.end)
        end = block.end if end < 0 else end
        yield number, start, end
        number, start = number + 1, end + 1


@dataclass(slots=True)
class _Line:
    """The state of one line: its number, and the values without a column."""

    number: int
    unknown: UnknownFields
    on_mismatch: OnMismatch
    rescued: dict[tuple[str, str], None] = field(default_factory=dict)
    """Paths and source texts for `_rescued`, in the order of the line."""
    dropped: list[str] = field(default_factory=list)
    """Paths of dropped values."""
    taken: list[str] = field(default_factory=list)
    """Paths of values that a column holds completely."""
    misfits: set[str] = field(default_factory=set)
    """Paths of rescued values of declared fields."""

    def forget_taken(self) -> None:
        """Do not rescue a misfit that another column holds, alone or inside its value."""
        taken = frozenset(self.taken)
        sizes = {len(path) for path in taken}
        for path, source in [*self.rescued] if self.misfits else ():
            within = (path[:size] for size in sizes if path[size : size + 1] in ("", ".", "["))
            if path in self.misfits and not taken.isdisjoint(within):
                del self.rescued[path, source]

    def rescued_text(self) -> str | None:
        """Return the content of `_rescued` as JSON; None if nothing is rescued."""
        if not self.rescued:
            return None
        found = (f"{json.dumps(path, ensure_ascii=False)}:{text}" for path, text in self.rescued)
        return "{" + ",".join(found) + "}"

    def bad(
        self,
        code: str,
        found: str,
        expected: str,
        path: str | None = None,
        *,
        value: str | None = None,
        plain: bool = False,
    ) -> BadLine:
        """Return the error of this line; a `plain` message omits what was expected."""
        return BadLine(
            f"found {found}" if plain else f"found {found}, expected {expected}",
            code=code,
            line=self.number,
            field=path,
            value=value,
            found=found,
            expected=expected,
        )

    def members_of(self, data: bytes) -> dict[str, Member]:
        """Parse the members of the line's object."""
        try:
            text = data.decode()
        except UnicodeDecodeError as cause:
            found = f"bytes that are not UTF-8 at byte {cause.start + 1} of the line"
            around = shown(data[max(cause.start - 8, 0) : cause.start + 8])
            raise self.bad("not_utf8", found, "UTF-8", value=around, plain=True) from None
        if grammar.depth_exceeds(text, MAX_DEPTH):
            found = f"values nested more than {MAX_DEPTH} deep"
            raise self.bad("too_deep", found, f"at most {MAX_DEPTH}", plain=True)
        try:
            if not grammar.opens_object(text):
                value, source = grammar.whole(text)
                found = kind_of(value, source)
                raise self.bad("not_an_object", found, "an object", value=shown(source))
            return self._members(text, "")
        except NotJson as cause:
            rest = text[cause.at :].strip(" \t\r")
            found = f"{cause.found or grammar.kind_of_rest(rest)} at column {cause.at + 1}"
            shown_rest = shown(text[cause.at :]) if rest else None
            raise self.bad("not_json", found, cause.expected, value=shown_rest) from None
        except RecursionError:
            found = "values nested too deep to be read"
            raise self.bad("too_deep", found, f"at most {MAX_DEPTH}", plain=True) from None

    def object(
        self,
        level: _LevelPlan,
        members: Mapping[str, Member],
        above: str,
    ) -> list[Cell | None]:
        """Return the cells of an object's fields; rescue, drop or refuse all other members."""
        opened: dict[str, Mapping[str, Member]] = {above: members}
        cells = []
        for plan in level.fields:
            here, among, steps = above, members, plan.field.path
            if len(steps) > 1:
                here, among = self._parent(steps, opened, above)
            path = f"{here}.{plan.name}" if here else plan.name
            with self._without_leftovers() if plan.is_kept else nullcontext():
                cells.append(self._cell(plan, among.get(steps[-1]), path, among))
        self._leftovers(level.places, members, opened, above)
        return cells

    @contextmanager
    def _without_leftovers(self) -> Iterator[None]:
        """Suppress leftovers of a value that another field holds as JSON text."""
        unknown, dropped = self.unknown, len(self.dropped)
        self.unknown = UnknownFields.DROP
        try:
            yield
        finally:
            self.unknown = unknown
            del self.dropped[dropped:]

    def _members(self, text: str, above: str) -> dict[str, Member]:
        try:
            return grammar.members(text)
        except BadMember as bad:
            if bad.code == "duplicate_field":
                path = member_path(above, bad.name)
                raise self.bad(bad.code, bad.found, bad.expected, path, plain=True) from None
            raise self.bad(
                bad.code, bad.found, bad.expected, above or None, value=shown(bad.name)
            ) from None

    def _parent(
        self, steps: Sequence[str], opened: dict[str, Mapping[str, Member]], above: str
    ) -> tuple[str, Mapping[str, Member]]:
        """Return the path and the members of the innermost object on a field's path."""
        here = above
        for name in steps[:-1]:
            members, here = opened[here], member_path(here, name)
            if here not in opened:
                opened[here] = self._opened(members.get(name), here)
        return here, opened[here]

    def _opened(self, member: Member | None, path: str) -> Mapping[str, Member]:
        """Parse the members of an object on a field's path; none if it is missing."""
        value, source = member or (None, "")
        if value is None:
            return {}
        try:
            if not _is_object(value, source):
                raise self._refused(ValueRefused("wrong_type", "an object"), value, source, path)
            return self._members(source, path)
        except BadLine:
            if self.on_mismatch is OnMismatch.FAIL:
                raise
            self._rescue(path, source)
            return {}

    def _cell(
        self,
        plan: _FieldPlan,
        member: Member | None,
        path: str,
        among: Mapping[str, Member] = MappingProxyType({}),
    ) -> Cell | None:
        """Convert a member into a cell; rescue a misfit if the field is nullable.

        `among` holds the members of its object, for hints at other spellings.
        """
        value, source = member or (None, "")
        one, take = plan.field, plan.take
        may_rescue = one.nullable and self.on_mismatch is OnMismatch.RESCUE
        cell: Cell | None = None
        if value is None:
            pass
        elif take is not None:
            try:
                cell = take(value)
            except ValueRefused as refused:
                if not may_rescue:
                    raise self._refused(refused, value, source, path) from None
                self._rescue(path, source)
                return None
            self.taken.append(path)
        else:
            kept = len(self.rescued), len(self.dropped), len(self.taken)
            try:
                cell = self._taken(plan, value, source, path)
            except BadLine:
                if not may_rescue:
                    raise
                # The whole value is rescued, so undo the notes about its parts.
                del self.dropped[kept[1] :], self.taken[kept[2] :]
                while len(self.rescued) > kept[0]:
                    self.rescued.popitem()
                self._rescue(path, source)
                return None
            if not plan.elsewhere and kept[:2] == (len(self.rescued), len(self.dropped)):
                self.taken.append(path)
        if cell is None and not one.nullable:
            missing = f"no such field{_other_spelling(one.path[-1], among)}"
            found = "null" if member else missing
            expected = "a value: the field is required"
            raise self.bad("required_field_missing", found, expected, path)
        return cell

    def _taken(self, plan: _FieldPlan, value: JsonValue, source: str, path: str) -> Cell | None:
        """Return the cell of a nested or JSON value."""
        kind = plan.field.type
        if kind is FieldType.JSON:
            return source
        opening, wanted = ("[", "an array") if kind is FieldType.LIST else ("{", "an object")
        if not isinstance(value, Nested) or source[0] != opening:
            raise self._refused(ValueRefused("wrong_type", wanted), value, source, path)
        if plan.level is not None:
            cells = self.object(plan.level, self._members(source, path), path)
            return dict(zip((each.name for each in plan.field.fields), cells, strict=True))
        if plan.items is None:
            raise ValueError(f"a {kind} must declare its elements")
        if kind is FieldType.LIST:
            return [
                self._cell(plan.items, member, element_path(path, index))
                for index, member in enumerate(grammar.elements(source))
            ]
        return [
            (name, self._cell(plan.items, member, member_path(path, name)))
            for name, member in self._members(source, path).items()
        ]

    def _refused(self, refused: ValueRefused, value: JsonValue, source: str, path: str) -> BadLine:
        found = refused.found or kind_of(value, source)
        return self.bad(refused.code, found, refused.expected, path, value=shown(source))

    def _leftovers(
        self,
        places: Mapping[str, MemberPlace],
        members: Mapping[str, Member],
        opened: Mapping[str, Mapping[str, Member]],
        above: str,
    ) -> None:
        """Rescue, drop or refuse the members that no field reads; ignore nulls."""
        for name, (value, source) in members.items():
            place, path = places.get(name), member_path(above, name)
            if place is not None:
                if not place.columns:
                    inside = opened.get(path)
                    if inside is None:  # Only fields of outer levels read it.
                        is_object = value is not None and _is_object(value, source)
                        inside = self._members(source, path) if is_object else {}
                    self._leftovers(place.inside, inside, opened, path)
            elif value is None:
                continue
            elif self.unknown is UnknownFields.FAIL:
                found = kind_of(value, source)
                raise self.bad("unknown_field", found, "no such field", path, value=shown(source))
            elif self.unknown is UnknownFields.DROP:
                self.dropped.append(path)
            else:
                self._rescue(path, source, misfit=False)

    def _rescue(self, path: str, source: str, *, misfit: bool = True) -> None:
        """Rescue a value once, even if several fields refuse it."""
        if misfit:
            self.misfits.add(path)
        self.rescued.setdefault((path, source))


def _is_object(value: JsonValue, source: str) -> bool:
    return isinstance(value, Nested) and source[0] == "{"


def _other_spelling(name: str, members: Mapping[str, Member]) -> str:
    """Return a hint at a member that differs from the field only in case. Pure."""
    wanted = name.casefold()
    other = next((each for each in members if each.casefold() == wanted), None)
    return "" if other is None else f" but {other} (names are case-sensitive)"
