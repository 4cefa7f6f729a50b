"""What both programs print: lines, tables that fit 80 columns, durations, JSON."""

import json
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

from lakebed.shown import printable, printable_json
from lakebed.terminal.sentences import folded
from lakebed.terminal.tables import RULE, Column, Table, table_lines
from lakebed.units import is_are as is_are  # noqa: PLC0414 - printed here, counted there
from lakebed.units import plural as plural  # noqa: PLC0414

if TYPE_CHECKING:
    from rich.console import Console

INLINED = {"inlined": True}
"""The metadata of a field of a row whose own fields are printed as the row's."""
UNBOUNDED = 1_000_000
"""How wide the output is where it is not a terminal: a row is one line there, to search and cut."""


def console() -> "Console":
    """Return a console that prints names as they are: a file may be called `a[/b].ndjson`.

    Tables are as wide as the terminal. In a pipe or a file they are as wide as they need to be,
    unless COLUMNS says how wide.
    """
    from rich.console import Console  # noqa: PLC0415 - JSON is printed without it

    to = Console(markup=False, highlight=False, emoji=False)
    if not to.is_terminal and not os.environ.get("COLUMNS", "").isdigit():
        to.width = UNBOUNDED
    return to


def say(to: "Console", text: str) -> None:
    """Print a sentence; on a terminal a long one is broken between words, and never in a name.

    Anywhere else it is one line, whatever is in the name of a file.
    """
    from rich.cells import cell_len  # noqa: PLC0415

    text = printable(text, keep="\t")
    for line in folded(text, to.width, cell_len) if to.is_terminal else [text]:
        to.print(line, soft_wrap=True)


def say_as_it_is(to: "Console", text: str) -> None:
    """Print data as one line, however long, to be copied."""
    to.print(printable(text, keep="\t"), soft_wrap=True)


def say_error(text: str) -> None:
    """Write a line on standard error; on a terminal a long one is broken between words."""
    lines = text.split("\n")
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        lines = [part for line in lines for part in folded(line, width, len)]
    sys.stderr.write("".join(f"{line}\n" for line in lines))


def say_first(to: "Console", lines: Sequence[str], most: int, indent: str = "  ") -> None:
    """Print the first lines, and how many more there are."""
    for line in lines[:most]:
        say(to, f"{indent}{line}")
    say_more(to, len(lines) - most, indent)


def say_more(to: "Console", count: int, indent: str = "  ") -> None:
    """Print how many more there are than were printed, if any."""
    if count > 0:
        say(to, f"{indent}... and {count:,} more; --output json has them all")


def columns(
    *names: str, numbers: Iterable[str] = (), wide: Iterable[str] = (), header: bool = True
) -> Table:
    """Create a table for `print_table`: wide columns are wrapped between words, the rest is not."""
    right, folded = set(numbers), set(wide)
    return Table(
        columns=tuple(
            Column(title=name, right=name in right, wide=name in folded) for name in names
        ),
        header=header,
    )


def add(table: Table, *cells: object) -> None:
    """Add a row of plain text; a cell of several texts has a line for each."""
    table.rows.append(tuple("-" if cell is None else _shown(cell) for cell in cells))


def print_table(to: "Console", table: Table) -> None:
    """Print a table; it is as wide as the console unless a name in it is wider.

    A name that is broken in the middle cannot be copied, and a number that is cut off is wrong. No
    line ends in blanks, which a terminal that is narrower than the table would show as empty lines.
    """
    from rich.cells import cell_len  # noqa: PLC0415

    style = "bold" if table.header else None
    for line in table_lines(table, to.width, cell_len):
        style = None if line.startswith(RULE) else style
        to.out(line, style=style, highlight=False)


def _shown(cell: object) -> str:
    if isinstance(cell, list | tuple):
        return "\n".join(map(printable, cell))
    return f"{cell:,}" if isinstance(cell, int) else printable(cell)


def path_end(path: str, most: int) -> str:
    """Return a path, or if it is longer than that, the last of its folders and its whole name.

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
    """Return a time to the second, in UTC."""
    return "-" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def print_line(value: object) -> None:
    """Print a value as one line of JSON; times are written in ISO 8601."""
    text = printable_json(json.dumps(plain(value), ensure_ascii=False))
    print(text, flush=True)  # noqa: T201 - this is the program's output


def print_lines(rows: Iterable[object]) -> None:
    """Print a line of JSON for each row."""
    for row in rows:
        print_line(row)


def plain(value: Any) -> Any:  # noqa: ANN401 - JSON knows no one type
    """Turn a value into one that JSON can express."""
    if is_dataclass(value) and not isinstance(value, type):
        return _row(value)
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in value]
    if isinstance(value, Enum):
        return value.value
    return value.isoformat() if isinstance(value, datetime) else value


def _row(value: Any) -> dict[str, Any]:  # noqa: ANN401 - any dataclass
    told: dict[str, Any] = {}
    for each in fields(value):
        below = plain(getattr(value, each.name))
        told |= below if INLINED.items() <= each.metadata.items() else {each.name: below}
    return told
