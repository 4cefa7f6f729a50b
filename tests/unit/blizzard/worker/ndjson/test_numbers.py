"""Numbers, days and moments that are read straight from their tokens: exact, or left to others."""

import calendar
import struct
from datetime import date, datetime, timedelta
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest

from blizzard.worker.ndjson.compiled import numbers
from blizzard.worker.ndjson.compiled.fast import FastPath
from blizzard.worker.ndjson.compiled.syntax import INTEGER, NUMBER, TEXT
from blizzard.worker.ndjson.compiled.vector import WIDTH
from blizzard.worker.ndjson.exact import ExactPath
from blizzard.worker.ndjson.lines import BadLine, Block
from lakebed.columns.schema import Field, Schema
from lakebed.types import FieldType

LIMIT = 1 << 20
LAST = "9999-12-31T23:59:59.999999"


def column(kind: FieldType, texts: list[str]) -> list[Any]:
    schema = Schema((Field(name="v", type=kind),))
    data = "".join(f'{{"v":{text}}}\n' for text in texts).encode()
    decoded = FastPath(schema, max_line_bytes=LIMIT).read(
        Block(text=data, first_line=1, lines=len(texts))
    )
    assert decoded is not None
    return decoded.batch.column(0).to_pylist()


def token(text: str, kind: int) -> tuple[Any, ...]:
    """Return one token, as the compiled functions take a column of them."""
    data = np.frombuffer(text.encode() + b"}\n" + bytes(WIDTH), np.uint8)
    span = np.array([0], np.int32), np.array([len(text)], np.int32)
    return data, *span, np.array([kind], np.uint8)


@pytest.mark.parametrize(
    ("precision", "scale"), [(5, 2), (18, 0), (18, 18), (12, 2), (38, 9), (38, 15)]
)
def test_a_decimal_that_is_read_here_is_the_number_that_was_written_and_fits(precision, scale):
    random = Random(20240106)
    read = 0
    for _ in range(2000):
        digits = str(random.randrange(10 ** random.randrange(1, 21)))
        point = random.randrange(1, len(digits) + 1)
        text = digits[:point] + (f".{digits[point:]}" if point < len(digits) else "")
        text += random.choice(["", "", f"e{random.randrange(-22, 22)}"])
        text = random.choice(["", "-"]) + text
        found = np.empty(2, np.int64)
        if numbers.decimals(*(*token(text, NUMBER), precision, scale, found)):
            read += 1
            unscaled = int.from_bytes(found.tobytes(), "little", signed=True)
            assert unscaled == Fraction(text) * 10**scale, text
            assert abs(unscaled) < 10**precision, text
    assert read > 100


@pytest.mark.parametrize(
    ("text", "unscaled"),
    [("-0.00", 0), ("0e16", 0), ("999.99", 99_999), ("-999.990", -99_999), ("99999e-2", 99_999)],
)
def test_decimals_up_to_the_digits_of_their_column_are_read_here(text, unscaled):
    found = np.empty(2, np.int64)
    assert numbers.decimals(*(*token(text, NUMBER), 5, 2, found)) == 1
    assert int.from_bytes(found.tobytes(), "little", signed=True) == unscaled


@pytest.mark.parametrize("text", ["1000", "-1000.00", "0.001", "1e3", "1e-3", "0e99", "1e99999999"])
def test_a_decimal_that_does_not_fit_is_left_to_others(text):
    assert numbers.decimals(*(*token(text, NUMBER), 5, 2, np.empty(2, np.int64))) == 0


def test_a_number_that_is_read_here_is_the_nearest_double():
    random = Random(20240105)
    read = 0
    for _ in range(5000):
        digits = random.randrange(10 ** random.randrange(1, 18))
        text = random.choice(
            [
                f"{digits}e{random.randrange(-25, 26)}",
                f"{digits / 10 ** random.randrange(17):.{random.randrange(1, 15)}f}",
                f"{random.randrange(2**53 - 9, 2**53 + 9)}E-{random.randrange(23)}",
                str(digits),
            ]
        )
        text = random.choice(["", "-"]) + text
        found = np.empty(1, np.float64)
        if numbers.doubles(*(*token(text, NUMBER), found)):
            read += 1
            assert struct.pack("<d", found[0]) == struct.pack("<d", float(text)), text
    assert read > 2500


@pytest.mark.parametrize("number", [0, 7, -(10**18) + 1, 10**18 - 1, 10**18, 2**63 - 1, -(2**63)])
def test_an_integer_of_any_length_is_itself(number: int):
    assert column(FieldType.INT64, [str(number), "1"]) == [number, 1]


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_an_integer_beyond_its_type_is_left_to_others(bits: int):
    limit = 1 << (bits - 1)
    for number in (limit - 1, -limit, limit, -limit - 1):
        found = np.empty(1, np.int64)
        span = token(str(number), INTEGER)
        can = numbers.integers(*(*span, -limit, limit - 1, found))
        assert can == (-limit <= number < limit)


def test_the_first_and_last_days_of_all_months_of_all_years_are_days():
    days = [
        date(year, month, day)
        for year in range(1, 10_000)
        for month in range(1, 13)
        for day in (1, calendar.monthrange(year, month)[1])
    ]
    assert column(FieldType.DATE, [f'"{day.isoformat()}"' for day in days]) == days


@pytest.mark.parametrize("year", [0, 1, 4, 100, 400, 1900, 2000, 2023, 2024, 9999])
def test_what_is_no_day_of_the_calendar_is_left_to_others(year: int):
    for month in range(14):
        for day in range(34):
            text = f"{year:04d}-{month:02d}-{day:02d}"
            found = np.empty(1, np.int32)
            can = numbers.days(*(*token(f'"{text}"', TEXT), found))
            try:
                wanted = date.fromisoformat(text)
            except ValueError:
                assert not can, text
            else:
                assert can, text
                assert date(1970, 1, 1) + timedelta(days=int(found[0])) == wanted


def test_a_moment_is_itself_to_the_microsecond():
    random = Random(20240106)
    first, last = (datetime.fromisoformat(moment) for moment in ("0001-01-01", LAST))
    span = (last - first) // timedelta(microseconds=1)
    moments = [
        first, last, *(first + timedelta(microseconds=random.randrange(span)) for _ in range(5000))
    ]  # fmt: skip
    texts = [f'"{moment.isoformat(sep=random.choice("T "))}"' for moment in moments]
    assert column(FieldType.TIMESTAMP_NTZ, texts) == moments
    zoned = [text[:-1] + random.choice(['Z"', '"']) for text in texts]
    found = column(FieldType.TIMESTAMP, zoned)
    assert [moment.replace(tzinfo=None) for moment in found] == moments


@pytest.mark.parametrize(
    "text",
    [
        "2024-01-02T03:04:05z", "2024-01-02T03:04:05.Z", "2024-01-02T03:04:05.1234567Z",
        "2024-01-02T24:00:00Z", "2024-01-02T03:60:00Z", "2024-01-02T03:04:60Z",
        "2024-01-02T03:04:05;1Z", "2024-01-02T03:04:05ZZ", "2024-01-02t03:04:05Z",
        "2024-01-02T03:04:0/Z", "2024/01-02T03:04:05Z", "2024-01-02T03-04:05Z",
        "2024-01-02T03:04:05.1_Z", "0000-01-02T03:04:05Z", "2024-01-02T03:04:05 Z",
    ],
)  # fmt: skip
def test_a_moment_that_is_written_otherwise_is_left_to_others(text: str):
    found = np.empty(1, np.int64)
    assert not numbers.moments(*(*token(f'"{text}"', TEXT), True, found))
    schema = Schema((Field(name="v", type=FieldType.TIMESTAMP),))
    block = Block(text=f'{{"v":"{text}"}}'.encode(), first_line=1, lines=1)
    assert FastPath(schema, max_line_bytes=LIMIT).read(block) is None
    with pytest.raises(BadLine):
        ExactPath(schema, max_line_bytes=LIMIT).read(block)


def test_a_zone_is_no_part_of_a_time_without_one():
    found = np.empty(1, np.int64)
    assert not numbers.moments(*(*token('"2024-01-02T03:04:05Z"', TEXT), False, found))
