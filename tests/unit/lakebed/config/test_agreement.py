"""The parts of one document that must be there, and must agree with each other."""

from pathlib import Path
from typing import Any

import pytest

from lakebed.config.checks import NO_NAME
from tests.unit.lakebed.config.test_loader import COMPLETE, faults, load

SECOND = """
pipelines:
  second:
    source: {path: /other}
    sink: {path: /table, %s}
    schema: {fields: [{name: id, type: string}]}
"""


def test_a_part_at_the_top_level_beside_pipelines_is_one_fault_among_theirs(folder: Path) -> None:
    """A part that has to move need not be whole; names are reported with it."""
    found = faults(
        folder,
        """
        sink: {path: /table}
        error_handling: {max_failures: 3}
        pipelines:
          a/b:
            sources: {"c:d": {path: /in}}
            sink: {path: /x}
          Protocol: {}
        """,
    )

    assert found == [
        f"pipelines.a/b: {NO_NAME}  (a.yaml:5)",
        f"pipelines.a/b.sources.c:d: {NO_NAME}  (a.yaml:6)",
        (
            "pipelines.Protocol: this name is reserved for the table directory itself; "
            "choose another  (a.yaml:8)"
        ),
        (
            "pipelines: cannot be combined with a pipeline at the top level of the document, which "
            "has sink and error_handling; move that one under pipelines  (a.yaml:4)"
        ),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pipelines: {p: {}}", ["p.source", "p.sink"]),
        ("pipelines: {p: {source: {path: /a}, sink: {}, schema: {}}}", ["sink.path"]),
        ("sink: {path: /table}", ["source"]),
        ("source: {path: /in}", ["sink"]),
    ],
)
def test_a_pipeline_without_a_part_is_told_which(folder: Path, text: str, expected: Any) -> None:
    found = faults(folder, text)

    assert len(found) == len(expected)
    for fault, key in zip(found, expected, strict=True):
        assert fault.partition(":")[0].endswith(key)


def test_a_pipeline_has_one_source_or_named_ones(folder: Path) -> None:
    text = SECOND.replace("/other}", "/other}\n    sources: {x: {path: /x}}") % ""

    (fault,) = faults(folder, text)

    assert fault.startswith("pipelines.second.source: cannot be combined with sources")


def test_both_names_of_the_table_must_mean_one_place(folder: Path) -> None:
    same = COMPLETE.replace("path: /table", "path: /table/, table_uri: 'file:///table'")
    other = COMPLETE.replace("path: /table", "path: /table, table_uri: /other")

    assert load(folder, same).sink is not None
    (fault,) = faults(folder, other)
    assert fault.startswith("sink.path: means the same as table_uri, but the two differ")


DAY = "d=%Y, timestamp_field: "


@pytest.mark.parametrize(
    ("sink", "table", "differs"),
    [
        ("a=%s/b=%s", "a=%s/b=%s", None),
        ("a=%s", "a=%s/", None),
        ("a=%s/b=%s", "b=%s/a=%s", "partition_by"),
        (None, "a=%s", "partition_by"),
        ("a=%s", None, None),
        (f"{DAY}ts", f"{DAY}ts", None),
        (f"{DAY}ts", "d=%Y", None),
        (f"{DAY}ts", f"{DAY}at", "partition_by.timestamp_field"),
        ("d=%Y", f"{DAY}ts", "partition_by.timestamp_field"),
    ],
)
def test_sink_and_table_agree_on_the_partitions_and_the_field_that_gives_them(
    folder: Path, sink: str | None, table: str | None, differs: str | None
) -> None:
    def by(template: str | None) -> str:
        return f"partition_by: {{prefix_template: {template}}}" if template else ""

    text = COMPLETE.replace("/table", "/table/, " + by(sink))
    text += f"tables: {{events: {{table_uri: 'file:///table', {by(table)}}}}}"

    if differs is None:
        assert load(folder, text).tables
    else:
        fault = f"tables.events.{differs}: differs from sink.{differs}, although both are for the"
        assert faults(folder, text) == [f"{fault} same table  (a.yaml:5)"]


def test_pipelines_of_one_table_may_tell_time_by_different_fields(folder: Path) -> None:
    by = "partition_by: {prefix_template: d=%%Y, timestamp_field: %s}"
    first, second = (SECOND.replace("second", name) % (by % name) for name in ("first", "second"))

    for name, agree in (("first", True), ("second", True), ("third", False)):
        tables = f"tables: {{events: {{table_uri: /table, {by % name}}}}}"
        if agree:
            assert load(folder, first, second, tables).tables
        else:
            assert len(faults(folder, first, second, tables)) == 1


def test_a_broken_template_is_not_also_a_disagreement(folder: Path) -> None:
    text = COMPLETE.replace("/table", "/table, partition_by: {prefix_template: x}")
    text += "tables: {e: {table_uri: /table, partition_by: {prefix_template: a=%s}}}"

    (fault,) = faults(folder, text)

    assert fault.startswith("sink.partition_by.prefix_template: part 1 of it is not of the form")


@pytest.mark.parametrize(
    ("extra", "key"),
    [("handoff: direct", "handoff"), ("partition_by: {prefix_template: a=%s}", "partition_by")],
)
def test_two_pipelines_of_one_table_agree(folder: Path, extra: str, key: str) -> None:
    first = SECOND.replace("second", "first") % ""

    assert faults(folder, first, SECOND % extra) == [
        (
            f"pipelines.second.sink.{key}: differs from pipelines.first.sink.{key}, although "
            "both are for the same table  (b.yaml:5)"
        )
    ]
    assert load(folder, first, SECOND % "commit: inline").pipelines.keys() == {"first", "second"}


def test_one_table_has_one_entry(folder: Path) -> None:
    (fault,) = faults(
        folder, "tables: {a: {table_uri: /t}, b: {table_uri: 'file:///t/'}, c: {table_uri: /c}}"
    )

    assert fault == "tables.b.table_uri: is the same table as tables.a  (a.yaml:1)"
