"""However a file is cut and stopped: each line once, numbered from the start."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, pairwise

from hypothesis import given
from hypothesis import strategies as st

from blizzard.model.source.file import ByteRange, SourceFile, cut, lines_of, without_first_lines
from blizzard.model.source.partly_read import (
    bytes_in_words,
    left_of,
    lines_before,
    parts_of,
    untouched,
)
from blizzard.plan.planner import _parts
from lakebed.documents.records import SourceRecord, Unread
from tests.support.builders import record, source_file

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


def read_some(file: SourceFile, starts: list[int], most: int) -> tuple[list[int], SourceRecord]:
    """Read the first lines that start in a part, as a worker does; give them, and what it says."""
    part = file.part or ByteRange(0, file.size)
    own = [number for number, start in enumerate(starts) if part.start <= start < part.end]
    done = own[:most]
    if len(done) == len(own):
        return done, replace(untouched(file), lines=len(done), unread=())
    unread = (Unread(start=starts[own[most]], end=part.end, lines_before=len(done)),)
    return done, replace(untouched(file), lines=len(done), unread=unread, complete=False)


@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=60),
    st.lists(st.lists(st.none() | st.integers(1, 9), min_size=1, max_size=9), max_size=12),
    st.integers(1, 300),
)
def test_every_line_is_read_once_over_many_batches_and_its_number_is_known_or_absent(
    lengths: list[int], stops: list[list[int | None]], room: int
) -> None:
    """HOLES L32."""
    starts = [0, *accumulate(lengths)][:-1]
    file = source_file(size=sum(lengths))
    seen: list[int] = []
    to_the_end: list[int | None] = [10**9]
    for batch in (*stops, to_the_end):
        files = [replace(file, part=part) for part in _parts(file, room)]
        records: list[SourceRecord | None] = []
        firsts: list[int | None] = []
        for number, each in enumerate(files):
            most = batch[number % len(batch)]
            if most is None:
                records.append(None)
                firsts.append(None)
                continue
            done, told = read_some(each, starts, most)
            seen += done
            records.append(told)
            firsts.append(done[0] if done else None)
        parts = parts_of(files, records)
        for number, first in enumerate(firsts):
            before = lines_before(parts, number)
            assert before is None or first is None or before == first
            if all(part.is_read for part in parts[:number]):
                assert before is not None
        left = left_of(parts)
        assert all(low.end <= high.start for low, high in pairwise(left))
        assert file.skip + sum(one.lines for one in records if one is not None) == len(seen)
        file = replace(file, skip=len(seen), unread=left)
        if not left:
            break

    assert sorted(seen) == list(range(len(starts)))


def test_many_ranges_are_not_all_named() -> None:
    """HOLES L32."""
    ranges = tuple(Unread(start=n * 10, end=n * 10 + 5, lines_before=1) for n in range(5))
    told = [bytes_in_words(replace(record(size=60), unread=ranges[:few])) for few in (1, 2, 5)]

    assert told == [
        "bytes 0 to 4",
        "bytes 0 to 4 and 10 to 14",
        "bytes 0 to 4, 10 to 14, 20 to 24 and of 2 more ranges",
    ]
