"""`blizzard journal`: the last entries, and one entry for a person."""

import re

import pytest

from lakebed.documents.entry import Receipt, digest, encode
from lakebed.layout import journal_entry, receipt
from tests.support.builders import ndjson, put, rows, tree
from tests.support.commands import WIDTH, recorded, told


def batches(desk, count):
    for number in range(count):
        put(desk.landing, f"{number}.ndjson", ndjson(rows(2, number * 2)))
        desk.bench().again(run_id=f"run-{number}").pipeline().step()


@pytest.mark.unbalanced("file_named_twice", "receipt_ahead")
def test_without_a_number_it_lists_the_last_entries_the_newest_first(desk):
    batches(desk, 3)
    body = (desk.table / journal_entry("default", 2)).read_bytes()
    journal = desk.bench().entries()[0].journal
    put(
        desk.table,
        receipt("default"),
        encode(Receipt(journal=journal, sequence=2, digest=digest(body))),
    )
    found = told(desk.run("journal", "--output", "json", "--limit", "3"))
    assert [(one["entry"], one["committed"]) for one in found] == [(3, False), (2, True), (1, True)]
    assert [(one["rows"], one["files"], one["kind"]) for one in found] == [(2, 1, "batch")] * 3
    shown = desk.run("journal").stdout
    assert "the last 4 entries" in shown
    assert shown.count("waits") == 2  # The one entry, and what the word means.
    assert max(map(len, shown.splitlines())) <= WIDTH


def test_commands_that_need_a_batch_say_that_there_was_none(desk):
    done = desk.run("journal")
    assert (done.exit_code, done.stdout) == (0, "pipeline default: nothing is journaled yet\n")
    for command in (
        ("journal", "show", "1"),
        ("retract", "a.ndjson"),
        ("erase", "--where", "id = 1"),
        ("compact",),
        ("trace", "--where", "id = 1"),
        ("schema", "promote", "price", "--type", "int64"),
        ("source", "set", "default", "--same-files"),
    ):
        done = desk.run(*command)
        assert (done.exit_code, done.stdout) == (1, ""), command
        assert "default: no batch has been journaled yet" in done.stderr, command


def test_one_entry_is_shown_with_sources_outputs_failures_and_its_place_in_the_chain(desk):
    put(desk.landing, "bad.ndjson", b'{"id":1}\n{nope\n')
    batches(desk, 2)
    before = tree(desk.table)
    done = desk.run("journal", "1")
    assert done.exit_code == 0
    entry = desk.bench().entries()[1]
    shown = done.stdout
    assert "entry 1 (batch) of pipeline default" in shown
    document = recorded(shown)
    assert (document["run"], document["previous"]) == ("run-0", entry.previous)
    failures = {one["path"]: one.get("failure", {}) for one in document["sources"]}
    bad = failures["bad.ndjson"]
    assert (bad["code"], bad["stage"], bad["line"]) == ("not_json", "parse", 2)
    assert [one["filename"] for one in document["files"]] == [entry.files[0].filename]
    assert document["dlq"] == list(entry.dlq)
    assert "chain      intact: the digests of the entries before and after match" in shown
    assert "committed  not yet" in shown
    (document,) = told(desk.run("journal", "1", "--output", "json"))
    assert document["digest"] == desk.bench().entries()[2].previous
    assert (document["follows"], document["sequence"]) == (True, 1)
    assert tree(desk.table) == before


@pytest.mark.parametrize("looked_at", ["1", "2"])
@pytest.mark.unbalanced("chain_broken")
def test_a_patched_entry_is_seen_from_both_sides(desk, looked_at):
    """HOLES L21."""
    batches(desk, 2)
    path = desk.table / journal_entry("default", 1)
    path.write_bytes(path.read_bytes().replace(b'"run-0"', b'"run-x"'))
    done = desk.run("journal", looked_at)
    assert done.exit_code == 1
    assert "BROKEN" in done.stdout
    assert "broken" in desk.run("journal").stdout


def test_of_several_pipelines_one_must_be_named(desk):
    batches(desk, 1)
    (desk.root / "more").mkdir()
    config = desk.config("default", "more")
    unsaid = desk.run("journal", "1", config=config)
    assert unsaid.exit_code == 2
    assert "name the pipeline with --pipeline; there are: default, more" in unsaid.stderr
    assert "entry 1 (batch)" in desk.run("journal", "1", "-p", "default", config=config).stdout
    assert "pipeline more: nothing is journaled yet" in desk.run("journal", config=config).stdout


def test_a_number_that_is_not_there_is_answered_with_those_that_are(desk):
    """And where there is room, times are whole."""
    batches(desk, 2)
    done = desk.run("journal", "17")
    assert done.exit_code == 1
    assert "has no entry 17; there are entries 0 to 2" in done.stderr
    assert desk.run("journal", "later").exit_code == 2
    for width, at in ((80, r"\d\d-\d\d \d\d:\d\d"), (200, r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")):
        shown = desk.run("journal", width=width).stdout
        assert re.search(rf"^ +1  {at}  batch", shown, re.MULTILINE)
