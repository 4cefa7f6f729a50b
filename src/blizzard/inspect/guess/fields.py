"""Guess the columns for some records, with remarks for the configuration's author. Pure.

Types are those of inference. In addition, times written as numbers or text are recognised, and
names that no column can have are replaced.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from blizzard.inspect.guess.strings import Guess, Values, of_mixture, of_numbers, of_strings
from blizzard.model.bad_lines import ANY
from blizzard.model.columns import MOST_COLUMNS
from blizzard.model.seen import NOTHING, Seen, Text, column_of, is_column_name
from blizzard.worker.ndjson.inference import MOST_PATHS, infer
from lakebed.columns.schema import ELEMENT, VALUE, Field
from lakebed.types import FORBIDDEN_IN_NAMES, RESCUED, FieldType

Path = tuple[str | int, ...]
WIDE_INTEGERS = "integers of more than 64 bits"


@dataclass(frozen=True, slots=True)
class GuessedColumn:
    """A guessed column or inner field, with a remark."""

    field: Field | None
    """None if its type is unknown so far."""
    name: str
    remarks: tuple[str, ...] = ()
    inner: tuple["GuessedColumn", ...] = ()
    """The fields of a struct, or the elements of a list, or the values of a map."""


def columns_in(
    records: Sequence[Mapping[str, Any]], *, without: frozenset[str] = frozenset()
) -> tuple[GuessedColumn, ...]:
    """Return the columns of records, in the order in which their members appear.

    Those `without` are left out: the folders of a source path give them.
    """
    guesser = _Guesser()
    members: dict[str, list[Any]] = {}
    for record in records:
        guesser.note((), record)
        for name, value in record.items():
            if name in members or (name not in without and len(members) < MOST_PATHS):
                members.setdefault(name, []).append(value)
    seen = {name: infer(values) for name, values in members.items()}
    return tuple(guesser.fields(seen, ()))


def fields_of(columns: Iterable[GuessedColumn]) -> tuple[Field, ...]:
    """Return the columns whose types are known."""
    return tuple(one.field for one in columns if one.field is not None)


@dataclass(slots=True)
class _Guesser:
    values: dict[Path, Values] = field(default_factory=dict)
    columns: int = 0

    def note(self, path: Path, value: Any) -> None:  # noqa: ANN401 - any JSON value
        match value:
            case dict():
                for name, inner in value.items():
                    self.note((*path, name), inner)
            case list():
                for inner in value:
                    self.note((*path, ANY), inner)
            case str():
                known = self.values.get(path)
                if known is None and len(self.values) < MOST_PATHS:
                    known = self.values[path] = Values()
                if known is not None:
                    known.add(value)

    def fields(self, members: Mapping[str, Seen], path: Path) -> Iterator[GuessedColumn]:
        """Yield a column for each member, under a unique name that Delta accepts."""
        taken = {name.casefold() for name in members if is_column_name(name)}
        first: dict[str, str] = {}
        last: dict[str, int] = {}
        for name, seen in members.items():
            if not name or not _can_be_written(name):
                yield GuessedColumn(None, name, ("no column can take a field of this name",))
                continue
            remarks: list[str] = []
            column = name
            before = first.setdefault(name.casefold(), name)
            if not is_column_name(name) or (not path and name.casefold() == RESCUED):
                column = _free(allowed_name(name), taken, last)
                remarks.append("no column can have the name of the field")
            elif before != name:
                column = _free(name, taken, last)
                remarks.append(f"differs from {before} only in case")
            taken.add(column.casefold())
            if self.columns >= MOST_COLUMNS:
                continue
            made = self.column(column, seen, (*path, name))
            if column != name and made.field is not None:
                reading = replace(made.field.reading, path=(name,))
                made = replace(made, field=replace(made.field, reading=reading))
            yield replace(made, remarks=(*remarks, *made.remarks))

    def column(self, name: str, seen: Seen, path: Path) -> GuessedColumn:
        self.columns += 1
        made = column_of(name, seen)
        if made is not None and made.type is FieldType.JSON:
            number = self._numbers(seen, path) or Guess(made, _mixture(seen))
            return GuessedColumn(replace(number.field, name=name), name, (number.remark,))
        if seen.arrays:
            return self._list(name, seen, path)
        if seen.objects is not None:
            return self._object(name, seen, path)
        if made is None:
            return GuessedColumn(None, name, ("only null was seen",))
        guess = self._guess(made, path)
        if guess is None:
            is_wide = made.type is FieldType.DECIMAL
            return GuessedColumn(made, name, (WIDE_INTEGERS,) if is_wide else ())
        remarks = (guess.remark,) if guess.remark else ()
        return GuessedColumn(replace(guess.field, name=name), name, remarks)

    def _numbers(self, seen: Seen, path: Path) -> Guess | None:
        """Return a guess for numbers mixed with some text; None if there are other types."""
        values, number = self.values.get(path), column_of("", replace(seen, texts=frozenset()))
        if values is None or number is None or not seen.texts or Text.BROKEN in seen.texts:
            return None
        is_number = number.type in (FieldType.INT64, FieldType.FLOAT64, FieldType.DECIMAL)
        return of_mixture(number, values) if is_number else None

    def _guess(self, made: Field, path: Path) -> Guess | None:
        values = self.values.get(path)
        # Elements of a list are guessed by the list's name.
        name = next((str(step) for step in reversed(path) if step != ANY), made.name)
        if values is None:
            return None
        if made.type in (FieldType.INT64, FieldType.FLOAT64):
            return of_numbers(name, values)
        return of_strings(name, values) if made.type is FieldType.STRING else None

    def _list(self, name: str, seen: Seen, path: Path) -> GuessedColumn:
        inner = self.column(ELEMENT, seen.elements or NOTHING, (*path, ANY))
        if inner.field is None:
            return GuessedColumn(None, name, ("only empty arrays were seen",))
        made = Field(name=name, type=FieldType.LIST, items=inner.field)
        return GuessedColumn(made, name, (), (inner,))

    def _object(self, name: str, seen: Seen, path: Path) -> GuessedColumn:
        known = column_of(name, seen)
        if known is not None and known.type is FieldType.MAP and known.items is not None:
            inner = GuessedColumn(known.items, VALUE)
            return GuessedColumn(known, name, ("the names of its members are data",), (inner,))
        members = seen.objects.members if seen.objects is not None else {}
        below = tuple(self.fields(members, path))
        fields = fields_of(below)
        if not fields:
            return GuessedColumn(None, name, ("only empty objects were seen",))
        return GuessedColumn(
            Field(name=name, type=FieldType.STRUCT, fields=fields), name, (), below
        )


def _can_be_written(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False  # Half a surrogate pair.
    return True


def allowed_name(name: str) -> str:
    """Return a valid column name as close to this one as possible."""
    plain = "".join(
        letter if letter.isprintable() and letter not in FORBIDDEN_IN_NAMES else "_"
        for letter in name
    )
    return RESCUED.strip("_") if plain.casefold() == RESCUED else plain


def _free(name: str, taken: set[str], last: dict[str, int]) -> str:
    """Return a name that is unique regardless of case.

    `last` has the last number appended to each name, since names are never freed.
    """
    found, key = name, name.casefold()
    while found.casefold() in taken:
        last[key] = last.get(key, 1) + 1
        found = f"{name}_{last[key]}"
    return found


def _mixture(seen: Seen) -> str:
    kinds = [
        name
        for name, found in (
            ("numbers", seen.integers is not None or seen.fractions or seen.unbounded),
            ("strings", bool(seen.texts)),
            ("booleans", seen.booleans),
            ("objects", seen.objects is not None),
            ("arrays", seen.arrays),
        )
        if found
    ]
    if len(kinds) == 1:
        return "no other type holds all of its values"
    remark = f"{', '.join(kinds[:-1])}, also {kinds[-1]}"
    if set(kinds) <= {"numbers", "strings", "booleans"}:
        remark += "; type: string, coerce: true keeps them as text"
    return remark
