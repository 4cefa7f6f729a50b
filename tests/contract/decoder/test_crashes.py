"""Whatever the bytes are, the process lives and both paths agree.

A parser written in C can kill the process on bytes it does not expect, so thousands of damaged
blocks are read in a process of their own: a crash is then a failing test.
"""

import subprocess
import sys

SCRIPT = r"""
import random
from blizzard.ndjson.exact import ExactPath
from blizzard.ndjson.fast import FastPath
from blizzard.ndjson.lines import BadLine, blocks
from blizzard.ndjson.decoder import MAX_NAME_CHARACTERS, OTHER_FIELDS, Decoder
from lake.schema import Field, FieldType, Schema

LIMIT = 1 << 20
FIELDS = [Field(name=kind, type=kind, nullable=kind is not FieldType.INT64) for kind in FieldType]
SCHEMA = Schema(tuple(FIELDS))
GOOD = [
    b'{"int64":1,"string":"a\\u00e9","float64":1.5,"float32":-0.1e3,"boolean":true}',
    b'{"int64":2,"int32":-7,"timestamp":"2024-01-02T03:04:05Z","date":"2024-01-02"}',
    b'{"int64":3,"binary":"aGk=","x":{"a":[1,null,2]},"y":null}',
    b'{"int64":4,"string":null,"x":{"a":[]},"y":[[1.5]],"json":{"a":[1,"b \\" c"]}}',
    '{"int64":5,"string":"ü {[]} nil"}'.encode(),
    b"{\"int64\":6}\r",
    b"",
]
TRICKY = [
    b"null", b"{}null", b"null\n", b"\nnull\n", b"}null{", b"NaN", b"-Infinity", b"Inf", b":NaN,",
    b"\n", b"\r", b"\r\n", b"}\n{", b"}{", b"} {", b",", b"{", b"}", b"[", b"]", b'"', b"\\", b"\0",
    b"\\u0000", b"\\ud800", b"\\udc00", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"1e400", b"01",
    b"-0", b".5", b"1.", b"9223372036854775808", b"[" * 150, b"[" * 3000, b"]" * 150, b'{"a":' * 60,
    b'"int64":1,', b'"x":1,', b'"x":"1",', b"true", b"tru", b" ", b"\t", b"\x0b", b"\x0c", b"/**/",
    b"[null]", b"{}[null]{}", b"{}1{}", b'"":0,', b"0000-", b"+24:00", b"T12Z", b".1234567",
]
random.seed(20240102)


def damaged():
    records = random.choices(GOOD, k=random.randrange(1, 12))
    data = bytearray(b"\n".join(records) + b"\n")
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


def outcome(batches):
    try:
        rows, blank, dropped = [], 0, {}
        for decoded in batches:
            rows += decoded.batch.to_pylist()
            blank += decoded.blank
            for name, count in decoded.dropped.items():
                name = name if len(name) <= MAX_NAME_CHARACTERS else OTHER_FIELDS
                dropped[name] = dropped.get(name, 0) + count
        return repr((rows, blank, sorted(dropped.items())))
    except BadLine as bad:
        return bad.code, bad.line, bad.field


fast = good = 0
for number in range(1500):
    data = damaged()
    exact = ExactPath(SCHEMA, max_line_bytes=LIMIT)
    truth = outcome(exact.read(block) for block in blocks([data], max_line_bytes=LIMIT))
    found = outcome(Decoder(SCHEMA, max_line_bytes=LIMIT).decode([data]))
    assert found == truth, (data, found, truth)
    good += isinstance(truth, str)
    quick = FastPath(SCHEMA, max_line_bytes=LIMIT)
    fast += all(quick.read(block) for block in blocks([data], max_line_bytes=LIMIT))
print(f"{good} {fast}")
"""


def test_damaged_blocks_never_kill_the_process_and_never_mean_two_things():
    run = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", SCRIPT],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    good, fast = map(int, run.stdout.split())
    assert good > 300
    assert fast > good * 0.6
