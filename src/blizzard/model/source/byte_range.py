"""Parts of a file that several tasks read, and files that are resumed where a run stopped.

A byte range owns the lines that *start* in it. So a reader of a range begins one byte early, lets
the rest of the line before go, and reads past its end until its last line is whole: every line is
read exactly once, for any cuts.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The bytes from `start` up to, not including, `end`."""

    start: int
    end: int

    @property
    def read_from(self) -> int:
        """Return the byte to begin at: the one before shows whether a line starts at `start`."""
        return max(0, self.start - 1)


def cut(size: int, parts: int, *, start: int = 0) -> tuple[ByteRange, ...]:
    """Cut a file, or some bytes of it from an offset on, into ranges that cover each byte once."""
    edges = [start + size * number // parts for number in range(parts + 1)]
    return tuple(ByteRange(low, high) for low, high in itertools.pairwise(edges))


def lines_of(
    chunks: Iterable[bytes], part: ByteRange, begins: Callable[[int], None] = lambda _place: None
) -> Iterator[bytes]:
    """Yield the bytes of the lines that start in a range; the chunks begin at `read_from`.

    Before the first of them, `begins` is called with the byte of the file at which it starts.
    """
    place = part.read_from
    before_first, in_last = part.start > 0, False
    for chunk in chunks:
        piece = chunk
        if before_first:
            newline = piece.find(b"\n")
            place += len(piece) if newline < 0 else newline + 1
            if place >= part.end:
                return  # no line starts in this range, or none before the next one's
            if newline < 0:
                continue
            piece = piece[newline + 1 :]
            before_first = False
            begins(place)
        if not in_last and place + len(piece) < part.end:
            place += len(piece)
            if piece:
                yield piece
            continue
        # The range ends in this piece: its last line ends at the next newline from there on.
        newline = piece.find(b"\n", 0 if in_last else part.end - 1 - place)
        if newline >= 0:
            yield piece[: newline + 1]
            return
        in_last = True
        yield piece


def without_first_lines(chunks: Iterable[bytes], count: int) -> Iterator[bytes]:
    """Leave out the first lines of a file, which an earlier batch has read."""
    left = count
    for chunk in chunks:
        piece = chunk
        if left:
            newlines = piece.count(b"\n")
            if newlines < left:
                left -= newlines
                continue
            at = -1
            for _ in range(left):
                at = piece.find(b"\n", at + 1)
            piece, left = piece[at + 1 :], 0
        if piece:
            yield piece
