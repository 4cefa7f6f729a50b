"""Times of rows in templates, names of rotated logs, and paths of values in records."""

from datetime import UTC, datetime

import pytest

from blizzard.discover.finding import Reason, why_not_ours
from blizzard.model.bad_lines import ANY, any_element, element_path, member_path, steps
from blizzard.model.event_time import CODES, RowPart, from_path, row_partitions
from blizzard.model.source.form import SourcePattern, renamed, unrotated
from lakebed.columns.schema import Field
from lakebed.partition import Template
from lakebed.types import FieldType
from tests.support.builders import declared, source_settings

DECLARED = declared(id="int64", ts="timestamp", day="date", region="string")


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


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("access.log", "access.log"),
        ("a/b/access.log.1", "access.log"),
        ("access.log.2.gz", "access.log"),
        ("access.log.gz.3", "access.log"),
        ("access.log-20240511.gz", "access.log"),
        ("access.log.2024-05-11_13", "access.log"),
        ("access.log.2024-05-11T13Z.4.zst", "access.log"),
        ("access_log.1715299200", "access_log"),
        ("x.json.1.bz2", "x.json"),
        ("app.2024-05-11.log", "app.2024-05-11.log"),
        ("2024-05-11", "2024"),
        (".1", ".1"),
        ("access.log.bak", "access.log.bak"),
        ("part-00000", "part"),
    ],
)
def test_a_number_or_a_date_at_the_end_is_no_part_of_the_name(path: str, expected: str) -> None:
    assert unrotated(path) == expected


@pytest.mark.parametrize(
    ("pattern", "taken", "left"),
    [
        (
            "**.log*",
            ["a.log", "b/a.log.gz", "a.log.1", "a.log.1.gz", "a.json.log-20240511.gz"],
            ["a.log.bak", "a.logs", "a.log.1.tmp", "a.log.csv", "a.log~", "a.log.swp"],
        ),
        ("a.log-*", ["a.log-20240511", "a.log-20240511.gz"], ["a.log-old.txt"]),
        ("a.log.*", ["a.log.1", "a.log.2024-05-11"], ["a.log.txt", "a.log.tmp"]),
        ("**.json*", ["a.json", "a.json.1.gz", "a.jsonl"], ["a.json.md", "a.json5"]),
        ("access_log*", ["access_log", "access_log.1", "access_log-2024.gz"], ["access_log.md"]),
        ("app-1.2-*", ["app-1.2-x.json"], ["app-1.2-x.csv", "app-1.2-x"]),
    ],
)
def test_a_pattern_that_spells_out_a_suffix_and_goes_on_takes_rotated_names(
    pattern: str, taken: list[str], left: list[str]
) -> None:
    source = source_settings(pattern=SourcePattern(pattern))
    assert {name: why_not_ours(name, source) for name in taken} == dict.fromkeys(taken)
    reasons = {name: why_not_ours(name, source) for name in left}
    assert set(reasons.values()) <= {Reason.NOT_NDJSON, Reason.TEMPORARY}, reasons


def test_names_that_the_next_rotation_changes_are_known() -> None:
    dated = ["in/a.log-20240511.gz", "in/a.log-20240512"]
    assert renamed([*dated, "other/a.log", "b.log"]) == ()
    assert renamed([*dated, "in/a.log"]) == ("in/a.log",)
    assert renamed(["a.log", "a.log.1", "a.log.2.gz"]) == ("a.log", "a.log.1", "a.log.2.gz")
    assert renamed(["part-00000", "part-00001"]) == ()


NAMES = ["id", "a.b", "items[0]", "[]", "`", "``", "a`[1]`b", "", " ", "é"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("below", NAMES)
def test_a_path_is_read_back_as_it_was_written(name, below):
    path = member_path(element_path(member_path("", name), 3), below)
    assert steps(path) == [name, 3, below]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_looks_like_an_element_stays_a_name(name):
    """A record of a flattened list has keys like `items[0]`: no two of them are one column."""
    path = element_path(member_path("", name), 12)
    assert steps(any_element(path)) == [name, ANY]
