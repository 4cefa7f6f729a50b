"""What is seen in a block before it is scanned, and what stands behind its lines."""

import pytest

from blizzard.worker.ndjson import newlines
from blizzard.worker.ndjson.compiled.vector import WIDTH
from blizzard.worker.ndjson.lines import blocks
from blizzard.worker.ndjson.plain_text import FEW_BYTES, PADDING, looked_at

PLACES = (0, 31, 32, 63, 64, 127, 128, 129, 130)


@pytest.mark.parametrize("place", PLACES)
def test_a_byte_is_seen_wherever_it_stands(place: int) -> None:
    for byte, seen in (
        (b"\n", (1, True, False)),
        (b"\x1e", (0, True, True)),
        (b"\x80", (0, False, False)),
        (b"\xff", (0, False, False)),
        (b"\x7f", (0, True, False)),
    ):
        data = b"." * place + byte + b"." * (PLACES[-1] - place)
        assert newlines.looked_at(data) == seen


def test_short_and_long_texts_are_seen_alike() -> None:
    for piece in (b'{"v":1}\n', b'\x1e{"v":1}\n', '{"v":"ä"}\n'.encode()):
        short, long = piece * 10, piece * FEW_BYTES
        assert looked_at(short) == (10, piece.isascii(), piece[0] == 0x1E)
        assert looked_at(long) == (FEW_BYTES, piece.isascii(), piece[0] == 0x1E)


def test_there_is_room_for_a_step_of_the_scan() -> None:
    assert len(PADDING) == WIDTH


def test_what_stands_behind_a_block_belongs_to_no_line_of_it() -> None:
    lines = b'{"v":1}\n' * 40 + b'{"v":2}'
    found = list(blocks([lines[:100], lines[100:]], block_bytes=64))
    assert any(block.behind for block in found)
    for block in found:
        assert block.text == block.data + PADDING[: block.behind]
        assert not block.behind or block.data.endswith(b"\n")
        assert block.is_ascii
        assert block.size == len(block.data)
    assert b"".join(block.data for block in found) == lines
    assert sum(block.lines for block in found) == 41


def test_a_block_of_too_many_lines_is_cut_with_nothing_behind_its_parts() -> None:
    found = list(blocks([b"1\n" * 50, b"2\n" * 50], block_bytes=20, max_lines=7))
    assert b"".join(block.data for block in found) == b"1\n" * 50 + b"2\n" * 50
    assert max(block.lines for block in found) <= 7
    assert [block.first_line for block in found] == [
        1 + sum(before.lines for before in found[:place]) for place in range(len(found))
    ]
