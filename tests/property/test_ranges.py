"""Every line of a cut file is read exactly once, whatever the cuts and the pieces."""

import itertools
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from blizzard.model.source.byte_range import ByteRange, cut, lines_of, without_first_lines

bodies = st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")), max_size=30)


def pieces(body: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


@given(bodies, st.booleans(), st.integers(1, 9), st.integers(1, 40))
def test_the_parts_of_a_file_are_its_lines_once_and_in_order(
    lines: list[bytes], last_newline: bool, parts: int, piece: int
) -> None:
    body = b"\n".join(lines) + (b"\n" if last_newline else b"")
    read = [
        b"".join(lines_of(pieces(body[part.read_from :], piece), part))
        for part in cut(len(body), parts)
        if part.start < part.end
    ]

    assert b"".join(read) == body


@given(st.integers(0, 10_000), st.integers(1, 50))
def test_the_cuts_cover_every_byte_once(size: int, parts: int) -> None:
    ranges = cut(size, parts)

    assert ranges[0].start == 0
    assert ranges[-1].end == size
    assert all(low.end == high.start for low, high in itertools.pairwise(ranges))


def test_a_range_in_which_no_line_starts_reads_nothing_and_not_to_the_end() -> None:
    body = b"x" * 100 + b"\n" + b"y\n" * 10
    taken: list[bytes] = []

    def watched() -> Iterator[bytes]:
        for piece in pieces(body[19:], 10):
            taken.append(piece)
            yield piece

    assert b"".join(lines_of(watched(), ByteRange(20, 40))) == b""
    assert len(taken) <= 3


@given(bodies, st.integers(0, 40), st.integers(1, 40))
def test_skipping_lines_leaves_the_others(lines: list[bytes], count: int, piece: int) -> None:
    body = b"".join(line + b"\n" for line in lines)

    rest = b"".join(without_first_lines(pieces(body, piece), count))

    assert rest == b"".join(line + b"\n" for line in lines[count:])
