"""Rows whose partition cannot be written, where bad lines are quarantined."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from blizzard.model.event_time import row_partitions
from blizzard.model.settings import QuarantineLimits, Sizing
from blizzard.model.source.form import Form, SkipRule
from blizzard.model.work import UnitOutcome
from blizzard.worker.download import OpenedStores
from blizzard.worker.unit import run_unit
from lakebed.partition import Template
from lakebed.types import UnknownFields
from tests.support import builders
from tests.support.builders import declared, listed, put, unit
from tests.support.quarantined import BROKEN, quarantined_rows, text
from tests.support.stops import FEW_LINES

DECLARED = declared(id="int64", ts="timestamp", region="string!")
TEMPLATE = Template.parse("region=%s")


def good(number: int) -> bytes:
    return b'{"id":%d,"region":"eu"}' % number


def unwritable(number: int) -> bytes:
    """A line whose value is too long for the name of a folder."""
    return b'{"id":%d,"region":"%s","more":1}' % (number, b"x" * 300)


def read(folder: Path, **given: Any) -> UnitOutcome:
    form = given.pop("form", Form())
    shared = builders.work(
        folder / "in",
        folder / "table",
        file_schema=DECLARED.without(frozenset(TEMPLATE.keys)),
        row_partitions=row_partitions(TEMPLATE, DECLARED, "ts"),
        quarantine=QuarantineLimits(),
        **given,
    )
    files = [replace(file, form=form) for file in listed(folder / "in")]
    outcome = run_unit(unit(files), shared, OpenedStores(shared))
    assert all(record.failure is None for record in outcome.sources)
    assert sum(record.rows for record in outcome.sources) == sum(
        file.record_count for file in outcome.files
    )
    return outcome


def test_only_the_lines_of_such_rows_are_quarantined(tmp_path: Path) -> None:
    body = [good(1), b"", unwritable(2), BROKEN, good(3), b'{"id":4,"region":""}', unwritable(5)]
    put(tmp_path / "in", "a.ndjson", text(body))
    outcome = read(tmp_path, unknown_fields=UnknownFields.RESCUE)

    (record,) = outcome.sources
    assert (record.lines, record.blank, record.rows, record.quarantined) == (7, 1, 2, 4)
    assert record.rescued == {}, "what is in a line that is quarantined is not in the table"
    rows = quarantined_rows(tmp_path / "table", outcome.quarantine)
    assert [(row["line"], row["code"], row["field"]) for row in rows] == [
        (3, "partition_value_too_long", "region"),
        (4, "not_json", None),
        (6, "required_field_missing", "region"),
        (7, "partition_value_too_long", "region"),
    ]
    assert [row["raw"] for row in rows] == [body[2], BROKEN, body[5], body[6]]
    assert [row["offset"] for row in rows] == [len(text(body[: row["line"] - 1])) for row in rows]


@pytest.mark.parametrize("sizing", [Sizing(decoding=FEW_LINES), Sizing()])
def test_the_right_lines_are_found_wherever_they_are(tmp_path: Path, sizing: Sizing) -> None:
    """In several blocks, beside lines that are left out, and in files that are read together."""
    every = {}
    for name in ("a.ndjson", "b.ndjson", "c.ndjson"):
        body = [
            b'{"index":{}}' if n % 5 == 0 else unwritable(n) if n % 7 == 0 else good(n)
            for n in range(60)
        ]
        every[name] = [n + 1 for n in range(60) if n % 7 == 0 and n % 5]
        put(tmp_path / "in", name, text(body))
    outcome = read(tmp_path, form=Form(skip=SkipRule(only_key=("index",))), sizing=sizing)

    for record in outcome.sources:
        assert (record.lines, record.filtered, record.rows) == (60, 12, 48 - len(every["a.ndjson"]))
    rows = quarantined_rows(tmp_path / "table", outcome.quarantine)
    for name, numbers in every.items():
        assert [row["line"] for row in rows if row["path"] == name] == numbers
    assert all(row["raw"] == unwritable(row["line"] - 1) for row in rows)
