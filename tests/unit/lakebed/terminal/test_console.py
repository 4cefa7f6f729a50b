"""Reports: JSON with the keys of a document, tables and sentences that break no name."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType

import pytest

from lakebed.terminal.console import Table, first, path_end, plain, print_json, print_text

SENTENCE = "a sentence that is longer than the line has room for"
LONG = "a-very-long-name-that-must-not-be-broken-anywhere.ndjson"


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, kw_only=True)
class Document:
    names: Mapping[str, str]
    at: datetime
    colours: tuple[Colour, ...]


def test_a_dataclass_becomes_json_by_its_fields():
    document = Document(
        names=MappingProxyType({"a": "b"}),
        at=datetime(2024, 1, 1, tzinfo=UTC),
        colours=(Colour.RED,),
    )
    assert plain({"inner": document}) == {
        "inner": {"names": {"a": "b"}, "at": "2024-01-01T00:00:00+00:00", "colours": ["red"]}
    }


def test_of_many_lines_the_first_are_printed_and_the_others_counted():
    assert [*first(["a", "b", "c"], 2, indent="    "), *first(["d", "e"], 2)] == [
        "    a",
        "    b",
        "    ... and 1 more; --output json has them all",
        "  d",
        "  e",
    ]


def table_lines(table: Table, capsys: pytest.CaptureFixture[str]) -> list[str]:
    print_text([table])
    return capsys.readouterr().out.splitlines()


def test_numbers_end_together_and_an_empty_column_of_remarks_is_left_out(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    table = Table(("table", ">rows", ""), [("orders", 1234, ""), ("x", None, "")])
    assert table_lines(table, capsys) == [
        "table    rows",
        "─" * 13,
        "orders  1,234",
        "x           -",
    ]


@pytest.mark.parametrize(("columns", "one_line"), [(None, True), ("40", False)])
def test_a_pipe_gets_a_row_in_one_line(columns: str | None, one_line: bool, capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    lines = table_lines(Table(("path", "why"), [("a.ndjson", SENTENCE)]), capsys)
    assert (f"a.ndjson  {SENTENCE}" in lines) is one_line
    assert max(map(len, lines)) <= 40 or one_line
    assert not any(line.endswith(" ") for line in lines)


def test_a_name_is_never_broken(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("FORCE_COLOR", "1")
    print_text([f"  the file {LONG} is too long", Table(("n", "path"), [("x y", LONG)])])
    shown = capsys.readouterr().out
    assert shown.count(LONG) == 2
    assert "\x1b[1mn" in shown
    assert f"x y  {LONG}" in shown.splitlines()


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("a.ndjson", "a.ndjson"),
        ("region=eu/date=2024/a.ndjson", "…/date=2024/a.ndjson"),
        ("region=eu/a-name-of-twenty-characters.ndjson", "…/a-name-of-twenty-characters.ndjson"),
        ("a-name-of-twenty-characters.ndjson", "a-name-of-twenty-characters.ndjson"),
    ],
)
def test_a_long_path_is_shown_by_its_end_and_a_name_is_never_cut(path: str, shown: str):
    assert path_end(path, 20) == shown


def test_json_has_no_character_that_a_terminal_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    name = "a\x7f\x9b\u202e\u2028\U000e0041ü😀"
    print_json({"name": name})
    printed = capsys.readouterr().out
    assert printed == '{"name": "a\\u007f\\u009b\\u202e\\u2028\\udb40\\udc41ü😀"}\n'
    assert json.loads(printed) == {"name": name}
