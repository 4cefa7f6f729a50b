"""Hard values, and who loses them: workload (h), judged by one oracle that takes no part.

    .venv/bin/python -m bench.race --workloads h [--write]

Each kind of trouble is a file of its own, in which every tenth line has it, and is read by itself:
who fails with it loses that file and no other. Python's `json` says what is in the lines, numbers
as decimals. A value is kept if its column has it, or `_rescued`, or its line is quarantined whole.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from lakebed.layout import quarantine_folder

LINES = 200
EVERY = 10
AT = "2024-01-01T12:00:00.000000Z"

Value = tuple[str, Any]
"""A field and what it holds; a line that is no JSON is a value without a field."""


def _with(field: str, written: str) -> Callable[[int], str]:
    """Return what writes an ordinary line with a field that is written as given."""

    def line(number: int) -> str:
        fields = {
            "id": str(number),
            "user": f'"user-{number}"',
            "action": '"view"',
            "amount": f"{number}.25",
            "member": "true",
            "at": f'"{AT}"',
        }
        fields[field] = written
        return "{" + ", ".join(f'"{name}": {value}' for name, value in fields.items()) + "}"

    return line


ordinary = _with("action", '"view"')

KINDS: Mapping[str, Callable[[int], str]] = {
    "nothing hard": ordinary,
    "1.5 in an integer": lambda number: ordinary(number).replace(f": {number},", f": {number}.5,"),
    "2^63 in an integer": lambda number: ordinary(number).replace(
        f": {number},", f": {2**63 + number},"
    ),
    "1e400 in a float": _with("amount", "1e400"),
    "a number of 30 digits in a float": _with("amount", "0.100000000000000005551115123126"),
    "a text in a float": _with("amount", '"12,50"'),
    "a field without a column": _with("coupon", '"half off"'),
    "a field twice": lambda number: ordinary(number)[:-1] + ', "user": "somebody else"}',
    "a lone surrogate": _with("user", '"\\ud800x"'),
    "NUL in a string": _with("user", '"a\\u0000b"'),
    "a time with an offset": _with("at", '"2024-01-01T12:00:00.5+05:30"'),
    "a line cut short": lambda number: ordinary(number)[:40],
}


def lines_of(kind: str) -> list[str]:
    """Return the lines of one kind's file."""
    hard = KINDS[kind]
    return [hard(n) if n % EVERY == 0 else ordinary(n) for n in range(1, LINES + 1)]


def generated(under: Path) -> dict[str, Path]:
    """Return a folder for each kind, with its file."""
    folders = {}
    for number, kind in enumerate(KINDS):
        folder = folders[kind] = under / f"h-{number:02d}"
        folder.mkdir(parents=True, exist_ok=True)
        body = "".join(f"{line}\n" for line in lines_of(kind))
        (folder / "part-00000.ndjson").write_text(body)
    return folders


def values_of(line: str) -> list[Value]:
    """Return what is in a line, by Python's own reader: every number as it is written."""
    try:
        pairs = json.loads(
            line, parse_float=Decimal, parse_int=Decimal, object_pairs_hook=lambda pairs: pairs
        )
    except ValueError:
        return [("", line)]
    return [(name, value) for name, value in pairs if value is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a contestant has made of a file."""

    rows: Sequence[Mapping[str, Any]]
    quarantined: frozenset[str] = frozenset()
    """The lines that it has quarantined, as they were."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How many values of a file came to what."""

    values: int = 0
    wrong: int = 0
    lost: int = 0

    @property
    def share(self) -> float:
        """Return the part of all values that is wrong or lost."""
        return (self.wrong + self.lost) / max(1, self.values)

    def __add__(self, other: "Verdict") -> "Verdict":
        return Verdict(self.values + other.values, self.wrong + other.wrong, self.lost + other.lost)


TELLING = ("id", "user", "amount")
"""Fields that differ from line to line: by most of them a row is known, whichever is damaged."""


def judged(lines: Sequence[str], found: Found | None) -> Verdict:
    """Return what became of the values of a file; None found where a contestant failed. Pure."""
    total = Verdict()
    rows = _Rows(found.rows if found else ())
    for line in lines:
        values = values_of(line)
        if found is not None and line in found.quarantined:
            total += Verdict(len(values))
        elif (row := rows.take(values)) is None:
            total += Verdict(len(values), 0, len(values))
        else:
            for name, value in values:
                kept = _kept(name, value, row)
                total += Verdict(1, int(kept is False), int(kept is None))
    return total


class _Rows:
    """Rows that no line has claimed yet."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._rows = dict(enumerate(rows))
        self._by: dict[Value, list[int]] = {}
        for number, row in self._rows.items():
            for name in TELLING:
                self._by.setdefault((name, row.get(name)), []).append(number)

    def take(self, values: Sequence[Value]) -> Mapping[str, Any] | None:
        """Return the row that has most of the telling values; None where none has any."""
        votes = Counter(
            number
            for name, value in values
            if name in TELLING
            for number in self._by.get((name, _plain(value)), ())
            if number in self._rows
        )
        return self._rows.pop(votes.most_common(1)[0][0]) if votes else None


def _plain(value: Any) -> Any:  # noqa: ANN401 - of JSON
    return float(value) if isinstance(value, Decimal) else value


def _kept(name: str, value: object, row: Mapping[str, Any]) -> bool | None:
    """Whether a row has a value; False where it has another one instead, None where it has none."""
    rescued = json.loads(row.get("_rescued") or "{}", parse_float=Decimal, parse_int=Decimal)
    if name in rescued and rescued[name] == value:
        return True
    found = row.get(name)
    return None if found is None else _same(value, found)


def _same(value: object, found: object) -> bool:
    """Whether what was found is what was written, as exactly as its type can say it."""
    if isinstance(found, bool) or isinstance(value, bool):
        return value is found
    if isinstance(value, Decimal):
        if isinstance(found, float):
            return found == float(value) and abs(found) != float("inf")
        return isinstance(found, int) and found == value
    if isinstance(value, str) and isinstance(found, datetime):
        at = found if found.tzinfo else found.replace(tzinfo=UTC)
        return at == datetime.fromisoformat(value)
    return value == found


def found_in(table: Path, ours: str | None) -> Found:
    """Read what is in a table, in the order of the lines; `ours` is the name of our pipeline."""
    paths = sorted(p for p in table.rglob("*.parquet") if "_blizzard" not in p.parts)
    rows = [row for path in paths for row in _rows(pq.read_table(path))]
    quarantined: list[str] = []
    if ours is not None and (folder := table / quarantine_folder(ours)).exists():
        read = ds.dataset(folder, format="parquet").to_table()
        raw: list[Any] = read["raw"].to_pylist()
        quarantined = [one.decode() for one in raw]
    return Found(rows=rows, quarantined=frozenset(quarantined))


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield rows as Python has them; texts also where they are no UTF-8."""
    columns: dict[str, list[Any]] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            raw: list[Any] = column.cast(pa.large_binary()).to_pylist()
            columns[name] = [r if r is None else r.decode("utf-8", "surrogatepass") for r in raw]
        elif pa.types.is_timestamp(column.type):
            columns[name] = column.cast(pa.timestamp("us", column.type.tz)).to_pylist()
        else:
            columns[name] = column.to_pylist()
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))


def table(figures: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield a row for every kind, and what each contestant loses of it."""
    names = list(figures)
    yield f"| every tenth line has | {' | '.join(names)} |"
    yield f"|---|{'---:|' * len(names)}"
    for kind in KINDS:
        yield f"| {kind} | {' | '.join(_cell(figures[name][kind]) for name in names)} |"
    sums = [_sum(figures[name]) for name in names]
    yield f"| **values wrong or lost** | {' | '.join(f'**{one.share:.1%}**' for one in sums)} |"


def _cell(one: Mapping[str, Any]) -> str:
    if one["error"]:
        return "fails"
    said = [f"{one[what]} {what}" for what in ("wrong", "lost") if one[what]]
    return ", ".join(said) or "0"


def _sum(kinds: Mapping[str, Mapping[str, Any]]) -> Verdict:
    total = Verdict()
    for one in kinds.values():
        total += Verdict(one["values"], one["wrong"], one["lost"])
    return total
