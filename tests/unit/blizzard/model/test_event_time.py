"""Which parts of a template rows give, and how a moment is written."""

from datetime import UTC, datetime

import pytest

from blizzard.model.event_time import CODES, RowPart, from_path, row_partitions
from lakebed.columns.schema import Field, Schema
from lakebed.partition import Template
from lakebed.types import FieldType

DECLARED = Schema(
    (
        Field(name="id", type=FieldType.INT64),
        Field(name="ts", type=FieldType.TIMESTAMP),
        Field(name="day", type=FieldType.DATE),
        Field(name="region", type=FieldType.STRING),
    )
)


def moment(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


def written(pattern: str, at: datetime, kind: FieldType = FieldType.STRING) -> str:
    return RowPart(column=Field(name="k", type=kind), pattern=pattern).written(at)


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (moment(2024, 2, 29, 3, 4, 5), "2024 24 02 29 060 2024 09 03 04 05"),
        (moment(2024, 12, 30), "2024 24 12 30 365 2025 01 00 00 00"),
        (moment(1969, 12, 31, 23, 59, 59), "1969 69 12 31 365 1970 01 23 59 59"),
        (moment(1, 1, 1), "0001 01 01 01 001 0001 01 00 00 00"),
        (moment(9999, 12, 31), "9999 99 12 31 365 9999 52 00 00 00"),
    ],
)
def test_every_code_is_written_with_all_its_digits(at, text):
    assert written(" ".join(CODES), at) == text


def test_codes_mean_what_they_mean_elsewhere():
    at = moment(2024, 7, 9, 21, 8, 7)
    for code, known in CODES.items():
        assert written(code, at) == at.strftime(code)
        assert len(written(code, at)) == known.digits


def test_a_number_is_written_as_delta_writes_numbers():
    assert written("%H", moment(2024, 1, 1, 9), FieldType.INT32) == "9"
    assert written("%Y%m%d", moment(2024, 1, 9), FieldType.INT64) == "20240109"


def test_time_comes_from_the_field_text_from_columns_and_the_rest_from_the_path():
    template = Template.parse("tenant=%s/date=%Y-%m-%d/region=%s/hour=%H")
    by = row_partitions(template, DECLARED, "ts")
    assert by is not None
    assert by.keys == ("tenant", "date", "region", "hour")
    assert [(part.column.name, part.pattern) for part in by.parts] == [
        ("date", "%Y-%m-%d"), ("region", None), ("hour", "%H"),
    ]  # fmt: skip
    assert [field.name for field in by.read] == ["region"]
    rest = from_path(template, DECLARED, "ts")
    assert rest is not None
    assert rest.keys == ("tenant",)


def test_a_timestamp_field_that_is_a_partition_column_stands_in_no_file():
    by = row_partitions(Template.parse("day=%Y-%m-%d"), DECLARED, "day")
    assert by is not None
    assert [field.name for field in by.read] == ["day"]
