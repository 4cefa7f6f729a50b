"""Print reports: lines and tables as text, or JSON."""

import base64
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from itertools import zip_longest
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from lakebed.errors import printable
from lakebed.units import printable_json

if TYPE_CHECKING:
    from rich.console import Console

UNBOUNDED = 1_000_000
"""Width of output that is not a terminal: one line per row, for grep and cut."""
GAP = "  "
FEW = 10
"""How many items text output names; JSON has all."""


class Verbatim(str):
    """A line to be copied, such as a command or a record; it is never wrapped."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A table; a title that begins with `>` marks a column of numbers."""

    titles: Sequence[str]
    rows: Sequence[Sequence[object]]


Line = str | Table


def console() -> "Console":
    """Return a rich console on standard output, for a screen that is redrawn."""
    from rich.console import Console  # noqa: PLC0415 - most commands do without it

    return Console(markup=False, highlight=False, emoji=False, width=text_width())


def _is_terminal() -> bool:
    return bool(sys.stdout.isatty() or os.environ.get("FORCE_COLOR"))


def text_width() -> int:
    """Return the width of standard output: the terminal's, or COLUMNS, or unbounded."""
    is_bounded = _is_terminal() or os.environ.get("COLUMNS", "").isdigit()
    return shutil.get_terminal_size().columns if is_bounded else UNBOUNDED


def print_text(lines: Iterable[Line]) -> None:
    """Print sentences and tables; on a terminal long ones are wrapped between words."""
    for line in lines:
        if isinstance(line, Table):
            _print_table(line)
            continue
        text = printable(line, keep="\t")
        folds = _is_terminal() and not isinstance(line, Verbatim)
        for part in folded(text, text_width()) if folds else [text]:
            _write(part)


def _write(line: str, *, bold: bool = False) -> None:
    bold = bold and _is_terminal() and not os.environ.get("NO_COLOR")
    text = line.rstrip(" ")
    print(f"\x1b[1m{text}\x1b[0m" if bold else text)  # noqa: T201 - this is the program's output


def folded(text: str, width: int) -> list[str]:
    """Wrap a sentence between words, never inside a name; indent further lines."""
    indent = text[: len(text) - len(text.lstrip(" "))] + GAP
    return _wrapped(text, width, subsequent_indent=indent)


def _wrapped(text: str, width: int, subsequent_indent: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        width,
        subsequent_indent=subsequent_indent,
        break_long_words=False,
        break_on_hyphens=False,
        expand_tabs=False,
        replace_whitespace=False,
    ) or [text]


def _print_table(table: Table) -> None:
    """Print a table; names are never broken, and text of the last column is wrapped."""
    rows = [[_cell(cell) for cell in row] for row in table.rows]
    # A column without a title is left out if it is empty.
    kept = [n for n, title in enumerate(table.titles) if title or any(row[n] for row in rows)]
    right = [table.titles[n].startswith(">") for n in kept]
    head = [table.titles[n].removeprefix(">") for n in kept]
    rows = [[row[n] for n in kept] for row in rows]
    columns = list(zip(right, zip(head, *rows, strict=True), strict=True))
    widths = _widths(columns, text_width() - len(GAP) * (len(head) - 1))
    if any(head):
        _print_row(head, widths, right, bold=True)
        _write("─" * min(text_width(), sum(widths) + len(GAP) * (len(head) - 1)))
    for row in rows:
        _print_row(row, widths, right)


def _widths(columns: Sequence[tuple[bool, Sequence[str]]], room: int) -> list[int]:
    """Return the width of each column; the last and the loosest are narrowed, down to a word."""
    widths, least = [], []
    for right, (title, *cells) in columns:
        lines = [line for cell in cells for line in cell.split("\n")]
        words = lines if right else [word for line in lines for word in line.split()]
        widths.append(max(map(len, (title, *lines))))
        least.append(max(map(len, (*words, *title.split())), default=0))
    # A long name in the last column makes its line longer instead of narrowing others.
    least[-1] = min(least[-1], room * 2 // 5)
    last = len(widths) - 1
    for n in sorted(range(len(widths)), key=lambda n: (n != last, least[n] - widths[n])):
        widths[n] -= max(0, min(widths[n] - least[n], sum(widths) - room))
    return widths


def _print_row(
    cells: Sequence[str], widths: Sequence[int], right: Sequence[bool], *, bold: bool = False
) -> None:
    columns = [
        [part for line in cell.split("\n") for part in _wrapped(line, width)]
        for cell, width in zip(cells, widths, strict=True)
    ]
    for texts in zip_longest(*columns, fillvalue=""):
        parts = zip(texts, widths, right, strict=True)
        line = GAP.join(t.rjust(width) if r else t.ljust(width) for t, width, r in parts)
        _write(line, bold=bold)


def _cell(cell: object) -> str:
    if isinstance(cell, list | tuple):
        return "\n".join(map(printable, cell))
    if cell is None:
        return "-"
    return f"{cell:,}" if isinstance(cell, int) else printable(cell)


def first(lines: Sequence[str], most: int = FEW, indent: str = GAP) -> Iterator[str]:
    """Yield the first lines, and how many more there are."""
    yield from (f"{indent}{line}" for line in lines[:most])
    yield from more(len(lines) - most, indent)


def more(count: int, indent: str = GAP) -> Iterator[str]:
    """Yield how many more there are than were printed, if any."""
    if count > 0:
        yield f"{indent}... and {count:,} more; --output json has them all"


def print_error(text: str) -> None:
    """Write to standard error; on a terminal long lines are wrapped between words."""
    lines = text.split("\n")
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        lines = [part for line in lines for part in folded(line, width)]
    sys.stderr.write("".join(f"{line}\n" for line in lines))


def path_end(path: str, most: int) -> str:
    """Return a path, shortened to its last folders and its whole name if it is too long.

    The name is never cut: it can be copied, and `blizzard why` finds a file by it.
    """
    if len(path) <= most:
        return path
    folders, _, name = path.rpartition("/")
    kept = name
    for folder in reversed(folders.split("/")):
        if len(f"…/{folder}/{kept}") > most:
            break
        kept = f"{folder}/{kept}"
    return f"…/{kept}" if folders else path


def second(at: datetime | None) -> str:
    """Return a time in UTC, to the second."""
    return "-" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def print_json(document: object) -> None:
    """Print a value as one line of JSON; times are written in ISO 8601."""
    text = printable_json(json.dumps(plain(document), ensure_ascii=False))
    print(text, flush=True)  # noqa: T201 - this is the program's output


def fields_of(value: Any) -> dict[str, Any]:  # noqa: ANN401 - any dataclass
    """Return the fields of a dataclass by name, for a larger document."""
    return {each.name: getattr(value, each.name) for each in fields(value)}


def picked(value: object, keys: str) -> dict[str, Any]:
    """Return some attributes of a value, for a larger document.

    A key is the name of its attribute, or maps to another: `bytes=size`, `rows=totals.rows`. For
    None all values are None.
    """
    pairs = [key.split("=") for key in keys.split()]
    if value is None:
        return dict.fromkeys(pair[0] for pair in pairs)
    return {pair[0]: attrgetter(pair[-1])(value) for pair in pairs}


def cells(value: object, names: str) -> tuple[object, ...]:
    """Return some attributes of a value, for a row of a table."""
    return tuple(picked(value, names).values())


def plain(value: Any) -> Any:  # noqa: ANN401 - JSON has no single type
    """Convert a value to one that JSON can represent."""
    if is_dataclass(value) and not isinstance(value, type):
        value = fields_of(value)
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return str(value)
    # Every datetime is a date, too.
    return value.isoformat() if isinstance(value, date) else value
