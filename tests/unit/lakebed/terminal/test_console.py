"""Rows become JSON with the keys of their fields."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from io import StringIO
from types import MappingProxyType

import pytest
from rich.console import Console

from lakebed.terminal.console import (
    INLINED,
    add,
    columns,
    console,
    is_are,
    path_end,
    plain,
    print_line,
    print_table,
    say_first,
)
from lakebed.units import entries_from


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, kw_only=True)
class Inner:
    files: int
    follows: bool = False


@dataclass(frozen=True, kw_only=True)
class Row:
    pipeline: str
    counts: Inner = field(metadata=INLINED)
    below: Inner
    follows: bool
    names: Mapping[str, str]
    at: datetime
    colours: tuple[Colour, ...]


def test_the_fields_of_an_inlined_value_are_the_rows_own():
    row = Row(
        pipeline="p",
        counts=Inner(files=2),
        below=Inner(files=3),
        follows=True,
        names=MappingProxyType({"a": "b"}),
        at=datetime(2024, 1, 1, tzinfo=UTC),
        colours=(Colour.RED,),
    )
    told = plain(row)
    assert told == {
        "pipeline": "p",
        "files": 2,
        "follows": True,
        "below": {"files": 3, "follows": False},
        "names": {"a": "b"},
        "at": "2024-01-01T00:00:00+00:00",
        "colours": ["red"],
    }
    assert list(told)[:3] == ["pipeline", "files", "follows"]


def test_a_range_of_one_entry_is_one_entry():
    assert entries_from(3, 3) == "entry 3"
    assert entries_from(3, 5) == "entries 3 to 5"


def test_the_verb_agrees_with_the_count():
    assert [is_are(count) for count in (0, 1, 2)] == ["are", "is", "are"]


def test_of_many_lines_the_first_are_printed_and_the_others_counted(capsys):
    say_first(console(), ["a", "b", "c"], 2, indent="    ")
    say_first(console(), ["d", "e"], 2)

    printed = capsys.readouterr().out.splitlines()
    assert printed == [
        "    a",
        "    b",
        "    ... and 1 more; --output json has them all",
        "  d",
        "  e",
    ]


@pytest.mark.parametrize("colour", ["truecolor", None])
def test_no_line_of_a_table_ends_in_blanks(colour):
    to = Console(width=40, file=StringIO(), color_system=colour, force_terminal=colour is not None)
    table = columns("path", "state", "")
    add(table, "a.ndjson", "in the table", "held")
    add(table, "b.ndjson", "failed", "")

    print_table(to, table)

    assert isinstance(to.file, StringIO)
    shown = to.file.getvalue()
    assert ("\x1b" in shown) is (colour is not None)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).split("\n")
    assert [lines[0], lines[3], lines[4]] == ["path      state", "b.ndjson  failed", ""]


def test_a_column_of_remarks_is_left_out_where_there_are_none():
    """The rule below the titles would go on to the right of them."""
    to = Console(width=40, record=True, file=StringIO())
    table = columns("table", "rows", "", numbers=("rows",))
    add(table, "orders", 3, "")

    print_table(to, table)

    assert to.export_text().splitlines() == ["table   rows", "────────────", "orders     3"]


@pytest.mark.parametrize(("columns_given", "one_line"), [(None, True), ("40", False)])
def test_what_is_not_a_terminal_gets_a_row_in_one_line(
    columns_given: str | None, one_line: bool, capsys, monkeypatch
):
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns_given is not None:
        monkeypatch.setenv("COLUMNS", columns_given)
    table = columns("path", "why", wide=("why",))
    sentence = "a sentence that is longer than the line has room for"
    add(table, "a.ndjson", sentence)

    print_table(console(), table)

    assert (f"a.ndjson  {sentence}" in capsys.readouterr().out.splitlines()) is one_line


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("a.ndjson", "a.ndjson"),
        ("date=2024/a.ndjson", "date=2024/a.ndjson"),
        ("region=eu/date=2024/a.ndjson", "…/date=2024/a.ndjson"),
        ("region=eu/date=2024-01-01/a.ndjson", "…/a.ndjson"),
        ("region=eu/a-name-of-twenty-characters.ndjson", "…/a-name-of-twenty-characters.ndjson"),
        ("a-name-of-twenty-characters.ndjson", "a-name-of-twenty-characters.ndjson"),
    ],
)
def test_a_long_path_is_shown_by_its_end_and_a_name_is_never_cut(path: str, shown: str):
    assert path_end(path, 20) == shown


def test_json_has_no_character_that_a_terminal_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    name = "a\x7f\x9b\u202e\u2028\U000e0041ü😀"
    print_line({"name": name})
    printed = capsys.readouterr().out
    assert printed == '{"name": "a\\u007f\\u009b\\u202e\\u2028\\udb40\\udc41ü😀"}\n'
    assert json.loads(printed) == {"name": name}
