"""Numbers and times in the few characters that a column has. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

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


NOTHING = "-"
BARS = "▁▂▃▄▅▆▇█"


def count(number: float | None) -> str:
    """Return a number in at most five characters: `9,999`, `12.3k`, `4.5M`."""
    if number is None:
        return NOTHING
    if abs(number) < 10_000:
        return f"{number:,.0f}"
    for unit, size in (("k", 1e3), ("M", 1e6), ("G", 1e9)):
        # 999,950 would be rounded to "1000k".
        if abs(number) < size * 999.5:
            return f"{number / size:.3g}{unit}"
    return f"{number / 1e12:.3g}T"


def counted(number: float, one: str, many: str | None = None) -> str:
    """Return how many things there are, in a few characters: `1 file`, `12.3k files`."""
    return f"{count(number)} {one if number == 1 else many or f'{one}s'}"


def size(number: float | None) -> str:
    """Return a number of bytes in at most eight characters: `512 B`, `1.2 MiB`."""
    if number is None:
        return NOTHING
    for unit, below in (("B", 1.0), ("KiB", 1024.0), ("MiB", 1024.0**2), ("GiB", 1024.0**3)):
        amount = number / below
        # 1,023.6 KiB would need nine characters.
        if amount < 999.5:
            return (
                f"{amount:.0f} {unit}" if unit == "B" or amount >= 99.95 else f"{amount:.1f} {unit}"
            )
    return f"{number / 1024.0**4:,.1f} TiB"


def span(seconds: float | None) -> str:
    """Return a time span in at most six characters: `0.4 s`, `41 s`, `12 min`, `3 h`, `57 y`."""
    if seconds is None:
        return NOTHING
    # A clock that runs behind the store's makes an age negative, which it is not.
    seconds = max(0.0, seconds)
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    for unit, below in (("s", 1), ("min", 60), ("h", 3600)):
        longest = 48 if unit == "h" else 99
        if seconds / below < longest + 0.5:
            return f"{seconds / below:.0f} {unit}"
    days = seconds / 86_400
    return f"{days:.0f} d" if days < 999.5 else f"{days / 365.25:.0f} y"


def age(at: str | None, now: datetime) -> str:
    """Return how long ago a time was, as `span` does."""
    return NOTHING if at is None else span((now - datetime.fromisoformat(at)).total_seconds())


def sparkline(values: list[float], width: int) -> str:
    """Draw values as bars, one character each; the newest stand at the right end.

    More values than there is room for are added up. Nothing at all is drawn as a blank, so that
    the least that happened can be told from nothing.
    """
    if not values or width <= 0:
        return ""
    each = -(-len(values) // width)
    padded = [0.0] * (-len(values) % each) + values
    sums = [sum(padded[at : at + each]) for at in range(0, len(padded), each)]
    most = max(sums)
    return "".join(_bar(value, most) for value in sums)


def _bar(value: float, most: float) -> str:
    if value <= 0:
        return " "
    return BARS[min(len(BARS) - 1, int(value / most * len(BARS)))]


def progress(done: float, whole: float, width: int) -> str:
    """Draw how much of a whole is done; an unknown whole is drawn empty."""
    share = min(1.0, max(0.0, done / whole)) if whole > 0 else 0.0
    filled = int(share * width)
    return "█" * filled + "░" * (width - filled)


def percent(done: float, whole: float) -> str:
    """Return the share that is done; it is 100 only where everything is."""
    if whole <= 0:
        return NOTHING
    return f"{min(99 if done < whole else 100, int(done / whole * 100))}%"
