"""Tables as lines of text: every name and every number stays whole, however narrow it gets. Pure.

Columns of sentences are folded between words. Where that is not enough, titles are folded as well,
and then a name that is too long has a line of its own: the cells to its right stand below it, where
their columns are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from lakebed.terminal.sentences import Measure, wrapped

GAP = 2
INDENT = 4
"""Where a name in the last column begins that has a line of its own."""
RULE = "─"
LEAST = 12
"""How narrow a column may get for the sake of the others, where its title is no wider."""
NAMES = 4
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
    layout = _Layout(columns=_placed(table, width, measure), width=width, measure=measure)
    if table.header:
        titles = [wrapped(each.column.title, each.width, measure) for each in layout.columns]
        yield from layout.aligned(layout.columns, titles)
        yield RULE * layout.columns[-1].end
    for row in table.rows:
        yield from layout.block(row)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placed:
    """A column, and where it stands."""

    column: Column
    start: int
    width: int

    @property
    def end(self) -> int:
        return self.start + self.width


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """Where the columns of a table stand on a terminal."""

    columns: tuple[_Placed, ...]
    width: int
    measure: Measure

    def block(self, row: Sequence[str]) -> Iterator[str]:
        """Yield the lines of a row; after a name that is too wide they go on below it."""
        cells = [
            wrapped(text, each.width, self.measure) if each.column.wide else text.split("\n")
            for each, text in zip(self.columns, row, strict=True)
        ]
        first, last = 0, len(cells) - 1
        for place, each in enumerate(self.columns):
            longest = max(map(self.measure, cells[place]))
            if longest <= each.width and place < last:
                continue
            if longest <= each.width or not each.start or each.start + longest <= self.width:
                yield from self._part(cells, first, place + 1, is_needed=first == 0)
            else:
                # The terminal would break it at its edge.
                yield from self._part(cells, first, place)
                yield from self._alone(each, row[place])
            first = place + 1

    def _alone(self, at: _Placed, text: str) -> Iterator[str]:
        """Yield the lines of a cell below those of the others."""
        room = self.width - INDENT
        lines = wrapped(text, room, self.measure) if at.column.wide else text.split("\n")
        yield from (" " * INDENT + line for line in lines)

    def _part(
        self, cells: Sequence[Sequence[str]], first: int, end: int, *, is_needed: bool = False
    ) -> Iterator[str]:
        """Yield the lines of some cells beside each other, if there is anything in them."""
        if is_needed or any(line for cell in cells[first:end] for line in cell):
            yield from self.aligned(self.columns[first:end], cells[first:end])

    def aligned(self, columns: Sequence[_Placed], cells: Sequence[Sequence[str]]) -> Iterator[str]:
        """Yield lines in which each cell stands where its column is."""
        for number in range(max(map(len, cells))):
            line = ""
            for each, texts in zip(columns, cells, strict=True):
                text = texts[number] if number < len(texts) else ""
                at = each.end - self.measure(text) if each.column.right else each.start
                line += " " * (at - self.measure(line)) + text if text else ""
            yield line.rstrip(" ")


def _placed(table: Table, width: int, measure: Measure) -> tuple[_Placed, ...]:
    found: list[_Placed] = []
    for column, wide in zip(table.columns, _widths(table, width, measure), strict=True):
        start = found[-1].end + GAP if found else 0
        found.append(_Placed(column=column, start=start, width=wide))
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wants:
    """What a column needs: the widths of its title, its texts, and the words in them."""

    column: Column
    title: int
    title_word: int
    """The longest word of the title."""
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

    def with_title_folded(self) -> "_Wants":
        """Return what it needs if its title may take several lines."""
        return replace(self, title=self.title_word)

    def within(self, width: int) -> "_Wants":
        """Return what it needs without the names that do not fit into so much."""
        return replace(
            self,
            texts=tuple(text for text in self.texts if text <= width or self.is_prose),
            words=tuple(word for word in self.words if word <= width),
        )


def _wants(table: Table, place: int, measure: Measure) -> _Wants:
    column = table.columns[place]
    texts = [text for row in table.rows for text in row[place].split("\n")]
    return _Wants(
        column=column,
        title=measure(column.title) if table.header else 0,
        title_word=max(map(measure, column.title.split()), default=0) if table.header else 0,
        texts=tuple(map(measure, texts)),
        words=tuple(measure(word) for text in texts for word in wrapped(text, 0, measure)),
        is_prose=any(text.count(" ") > NAMES for text in texts),
    )


def _widths(table: Table, width: int, measure: Measure) -> list[int]:
    """Return how wide each column is; together they take no more than there is, if they can."""
    wants = [_wants(table, place, measure) for place in range(len(table.columns))]
    room = width - GAP * (len(wants) - 1)
    if sum(one.least for one in wants) > room:
        wants = _squeezed([one.with_title_folded() for one in wants], room)
    return _shared(wants, room)


def _squeezed(wants: Sequence[_Wants], room: int) -> list[_Wants]:
    """Return what columns need that give way: their longest names are left out of account.

    The last column does so first, then those before it, the one with the longest names first.
    """
    given, last = list(wants), len(wants) - 1
    names = [place for place in range(last) if not given[place].column.right]
    names.sort(key=lambda place: (given[place].is_prose, given[place].title - given[place].least))
    for place in ([] if given[last].column.right else [last]) + names:
        missing = sum(one.least for one in given) - room
        if missing > 0:
            one = given[place]
            given[place] = one.within(max(one.title, LEAST, one.least - missing))
    # Where a later one gave way by more than was missing, an earlier one need not have done so.
    for place, one in enumerate(wants):
        more = one.least - given[place].least
        if sum(each.least for each in given) + more <= room:
            given[place] = one
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
