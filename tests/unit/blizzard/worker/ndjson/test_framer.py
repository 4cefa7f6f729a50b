"""Documents into records: what is taken, what is told where it is broken, and what it costs."""

import json
import tracemalloc
from collections.abc import Iterator

import pytest

from blizzard.worker.ndjson.decoder import Decoder
from blizzard.worker.ndjson.forms.framer import MAX_PLACES, Framer
from blizzard.worker.ndjson.lines import BadLine, BrokenDocument, TextPosition
from lakebed.columns.schema import Field, Schema
from lakebed.types import FieldType

ID = Schema((Field(name="id", type=FieldType.INT64, nullable=False),))


def lines(text: bytes, *path: str, **given: int) -> bytes:
    return b"".join(Framer(path, **given).lines([text]))


def broken(text: bytes, *path: str, **given: int) -> BrokenDocument:
    with pytest.raises(BrokenDocument) as raised:
        lines(text, *path, **given)
    return raised.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", b""),
        (b" \r\n\t", b""),
        (b"[]", b""),
        (b'{"a":1}', b'{"a":1}\n'),
        (b'[{"a":1}, {"b":2}]', b'{"a":1}\n{"b":2}\n'),
        (b'{"a":1}{"b":2}[{}]', b'{"a":1}\n{"b":2}\n{}\n'),
        (b'\x1e{"a":1}\n\x1e{"b":2}\n', b'{"a":1}\n{"b":2}\n'),
        (b'\x1e\x1e{"a":1}\n\x1e\n\x1e{"b":2}\n', b'{"a":1}\n{"b":2}\n'),
        (b'\xef\xbb\xbf[{"a":1}]\r\n', b'{"a":1}\n'),
        (b'{\n    "a": 1,\r\n    "b": [\n        2\n    ]\n}\n', b'{ "a": 1, "b": [ 2 ] }\n'),
        (b'{"a": "x  \\n  y",   "b": 1}', b'{"a": "x  \\n  y",   "b": 1}\n'),
        (b'1 "two" null', b'1\n"two"\nnull\n'),
    ],
)
def test_a_record_is_a_line(text: bytes, expected: bytes):
    assert lines(text) == expected


@pytest.mark.parametrize(
    ("text", "code", "message", "offset"),
    [
        (b'[{"a":1} {"b":2}]', "not_json", "found '{', expected a comma or the end", 9),
        (b'[{"a":1},]', "not_json", "found ']', expected a JSON value", 9),
        (b'{"a":1},{"b":2}', "not_json", "found ',', expected the next JSON text", 7),
        (b'{"a":1}}', "not_json", "found '}', expected the next JSON text", 7),
        (b'[{"a":1}', "truncated", "found the end of the file in the middle of a document", 8),
        (b'[{"a":1}, {"b"', "truncated", "one that begins in line 1 (byte 10)", 14),
        (b'{"a":"x}\n{"b":2}', "truncated", "one that begins in line 1 (byte 0)", 16),
        (b'\x1e{"a":1\n\x1e{"b":2}\n', "truncated", "found a record separator (0x1E)", 8),
    ],
)
def test_a_broken_document_says_where(text: bytes, code: str, message: str, offset: int):
    found = broken(text)
    assert (found.code, found.place.offset) == (code, offset)
    assert message in found.message


@pytest.mark.parametrize(
    "text",
    [
        b'{"other": 1}',
        b'{"Records": {"other": 1}}',
        b'{"Records": [1]}',
        b'{"Records": {"items": null}}',
        b'{"Records": {"items": "x"}}',
        b"[7]",
    ],
)
def test_an_envelope_without_its_records_is_a_bad_record(text: bytes):
    found = broken(text, "Records", "items")
    assert found.code == "records_missing"
    assert found.message == "found no array of records at Records.items (source.records)"


def test_records_that_come_twice_in_an_envelope_are_not_guessed_at():
    assert broken(b'{"a":[{}],"a":[{}]}', "a").code == "duplicate_field"
    assert broken(b'{"a":[{}],"\\u0061":[{}]}', "a").code == "duplicate_field"


def test_brackets_around_records_are_nested_only_so_deep():
    deep = b'{"x":' + b"[" * 499 + b"]" * 499 + b',"a":[]}'
    assert lines(deep, "a") == b""
    assert broken(b'{"x":' + b"[" * 500, "a").code == "too_deep"


def test_an_error_counts_lines_as_an_editor_does():
    assert broken(b'[\n  {"a":1}\r\n  ,\n  ]\n').place == TextPosition(offset=19, line=4)
    assert broken(b"\xef\xbb\xbf[\n1 2").place.offset == 7
    assert broken(b'{"x": "a\n"}', "a").place == TextPosition(offset=8, line=1)


@pytest.mark.parametrize("value", [b"x", b"01", b"-", b"1e", b"nul!", b'"\\q"', b'"\\u00g0"'])
def test_a_broken_value_beside_the_records_is_numbered_after_them(value: bytes):
    found = broken(b'{"a":[{},{}],"x":' + value + b"}", "a")
    assert (found.code, found.line) == ("not_json", 3)


def test_a_line_end_in_a_string_stays_an_error():
    """JSON has none there, so it must not become white space that it could have been."""
    with pytest.raises(BadLine, match="a control character in a string"):
        list(Decoder(ID).decode(Framer().lines([b'[{"id": 1, "x": "a\nb"}]'])))
    with pytest.raises(BadLine):
        list(Decoder(ID).decode(Framer().lines([b'[{"id": 1, "x": "a\\\nb"}]'])))


def test_the_white_space_of_a_line_end_keeps_tokens_apart():
    with pytest.raises(BadLine) as raised:
        list(Decoder(ID).decode(Framer().lines([b'{"id": 1\n2}'])))
    assert raised.value.code == "not_json"


def test_records_before_a_broken_place_are_read_first():
    text = b'[{"id":1},{"id":"x"},{"id":3} {"id":4}]'
    decoder = Decoder(ID)
    with pytest.raises(BadLine) as raised:
        list(decoder.decode(Framer().lines([text]), from_start=False))
    assert (raised.value.code, raised.value.line) == ("wrong_type", 2)
    batches = decoder.decode(Framer().lines([text.replace(b'"x"', b"2")]))
    assert next(batches).batch.num_rows == 3
    with pytest.raises(BrokenDocument) as broke:
        next(batches)
    assert broke.value.line == 4


def test_a_bracket_that_is_not_closed_ends_at_the_longest_record():
    text = b'[{"a":[1, ' + b'{"b":2}, ' * 100
    found = broken(text, max_record_bytes=500)
    assert found.code == "line_too_long"
    assert "a bracket or a quote may be unclosed" in found.message
    assert found.place.offset == 1


def test_errors_are_numbered_without_the_records_of_an_earlier_batch():
    assert broken(b"[{},{},{} {}]").line == 4
    assert broken(b"[{},{},{} {}]", skip=2).line == 2


def test_places_are_noted_for_more_records_than_there_is_room_for():
    framer = Framer()
    last = 3 * MAX_PLACES
    text = b"".join(framer.lines([b"[" + b"{},\n" * (last - 1) + b"{}]"]))
    assert text == b"{}\n" * last
    later = MAX_PLACES + 5
    assert [framer.place_of(number) for number in (1, later, last)] == [
        TextPosition(1, 1),
        TextPosition(4 * later - 3, later),
        TextPosition(4 * last - 3, last),
    ]
    framer.forget(later)
    assert framer.place_of(MAX_PLACES) is None
    assert framer.place_of(later) == TextPosition(4 * later - 3, later)


def test_a_document_of_50_mb_takes_no_more_memory_than_one_of_2():
    record = json.dumps({"id": 1, "text": "x" * 400, "list": [1, 2, {"a": None}]}, indent=4)
    part = (",\n".join([record] * 2000)).encode()

    def document(parts: int) -> Iterator[bytes]:
        yield b'{"before": [1, 2], "Records": ['
        for number in range(parts):
            yield part + b"," * (number < parts - 1)
        yield b"]}"

    def peak(parts: int) -> tuple[int, int]:
        tracemalloc.start()
        try:
            framer = Framer(("Records",))
            found = 0
            for piece in framer.lines(document(parts)):
                found += piece.count(b"\n")
                framer.forget(found)
            return found, tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    few, small = peak(2)
    many, large = peak(50_000_000 // len(part))
    assert (few, many) == (4000, 50_000_000 // len(part) * 2000)
    assert large < small + (1 << 20)
