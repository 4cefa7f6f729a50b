"""What a configuration may say of partitions, by declared columns and by time."""

from pathlib import Path
from typing import Any

import pytest

from blizzard.model.event_time import ANY, CODES
from lakebed.config.models import TEMPLATE_CODES
from lakebed.partition import Template
from tests.support.blizzard_config import faults_of, minimal, settings_of, sink


@pytest.mark.parametrize("kind", ["float32", "float64", "timestamp", "binary", "json"])
def test_a_partition_column_has_a_type_that_delta_can_partition_by(tmp_path: Path, kind: str):
    fields = [{"name": "id", "type": "string"}, {"name": "d", "type": kind}]
    document = minimal(sink__partition_by={"prefix_template": "d=%s"}, schema__fields=fields)

    (fault,) = faults_of(tmp_path, document)

    assert fault == (
        f"sink.partition_by.prefix_template: d is declared as {kind}, which cannot be a partition "
        "column; it must be string, date, int8, int16, int32, int64, boolean"
    )


def test_a_data_file_must_be_left_a_column(tmp_path: Path) -> None:
    (fault,) = faults_of(tmp_path, minimal(sink__partition_by={"prefix_template": "id=%s"}))

    assert fault.startswith("schema.fields: every field is a partition column")


def test_a_partition_key_is_written_like_its_field(tmp_path: Path) -> None:
    document = minimal(sink__partition_by={"prefix_template": "ID=%s"})

    (fault,) = faults_of(tmp_path, document)

    assert fault.startswith("sink.partition_by.prefix_template: ID is declared as id")


FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "string"},
    {"name": "event_time", "type": "timestamp"},
    {"name": "day", "type": "date"},
    {"name": "hour", "type": "int32"},
    {"name": "flag", "type": "boolean"},
    {"name": "region", "type": "string"},
]
NESTED: list[dict[str, Any]] = [
    *FIELDS,
    {
        "name": "meta",
        "type": "struct",
        "fields": [
            {"name": "at", "type": "timestamp_ntz"},
            {"name": "day", "type": "date"},
            {"name": "who", "type": "string"},
        ],
    },
    {
        "name": "calls",
        "type": "list",
        "items": {"type": "struct", "fields": [{"name": "at", "type": "timestamp"}]},
    },
    {"name": "dotted.at", "type": "timestamp"},
    {"name": "tiny", "type": "int8"},
    {"name": "small", "type": "int16"},
]


def by_time(
    template: str, field: str = "event_time", fields: list[dict[str, Any]] = FIELDS
) -> dict[str, Any]:
    by = {"prefix_template": template, "timestamp_field": field}
    return minimal(sink__partition_by=by, schema__fields=fields)


def test_a_timestamp_field_must_be_declared_and_the_nearest_name_is_told(tmp_path: Path) -> None:
    where = "sink.partition_by.timestamp_field: "
    known = "id, event_time, day, hour, flag, region"

    assert faults_of(tmp_path, by_time("date=%Y-%m-%d", "eventtime")) == [
        f"{where}eventtime is not a declared field; did you mean event_time?"
    ]
    assert faults_of(tmp_path, by_time("date=%Y-%m-%d", "xyz")) == [
        f"{where}xyz is not a declared field; the declared fields are {known}"
    ]


@pytest.mark.parametrize(
    ("field", "kind"), [("id", "string"), ("hour", "int32"), ("flag", "boolean")]
)
def test_a_timestamp_field_tells_time(tmp_path: Path, field: str, kind: str) -> None:
    (fault,) = faults_of(tmp_path, by_time("date=%Y-%m-%d", field))

    assert fault == (
        f"sink.partition_by.timestamp_field: {field} is declared as {kind}; "
        "it must be timestamp, timestamp_ntz or date"
    )


@pytest.mark.parametrize(
    ("template", "field", "fault"),
    [
        ("d=%Y-%b", "event_time", "part 1 of it has an unknown % code; the codes are %s, %Y"),
        ("d=%", "event_time", "part 1 of it has an unknown % code"),
        ("r=%s-%Y", "event_time", "r has %s, which"),
        ("v=1", "event_time", "v has neither %s nor a time code, which"),
        ("h=%H", "day", "h needs a time of day, but day is a date"),
        ("day=%Y-%m", "event_time", "day is declared as date, which cannot hold %Y-%m; declare"),
        ("flag=%H", "event_time", "flag is declared as boolean, which cannot hold %H; declare"),
        ("hour=%m-%d", "event_time", "hour is declared as int32, which cannot hold %m-%d"),
        ("hour=%Y%m%d%H", "event_time", "hour is declared as int32, which cannot hold %Y%m%d%H"),
    ],
)
def test_a_template_that_rows_cannot_give_is_refused(
    tmp_path: Path, template: str, field: str, fault: str
) -> None:
    (found,) = faults_of(tmp_path, by_time(template, field))

    assert found.startswith(f"sink.partition_by.prefix_template: {fault}")


@pytest.mark.parametrize(
    ("template", "field"),
    [
        ("date=%Y-%m-%d/hour=%H/region=%s/tenant=%s", "event_time"),
        ("year=%Y/month=%m/day=%Y-%m-%d", "day"),
        ("week=%G-W%V/nth=%j", "day"),
        ("hour=%Y%m%d", "event_time"),
        ("region=%s/flag=%s", "event_time"),
    ],
)
def test_a_template_that_rows_give_is_accepted(tmp_path: Path, template: str, field: str) -> None:
    settings = sink(settings_of(tmp_path, by_time(template, field)))

    assert (settings.template, settings.timestamp_field) == (Template.parse(template), field)


@pytest.mark.parametrize("field", ["meta.at", "`meta`.day", "dotted.at", "`dotted.at`"])
def test_a_timestamp_field_may_be_a_field_of_a_struct(tmp_path: Path, field: str) -> None:
    document = by_time("date=%Y-%m-%d/tiny=%H/small=%Y", field, NESTED)
    if field.endswith("day"):
        document = by_time("date=%Y-%m-%d/tiny=%d/small=%Y", field, NESTED)

    assert sink(settings_of(tmp_path, document)).timestamp_field == field


@pytest.mark.parametrize(
    ("field", "fault"),
    [
        ("meta.att", "meta.att is not a declared field; did you mean meta.at?"),
        ("meta.who", "meta.who is declared as string; it must be timestamp, timestamp_ntz or date"),
        ("meta", "meta is declared as struct; it must be timestamp, timestamp_ntz or date"),
        (
            "calls.at",
            "calls.at is inside a list or a map, so a row may have several values or none",
        ),
        ("meta.", "meta. is not a declared field; did you mean meta?"),
    ],
)
def test_a_field_of_a_struct_that_tells_no_time_is_refused(tmp_path: Path, field: str, fault: str):
    assert faults_of(tmp_path, by_time("date=%Y-%m-%d", field, NESTED)) == [
        f"sink.partition_by.timestamp_field: {fault}"
    ]


@pytest.mark.parametrize("key", ["tiny=%Y", "tiny=%j", "small=%Y%m"])
def test_a_small_integer_holds_only_what_fits_whatever_the_time(tmp_path: Path, key: str) -> None:
    (fault,) = faults_of(tmp_path, by_time(key, fields=NESTED))

    assert "which cannot hold" in fault


def test_two_fields_with_one_id_are_refused_by_name(tmp_path: Path) -> None:
    fields = [{"name": name, "type": "string"} for name in ("f20501", "f80032")]
    (fault,) = faults_of(tmp_path, minimal(schema__fields=fields))

    assert fault.startswith("schema.fields: f20501 and f80032 happen to have the same Parquet")


@pytest.mark.parametrize("section", ["sink", "tables.events"])
def test_an_unknown_code_is_refused_also_where_paths_give_the_partitions(
    tmp_path: Path, section: str
) -> None:
    by = {"prefix_template": "region=%s/date=%Q"}
    table = {"table_uri": "/other", "partition_by": by}
    given = {"sink__partition_by": by} if section == "sink" else {"tables__events": table}

    (fault,) = faults_of(tmp_path, minimal(**given))

    assert fault.startswith(
        f"{section}.partition_by.prefix_template: part 2 of it has an unknown % code; "
        "the codes are %s, %Y, %y,"
    )


def test_the_codes_of_a_template_are_those_that_rows_can_fill() -> None:
    assert set(TEMPLATE_CODES) == {ANY, *CODES}


@pytest.mark.parametrize(
    "schema",
    [
        {"fields": [{"name": "id", "type": "string"}, {"name": "at", "type": "tim"}]},
        {"ddl": "id STRING, at tim"},
    ],
)
def test_a_column_that_is_faulty_itself_is_not_missed_elsewhere(
    tmp_path: Path, schema: dict[str, Any]
) -> None:
    given = minimal(
        sink__partition_by={"prefix_template": "date=%Y", "timestamp_field": "at"},
    )
    given["schema"] = {**schema, "provenance": ["file", "lin"]}

    found = faults_of(tmp_path, given)

    assert sorted(fault.partition(":")[0] for fault in found) == [
        "schema.ddl" if "ddl" in schema else "schema.fields[1].type",
        "schema.provenance[1]",
    ]
