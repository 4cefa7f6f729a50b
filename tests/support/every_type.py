"""Rows of every type, nested: as their source writes them, and as the table must hold them."""

import base64
import json
import random
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

FIRST = """\
id BIGINT NOT NULL, tiny TINYINT, small SMALLINT, number INT, ratio FLOAT, amount DOUBLE,
flag BOOLEAN, name STRING, raw BINARY, at TIMESTAMP, local TIMESTAMP_NTZ, day DATE,
price DECIMAL(18,2), sum DECIMAL(38,3),
user STRUCT<id: INT NOT NULL, name: STRING, price: DECIMAL(9,2), local: TIMESTAMP_NTZ,
  at: TIMESTAMP, day: DATE, ratio: DOUBLE, live: BOOLEAN,
  deep: STRUCT<tiny: TINYINT, name: STRING>>,
mixed STRUCT<id: INT, tags: ARRAY<SMALLINT>>,
tags ARRAY<STRING>, items ARRAY<STRUCT<name: STRING, price: DECIMAL(9,2), at: TIMESTAMP>>,
counts MAP<STRING, SMALLINT>, of MAP<STRING, STRUCT<id: INT, tags: ARRAY<STRING>>>"""

THEN = FIRST.replace(" live: BOOLEAN,\n", " live: BOOLEAN,\n late: DECIMAL(5,1),").replace(
    "at: TIMESTAMP>>,\n", "at: TIMESTAMP, late: INT>>,\n"
)
"""The same with a field more in a struct, and in the structs of a list."""
assert len(THEN) == len(FIRST) + len(" late: DECIMAL(5,1),, late: INT")

Row = dict[str, Any]
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a local time


class Rows:
    """Makes rows, seeded; some values are missing, at every depth."""

    def __init__(self, *, later: bool = False, start: int = 0) -> None:
        self.later = later
        self.number = start
        self.chance = random.Random(start + 11)

    def take(self, count: int) -> list[Row]:
        """Return the next rows as the table must hold them."""
        return [self._row() for _ in range(count)]

    def _row(self) -> Row:
        chance = self.chance
        self.number += 1
        return {
            "id": self.number,
            **{name: self._maybe(value) for name, value in self._plain().items()},
            "user": self._maybe(self._user()),
            "mixed": self._maybe({"id": self._maybe(self.number), "tags": self._list(self._small)}),
            "tags": self._maybe(self._list(lambda: chance.choice(["a", "ü", "\U00020bb7"]))),
            "items": self._maybe(self._list(self._item)),
            "counts": self._maybe({f"k{place}": self._maybe(place) for place in range(2)}),
            "of": self._maybe({"k": self._maybe({"id": self.number, "tags": ["x", None]})}),
        }

    def _plain(self) -> Row:
        chance, local = self.chance, self._local()
        return {
            "tiny": chance.randrange(-(2**7), 2**7),
            "small": self._small(),
            "number": chance.randrange(-(2**31), 2**31),
            "ratio": chance.randrange(-1000, 1000) / 8,
            "amount": chance.random() * 10**6,
            "flag": chance.random() < 0.5,
            "name": chance.choice(["a" * 40, "b", "", "\U0010ffff" * 33]),
            "raw": b"\x00\xff",
            "at": self._local().replace(tzinfo=UTC),
            "local": local,
            "day": local.date(),
            "price": self._decimal(18, 2),
            "sum": self._decimal(38, 3),
        }

    def _user(self) -> Row:
        local = self._local()
        inside: Row = {
            "name": self.chance.choice(["x", "y" * 40]),
            "price": self._decimal(9, 2),
            "local": local,
            "at": local.replace(tzinfo=UTC),
            "day": local.date(),
            "ratio": 0.5,
            "live": True,
            "deep": {"tiny": self._maybe(7), "name": self._maybe("deep")},
        }
        late = {"late": self._maybe(self._decimal(5, 1)) if self.later else None}
        user = {"id": self.number, **{name: self._maybe(one) for name, one in inside.items()}}
        return user | late

    def _item(self) -> Row:
        return {
            "name": self._maybe("n"),
            "price": self._maybe(self._decimal(9, 2)),
            "at": self._maybe(self._local().replace(tzinfo=UTC)),
            "late": self._maybe(self.number) if self.later else None,
        }

    def _maybe(self, value: Any) -> Any:
        return None if self.chance.random() < 0.15 else value

    def _list(self, one: Any) -> list[Any]:
        return [self._maybe(one()) for _ in range(self.chance.randrange(3))]

    def _small(self) -> int:
        return self.chance.randrange(-(2**15), 2**15)

    def _local(self) -> datetime:
        return EPOCH + timedelta(microseconds=self.chance.randrange(-(10**15), 10**16))

    def _decimal(self, precision: int, scale: int) -> Decimal:
        most = 10 ** self.chance.randrange(1, precision + 1)
        return Decimal(f"{self.chance.randrange(-most + 1, most)}E-{scale}")


def ndjson_of(rows: Iterable[Row], *, later: bool) -> bytes:
    """Write rows as their source does; fields that it does not know yet are not in it."""
    return "".join(f"{_json(row, later)}\n" for row in rows).encode()


def _json(value: Any, later: bool) -> str:
    match value:
        case dict():
            parts = [
                f"{json.dumps(name)}:{_json(one, later)}"
                for name, one in value.items()
                if later or name != "late"
            ]
            return "{" + ",".join(parts) + "}"
        case list():
            return "[" + ",".join(_json(one, later) for one in value) + "]"
        case Decimal():
            return f"{value:f}"
        case bytes():
            return json.dumps(base64.b64encode(value).decode())
        case datetime() | date():
            return json.dumps(value.isoformat())
        case _:
            return json.dumps(value)


def plain(value: Any) -> Any:
    """Turn the pairs of maps into dicts, at every depth."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return {key: plain(one) for key, one in value}
    return [plain(one) for one in value] if isinstance(value, list) else value
