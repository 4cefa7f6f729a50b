"""Conditions on rows: `id = 'x' and (user.age > 30 or at is null)`. Pure.

Comparisons of a column, or of a field inside one, with a value; `in`, `is null`, `and`, `or` and
parentheses. As in SQL, a comparison with null is never true.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Literal

from lakebed.columns.column_mapping import FieldPath
from lakebed.errors import ArgumentInvalid

Value = str | int | Decimal | bool
DEEPEST = 50
"""The deepest nesting of parentheses."""

_TOKEN = re.compile(
    r"(?P<text>'(?:[^']|'')*')"
    r"|(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    r"|(?P<name>`[^`]+`|[^\W\d]\w*)"
    r"|(?P<symbol><=|>=|!=|<>|[=<>(),.])"
    r"|(?P<space>\s+)"
)


class PredicateInvalid(ArgumentInvalid, code="predicate_invalid"):
    """A condition on rows that cannot be read, or that does not fit the columns of the table."""


class Operator(StrEnum):
    """The operator of a comparison."""

    EQUAL = "="
    UNEQUAL = "!="
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="


@dataclass(frozen=True, slots=True)
class Comparison:
    """Compare a column with a value."""

    column: FieldPath
    operator: Operator
    value: Value


@dataclass(frozen=True, slots=True)
class IsNull:
    """Test whether a column is null, or is not."""

    column: FieldPath
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Combined:
    """Conditions joined by `and` or `or`."""

    how: Literal["and", "or"]
    parts: tuple["Predicate", ...]


Predicate = Comparison | IsNull | Combined


def parse(text: str) -> Predicate:
    """Parse a condition; PredicateInvalid names the position of the error."""
    reader = _ConditionReader(text)
    found = reader.either()
    if reader.token is not None:
        raise reader.wrong("and, or, or the end")
    return found


def columns_in(predicate: Predicate) -> Iterator[FieldPath]:
    """Yield the columns that a condition refers to."""
    if isinstance(predicate, Combined):
        for part in predicate.parts:
            yield from columns_in(part)
    else:
        yield predicate.column


@dataclass(frozen=True, slots=True)
class _ConditionToken:
    kind: str
    text: str
    at: int

    def is_any(self, *words: str) -> bool:
        return self.kind in ("name", "symbol") and self.text.lower() in words


class _ConditionReader:
    """Reads a condition token by token."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._cut(text))
        self._next = 0
        self._depth = 0

    @property
    def token(self) -> _ConditionToken | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def wrong(self, expected: str) -> PredicateInvalid:
        at = self.token
        found = "the end" if at is None else f"{at.text} at character {at.at + 1}"
        return PredicateInvalid(
            f"found {found}, expected {expected}; write a condition such as id = 'x', "
            "user.age >= 30 and at is not null, or kind in ('a', 'b')",
            condition=self._text,
        )

    def either(self) -> Predicate:
        return self._combined("or", self._both)

    def _both(self) -> Predicate:
        return self._combined("and", self._one)

    def _combined(self, how: Literal["and", "or"], part: Callable[[], Predicate]) -> Predicate:
        parts = [part()]
        while self._take(how):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Combined(how, tuple(parts))

    def _one(self) -> Predicate:
        if self._take("("):
            if self._depth == DEEPEST:
                raise self.wrong(f"at most {DEEPEST} nested parentheses")
            self._depth += 1
            found = self.either()
            self._depth -= 1
            self._require(")")
            return found
        column = self._column()
        if self._take("is"):
            negated = self._take("not")
            self._require("null")
            return IsNull(column, negated)
        if self._take("in"):
            return self._in(column)
        for symbol in ("=", "!=", "<>", "<=", ">=", "<", ">"):
            if self._take(symbol):
                operator = Operator.UNEQUAL if symbol == "<>" else Operator(symbol)
                return Comparison(column, operator, self._value())
        raise self.wrong("=, !=, <, <=, >, >=, in, or is null")

    def _in(self, column: FieldPath) -> Predicate:
        self._require("(")
        parts = [Comparison(column, Operator.EQUAL, self._value())]
        while self._take(","):
            parts.append(Comparison(column, Operator.EQUAL, self._value()))
        self._require(")")
        return Combined("or", tuple(parts))

    def _column(self) -> FieldPath:
        names = [self._name()]
        while self._take("."):
            names.append(self._name())
        return tuple(names)

    def _name(self) -> str:
        token = self.token
        if token is None or token.kind != "name":
            raise self.wrong("the name of a column")
        self._next += 1
        return token.text.strip("`")

    def _value(self) -> Value:
        token = self.token
        if token is None or not (token.kind in ("text", "number") or token.is_any("true", "false")):
            raise self.wrong("a number, a string in single quotes, true or false")
        self._next += 1
        if token.kind == "text":
            return token.text[1:-1].replace("''", "'")
        if token.kind == "number":
            return int(token.text) if token.text.lstrip("-").isdigit() else Decimal(token.text)
        return token.text.lower() == "true"

    def _take(self, word: str) -> bool:
        token = self.token
        if token is None or not token.is_any(word):
            return False
        self._next += 1
        return True

    def _require(self, word: str) -> None:
        if not self._take(word):
            raise self.wrong(word)

    def _cut(self, text: str) -> Iterator[_ConditionToken]:
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise PredicateInvalid(
                    f"unexpected {text[at]!r} at character {at + 1}; put strings in single quotes, "
                    "and names with characters other than letters, digits and _ in backticks",
                    condition=text,
                )
            if found.lastgroup != "space":
                yield _ConditionToken(str(found.lastgroup), found[0], at)
            at = found.end()
