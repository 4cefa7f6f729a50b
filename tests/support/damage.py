"""Blocks of lines that are damaged, and what the paths say of them.

It is used in processes of their own, which may die of it.
"""

from collections import Counter
from collections.abc import Iterable
from random import Random

from blizzard.worker.ndjson.compiled.vector import WIDTH
from blizzard.worker.ndjson.decoder import OTHER_FIELDS, USUAL_LIMITS
from blizzard.worker.ndjson.lines import BadLine, Decoded
from lakebed.columns.schema import Field, Schema
from lakebed.types import FieldType

LIMIT = 1 << 20
FIELDS = [
    Field(name=kind, type=kind, nullable=kind is not FieldType.INT64)
    for kind in FieldType
    if kind.delta
]
SCHEMA = Schema(tuple(FIELDS))
GOOD = [
    b'{"int64":1,"string":"a\\u00e9","float64":1.5,"float32":-0.1e3,"boolean":true}',
    b'{"int64":2,"int32":-7,"timestamp":"2024-01-02T03:04:05Z","date":"2024-01-02"}',
    b'{"int64":3,"binary":"aGk=","x":{"a":[1,null,2]},"y":null}',
    b'{"int64":4,"string":null,"x":{"a":[]},"y":[[1.5]],"json":{"a":[1,"b \\" c"]}}',
    '{"int64":5,"string":"ü {[]} nil"}'.encode(),
    b'{"int64":6}\r',
    b"",
]
TRICKY = [
    b"null", b"{}null", b"null\n", b"\nnull\n", b"}null{", b"NaN", b"-Infinity", b"Inf", b":NaN,",
    b"\n", b"\r", b"\r\n", b"}\n{", b"}{", b"} {", b",", b"{", b"}", b"[", b"]", b'"', b"\\", b"\0",
    b"\\u0000", b"\\ud800", b"\\udc00", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"1e400", b"01",
    b"-0", b".5", b"1.", b"9223372036854775808", b"[" * 150, b"[" * 3000, b"]" * 150, b'{"a":' * 60,
    b'"int64":1,', b'"x":1,', b'"x":"1",', b"true", b"tru", b" ", b"\t", b"\x0b", b"\x0c", b"/**/",
    b"[null]", b"{}[null]{}", b"{}1{}", b'"":0,', b"0000-", b"+24:00", b"T12Z", b".1234567",
]  # fmt: skip


def damaged(random: Random) -> bytes:
    return damaged_lines(random, random.choices(GOOD, k=random.randrange(1, 12)))


def cut_short(random: Random) -> bytes:
    """Return damaged lines with names of all lengths up to some steps, which may end anywhere."""
    lines = random.choices([*GOOD, *(_with_name(random) for _ in range(4))], k=8)
    data = damaged_lines(random, lines[: random.randrange(1, 9)])
    return data[: len(data) - random.choice((0, 0, 1, 1, random.randrange(len(data) + 1)))]


def _with_name(random: Random) -> bytes:
    name = "n" * random.choice((random.randrange(6), random.randrange(3 * WIDTH)))
    text = '"' + "t" * random.randrange(3 * WIDTH) + '"'
    value, string = random.choice(("1", text, "[[]]", "null")), random.choice((text, "null"))
    return f'{{"int64":7,"{name}":{value},"string":{string}}}'.encode()


def damaged_lines(random: Random, lines: list[bytes]) -> bytes:
    """Return the lines with some bytes put in, taken out or changed."""
    data = bytearray(b"\n".join(lines) + b"\n")
    for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
        at = random.randrange(len(data) + 1)
        match random.randrange(5):
            case 0:
                data[at:at] = random.choice(TRICKY)
            case 1:
                data[at : at + random.randrange(1, 5)] = random.choice(TRICKY)
            case 2:
                del data[at : at + random.randrange(1, 30)]
            case 3 if at < len(data):
                data[at] ^= 1 << random.randrange(8)
            case _:
                other = random.randrange(len(data) + 1)
                data[at:at] = data[other : other + random.randrange(1, 40)]
    return bytes(data)


def outcome(batches: Iterable[Decoded]) -> str | tuple[str, int, str | None]:
    """Write down all rows and counts, or where and why there are none."""
    rows: list[object] = []
    blank = 0
    left: Counter[str] = Counter()
    try:
        for decoded in batches:
            decoded.batch.validate(full=True)
            rows += decoded.batch.to_pylist()
            blank += decoded.blank
            for name, count in (*decoded.dropped.items(), *decoded.rescued.items()):
                is_short = len(name) <= USUAL_LIMITS.max_name_characters
                left[name if is_short else OTHER_FIELDS] += count
    except BadLine as bad:
        return bad.code, bad.line, bad.field
    return repr((rows, blank, sorted(left.items())))
