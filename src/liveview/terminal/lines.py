"""Lines of a terminal: columns, texts that are shortened or folded to fit. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells
from rich.text import Text

from lakebed.shown import printable
from lakebed.terminal.fitting import shortened

GAP = 2


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; the one without a width gets what is left."""

    title: str
    width: int | None
    right: bool = False
    most: int | None = None
    """How wide the one without a width may become."""


def folded(said: str, width: int, style: str, indent: int, most: int = 3) -> Iterator[Text]:
    """Yield a text in a few lines, folded between words; a word longer than a line is cut up."""
    room = width - indent
    lines, line = [], ""
    for word in printable(said).split():
        for piece in chop_cells(word, room) if cell_len(word) > room else [word]:
            joined = f"{line} {piece}" if line else piece
            if cell_len(joined) > room:
                lines.append(line)
                joined = piece
            line = joined
    lines.append(line)
    if len(lines) > most:
        lines = [*lines[: most - 1], shortened(f"{lines[most - 1]} …", room)]
    for each in lines:
        yield Text(" " * indent + each, style)


def titles(shape: Sequence[Column], width: int) -> Text:
    """Return the titles of the columns."""
    line = row(shape, [(each.title, "") for each in shape], width)
    line.stylize("dim")
    return line


def row(shape: Sequence[Column], cells: Sequence[tuple[str, str]], width: int) -> Text:
    """Return a row of cells, each a text with its style; numbers end where their column does."""
    taken = sum(each.width for each in shape if each.width is not None)
    rest = max(8, width - taken - GAP * (len(shape) - 1))
    line = Text()
    for number, (column, (text, style)) in enumerate(zip(shape, cells, strict=True)):
        room = min(rest, column.most or rest) if column.width is None else column.width
        shown = shortened(printable(text), room)
        blank = " " * (room - cell_len(shown))
        line.append(" " * GAP if number else "")
        line.append(blank if column.right else "")
        line.append(shown, style)
        line.append("" if column.right else blank)
    return line


def a_line(text: str, width: int, style: str = "") -> Text:
    """Return a text as one line that fits."""
    return Text(shortened(printable(text), width), style)


def fitted(text: Text, width: int) -> Text:
    """Return a styled text that fits: what is too long loses its end."""
    text.truncate(width, overflow="ellipsis")
    return text
