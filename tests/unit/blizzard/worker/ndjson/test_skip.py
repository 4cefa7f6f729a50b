"""Records that a rule skips: none that it does not hold for, and all are counted."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blizzard.model.settings import MAX_LINE_BYTES
from blizzard.model.source.form import SkipRule
from blizzard.worker.ndjson.decoder import Decoder, Skipper
from blizzard.worker.ndjson.lines import BadLine, Block, Decoded
from lakebed.columns.schema import Field, Schema
from lakebed.types import FieldType
from tests.support.decoding import decode_all

ID = Schema((Field(name="id", type=FieldType.INT64),))
BULK = SkipRule(only_key=("index", "create"))


def read(text: bytes, rule: SkipRule | None) -> Decoded:
    (decoded,) = Decoder(ID).decode([text], skip=rule)
    return decoded


def ids(decoded: Decoded) -> list[int | None]:
    return decoded.batch.column(0).to_pylist()


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (None, [1, None, 3, 4]),
        (SkipRule(only_key=("index",)), [1, 3, 4]),
        (SkipRule(only_key=("id",)), [None, 3, 4]),
        (SkipRule(with_key=("deleted",)), [1, None, 3]),
        (SkipRule(without_key=("id",)), [1, 3, 4]),
        (SkipRule(without_key=("id", "name")), [3]),
        (SkipRule(only_key=("id",), with_key=("index", "deleted")), [3]),
    ],
)
def test_each_rule_passes_over_its_records(rule: SkipRule | None, expected: list[int | None]):
    text = b'{"id":1}\n{"index":{"id":2}}\n{"id":3,"name":"deleted"}\n{"id":4,"deleted":true}\n'
    decoded = read(text, rule)
    assert ids(decoded) == expected
    assert (decoded.lines, decoded.filtered) == (4, 4 - len(expected))


def test_blank_lines_and_records_that_are_skipped_are_counted_apart():
    text = b'{"index":{}}\r\n\n{"id":1}\n  {"create" : {"a":"},{\\"b\\":["}}\n{"id":2}'
    decoded = read(text, BULK)
    assert ids(decoded) == [1, 2]
    assert (decoded.lines, decoded.blank, decoded.filtered) == (5, 1, 2)
    assert decoded.taken == len(text)


def test_lines_keep_their_numbers():
    with pytest.raises(BadLine) as raised:
        read(b'{"index":{}}\n{"id":1}\n{"index":{}}\n{"id":"x"}\n', BULK)
    assert raised.value.line == 4


@pytest.mark.parametrize(
    "line",
    [
        b'{"index":{}',
        b'{"index":}',
        b'{"index":nul}',
        b'{"index":NaN}',
        b'{"index":"\xff"}',
        b'{"index":1,"index":2}',
        b'{"ind\\u0065x":1,"index":2}',
        b'{"index":{}} {"index":{}}',
        b'["index"]',
        b'"index"',
    ],
)
def test_a_line_that_is_broken_is_never_skipped(line: bytes):
    with pytest.raises(BadLine):
        read(line, SkipRule(only_key=("index",), with_key=("index",), without_key=("x",)))


def test_a_key_means_the_same_however_it_is_written():
    assert read(b'{"\\u0069ndex":1}\n{"id":1}', BULK).filtered == 1


def test_short_files_that_are_read_together_have_each_its_own_rule():
    texts = {"bulk": b'{"index":{}}\n{"id":1}\n', "plain": b'{"index":{}}\n{"id":2}\n'}
    rules = {"bulk": BULK, "plain": None}
    files = [(key, (each for each in [text])) for key, text in texts.items()]
    found = {
        key: (ids(decoded), decoded.filtered, decoded.blank)
        for key, batches in decode_all(Decoder(ID), files, skip=rules.__getitem__)
        for decoded in batches
    }
    assert found == {"bulk": ([1], 1, 0), "plain": ([None, 2], 0, 0)}


names = st.sampled_from(["a", "b", "ab", "é", ""])
scalars = st.one_of(st.none(), st.text(max_size=3), st.sampled_from(['"a":', "{", "\\", ","]))
values = st.one_of(scalars, st.lists(scalars, max_size=2), st.dictionaries(names, scalars))
lines = st.lists(
    st.one_of(
        st.dictionaries(names, values, max_size=3).map(json.dumps),
        st.text('{}[]",:\\ab ', max_size=12),
    ),
    max_size=5,
)
rules = st.builds(
    SkipRule,
    only_key=st.lists(names, max_size=2).map(tuple),
    with_key=st.lists(names, max_size=2).map(tuple),
    without_key=st.lists(names, max_size=1).map(tuple),
)


@given(lines, rules, st.booleans())
def test_a_block_is_blanked_where_the_rule_holds_and_nowhere_else(found, rule, ended):
    data = "\n".join(found).encode() + b"\n" * ended
    each = data.removesuffix(b"\n").split(b"\n") if data else []
    block = Block(text=data, first_line=1, lines=len(each))
    blanked = Skipper(rule, MAX_LINE_BYTES).blanked(block)
    assert len(blanked.data) == len(data)
    expected = [b" " * len(line) if rule.holds(line) else line for line in each]
    assert blanked.data.removesuffix(b"\n").split(b"\n") == (expected or [b""])
    assert blanked.filtered == sum(rule.holds(line) for line in each)
