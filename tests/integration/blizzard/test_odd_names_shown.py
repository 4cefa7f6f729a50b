"""Files whose names would break a line, or turn it around: printed in one line, and found again."""

import json
from urllib.parse import quote

import pytest
import yaml

from tests.integration.liveview.test_live_trouble import Asking
from tests.support.desk import Desk
from tests.support.live_lake import LiveLake
from tests.support.open_table import OpenTable

NAMES = {"a\nb.ndjson": "a\\nb.ndjson", "x\u202egpj.ndjson": "x\\u202egpj.ndjson"}


@pytest.fixture
def desk(tmp_path) -> Desk:
    desk = Desk(tmp_path / "both")
    for name in NAMES:
        desk.landing.land(name, 2)
    desk.blizzard()
    desk.penguin()
    return desk


def test_why_and_files_print_a_name_in_one_line_and_take_it_as_it_was_printed(desk):
    for name, printed in NAMES.items():
        for asked in (printed, f"default:{printed}", str(desk.landing.folder / printed), name):
            said = desk.cli("why", asked)
            assert said.exit_code == 0, said.output
            assert said.output.splitlines()[0].endswith(printed), asked
            assert "\u202e" not in said.output
            assert "in_table" in said.output
        said = desk.cli("files", printed)
        assert sum(printed in line for line in said.output.splitlines()) == 1
        assert "\u202e" not in said.output
        assert json.loads(desk.cli("files", printed, "--output", "json").output)["path"] == name


def test_a_file_that_really_has_a_backslash_comes_first_and_a_failed_one_is_retried(desk):
    desk.landing.land("a\\nb.ndjson", 3)
    desk.landing.write("bad\n.ndjson", b"{nope\n")
    desk.blizzard()

    answer = json.loads(desk.cli("why", "a\\nb.ndjson", "--output", "json").output)
    assert answer["path"] == "a\\nb.ndjson"
    assert "bad\\n.ndjson" in desk.cli("dlq", "list").output
    assert desk.cli("dlq", "retry", "--file", "bad\\n.ndjson").exit_code == 0


def test_why_finds_files_beside_such_a_name_by_a_part_of_theirs(desk):
    desk.landing.land("c\nd.ndjson", 2)
    desk.landing.land("plain.ndjson", 2)

    unknown = desk.cli("why", "nosuch")
    assert unknown.exit_code == 1
    assert "no file with 'nosuch' in its name is known" in " ".join(unknown.output.split())
    assert desk.cli("why", "plai").output.splitlines()[0].endswith("plain.ndjson")
    assert desk.cli("why", "c\\nd.nd").output.splitlines()[0].endswith("c\\nd.ndjson")


ODD = "day=1/orders-\u202e1.ndjson"
SPELLINGS = (
    ODD,
    "day=1/orders-\\u202e1.ndjson",
    "default:day=1/orders-\\u202e1.ndjson",
    "landing/day=1/orders-\\u202e1.ndjson",
    "\\u202e1",
    "…/orders-\\u202e1.ndjson",
    "day=1/ord…1.ndjson",
)
COMMANDS = (("why",), ("retract",), ("dlq", "show"), ("dlq", "replay"), ("dlq", "discard"))


@pytest.fixture(scope="module")
def lake(tmp_path_factory) -> OpenTable:
    """A file with an odd name that has rows and bad lines, a like one, and one that failed."""
    desk = OpenTable(
        tmp_path_factory.mktemp("lake"),
        {"fields": [{"name": "id", "type": "int64"}]},
        error_handling={"on_bad_record": "quarantine", "max_bad_records": 1},
    )
    for name in (ODD, "day=1/orders-2.ndjson"):
        desk.land(name, {"id": 1}, {"id": "x"})
    desk.land("day=1/failed.ndjson", {"id": "x"}, {"id": "y"})
    desk.ingest()
    return desk


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_takes_the_same_names(lake, command, monkeypatch):
    monkeypatch.chdir(lake.folder)
    for name in SPELLINGS:
        said = lake.cli(*command, name)
        assert "orders-\\u202e1.ndjson" in said.stdout, (name, said.output)
        assert "orders-2" not in said.stdout, name
        # What is changed with --yes is shown before, by its whole name.
        assert said.exit_code == (0 if command[-1] in ("why", "show") else 1), name


@pytest.mark.parametrize("command", [*COMMANDS, ("dlq", "retry", "--file"), ("redo", "--file")])
def test_every_command_lists_the_files_that_an_ambiguous_name_may_mean(lake, command):
    said = lake.cli(*command, "orders")
    assert said.exit_code == 1
    assert (
        "'orders' is in the names of several files; write more of the path: "
        "default:day=1/orders-2.ndjson, default:day=1/orders-\\u202e1.ndjson"
    ) in " ".join(said.output.split())


def test_a_failed_file_is_retried_by_a_part_of_its_name_unless_its_lines_are_confirmed(lake):
    said = lake.cli("dlq", "retry", "--file", "fail", "--same-lines")
    assert "not among the failed files: fail" in said.output
    assert "default:day=1/failed.ndjson" in lake.cli("dlq", "retry", "--file", "fail").stdout


def test_a_path_of_two_sources_is_ambiguous_for_what_changes_something(tmp_path):
    desk = OpenTable(tmp_path, {"fields": [{"name": "id", "type": "int64"}]})
    document = yaml.safe_load(desk.file.read_text())
    folders = {name: desk.landing.folder / name for name in ("one", "two")}
    pipeline = {key: document.pop(key) for key in ("sink", "schema")}
    pipeline["sources"] = {name: {"path": str(each)} for name, each in folders.items()}
    del document["source"]
    desk.file.write_text(yaml.safe_dump(document | {"pipelines": {"both": pipeline}}))
    for name in folders:
        desk.land(f"{name}/a.ndjson", {"id": 1})
    desk.ingest()

    assert "matches several files; name one: one:a.ndjson, two:a.ndjson" in " ".join(
        desk.cli("retract", "a.ndjson").output.split()
    )
    assert "one:a.ndjson: 1 row" in desk.cli("retract", "one:a.ndjson").stdout


def test_the_search_of_the_page_and_the_journey_take_a_printed_name(tmp_path):
    lake = LiveLake(tmp_path, names=("orders",))
    for name in NAMES:
        lake.land("orders", name, 2)
    lake.ingest("orders")
    lake.commit("orders")
    asking = Asking(lake)
    try:
        for name, printed in NAMES.items():
            _status, found = asking.get(
                "/api/v1/pipelines/orders/files", f"search={quote(printed)}"
            )
            assert [one["path"] for one in found["files"]] == [f"default:{name}"]
            status, journey = asking.get(
                "/api/v1/pipelines/orders/file", f"path=default:{quote(printed)}"
            )
            assert (status, journey["state"], journey["read"][0]["rows"]) == (200, "in_table", 2)
    finally:
        asking.api.close()
