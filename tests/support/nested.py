"""Random nested schemas, and lines that mostly fit them."""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from random import Random

from blizzard.worker.ndjson.fields import MemberPlace, places_of
from lakebed.columns.schema import Field, Reading
from lakebed.types import FieldType

NAMES = ["a", "b", "id", "A", "a.b", "x[3]", "`", "é", "", 'q"t', "back\\slash", "long" * 12]
OTHERS = ["u", "v", "u.v", "[0]", "`u`", "ü", "x[12]", "tab\t", 'w"', "m"]
TEXTS = [
    "",
    "a",
    "b c",
    'say "hi"',
    "\\",
    "é",
    "日本",
    "\U0001f427",
    "\n\t",
    "x" * 70,
    "{[]}",
    "[1]",
]
WRONG = ["1", "-0", "1.5", "1e400", '"1"', '""', "true", "{}", "[]", "null", "[null]", '{"a":1}']
WRONG += [r'"\ud800"', '{"a":1,"a":2}', '"2024-01-02"', "300", "123456789012345678901234567890"]
NULL_WORDS = ("-", "NA")
LEAVES = [*(kind for kind in FieldType if kind.delta), FieldType.DECIMAL]
JSON_FREE: Sequence[FieldType] = [kind for kind in LEAVES if kind is not FieldType.JSON]


def some_fields(
    random: Random, depth: int, leaves: Sequence[FieldType] = LEAVES, *, clashing: bool = True
) -> tuple[Field, ...]:
    """Return fields to some depth; if clashing, some of them take the same members."""
    found: list[Field] = []
    for name in random.sample(NAMES, random.randrange(1, 4)):
        path: tuple[str, ...] = ()
        if random.random() < 0.25:
            path = random.choice([(f"from {name}",), ("meta", name), ("meta", "in.ner", name)])
        if found and clashing and random.random() < 0.1:
            path = random.choice([random.choice(found).path, ("meta",), ("meta", "in.ner")])
        found.append(some_field(random, name, depth, leaves, clashing=clashing, path=path))
    return tuple(found)


def some_field(
    random: Random,
    name: str,
    depth: int,
    leaves: Sequence[FieldType],
    *,
    clashing: bool,
    path: tuple[str, ...] = (),
) -> Field:
    nested = [FieldType.STRUCT, FieldType.LIST, FieldType.MAP] if depth else []
    kind: FieldType = random.choice(nested if nested and random.random() < 0.7 else leaves)
    precision = random.randrange(1, 39)
    items = None
    if kind in (FieldType.LIST, FieldType.MAP):
        items = some_field(random, "element", depth - 1, leaves, clashing=clashing)
    return Field(
        name=name,
        type=kind,
        nullable=random.random() < 0.8,
        precision=precision if kind is FieldType.DECIMAL else 0,
        scale=random.randrange(precision + 1) if kind is FieldType.DECIMAL else 0,
        fields=some_fields(random, depth - 1, leaves, clashing=clashing)
        if kind is FieldType.STRUCT
        else (),
        items=items,
        reading=Reading(path=path),
    )


def with_readings(random: Random, one: Field) -> Field:
    """Return a field that takes values in other ways, at every depth."""
    if one.items is not None:
        return replace(one, items=with_readings(random, one.items))
    if one.fields:
        return replace(one, fields=tuple(with_readings(random, inner) for inner in one.fields))
    is_float = one.type in (FieldType.FLOAT32, FieldType.FLOAT64)
    is_time = one.type in (FieldType.TIMESTAMP, FieldType.TIMESTAMP_NTZ)
    return replace(
        one,
        reading=replace(
            one.reading,
            null_values=random.choice([(), (), NULL_WORDS]),
            coerce=random.random() < 0.3,
            formats=("iso", "epoch_ms") if is_time and random.random() < 0.5 else (),
            exact=is_float and random.random() < 0.5,
        ),
    )


def sharing(random: Random, fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """Return fields that take the values of others over again: whole, in part, or from inside.

    Lines that fit the given fields fit these, too.
    """
    found = [_with_sharing(random, one) for one in fields]
    numbers = count()
    for one in fields:
        for inner, path in ((one, one.path), *_reachable(one)):
            if random.random() < 0.4:
                again = _with_sharing(random, inner)
                name, reading = f"again {next(numbers)}", Reading(path=path)
                # An object around it may be missing, and it with that.
                found.append(replace(again, name=name, nullable=True, reading=reading))
    random.shuffle(found)
    return tuple(found)


def _reachable(one: Field) -> Iterator[tuple[Field, tuple[str, ...]]]:
    """Yield the fields inside a struct, with their paths in the object that the struct is in."""
    for inner in one.fields:
        yield inner, (*one.path, *inner.path)
        for deeper, path in _reachable(inner):
            yield deeper, (*one.path, *path)


def _with_sharing(random: Random, one: Field) -> Field:
    if one.items is not None:
        return replace(one, items=_with_sharing(random, one.items))
    if one.type is not FieldType.STRUCT:
        return one
    some = random.sample(one.fields, random.randrange(1, len(one.fields) + 1))
    return replace(one, fields=sharing(random, tuple(some)))


@dataclass(frozen=True)
class Lines:
    """How lines are written: how many values do not fit, and how many nobody declared."""

    random: Random
    wrong: float = 0.0
    unknown: float = 0.0
    gaps: list[str] = field(default_factory=lambda: ["", "", "", " ", "\t", " \r"])

    def line(self, fields: tuple[Field, ...]) -> str:
        return self._gap() + self._object(places_of(fields), fields) + self._gap()

    def _chance(self, part: float) -> bool:
        return self.random.random() < part

    def _gap(self) -> str:
        return self.random.choice(self.gaps)

    def _between(self, opening: str, items: list[str], closing: str) -> str:
        comma = f"{self._gap()},{self._gap()}"
        return opening + self._gap() + comma.join(items) + self._gap() + closing

    def _text(self, text: str) -> str:
        if text and self._chance(0.1):
            return '"' + "".join(f"\\u{ord(each):04x}" for each in text if ord(each) < 65536) + '"'
        return json.dumps(text, ensure_ascii=self._chance(0.5))

    def _object(self, places: Mapping[str, MemberPlace], fields: tuple[Field, ...]) -> str:
        members = []
        for name, place in places.items():
            value = self._member(place, fields)
            if value is not None:
                members.append((json.dumps(name), value))
        while self._chance(self.unknown):
            members.append((self._text(self.random.choice(OTHERS)), self._anything()))
        if members and self._chance(self.wrong):
            members.append(self.random.choice(members))
        if self._chance(0.3):
            self.random.shuffle(members)
        if not self._chance(self.wrong):
            members = list({json.loads(name): (name, value) for name, value in members}.values())
        return self._between("{", [f"{name}{self._gap()}:{self._gap()}{value}"
                                   for name, value in members], "}")  # fmt: skip

    def _member(self, place: MemberPlace, fields: tuple[Field, ...]) -> str | None:
        if place.columns:
            return self._value(fields[self.random.choice(place.columns)])
        inner = _fields_inside(place, fields)
        if all(one.nullable for one in inner) and self._chance(0.2):
            return self.random.choice([None, "null"])
        if self._chance(self.wrong):
            return self._anything()
        return self._object(place.inside, fields)

    def _value(self, one: Field, *, is_element: bool = False) -> str | None:
        if self._chance(self.wrong):
            return self._anything()
        if one.nullable and self._chance(0.2):
            return "null" if is_element else self.random.choice(["null", None])
        match one.type:
            case FieldType.STRUCT:
                return self._object(places_of(one.fields), one.fields)
            case FieldType.LIST | FieldType.MAP:
                assert one.items is not None
                values = [
                    str(self._value(one.items, is_element=True))
                    for _ in range(self.random.choice([0, 1, 2, 3, 12]))
                ]
                if one.type is FieldType.LIST:
                    return self._between("[", values, "]")
                keys = [f"k{number}" for number in range(len(values))]
                keys[:1] = [self.random.choice(NAMES)] if keys else []
                if self._chance(self.wrong):
                    keys = ["same"] * len(keys)
                pairs = zip(keys, values, strict=True)
                return self._between("{", [f"{self._text(k)}:{v}" for k, v in pairs], "}")
        return self._leaf(one)

    def _anything(self) -> str:
        if self._chance(0.3):
            return self._between("[", [self._anything() for _ in range(2)], "]")
        return self.random.choice([*WRONG, json.dumps(self.random.choice(TEXTS))])

    def _leaf(self, one: Field) -> str:  # noqa: PLR0911 - one for each type
        chance = self.random
        if one.reading.null_values and self._chance(0.1 if one.nullable else self.wrong):
            return json.dumps(chance.choice(one.reading.null_values))
        match one.type:
            case FieldType.INT8 | FieldType.INT16 | FieldType.INT32 | FieldType.INT64:
                limit = 1 << (int(one.type.value[3:]) - 1)
                return str(chance.choice([-limit, limit - 1, 0, chance.randrange(-limit, limit)]))
            case FieldType.FLOAT32 | FieldType.FLOAT64:
                return chance.choice(["-0", "1E+2", repr(chance.uniform(-9e9, 9e9)), "0.1", "7"])
            case FieldType.DECIMAL:
                return self._decimal(one)
            case FieldType.BOOLEAN:
                return chance.choice(["true", "false"])
            case FieldType.TIMESTAMP | FieldType.TIMESTAMP_NTZ | FieldType.DATE:
                day = f"{chance.randrange(1, 9999):04d}-{chance.randrange(1, 13):02d}-28"
                if one.type is FieldType.DATE:
                    return f'"{day}"'
                zone = "Z" if one.type is FieldType.TIMESTAMP else ""
                clock = chance.choice(["03:04", "23:59:59", "00:00:00.5", "12:34:56.123456"])
                return f'"{day}{chance.choice("T ")}{clock}{zone}"'
            case FieldType.BINARY:
                return f'"{base64.b64encode(chance.randbytes(chance.randrange(7))).decode()}"'
            case FieldType.JSON:
                return self.random.choice([text for text in WRONG if text != "null"])
        return self._text(chance.choice(TEXTS))

    def _decimal(self, one: Field) -> str:
        digits = self.random.randrange(10 ** self.random.randrange(1, one.precision + 1))
        sign = self.random.choice(["", "-"])
        if one.scale == 0 or self._chance(0.2):
            return f"{sign}{digits}e-{one.scale}"
        whole, part = divmod(digits, 10**one.scale)
        return f"{sign}{whole}.{part:0{one.scale}d}"


def _fields_inside(place: MemberPlace, fields: tuple[Field, ...]) -> list[Field]:
    inner = [fields[number] for number in place.columns]
    return inner + [
        one for deeper in place.inside.values() for one in _fields_inside(deeper, fields)
    ]
