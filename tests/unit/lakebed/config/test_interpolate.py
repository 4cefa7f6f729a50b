"""Variables in values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.config.loader import interpolate

PIECES = st.sampled_from(["$", "$$", "{", "}", "${", "$${", "A", ":-", "${A}", "${B:-x}", " "])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("${A}", "1"),
        ("s3://${A}/x/${B}", "s3://1/x/two"),
        ("${NONE:-fallback}", "fallback"),
        ("${NONE:-}", ""),
        ("${EMPTY:-fallback}", "fallback"),
        ("${EMPTY}", ""),
        ("${A:-fallback}", "1"),
        ("$${A}", "${A}"),
        ("$A and $ and {A}", "$A and $ and {A}"),
    ],
)
def test_variables_are_filled_in_as_a_shell_does(text: str, expected: str) -> None:
    environment = {"A": "1", "B": "two", "EMPTY": ""}

    assert interpolate(text, environment) == expected


def test_a_variable_that_is_not_set_is_named() -> None:
    with pytest.raises(ValueError, match="variable TOKEN is not set"):
        interpolate("${TOKEN}", {})


@pytest.mark.parametrize("text", ["${", "${}", "${A", "${1A}", "${A-x}", "${A:x}", "${ A }"])
def test_an_opening_that_names_no_variable_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="does not start a variable"):
        interpolate(text, {"A": "1"})


@given(st.lists(st.one_of(PIECES, st.text(max_size=3))).map("".join))
def test_any_text_can_be_written_by_escaping_its_openings(text: str) -> None:
    assert interpolate(text.replace("${", "$${"), {}) == text
