"""Tables fit the terminal where they can, and where they cannot, names and numbers stay whole."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from lakebed.terminal.console import add, columns
from lakebed.terminal.sentences import folded, wrapped
from lakebed.terminal.tables import RULE, Table, table_lines

LONG = "date=2024-05-01/a-name-of-a-file-that-is-longer-than-any-terminal-has-columns.ndjson"


def table(*names: str, rows: list[tuple[object, ...]], **kinds: Any) -> Table:
    made = columns(*names, **kinds)
    for row in rows:
        add(made, *row)
    return made


def shown(made: Table, width: int) -> list[str]:
    return list(table_lines(made, width, cell_len))


def test_a_table_that_fits_has_a_line_for_each_row():
    made = table("path", "rows", rows=[("a.ndjson", 1200), ("b.ndjson", None)], numbers=("rows",))
    assert shown(made, 40) == [
        "path       rows",
        "───────────────",
        "a.ndjson  1,200",
        "b.ndjson      -",
    ]


def test_a_name_that_is_too_long_has_a_line_of_its_own_and_the_rest_stands_below_it():
    made = table(
        "path", "rows", "state",
        rows=[("a.ndjson", 7, "read"), (LONG, 1200, "failed")], numbers=("rows",),
    )  # fmt: skip
    assert shown(made, 30) == [
        "path       rows  state",
        "───────────────────────",
        "a.ndjson      7  read",
        LONG,
        "          1,200  failed",
    ]


def test_a_long_name_in_the_last_column_has_a_line_of_its_own():
    made = table("state", "path", rows=[("in_table", LONG), ("failed", "b.ndjson")])
    assert shown(made, 30) == [
        "state     path",
        "──────────────────",
        "in_table",
        f"    {LONG}",
        "failed    b.ndjson",
    ]


def test_only_the_column_gives_way_that_has_to():
    made = table(
        "path", "rows", "outcome",
        rows=[(LONG, 1, "too_many_bad_lines (parse, line 1)")],
        numbers=("rows",), wide=("outcome",),
    )  # fmt: skip
    assert shown(made, 60) == [
        "path  rows  outcome",
        "──────────────────────────────────────────────",
        LONG,
        "         1  too_many_bad_lines (parse, line 1)",
    ]


def test_titles_are_folded_where_that_makes_it_fit():
    numbers = ("in table", "bad lines")
    made = table(*numbers, "all in", rows=[(1, 22, "yes")], numbers=numbers)
    assert shown(made, 27)[0] == "in table  bad lines  all in"
    assert shown(made, 26) == [
        "   in    bad  all",
        "table  lines  in",
        "─────────────────",
        "    1     22  yes",
    ]


def test_sentences_are_folded_between_words_and_a_long_name_among_them_is_whole():
    made = table(
        "path", "why", "rows",
        rows=[("a.ndjson", f"not read, as {LONG} is not there", 12)],
        numbers=("rows",), wide=("why",),
    )  # fmt: skip
    assert shown(made, 30) == [
        "path      why             rows",
        "──────────────────────────────",
        "a.ndjson",
        "    not read, as",
        f"    {LONG}",
        "    is not there",
        "                            12",
    ]


def test_columns_of_sentences_share_what_is_to_spare():
    made = table("a", "b", rows=[("one two three four", "five six seven eight")], wide=("a", "b"))
    assert shown(made, 24) == [
        "a            b",
        "────────────────────────",
        "one two      five six",
        "three four   seven eight",
    ]


def test_a_cell_of_several_texts_has_a_line_for_each():
    made = table("n", "names", rows=[(1, ("a", "b")), (2, ("c",))], numbers=("n",))
    assert shown(made, 40)[2:] == ["1  a", "   b", "2  c"]


def test_a_table_without_a_header_has_rows_alone():
    made = table("", "", rows=[("uri", "/t"), ("rows", 3)], header=False)
    assert shown(made, 40) == ["uri   /t", "rows  3"]


def test_letters_of_two_cells_are_counted_as_two():
    made = table("path", "rows", rows=[("日本.ndjson", 1), ("ab", 22)], numbers=("rows",))
    assert {cell_len(line) for line in shown(made, 40)} == {17}


@pytest.mark.parametrize("room", [1, 8, 40])
def test_no_word_is_broken(room: int):
    assert " ".join(wrapped(f"a {LONG} b", room, len)).split() == ["a", LONG, "b"]


def test_a_sentence_is_broken_between_words_and_the_next_lines_are_indented():
    said = f"  failed: {LONG} is not there"
    assert folded(said, 30, len) == ["  failed:", f"    {LONG}", "    is not there"]
    assert folded(said, 200, len) == [said]
    assert folded("", 30, len) == [""]
    assert folded("  -> run penguin, and look again", 20, len) == [
        "  -> run penguin,",
        "     and look again",
    ]
    assert folded("  state      failed, as it is not there", 30, len) == [
        "  state      failed, as it is",
        "             not there",
    ]


@pytest.mark.parametrize(
    "one", ["24.6 KiB", "(24.6 KiB),", "41 s", "2026-11-17 17:44:05 UTC", "'2026-11-17 17:44:05'"]
)
def test_a_number_stays_with_its_unit_and_a_day_with_its_time(one: str):
    assert wrapped(f"it is {one} there", 1, len) == ["it", "is", one, "there"]
    assert folded(f"it is {one} there", 1, len) == ["it", "  is", f"  {one}", "  there"]


def test_a_sentence_in_the_last_column_that_has_its_own_line_uses_all_of_it():
    made = table(
        "path", "outcome", rows=[("a.ndjson", f"not read: {'x' * 30}, line 1")], wide=("outcome",)
    )
    assert shown(made, 40)[2:] == ["a.ndjson", "    not read:", f"    {'x' * 30}, line", "    1"]


WORDS = st.text("abc", min_size=1, max_size=30)
SENTENCES = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)


@given(
    rows=st.lists(st.tuples(WORDS, SENTENCES, st.integers(0, 10**9), SENTENCES), max_size=5),
    width=st.integers(10, 100),
)
def test_every_word_and_number_is_there_whole(rows: list[tuple[object, ...]], width: int) -> None:
    made = table(
        "name", "why", "rows", "for example",
        rows=rows, numbers=("rows",), wide=("why", "for example"),
    )  # fmt: skip
    lines = shown(made, width)
    below = next(number for number, line in enumerate(lines) if line.startswith(RULE)) + 1
    assert sorted(word for line in lines[below:] for word in line.split()) == sorted(
        word for row in made.rows for cell in row for word in cell.split()
    )
    longest = max((len(word) for row in made.rows for word in " ".join(row).split()), default=0)
    assert all(len(line) <= max(width, 60 + longest) for line in lines)
