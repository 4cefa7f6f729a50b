"""Every way of reading gives what the table says: values, or the first bad line and why."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from blizzard.model.settings import MAX_LINE_BYTES
from blizzard.worker.ndjson.compiled.fast import FastPath
from blizzard.worker.ndjson.decoder import Decoder
from blizzard.worker.ndjson.exact import ExactPath
from blizzard.worker.ndjson.lines import BadLine, Decoded, blocks
from lakebed.columns.schema import Field, Reading, Schema
from lakebed.types import FieldType
from tests.contract.decoder.cases import CASES, GOOD, Bad, Case, Value
from tests.support.decoding import decode_all

AROUND = 300
Read = Callable[[Schema, bytes], Iterable[Decoded | None]]


@dataclass(frozen=True)
class Seen:
    values: tuple[Any, ...]
    lines: int
    blank: int
    dropped: dict[str, int]


def exact(schema: Schema, data: bytes) -> Iterable[Decoded]:
    path = ExactPath(schema, max_line_bytes=MAX_LINE_BYTES)
    return (path.read(block) for block in blocks([data]))


def composite(schema: Schema, data: bytes) -> Iterable[Decoded]:
    return Decoder(schema).decode([data])


def fast(schema: Schema, data: bytes) -> Iterable[Decoded | None]:
    path = FastPath(schema, max_line_bytes=MAX_LINE_BYTES)
    return (path.read(block) for block in blocks([data]))


def byte_by_byte(schema: Schema, data: bytes) -> Iterable[Decoded]:
    return Decoder(schema).decode(data[at : at + 1] for at in range(len(data)))


def at(place: int, *others: bytes) -> Read:
    """Read a file together with other short ones, so many of which come before it."""

    def read(schema: Schema, data: bytes) -> Iterable[Decoded]:
        files = [*others[:place], data, *others[place:]]
        opened = ((number, (piece for piece in [file])) for number, file in enumerate(files))
        for number, found in decode_all(Decoder(schema), opened):
            if number == place:
                yield from found

    return read


def outcome(read: Read, case: Case, data: bytes) -> Seen | Bad | None:
    reading = Reading(exact=case.exact)
    field = Field(name="v", type=case.type, nullable=case.nullable, reading=reading)
    schema = Schema((field,))
    values: list[Any] = []
    lines = blank = 0
    dropped: Counter[str] = Counter()
    try:
        for decoded in read(schema, data):
            if decoded is None:
                return None
            assert decoded.batch.schema == schema.arrow()
            assert decoded.batch.num_rows == decoded.lines - decoded.blank
            decoded.batch.validate(full=True)
            values += texts(decoded.batch.column(0))
            lines += decoded.lines
            blank += decoded.blank
            dropped.update(decoded.dropped)
    except BadLine as bad:
        return Bad(bad.code, bad.line, bad.field)
    return Seen(tuple(values), lines, blank, dict(dropped))


def texts(column: "pa.Array[Any]") -> list[Any]:
    """Write values so that -0.0 and 0.0, 1 and True and 1.0 are told apart."""
    if pa.types.is_temporal(column.type):
        return [
            moment and moment.isoformat().removesuffix("+00:00") for moment in column.to_pylist()
        ]
    return [repr(value) for value in column.to_pylist()]


def expected(case: Case, *, around: int = 0) -> Seen | Bad:
    if isinstance(case.expected, Bad):
        return Bad(case.expected.code, case.expected.line + around, case.expected.field)
    good = (GOOD[case.type][1],) * around
    values = (*good, *case.expected, *good)
    shown = tuple(write(value, case.type) for value in values)
    return Seen(shown, len(values) + case.blank, case.blank, dict(case.dropped))


def write(value: Value, kind: FieldType) -> Any:
    return value if kind in (FieldType.TIMESTAMP, FieldType.DATE) else repr(value)


by_name = pytest.mark.parametrize("case", CASES, ids=lambda case: ascii(case.name))


@by_name
def test_every_path_keeps_the_contract_and_the_fast_one_says_nothing_of_bad_lines(case: Case):
    """HOLES W26: among the cases are bytes in base64 that would lose something."""
    right = expected(case)
    assert outcome(exact, case, case.data) == right
    assert outcome(fast, case, case.data) == (None if isinstance(right, Bad) else right)
    assert outcome(composite, case, case.data) == right


@pytest.mark.parametrize(
    "case", [case for case in CASES if not case.only_at_start], ids=lambda case: ascii(case.name)
)
def test_a_line_means_the_same_in_the_middle_of_a_file(case: Case):
    good = (b'{"v":' + GOOD[case.type][0].encode() + b"}\n") * AROUND
    line_end = b"" if case.data.endswith(b"\n") or not case.data else b"\n"
    data = good + case.data + line_end + good
    assert outcome(composite, case, data) == expected(case, around=AROUND)


@pytest.mark.parametrize(
    "case", [case for case in CASES if len(case.data) < 2000], ids=lambda case: ascii(case.name)
)
def test_it_does_not_matter_where_the_bytes_are_cut(case: Case):
    assert outcome(byte_by_byte, case, case.data) == expected(case)


@by_name
def test_it_does_not_matter_which_files_are_read_with_it(case: Case):
    """Good, blank and empty ones, or such as have faults of their own."""
    whole = case.data if not isinstance(case.expected, Bad) else b" \n"
    assert outcome(at(2, b"\n", whole, b"", whole), case, case.data) == expected(case)
    assert outcome(at(1, whole, b"{}\n{\n", b'{"v":[}', b"\xff\n"), case, case.data) == expected(
        case
    )
