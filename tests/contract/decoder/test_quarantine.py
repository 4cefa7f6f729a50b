"""A bad line is quarantined as it stands, with its reason; the others are rows."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest

from blizzard.model.source.form import SkipRule
from blizzard.worker.ndjson.decoder import Decoder
from blizzard.worker.ndjson.forms.framer import Framer
from blizzard.worker.ndjson.lines import BadLine, BadRecord, BrokenDocument, Decoded
from lakebed.columns.schema import Field, Reading, Schema
from lakebed.types import FieldType, OnBadRecord, OnMismatch, UnknownFields
from tests.contract.decoder.cases import CASES, Bad, Case

ID = Schema((Field(name="id", type=FieldType.INT64, nullable=False),))


def decoder(schema: Schema = ID, **options: object) -> Decoder:
    return Decoder(schema, on_bad_record=OnBadRecord.QUARANTINE, **options)  # type: ignore[arg-type]


def read(data: bytes | Iterable[bytes], schema: Schema = ID, **options: object) -> list[Decoded]:
    chunks = [data] if isinstance(data, bytes) else data
    return list(decoder(schema, **options).decode(chunks))


def ids(batches: Iterable[Decoded]) -> list[int | None]:
    return [each for decoded in batches for each in decoded.batch.column(0).to_pylist()]


def bad_records(batches: Iterable[Decoded]) -> list[BadRecord]:
    return [bad for decoded in batches for bad in decoded.bad]


def require_all_lines(batches: Iterable[Decoded]) -> None:
    for each in batches:
        rows = each.batch.num_rows
        assert each.lines == rows + each.blank + each.filtered + len(each.bad)


def told(bad: BadRecord) -> tuple[str, str | None, str | None, str | None]:
    return bad.code, bad.field, bad.found, bad.expected


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", ("not_json", None, "the end of the line at column 2", "a field name in quotes")),
        (b"7", ("not_an_object", None, "an integer", "an object")),
        (b'{"id":"x"}', ("wrong_type", "id", "a string", "an integer (int64)")),
        (
            b'{"id":null}',
            ("required_field_missing", "id", "null", "a value: the field is required"),
        ),
        (
            b'{"id":1,"id":2}',
            ("duplicate_field", "id", "the field twice in one object", "each field once"),
        ),
        (
            b'{"id":"\xff"}',
            ("not_utf8", None, "bytes that are not UTF-8 at byte 8 of the line", "UTF-8"),
        ),
        (b"[" * 600, ("too_deep", None, "values nested more than 500 deep", "at most 500")),
    ],
)
def test_a_bad_line_is_quarantined_and_the_others_are_rows(
    line: bytes, reason: tuple[str, str | None, str, str]
):
    before = b'{"id":1}\n \n'
    batches = read(before + line + b'\n{"id":4}\n')
    require_all_lines(batches)
    assert ids(batches) == [1, 4]
    (bad,) = bad_records(batches)
    assert (bad.line, bad.offset, bad.raw, bad.size) == (3, len(before), line, len(line))
    assert told(bad) == reason
    with pytest.raises(BadLine) as raised:
        list(Decoder(ID).decode([before + line + b"\n"]))
    assert (bad.code, bad.message, bad.field) == (
        raised.value.code,
        raised.value.message,
        raised.value.field,
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: ascii(case.name))
def test_what_fails_a_file_is_what_is_quarantined_first_and_nothing_else_is(case: Case):
    reading = Reading(exact=case.exact)
    schema = Schema((Field(name="v", type=case.type, nullable=case.nullable, reading=reading),))
    batches = read(case.data, schema)
    require_all_lines(batches)
    found = bad_records(batches)
    first = Bad(found[0].code, found[0].line, found[0].field) if found else None
    assert first == (case.expected if isinstance(case.expected, Bad) else None)
    assert [case.data[each.offset :][: each.size] for each in found] == [each.raw for each in found]
    assert [case.data.count(b"\n", 0, each.offset) + 1 for each in found] == [
        each.line for each in found
    ]


def test_what_is_rescued_is_not_quarantined():
    nullable = Schema((replace(ID.fields[0], nullable=True),))
    batches = read(b'{"id":"x"}\n{\n{"id":1}\n', nullable, on_mismatch=OnMismatch.RESCUE)
    assert ids(batches) == [None, 1]
    assert [each.line for each in bad_records(batches)] == [2]
    assert [each.rescued for each in batches] == [{"id": 1}]


def test_fields_that_nobody_declared_can_make_a_line_a_bad_one():
    batches = read(b'{"id":1,"x":2}\n{"id":2}\n', unknown=UnknownFields.FAIL)
    assert ids(batches) == [2]
    assert told(bad_records(batches)[0]) == ("unknown_field", "x", "an integer", "no such field")


@pytest.mark.parametrize("step", [1, 7, 64, 1 << 20])
def test_a_line_that_is_too_long_fails_its_file(step: int):
    data = b'{"id":1}\n{"id":2,"x":"' + b"y" * 200 + b'"}\n{"id":3}\n'
    chunks = [data[at : at + step] for at in range(0, len(data), step)]
    with pytest.raises(BadLine) as bad:
        read(chunks, max_line_bytes=100)
    assert (bad.value.code, bad.value.line) == ("line_too_long", 2)


def test_a_line_with_a_record_separator_is_quarantined_as_it_stands():
    batches = read(b'\x1e{"id":1}\n\x1e{"id":}\n')
    assert ids(batches) == [1]
    assert [each.raw for each in bad_records(batches)] == [b'\x1e{"id":}']


def test_a_byte_order_mark_counts_where_bytes_are_counted():
    data = b'\xef\xbb\xbf{"id":1}\n{\n'
    (bad,) = bad_records(read(data))
    assert bad.offset == data.index(b"{\n")


def test_lines_that_a_rule_passes_over_are_not_bad():
    rule = SkipRule(only_key=("index",))
    data = b'{"index":1}\n{"id":1}\n{"index":}\n{\n'
    batches = list(decoder().decode([data], skip=rule))
    require_all_lines(batches)
    assert [each.filtered for each in batches] == [1]
    written = data.split(b"\n")
    assert [each.raw for each in bad_records(batches)] == [written[2], written[3]]


def test_a_record_of_a_document_is_quarantined_and_a_document_without_an_end_fails_its_file():
    """Where one record ends and the next begins is known by brackets: a bad value keeps them."""
    assert ids(read(Framer().lines([b'[{"id":1},{"id":tru},\n{"id":3}]']))) == [1, 3]

    def batches() -> Iterator[Decoded]:
        return decoder().decode(Framer().lines([b'[{"id":1},{"id":tru},{"id":3}}']))

    with pytest.raises(BrokenDocument):
        list(batches())
