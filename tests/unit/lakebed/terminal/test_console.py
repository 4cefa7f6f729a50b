"""Reports: JSON with the keys of a document, tables and sentences that break no name."""

import json

import pytest

from lakebed.terminal.console import Table, path_end, print_json, print_text


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
