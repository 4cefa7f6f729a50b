import re
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lakebed.listing.lookback import compiled, matcher
from tests.support.growth import TIMES, growth


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.parquet", "a.parquet", True),
        ("*.parquet", "date=2024-01-01/a.parquet", True),
        ("*.parquet", "a.parquet.tmp", False),
        ("part-*", "x/part-0.parquet", True),
        ("part-*", "part-x/a.parquet", False),
        ("raw/*.parquet", "raw/a.parquet", True),
        ("raw/*.parquet", "raw/deep/a.parquet", False),
        ("raw/**/*.parquet", "raw/a.parquet", True),
        ("raw/**/*.parquet", "raw/deep/er/a.parquet", True),
        ("/raw/**", "raw/deep/a", True),
        ("raw/**", "draw/a", False),
        ("?.parquet", "ab.parquet", False),
        ("[ab].parquet", "b.parquet", True),
        ("[!ab].parquet", "b.parquet", False),
        ("[!ab].parquet", "c.parquet", True),
        ("a.parquet", "aXparquet", False),
        ("a+(b).parquet", "a+(b).parquet", True),
        ("[^ab].parquet", "b.parquet", False),
        ("[^ab].parquet", "c.parquet", True),
        ("a*b*b", "aXbXbXb", True),
        ("a*b*bc", "abXbXbc", True),
        ("**/a*/b/**/c", "a1/x/a2/b/y/c", True),
        ("**/a/**/c", "x/a/c/d", False),
        ("**a*b/**", "a/ab/c", True),
    ],
)
def test_a_pattern_means_what_a_shell_would_take_it_for(pattern, path, fits):
    assert matcher(pattern)(path) is fits


def by_trying_all(pattern: str, name: str) -> bool:
    """Match as a person would: every star tries everything that it may take."""
    if not pattern:
        return not name
    if pattern.startswith("**/") and by_trying_all(pattern[3:], name):
        return True
    if pattern.startswith("**/"):
        ends = [at for at, letter in enumerate(name, 1) if letter == "/"]
        return any(by_trying_all(pattern[3:], name[at:]) for at in ends)
    if pattern[0] == "*":
        deep = pattern.startswith("**")
        for at in range(len(name) + 1):
            if not deep and "/" in name[:at]:
                break
            if by_trying_all(pattern[1 + deep :], name[at:]):
                return True
        return False
    fits = bool(name) and (name[0] == pattern[0] or (pattern[0] == "?" and name[0] != "/"))
    return fits and by_trying_all(pattern[1:], name[1:])


@given(
    st.lists(st.sampled_from(["a", "b", "?", "*", "/", "/**/", "**"]), max_size=7),
    st.text("ab/", max_size=9),
)
def test_a_name_fits_if_there_is_any_way_to_make_it_fit(pieces: list[str], name: str) -> None:
    pattern = "".join(pieces)
    # Only between slashes are these folders; elsewhere a reader may take them for one thing or two.
    assume("***" not in pattern and not re.search(r"[^/]\*\*/|\*\*/\*\*/", pattern))
    assert bool(compiled(pattern).fullmatch(name)) is by_trying_all(pattern, name)


@pytest.mark.parametrize(
    "pattern",
    ["*-*-*-*-*.ndjson", "**-**-**-**-**.ndjson", "**/*-*/**/*-*/**/*-*/x", "?*?*?*?*?*-x"],
)
@pytest.mark.parametrize("letters", ["-", "-/"])
def test_no_name_makes_a_pattern_try_again_and_again(pattern: str, letters: str) -> None:
    def matching(size: int) -> Callable[[], object]:
        name, expression = letters * size, compiled(pattern)
        return lambda: [expression.fullmatch(name) for _ in range(200)]

    assert growth(matching, 8) < 3 * TIMES**2
