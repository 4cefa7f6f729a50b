"""A file that failed is worth another try once what decides about its values is another."""

from dataclasses import replace
from pathlib import Path

import pytest

from blizzard.model.failure_basis import bases_of
from lakebed.columns.schema import Field, Reading, Schema
from lakebed.documents.source_record import FailureStage
from lakebed.types import FieldType
from tests.support.builders import pipeline_settings

INNER = Field(name="at", type=FieldType.TIMESTAMP)
LIST = Field(
    name="calls",
    type=FieldType.LIST,
    items=Field(name="element", type=FieldType.STRUCT, fields=(INNER,)),
)


def basis(*fields: Field) -> str:
    settings = pipeline_settings(Path("in"), Path("table"), schema=Schema(fields))
    return bases_of(settings, settings.sources[0])[FailureStage.PARSE]


@pytest.mark.parametrize(
    "inner",
    [
        replace(INNER, type=FieldType.STRING),
        replace(INNER, nullable=False),
        replace(INNER, name="when"),
        replace(INNER, reading=Reading(formats=("epoch_ms",))),
        replace(INNER, type=FieldType.DECIMAL, precision=9, scale=2),
    ],
)
def test_a_change_deep_inside_a_column_is_a_change(inner: Field) -> None:
    element = Field(name="element", type=FieldType.STRUCT, fields=(inner,))
    assert basis(LIST) == basis(LIST)
    assert basis(replace(LIST, items=element)) != basis(LIST)


def test_the_basis_is_what_it_has_always_been() -> None:
    """A file that failed before an update is not tried again by it."""
    plain = basis(Field(name="id", type=FieldType.INT64), INNER)
    assert plain == "204ffc42d0a4fd81"
    assert basis(LIST) == "4e9632e9beee150c"
    epoch = replace(INNER, reading=Reading(formats=("epoch_ms",)))
    assert basis(epoch) == "839bcdfe78054621"
