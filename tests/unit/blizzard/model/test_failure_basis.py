"""Which settings, at any depth, make a file that failed worth another try."""

from dataclasses import replace
from pathlib import Path

import pytest

from blizzard.discover.filter import bases_of
from blizzard.model.settings import PipelineSettings
from lakebed.columns.schema import Field, Reading, Schema
from lakebed.documents.records import FailureStage
from lakebed.types import FieldType, OnMismatch, UnknownFields
from tests.support.builders import pipeline_settings

ID = Field(name="id", type=FieldType.INT64, nullable=False)


def settings(*fields: Field) -> PipelineSettings:
    found = pipeline_settings(Path("/in"), Path("/table"))
    return replace(found, schema=Schema(fields or (ID,)))


def changed(before: PipelineSettings, after: PipelineSettings) -> set[FailureStage]:
    old, new = (bases_of(each, each.sources[0]) for each in (before, after))
    return {stage for stage in old if old[stage] != new[stage]}


def basis(*fields: Field) -> str:
    found = settings(*fields)
    return bases_of(found, found.sources[0])[FailureStage.PARSE]


AT = Field(name="at", type=FieldType.TIMESTAMP)


def calls(inner: Field) -> Field:
    element = Field(name="element", type=FieldType.STRUCT, fields=(inner,))
    return Field(name="calls", type=FieldType.LIST, items=element)


def test_plain_settings_give_what_they_gave_in_earlier_versions() -> None:
    """An upgrade alone makes nothing due: a file that failed before it is not tried again."""
    plain = settings()

    assert bases_of(plain, plain.sources[0]) == {
        FailureStage.DISCOVER: "ad2ad0eadc6ffea8",
        FailureStage.DECOMPRESS: "c18d84550fe0a60d",
        FailureStage.PARSE: "cb39b3c20a74eba3",
    }
    assert basis(Field(name="id", type=FieldType.INT64), AT) == "204ffc42d0a4fd81"
    assert basis(calls(AT)) == "4e9632e9beee150c"
    assert basis(replace(AT, reading=Reading(formats=("epoch_ms",)))) == "839bcdfe78054621"


@pytest.mark.parametrize("unknown", [UnknownFields.RESCUE, UnknownFields.ADD, UnknownFields.DROP])
def test_whether_other_fields_are_kept_or_left_out_fails_nothing(unknown: UnknownFields) -> None:
    assert changed(settings(), replace(settings(), unknown_fields=unknown)) == set()


def test_whether_other_fields_and_types_are_refused_decides() -> None:
    refusing = replace(settings(), unknown_fields=UnknownFields.FAIL)
    rescuing = replace(settings(), on_mismatch=OnMismatch.RESCUE)

    assert changed(settings(), refusing) == {FailureStage.PARSE}
    assert changed(settings(), rescuing) == {FailureStage.PARSE}


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize(
    "reading",
    [
        Reading(path=("other",)),
        Reading(formats=("epoch_s",)),
        Reading(coerce=True),
        Reading(null_values=("-",)),
        Reading(truncate=True),
    ],
    ids=str,
)
def test_how_a_value_is_read_decides_at_every_depth(reading: Reading, depth: int) -> None:
    plain, other = (inside(depth, one) for one in (Reading(), reading))

    assert changed(settings(ID, plain), settings(ID, other)) == {FailureStage.PARSE}


def inside(depth: int, reading: Reading) -> Field:
    field = Field(name="at", type=FieldType.TIMESTAMP, reading=reading)
    for _ in range(depth):
        field = Field(name="in", type=FieldType.STRUCT, fields=(field,))
    return field


def decimal(precision: int) -> Field:
    return Field(name="price", type=FieldType.DECIMAL, precision=precision, scale=2)


def items(kind: FieldType, *, nullable: bool = True) -> Field:
    element = Field(name="element", type=kind, nullable=nullable)
    return Field(name="tags", type=FieldType.LIST, items=element)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (decimal(10), decimal(12)),
        (items(FieldType.INT64), items(FieldType.STRING)),
        (items(FieldType.INT64), items(FieldType.INT64, nullable=False)),
        (calls(AT), calls(replace(AT, type=FieldType.STRING))),
        (calls(AT), calls(replace(AT, nullable=False))),
        (calls(AT), calls(replace(AT, name="when"))),
        (calls(AT), calls(replace(AT, type=FieldType.DECIMAL, precision=9, scale=2))),
    ],
)
def test_what_is_inside_a_type_decides(one: Field, other: Field) -> None:
    assert changed(settings(one), settings(one)) == set()
    assert changed(settings(one), settings(other)) == {FailureStage.PARSE}
