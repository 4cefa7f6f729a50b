"""What a file means never depends on the files and lines that are read together with it.

Every statement is about the Parquet files of a whole work unit, read back.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blizzard.model.event_time import row_partitions
from blizzard.model.settings import QuarantineLimits, RollingPolicy
from blizzard.model.work import UnitOutcome
from blizzard.worker.ndjson.exact import ExactPath
from blizzard.worker.ndjson.lines import BadLine, blocks
from lakebed.columns.schema import Field, Reading, Schema
from lakebed.partition import Template
from lakebed.types import RESCUED, FieldType, OnBadRecord, OnMismatch, UnknownFields
from tests.support.builders import listed, put
from tests.support.nested import NULL_WORDS, Lines, some_fields, with_readings
from tests.support.units import Place

LIMIT = 1 << 20
PART = Field(name="part", type=FieldType.STRING)
BY_PART = Template.parse("part=%s")
MODES: dict[str, dict[str, Any]] = {
    "fail": {},
    "quarantine": {"quarantine": QuarantineLimits()},
    "rescue": {"unknown_fields": UnknownFields.RESCUE, "on_mismatch": OnMismatch.RESCUE},
    "both": {
        "unknown_fields": UnknownFields.RESCUE,
        "on_mismatch": OnMismatch.RESCUE,
        "quarantine": QuarantineLimits(),
    },
}


@contextmanager
def place_of(bodies: list[bytes]) -> Iterator[Place]:
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder, "in"), Path(folder, "table"))
        place.source.mkdir()
        for number, body in enumerate(bodies):
            put(place.source, f"{number:03}.ndjson", body)
        yield place


def read_back(place: Place, outcome: UnitOutcome) -> Counter[str]:
    """Return the rows of all data files."""
    found: Counter[str] = Counter()
    for file in outcome.files:
        table = pq.read_table(place.table / file.filename, partitioning=None)
        table.validate(full=True)
        found.update(map(_shown, table.to_pylist()))
    return found


def _shown(row: dict[str, Any]) -> str:
    """Return a row; a file in which nothing is rescued need not have the column for it."""
    if row.get(RESCUED) is None:
        row.pop(RESCUED, None)
    return repr(sorted(row.items()))


def exactly(schema: Schema, body: bytes, mode: dict[str, Any]) -> Counter[str]:
    """Return the rows that a file has by the rules, line by line."""
    path = ExactPath(
        schema,
        max_line_bytes=LIMIT,
        unknown=mode.get("unknown_fields", UnknownFields.DROP),
        on_mismatch=mode.get("on_mismatch", OnMismatch.FAIL),
        on_bad_record=OnBadRecord.QUARANTINE if "quarantine" in mode else OnBadRecord.FAIL,
    )
    found: Counter[str] = Counter()
    try:
        for block in blocks([body]):
            found.update(map(_shown, path.read(block).batch.to_pylist()))
    except BadLine:
        return Counter()
    return found


def require_exact(schema: Schema, bodies: list[bytes], **mode: Any) -> None:
    """Read files together, and hold what is written of each to the rules."""
    with place_of(bodies) as place:
        together = place.run(file_schema=schema, **mode)
        expected = [exactly(schema, body, mode) for body in bodies]
        assert [record.rows for record in together.sources] == [one.total() for one in expected]
        assert read_back(place, together) == sum(expected, Counter())


def require_same(schema: Schema, bodies: list[bytes], **mode: Any) -> None:
    """Read files together, and each by itself."""
    with place_of(bodies) as place:
        files = listed(place.source)
        together = place.run(files, file_schema=schema, **mode)
        rows: Counter[str] = Counter()
        for file, record in zip(files, together.sources, strict=True):
            alone = place.run((file,), file_schema=schema, **mode)
            assert alone.sources == (record,)
            rows += read_back(place, alone)
        assert read_back(place, together) == rows


def required_leaf(kind: FieldType, nulls: tuple[str, ...]) -> Field:
    precision, scale = (9, 2) if kind is FieldType.DECIMAL else (0, 0)
    return Field(
        name="a",
        type=kind,
        nullable=False,
        precision=precision,
        scale=scale,
        reading=Reading(null_values=nulls),
    )


GOOD: dict[FieldType, str] = {
    FieldType.STRING: '"ok"',
    FieldType.INT64: "7",
    FieldType.INT8: "7",
    FieldType.FLOAT32: "0.5",
    FieldType.FLOAT64: "0.1",
    FieldType.DECIMAL: "1.25",
    FieldType.BOOLEAN: "true",
    FieldType.TIMESTAMP: '"2024-01-02T03:04:05Z"',
    FieldType.TIMESTAMP_NTZ: '"2024-01-02T03:04:05"',
    FieldType.DATE: '"2024-01-02"',
    FieldType.BINARY: '"AA=="',
}
AROUND = {
    "top": lambda one: one,
    "struct": lambda one: Field(name="x", type=FieldType.STRUCT, fields=(one,)),
    "required struct": lambda one: Field(
        name="x", type=FieldType.STRUCT, nullable=False, fields=(one,)
    ),
    "list": lambda one: Field(name="x", type=FieldType.LIST, items=one),
    "map": lambda one: Field(name="x", type=FieldType.MAP, items=one),
    "structs": lambda one: Field(
        name="x",
        type=FieldType.LIST,
        items=Field(name="element", type=FieldType.STRUCT, nullable=False, fields=(one,)),
    ),
    "lists in a map": lambda one: Field(
        name="x",
        type=FieldType.MAP,
        items=Field(name="value", type=FieldType.LIST, nullable=False, items=one),
    ),
}
WRITTEN = {
    "top": '{"a":%s,"y":%d}',
    "struct": '{"x":{"a":%s},"y":%d}',
    "required struct": '{"x":{"a":%s},"y":%d}',
    "list": '{"x":[%s],"y":%d}',
    "map": '{"x":{"k":%s},"y":%d}',
    "structs": '{"x":[{"a":%s}],"y":%d}',
    "lists in a map": '{"x":{"k":[%s]},"y":%d}',
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("around", AROUND)
def test_a_required_value_is_missed_whatever_else_is_wrong_in_the_files_beside_it(
    around: str, mode: str
) -> None:
    turn = [*MODES].index(mode) + [*AROUND].index(around)
    for number, (kind, good) in enumerate(GOOD.items(), start=turn):
        # Each kind meets words for null in every second mode, and around every second field.
        nulls = NULL_WORDS if number % 2 else ()
        one = AROUND[around](required_leaf(kind, nulls))
        schema = Schema((one, Field(name="y", type=FieldType.INT64)))
        values = [["{}"], ['"-"', good], [good], ["null", good], ["[1]", good], [good, good]]
        bodies = [
            "".join(WRITTEN[around] % (value, at) + "\n" for at, value in enumerate(of_file))
            for of_file in values
        ]
        require_exact(schema, [body.encode() for body in bodies], **MODES[mode])


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.integers(0, 2**32),
    st.sampled_from(list(MODES)),
    st.sampled_from([0.02, 0.1, 0.3]),
    st.booleans(),
)
def test_a_file_gives_the_same_rows_beside_others_and_alone(
    seed: int, mode: str, wrong: float, partitioned: bool
) -> None:
    random = Random(seed)
    fields = tuple(with_readings(random, one) for one in some_fields(random, random.randrange(4)))
    fields = tuple(
        replace(one, name=f"c{place}", reading=replace(one.reading, path=one.path))
        for place, one in enumerate(fields)
    )
    schema = Schema((*fields, PART))
    clean, damaged = Lines(random), Lines(random, wrong=wrong, unknown=0.1)
    bodies = []
    for _ in range(random.randrange(2, 7)):
        lines = random.choice([clean, damaged])
        written = [lines.line(schema.fields) for _ in range(random.randrange(1, 5))]
        bodies.append("".join(f"{line}\n" for line in written).encode())
    given_too: dict[str, Any] = {}
    if partitioned:
        given_too = {
            "row_partitions": row_partitions(BY_PART, schema, None),
            "rolling": RollingPolicy(row_group_size=random.choice([1, 10_000])),
        }
        schema = schema.without(frozenset({PART.name}))
    else:
        require_exact(schema, bodies, **MODES[mode])
    require_same(schema, bodies, **MODES[mode], **given_too)
