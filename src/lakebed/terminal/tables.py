"""Tables as lines of text: every name and every number stays whole, however narrow it gets. Pure.

Columns of sentences are folded between words. What still does not fit gives way in a set order: a
name in the last column runs over the edge; one before it gets a line of its own, and the cells to
its right stand below it, where their column is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import field

from lakebed.dataclass import dataclass
from lakebed.terminal.sentences import Measure, wrapped

GAP = 2
LEAST = 12
"""How narrow a column may get for the sake of the others, where its title is no wider."""
NAMES = 2
"""How many blanks a text may have that is not a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table."""

    title: str
    right: bool = False
    """Numbers end where their column does."""
    wide: bool = False
    """Sentences are folded between words; names and numbers are not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of texts; a text of several lines takes several lines in its cell."""

    columns: tuple[Column, ...]
    header: bool = True
    rows: list[tuple[str, ...]] = field(default_factory=list)

    def without_empty_remarks(self) -> "Table":
        """Return the table without columns that have neither a title nor a text.

        A column for remarks has no title; where nothing is remarked it would lengthen the rule.
        """
        kept = [
            place
            for place, column in enumerate(self.columns)
            if column.title or any(row[place] for row in self.rows)
        ]
        return Table(
            columns=tuple(self.columns[place] for place in kept),
            header=self.header,
            rows=[tuple(row[place] for place in kept) for row in self.rows],
        )


def table_lines(table: Table, width: int, measure: Measure) -> Iterator[str]:
    """Yield the lines of a table: the titles and a rule, where it has them, then the rows."""
    table = table.without_empty_remarks()
    if not table.columns:
        return
    widths = _widths(table, width, measure)
    shape = tuple(zip(table.columns, widths, strict=True))
    if table.header:
        titles = tuple(column.title for column in table.columns)
        yield from _block(shape, titles, measure)
        yield "─" * (sum(widths) + GAP * (len(widths) - 1))
    for row in table.rows:
        yield from _block(shape, row, measure)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wants:
    """What a column needs: the widths of its title, its texts, and the words in them."""

    column: Column
    title: int
    texts: tuple[int, ...]
    words: tuple[int, ...]
    is_prose: bool
    """Whether it has sentences, and not only names."""

    @property
    def whole(self) -> int:
        return max(self.title, *self.texts, 0)

    @property
    def least(self) -> int:
        return max(self.title, *self.words, 0) if self.column.wide else self.whole

    def within(self, width: int) -> "_Wants":
        """Return what it needs without the names that do not fit into so much."""
        return _Wants(
            column=self.column,
            title=self.title,
            texts=tuple(text for text in self.texts if text <= width or self.is_prose),
            words=tuple(word for word in self.words if word <= width),
            is_prose=self.is_prose,
        )


def _wants(table: Table, place: int, measure: Measure) -> _Wants:
    column = table.columns[place]
    texts = [text for row in table.rows for text in row[place].split("\n")]
    return _Wants(
        column=column,
        title=measure(column.title) if table.header else 0,
        texts=tuple(map(measure, texts)),
        words=tuple(measure(word) for text in texts for word in text.split()),
        is_prose=any(text.count(" ") > NAMES for text in texts),
    )


def _widths(table: Table, width: int, measure: Measure) -> list[int]:
    """Return how wide each column is; together they take no more than there is, if they can."""
    wants = [_wants(table, place, measure) for place in range(len(table.columns))]
    room = width - GAP * (len(wants) - 1)
    if sum(one.least for one in wants) > room:
        wants = _squeezed(wants, room)
    return _shared(wants, room)


def _squeezed(wants: Sequence[_Wants], room: int) -> list[_Wants]:
    """Return what columns need that give way: their longest names are left out of account.

    The last column does so first: its names run over the edge. Then it is those before it, the one
    with the longest names first: they get lines of their own.
    """
    given, last = list(wants), len(wants) - 1
    names = [place for place in range(last) if not given[place].column.right]
    names.sort(key=lambda place: (given[place].is_prose, given[place].title - given[place].least))
    for place in ([] if given[last].column.right else [last]) + names:
        missing = sum(one.least for one in given) - room
        if missing > 0:
            one = given[place]
            given[place] = one.within(max(one.title, LEAST, one.least - missing))
    return given


def _shared(wants: Sequence[_Wants], room: int) -> list[int]:
    """Return the widths, with what is to spare given evenly to the columns that can use it."""
    widths = [one.least for one in wants]
    spare = room - sum(widths)
    while spare > 0:
        wanting = [
            place
            for place, one in enumerate(wants)
            if one.column.wide and widths[place] < one.whole
        ]
        if not wanting:
            break
        each = max(1, spare // len(wanting))
        for place in wanting:
            more = min(each, wants[place].whole - widths[place], spare)
            widths[place] += more
            spare -= more
    return widths


def _block(
    shape: Sequence[tuple[Column, int]], row: Sequence[str], measure: Measure
) -> Iterator[str]:
    """Yield the lines of a row; after a name that is too wide they go on below it."""
    cells = [
        wrapped(text, width, measure) if column.wide else text.split("\n")
        for (column, width), text in zip(shape, row, strict=True)
    ]
    first, indent = 0, 0
    for place, (_column, width) in enumerate(shape):
        is_last = place == len(shape) - 1
        if is_last or max(map(measure, cells[place])) > width:
            among = slice(first, place + 1)
            if any(text for one in cells[among] for text in one) or is_last:
                yield from _aligned(shape[among], cells[among], indent, measure)
            indent += sum(width + GAP for _column, width in shape[among])
            first = place + 1


def _aligned(
    shape: Sequence[tuple[Column, int]],
    cells: Sequence[Sequence[str]],
    indent: int,
    measure: Measure,
) -> Iterator[str]:
    """Yield lines in which each cell stands where its column is."""
    for number in range(max(map(len, cells))):
        line = " " * indent
        for (column, width), texts in zip(shape, cells, strict=True):
            text = texts[number] if number < len(texts) else ""
            blank = " " * (width - measure(text))
            line += (blank + text if column.right else text + blank) + " " * GAP
        yield line.rstrip(" ")
