"""Only the lines that the fast path refuses leave it, and their rows come back to their places."""

from collections.abc import Iterable
from typing import Any

import pytest

from blizzard.worker.ndjson.decoder import Decoder
from blizzard.worker.ndjson.exact import ExactPath, Span
from blizzard.worker.ndjson.lines import BadLine, Block, Decoded
from lakebed.columns.schema import Field, Reading, Schema
from lakebed.types import RESCUED, FieldType, OnBadRecord, OnMismatch, UnknownFields
from tests.support.builders import column, declared

AROUND = 90
INNER = {"d": "date", "n": "int8"}
OTHERS = (
    Field(name="m", type=FieldType.DECIMAL, precision=5, scale=2),
    Field(name="e", type=FieldType.TIMESTAMP, reading=Reading(formats=("epoch_s",))),
    Field(name="p", type=FieldType.INT64, reading=Reading(path=("way", "to", "it"))),
    Field(name="k", type=FieldType.MAP, items=column("value", "int64!")),
)
PLAIN = declared(
    id="int64!", s="string", f="float64", g="float32", b="boolean", t="timestamp",
    l="timestamp_ntz", y="binary", o=INNER, a=[INNER], r={"q": "int64!"},
)  # fmt: skip
SCHEMA = Schema(PLAIN.fields + OTHERS)
GOOD = (
    '"s":"\\u00e9","f":1.5,"g":0.5,"m":12.34,"b":true,"t":"2024-01-02T03:04:05Z",'
    '"l":"2024-01-02T03:04:05","y":"aGk=","e":17,"way":{"to":{"it":1}},"o":{"d":"2024-01-02"},'
    '"a":[{"n":1},{"d":"2024-01-02","n":2}],"k":{"x":1}'
)
BAD = {
    "cut short": "{",
    "no object": "7",
    "no JSON": '{"id":1,}',
    "two in a line": '{"id":1}{"id":2}',
    "twice": '{"id":1,"s":"a","s":"b"}',
    "no name": r'{"id":1,"\ud800":2}',
    "too deep": '{"id":1,"x":' + "[" * 510 + "]" * 510 + "}",
    "required": '{"id":null}',
    "missing": '{"s":"a"}',
    "kind": '{"id":"1"}',
    "range": '{"id":9223372036854775808}',
    "half": r'{"id":1,"s":"\ud800"}',
    "beyond float64": '{"id":1,"f":1e400}',
    "beyond float32": '{"id":1,"g":1e39}',
    "digits": '{"id":1,"m":1.234}',
    "more digits": '{"id":1,"m":1234.5}',
    "flag": '{"id":1,"b":0}',
    "moment": '{"id":1,"t":"yesterday"}',
    "no such moment": '{"id":1,"t":"2024-13-01T00:00:00Z"}',
    "zone": '{"id":1,"l":"2024-01-02T03:04:05Z"}',
    "base64": '{"id":1,"y":"aGk"}',
    "epoch": '{"id":1,"e":"2024-01-02"}',
    "no way": '{"id":1,"way":[1]}',
    "nested kind": '{"id":1,"o":7}',
    "nested value": '{"id":1,"o":{"n":128}}',
    "nested and required": '{"id":1,"r":{}}',
    "nested twice": '{"id":1,"o":{"n":1,"n":2}}',
    "element": '{"id":1,"a":[{"n":1},7]}',
    "in an element": '{"id":1,"a":[{"n":1},{"d":"soon"}]}',
    "in a map": '{"id":1,"k":{"x":1,"y":true}}',
    "required in a map": '{"id":1,"k":{"x":null}}',
    "twice in a map": '{"id":1,"k":{"x":1,"x":2}}',
}


@pytest.fixture
def slow_lines(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lines that were read one by one."""
    seen: list[int] = []
    read = ExactPath.read_some

    def spy(path: ExactPath, block: Block, lines: Iterable[Span]) -> Decoded:
        spans = list(lines)
        seen.extend(number for number, _, _ in spans)
        return read(path, block, spans)

    monkeypatch.setattr(ExactPath, "read_some", spy)
    return seen


def lines_with(*bad: str) -> bytes:
    """Return good lines, with the bad ones each among so many of them."""
    texts: list[str] = []
    for line in bad:
        texts += [f'{{"id":{len(texts) + number},{GOOD}}}' for number in range(AROUND)]
        texts.append(line)
    texts += [f'{{"id":{len(texts) + number},{GOOD}}}' for number in range(AROUND)]
    return "".join(text + "\n" for text in texts).encode()


def read(data: bytes, **modes: Any) -> Decoded:
    (decoded,) = Decoder(SCHEMA, **modes).decode([data])
    return decoded


QUARANTINE = {"on_bad_record": OnBadRecord.QUARANTINE}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_bad_line_leaves_the_fast_path_alone(slow_lines: list[int], bad: str):
    decoded = read(lines_with(bad, bad), **QUARANTINE)
    expected = [AROUND + 1, 2 * AROUND + 2]
    assert slow_lines == expected
    assert [each.line for each in decoded.bad] == expected
    ids = [*range(AROUND), *range(AROUND + 1, 2 * AROUND + 1)]
    ids += range(2 * AROUND + 2, 3 * AROUND + 2)
    assert decoded.batch["id"].to_pylist() == ids


def test_all_of_them_at_once_do_so(slow_lines: list[int]):
    decoded = read(lines_with(*BAD.values()), **QUARANTINE)
    assert slow_lines == [number * (AROUND + 1) for number in range(1, len(BAD) + 1)]
    assert [each.line for each in decoded.bad] == slow_lines
    assert decoded.batch.num_rows == decoded.lines - len(BAD)


def test_bytes_that_are_no_text_take_their_lines_along_and_no_others(slow_lines: list[int]):
    data = lines_with("{é", '{"id":1,"s":"ü"}', '{"id":"é"}').replace("é".encode(), b"\xe9")
    decoded = read(data.replace(b"\\u00e9", b"x"), **QUARANTINE)
    assert slow_lines == [each.line for each in decoded.bad] == [AROUND + 1, 3 * AROUND + 3]


def test_fields_that_nobody_declared_are_counted_in_the_lines_that_stay(slow_lines: list[int]):
    bad = '{"id":1,"s":7,"u":1,"v":{"w":2}}'
    data = lines_with(bad).replace(b'"f":', b'"u":2,"f":')
    decoded = read(data, **QUARANTINE)
    assert decoded.dropped == {"u": 2 * AROUND}
    assert slow_lines == [AROUND + 1]


def test_an_undeclared_field_that_is_bad_takes_its_line_along(slow_lines: list[int]):
    bad = '{"id":1,"u":1}', '{"id":1,"o":{"x":2}}', '{"id":1,"way":{"to":{"x":2}}}'
    decoded = read(lines_with(*bad), unknown=UnknownFields.FAIL, **QUARANTINE)
    assert [each.field for each in decoded.bad] == ["u", "o.x", "way.to.x"]
    assert slow_lines == [each.line for each in decoded.bad]


def test_what_is_rescued_stands_in_its_line(slow_lines: list[int]):
    modes = {"on_mismatch": OnMismatch.RESCUE, "unknown": UnknownFields.RESCUE}
    bad = '{"id":-1,"s":7,"u":1}', '{"id":-2,"a":[{"n":1},{"d":"soon"}]}'
    decoded = read(lines_with(*bad), **modes)
    rows = decoded.batch.to_pylist()
    assert slow_lines == [AROUND + 1, 2 * AROUND + 2]
    assert [(at + 1, row["id"]) for at, row in enumerate(rows) if row["id"] != at] == [
        (AROUND + 1, -1), (2 * AROUND + 2, -2),
    ]  # fmt: skip
    assert rows[AROUND][RESCUED] == '{"s":7,"u":1}'
    assert rows[2 * AROUND + 1]["a"] == [{"d": None, "n": 1}, {"d": None, "n": None}]
    assert rows[2 * AROUND + 1][RESCUED] == '{"a[1].d":"soon"}'
    assert decoded.rescued == {"s": 1, "u": 1, "a[].d": 1}


@pytest.mark.parametrize("first", ["{", '{"id":"x"}', '{"id":1,"t":"soon"}'])
@pytest.mark.parametrize("second", ["{", '{"id":"x"}', '{"id":1,"t":"soon"}'])
def test_the_first_bad_line_is_the_one_that_fails_a_file(first: str, second: str):
    with pytest.raises(BadLine) as raised:
        read(lines_with(first, second))
    assert raised.value.line == AROUND + 1


def test_blank_lines_are_counted_and_keep_the_others_in_their_places(slow_lines: list[int]):
    data = b'\n{"id":1}\n\n{"id":"x"}\n{\n \n{"id":2}\n7'
    decoded = read(data, **QUARANTINE)
    assert decoded.batch["id"].to_pylist() == [1, 2]
    assert (decoded.lines, decoded.blank) == (8, 3)
    assert slow_lines == [each.line for each in decoded.bad] == [4, 5, 8]


def test_where_the_lines_cannot_be_told_all_are_read_one_by_one(slow_lines: list[int]):
    """A hundred new names in a block are too many for the fast path, bad lines or not."""
    lines = [*(f'{{"id":{number},"new {number}":1}}' for number in range(150)), "{"]
    decoded = read("\n".join(lines).encode(), **QUARANTINE)
    assert [each.line for each in decoded.bad] == [151]
    assert slow_lines == list(range(1, 152))
