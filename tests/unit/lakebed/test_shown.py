"""Names are printed so that they cannot mislead, and are understood as they were printed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.shown import printable, typed

ODD = ["a\nb", "a\tb", "\x1b[31m", "x\u202egpj.ndjson", "a\u2066b", "a\u200bb", "\ufeffa", "\x85"]


@pytest.mark.parametrize("name", ODD)
def test_what_would_mislead_is_written_out_and_understood_again(name):
    text = printable(name)

    assert text.isprintable()
    assert "\u202e" not in text
    assert typed(text) == name


@pytest.mark.parametrize(
    "name", ["a/b.ndjson", "größe 1.ndjson", "日本", "a\\d", "\\x41", "\\u0041"]
)
def test_other_names_are_themselves(name):
    assert (printable(name), typed(name)) == (name, None)


@given(st.text(alphabet=st.characters(exclude_characters="\\")))
def test_every_name_without_a_backslash_is_found_as_it_is_printed(name):
    text = printable(name)
    assert (typed(text) or text) == name
