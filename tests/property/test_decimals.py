"""Decimals are the numbers that stand in the file, or are refused: held against fractions.

Arrow's own conversion of texts and of Python's decimals makes other numbers of some that overflow
on the way, without a word.
"""

from decimal import Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from blizzard.worker.ndjson.decoder import Decoder
from lakebed.columns.schema import Field, Reading, Schema
from lakebed.types import FieldType, OnMismatch, UnknownFields

SHAPES = [(1, 0), (1, 1), (5, 2), (18, 2), (19, 19), (38, 0), (38, 10), (38, 19), (38, 38)]

digits = st.one_of(
    st.text("0123456789", min_size=1, max_size=45),
    # Few digits and many zeros, which mean nothing and take room.
    st.builds(
        lambda some, zeros: some + "0" * zeros,
        st.text("0123456789", min_size=1, max_size=4),
        st.integers(0, 140),
    ),
)
exponents = st.one_of(st.just(""), st.integers(-150, 150).map(lambda number: f"e{number}"))


@st.composite
def numbers(draw: st.DrawFn) -> str:
    """Return a number as JSON writes it."""
    written = draw(digits)
    point = draw(st.integers(1, len(written)))
    whole = written[:point].lstrip("0") or "0"
    fraction = f".{written[point:]}" if point < len(written) else ""
    return f"{draw(st.sampled_from(['', '-']))}{whole}{fraction}{draw(exponents)}"


@given(st.sampled_from(SHAPES), st.lists(numbers(), min_size=1, max_size=8), st.booleans())
def test_every_decimal_is_exact_or_refused(
    shape: tuple[int, int], written: list[str], as_text: bool
) -> None:
    precision, scale = shape
    field = Field(
        name="v",
        type=FieldType.DECIMAL,
        precision=precision,
        scale=scale,
        reading=Reading(coerce=as_text),
    )
    quote = '"' if as_text else ""
    data = "".join(f'{{"v":{quote}{each}{quote}}}\n' for each in written).encode()
    decoder = Decoder(Schema((field,)), unknown=UnknownFields.RESCUE, on_mismatch=OnMismatch.RESCUE)
    found = [
        value
        for decoded in decoder.decode([data])
        for value in decoded.batch.column("v").to_pylist()
    ]
    assert [exact(value) for value in found] == [fitting(each, shape) for each in written]


def exact(value: Decimal | None) -> Fraction | None:
    return None if value is None else Fraction(value)


def fitting(written: str, shape: tuple[int, int]) -> Fraction | None:
    """Return the number, if a decimal of that shape can be it."""
    precision, scale = shape
    number = Fraction(written)
    unscaled = number * 10**scale
    fits = unscaled.denominator == 1 and abs(unscaled) < 10**precision
    return number if fits else None
