"""Whatever integer comes after a float column was found: it is in the column, or in `_rescued`."""

import json
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blizzard.model.columns import kept_exact
from blizzard.model.seen import Integers, Seen, column_of
from blizzard.worker.ndjson.compiled.fast import FastPath
from blizzard.worker.ndjson.decoder import BadLine, Decoder
from blizzard.worker.ndjson.exact import ExactPath
from blizzard.worker.ndjson.lines import Block
from lakebed.columns.schema import Field, Reading, Schema
from lakebed.types import RESCUED, FieldType, OnMismatch, UnknownFields

LIMIT = 1 << 20
FLOATS = st.sampled_from([FieldType.FLOAT32, FieldType.FLOAT64])
NEAR = st.builds(
    lambda sign, power, off: sign * (2**power + off),
    st.sampled_from([1, -1]),
    st.integers(0, 130),
    st.integers(-3, 3),
)
INTEGERS = st.one_of(NEAR, st.integers(), st.integers(-(10**40), 10**40))
FRACTIONS = st.floats(allow_nan=False, allow_infinity=False, width=32)
NUMBERS = st.lists(st.one_of(INTEGERS, INTEGERS.map(str), FRACTIONS), min_size=1, max_size=12)


def found(kind: FieldType, *, coerce: bool = False) -> Field:
    return Field(name="v", type=kind, reading=Reading(coerce=coerce, exact=True))


@settings(deadline=None)
@given(NUMBERS, FLOATS, st.booleans(), st.booleans())
def test_an_integer_is_exactly_in_the_column_or_rescued_as_it_is_written(
    numbers, kind, coerce, is_alone
):
    column = found(kind, coerce=coerce)
    if not is_alone:
        column = Field(name="v", type=FieldType.LIST, items=column)
    values = [{"v": one if is_alone else [one]} for one in numbers]
    data = "".join(json.dumps(value) + "\n" for value in values).encode()
    decoder = Decoder(Schema((column,)), on_mismatch=OnMismatch.RESCUE)
    read = [row for part in decoder.decode([data]) for row in part.batch.to_pylist()]
    for number, row in zip(numbers, read, strict=True):
        (cell,) = [row["v"]] if is_alone else row["v"]
        path = "v" if is_alone else "v[0]"
        if cell is None:
            kept = json.loads(row[RESCUED])[path]
            assert (kept, type(kept)) == (number, type(number))
        else:
            assert row[RESCUED] is None
            if not isinstance(number, float):
                assert int(number) == Decimal(cell)


@settings(deadline=None)
@given(NUMBERS, FLOATS, st.booleans(), st.sampled_from(list(OnMismatch)))
def test_the_fast_path_takes_what_is_exact_and_nothing_else(numbers, kind, coerce, policy):
    schema = Schema((found(kind, coerce=coerce),))
    data = "".join(json.dumps({"v": one}) + "\n" for one in numbers).encode()
    block = Block(text=data, first_line=1, lines=len(numbers))
    options = {"max_line_bytes": LIMIT, "unknown": UnknownFields.DROP, "on_mismatch": policy}
    fast = FastPath(schema, **options).read(block)
    try:
        exact = ExactPath(schema, **options).read(block)
    except BadLine:
        assert fast is None
        return
    assert (fast is None) == bool(exact.rescued)
    assert fast is None or fast.batch.equals(exact.batch)


@given(st.lists(st.one_of(INTEGERS, st.just(0.5)), min_size=1))
def test_what_was_seen_together_fits_the_column_that_is_found(numbers):
    seen = Seen()
    for one in numbers:
        look = Seen(fractions=True) if isinstance(one, float) else Seen(integers=Integers(one, one))
        seen = seen.join(look)
    column = column_of("v", seen)
    assert column is not None
    schema = kept_exact(Schema((column,)), Schema(()), OnMismatch.RESCUE)
    data = "".join(json.dumps({"v": one}) + "\n" for one in numbers).encode()
    decoder = Decoder(schema, on_mismatch=OnMismatch.RESCUE)
    for part in decoder.decode([data]):
        assert part.rescued == {}
        assert part.batch.column("v").null_count == 0


def test_a_file_that_fails_for_it_says_why_and_what_to_do():
    decoder = Decoder(Schema((found(FieldType.FLOAT64),)), on_mismatch=OnMismatch.FAIL)
    with pytest.raises(BadLine) as bad:
        list(decoder.decode([b'{"v":1.5}\n{"v":9007199254740993}\n']))
    assert (bad.value.code, bad.value.line, bad.value.field) == ("out_of_range", 2, "v")
    assert "an integer that float64 cannot hold exactly" in str(bad.value)
    assert "on_mismatch: rescue" in str(bad.value)
    assert "declare" in str(bad.value)
