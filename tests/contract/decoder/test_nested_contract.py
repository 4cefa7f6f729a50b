"""Nested columns, and values that are written in other ways: what each line means."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from blizzard.config.columns import schema_of
from blizzard.worker.ndjson.decoder import Decoder
from blizzard.worker.ndjson.exact import ExactPath
from blizzard.worker.ndjson.lines import BadLine, Block
from lakebed.config.schema import DeclaredSchema
from lakebed.types import RESCUED, OnMismatch, UnknownFields
from tests.contract.decoder.nested_cases import CASES, Bad, Nested

by_name = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
READERS = pytest.mark.parametrize("reader", [ExactPath, Decoder])


def read(reader: type[Any], case: Nested, **modes: Any) -> Any:
    schema = schema_of(DeclaredSchema(fields=case.fields))
    data = case.line.encode() + b"\n"
    if reader is ExactPath:
        path = ExactPath(schema, max_line_bytes=1 << 20, **modes)
        batch = path.read(Block(text=data, first_line=1, lines=1)).batch
    else:
        (decoded,) = Decoder(schema, **modes).decode([data])
        batch = decoded.batch
    (row,) = batch.to_pylist()
    return plain(row)


def plain(value: Any) -> Any:  # noqa: PLR0911 - one for each kind of value
    match value:
        case datetime():
            return value.replace(tzinfo=None).isoformat()
        case date():
            return value.isoformat()
        case Decimal():
            return str(value)
        case dict():
            return {name: plain(inner) for name, inner in value.items()}
        case tuple():
            return tuple(plain(inner) for inner in value)
        case list():
            return [plain(inner) for inner in value]
    return value


@READERS
@by_name
def test_a_line_is_the_row_it_means_or_fails_with_its_path(reader, case: Nested):
    if isinstance(case.expected, Bad):
        with pytest.raises(BadLine) as bad:
            read(reader, case)
        assert (bad.value.code, bad.value.field) == (case.expected.code, case.expected.path)
    else:
        assert read(reader, case) == case.expected


@READERS
@by_name
def test_what_no_column_takes_is_kept_letter_by_letter(reader, case: Nested):
    keep = {"unknown": UnknownFields.RESCUE, "on_mismatch": OnMismatch.RESCUE}
    if isinstance(case.expected, Bad) and case.row is None:
        with pytest.raises(BadLine):
            read(reader, case, **keep)
        return
    row = case.expected if case.row is None else case.row
    assert read(reader, case, **keep) == {**row, RESCUED: case.rescued}


@READERS
@pytest.mark.parametrize("case", [case for case in CASES if case.rescued and case.row is None],
                         ids=lambda case: case.name)  # fmt: skip
def test_an_undeclared_field_fails_its_line_where_that_is_asked_for(reader, case: Nested):
    with pytest.raises(BadLine) as bad:
        read(reader, case, unknown=UnknownFields.FAIL)
    assert bad.value.code == "unknown_field"


@READERS
@pytest.mark.parametrize("given", [{"coerce": True}, {"null_values": ["-"]}])
@pytest.mark.parametrize("value", ["5", '"-"', "true", "1.50", '{"a": "-"}', '["-", 7]'])
@pytest.mark.parametrize("inside", [False, True])
def test_json_takes_every_value_as_it_is_whatever_the_schema_says_of_all_fields(
    reader, given, value, inside
):
    kind = {"type": "map", "values": "json"} if inside else {"type": "json"}
    schema = schema_of(DeclaredSchema(fields=[{"name": "v", **kind}], **given))
    line = f'{{"v":{{"k":{value}}}}}\n' if inside else f'{{"v":{value}}}\n'
    if reader is ExactPath:
        path = ExactPath(schema, max_line_bytes=1 << 20)
        batch = path.read(Block(text=line.encode(), first_line=1, lines=1)).batch
    else:
        (decoded,) = Decoder(schema).decode([line.encode()])
        batch = decoded.batch
    assert batch.to_pylist() == [{"v": [("k", value)] if inside else value}]
