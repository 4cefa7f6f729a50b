"""Arrow's parser only sees blocks that cannot hurt it; the others are turned away."""

import pytest

from blizzard.ndjson.guard import MAX_BRACKETS, Tame, tame
from blizzard.ndjson.lines import Block, line_ends

LIMIT = 10_000


def look(data: bytes) -> Tame | None:
    return tame(Block(data=data, first_line=1, ends=line_ends(data)), max_line_bytes=LIMIT)


@pytest.mark.parametrize(
    "data",
    [
        b"null\n",
        b'{"a":1}\nnull\n',
        b'{"a":1}null{"a":2}\n',
        b'{"a":1} \tnull}\n',
        b'{"a":1\n',
        b'{"a":\n1}\n',
        b"[]\n",
        b'{"a":1},\n',
        b'{"a":"\x00"}\n',
        b'{"a":"\xff"}\n',
        b'{"\xed\xa0\x80":1}\n',
        b'\xef\xbb\xbf{"a":1}\n',
        b'{"a":1}\x0c\n',
        b'{"a":' + b"[" * MAX_BRACKETS + b"]" * MAX_BRACKETS + b"}\n",
        b'{"a":1}\n' + b'{"a":' * (MAX_BRACKETS + 1) + b"1" + b"}" * (MAX_BRACKETS + 1),
        b'{"a":"' + b"x" * LIMIT + b'"}\n',
        b'{"a":1}' + b" " * LIMIT + b"\n",
        b"\n",
        b" \r\n\t",
    ],
)
def test_a_block_that_could_hurt_is_turned_away(data: bytes):
    assert look(data) is None


@pytest.mark.parametrize(
    "data",
    [
        b"{}\n",
        b"{}",
        b'{"a":1}\r\n{"a":2}\r\n',
        '{"a":"ü|~"}\n'.encode(),
        b'{"a":{"b":[null, {"c":1}]}}\n',
        b'{"a":' + b"[" * (MAX_BRACKETS - 1) + b"]" * (MAX_BRACKETS - 1) + b"}\n",
        b'{"a":"' + b"x" * (LIMIT - 8) + b'"}\n',
    ],
)
def test_a_block_of_records_is_let_through_as_it_is(data: bytes):
    found = look(data)
    assert found == Tame(data, len(data.splitlines()))


def test_space_around_records_is_left_out():
    found = look(b'\n \t{"a":1} \r\n\r\n{"a":2}')
    assert found == Tame(b'{"a":1}\n{"a":2}', 2)
