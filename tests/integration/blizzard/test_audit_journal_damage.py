"""An audit of a table whose journal, receipt or dead letters were damaged: the exact difference."""

import json
import shutil
from pathlib import Path

import pytest

from blizzard.inspect.audit.findings import FindingKind
from lakebed.layout import journal_folder, receipt
from tests.support.audits import UNREADABLE, Damage, make_table, told
from tests.support.audits import audited as audit
from tests.support.desk import Desk

pytestmark = pytest.mark.unbalanced(*FindingKind, UNREADABLE)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """Return a table with three batches of 9, 7 and 3 rows; of the second one file failed."""
    return make_table(tmp_path_factory.mktemp("whole"))


@pytest.fixture
def damage(whole, tmp_path) -> Damage:
    shutil.copytree(whole, tmp_path / "table")
    return Damage(tmp_path / "table")


def test_a_table_that_nobody_touched_is_balanced(damage):
    found = audit(damage.table)
    assert told(found) == []
    assert (found.totals.entries, found.totals.source_files, found.totals.rows) == (4, 4, 19)
    assert (found.active.files, found.active.rows) == (4, 19)


def test_an_edited_entry_is_told_by_the_entry_that_follows_and_by_the_log(damage):
    damage.edit_entry(2, lambda entry: entry.update(run="another"))
    assert told(audit(damage.table)) == [
        "digest_differs: entry 2 is not the committed one: the log has another digest",
        (
            "chain_broken: entry 3 does not follow entry 2: it names another digest, so one of the "
            "two was changed"
        ),
    ]


def test_the_last_entry_is_told_by_the_log_and_the_receipt(damage):
    damage.edit_entry(3, lambda entry: entry.update(created="2020-01-01T00:00:00+00:00"))
    assert told(audit(damage.table)) == [
        "digest_differs: entry 3 is not the committed one: the log has another digest",
        "receipt_differs: entry 3 is not the one in the receipt: its digest differs",
    ]


@pytest.mark.parametrize(
    ("number", "harm", "said"),
    [
        (
            2,
            lambda path: path.write_bytes(b"{"),
            "entry_unreadable: entry 2: this document cannot be read",
        ),
        (2, Path.unlink, "entry_missing: entry 2 is missing, but entry 3 is there"),
        (
            3,
            Path.unlink,
            (
                "entry_missing: the log says that entry 3 is committed, but the journal ends with "
                "entry 2"
            ),
        ),
    ],
)
def test_an_entry_that_is_gone_or_unreadable_is_named_with_what_it_left(damage, number, harm, said):
    (path,) = (one["path"] for one in damage.added(number))
    harm(damage.entry_path(number))
    first, second = told(audit(damage.table))
    assert first.startswith(said)
    assert second == (
        f"file_unnamed: version {number}, which settles entry {number} of default, has added "
        f"{path} with {7 if number == 2 else 3} rows, and nothing names it"
    )


def test_a_renumbered_entry_is_told(damage):
    damage.entry_path(3).rename(damage.entry_path(4))
    assert told(audit(damage.table)) == [
        "entry_missing: entry 3 is missing, but entry 4 is there",
        "entry_misplaced: where entry 4 belongs is entry 3 (batch) of pipeline default",
    ]


def test_entries_that_changed_places_are_told(damage):
    second, third = (damage.entry_path(number).read_bytes() for number in (2, 3))
    damage.entry_path(2).write_bytes(third)
    damage.entry_path(3).write_bytes(second)
    assert [one.partition(":")[0] for one in told(audit(damage.table))] == [
        *("entry_misplaced", "chain_broken", "digest_differs"),
        *("entry_misplaced", "chain_broken", "digest_differs", "receipt_differs"),
    ]


def test_the_journal_of_another_table_is_told(damage, tmp_path_factory):
    other = make_table(tmp_path_factory.mktemp("other"))
    folder = journal_folder("default")
    mine = damage.entry(0)["journal"]
    shutil.rmtree(damage.table / folder)
    shutil.copytree(other / folder, damage.table / folder)
    theirs = damage.entry(0)["journal"]
    found = told(audit(damage.table, deep=False))
    assert (
        f"receipt_differs: the receipt names entry 3 of journal {mine}, but the journal in use is "
        f"{theirs}" in found
    )
    assert (
        f"journal_missing: the log has committed entries up to 3 of journal {mine} of default, "
        "which is not here" in found
    )
    assert [one.partition(":")[0] for one in found].count("file_unnamed") == 4


def test_a_journal_that_is_gone_is_told(damage):
    shutil.rmtree(damage.table / journal_folder("default"))
    found = [one.partition(":")[0] for one in told(audit(damage.table))]
    assert found == ["journal_missing"] * 2 + ["file_unnamed"] * 4


def test_a_receipt_ahead_of_the_log_or_unreadable_is_told_and_one_behind_it_is_not(damage):
    (damage.table / receipt("default")).rename(damage.table / "aside")
    assert told(audit(damage.table)) == []
    (damage.table / receipt("default")).write_bytes(b"?")
    (found,) = told(audit(damage.table))
    assert found.startswith("receipt_differs: the receipt of default: this document cannot be read")
    (damage.table / "aside").rename(damage.table / receipt("default"))
    damage.version_path(3).unlink()
    says = "the receipt of default says that entry 3 is committed, but the log says 2"
    assert told(audit(damage.table)) == [f"receipt_ahead: {says}; see penguin replay"]


B = "default:date=2024-01-01/b.ndjson"


@pytest.mark.parametrize(
    ("number", "change", "said"),
    [
        (
            2,
            {"blank": 2},
            (
                f"books_differ: entry 2: {B} has 7 lines, of which 7 rows, 2 blank, 0 filtered "
                "and 0 quarantined"
            ),
        ),
        (
            2,
            {"rows": 8, "lines": 8},
            "books_differ: the source files of entry 2 gave 8 rows, but its data files hold 7",
        ),
        (
            3,
            {"skipped": 10},
            (
                "books_differ: entry 3: default:date=2024-01-02/c.ndjson goes on after 10 lines, "
                "but earlier entries have read none"
            ),
        ),
        (
            3,
            {"path": "date=2024-01-01/b.ndjson"},
            f"source_twice: entry 3 has read {B}, which an earlier entry had read to its end",
        ),
    ],
)
def test_books_that_do_not_add_up_are_told(damage, number, change, said):
    damage.edit_entry(number, lambda entry: entry["sources"][0].update(change))
    assert said in told(audit(damage.table))


def test_a_failed_file_with_rows_is_told(damage):
    def fail(entry):
        (bad,) = (one for one in entry["sources"] if "failure" in one)
        bad.update(rows=1)

    damage.edit_entry(2, fail)
    assert any(
        one.startswith("books_differ: entry 2: default:date=2024-01-01/bad.ndjson has 0 lines")
        for one in told(audit(damage.table))
    )


def test_dead_letters_that_are_gone_are_told(damage):
    (uri,) = damage.entry(2)["dlq"]
    (object_,) = (damage.table / "_blizzard/default/dlq").iterdir()
    object_.unlink()
    # The entry names them where the table was made; there they are gone as well.
    Path(uri).rename(f"{uri}.aside")
    try:
        assert told(audit(damage.table)) == [
            f"dead_letters_gone: the dead letters of entry 2 are gone: {uri}"
        ]
    finally:
        Path(f"{uri}.aside").rename(uri)


def test_the_command_tells_it_and_exits_with_one(damage, tmp_path):
    desk = Desk(tmp_path)
    done = desk.cli("audit")
    # The table holds what the journal says; its source was moved, and is not compared.
    assert (done.exit_code, "\nbalanced: " in done.output) == (0, True)
    damage.entry_path(2).unlink()
    told_text, row = desk.cli("audit", "--deep"), desk.cli("audit", "--output", "json")
    assert (told_text.exit_code, row.exit_code) == (1, 1)
    assert "  entry_missing: entry 2 is missing, but entry 3 is there" in told_text.output
    assert "\nnot balanced: 2 differences\n" in told_text.output
    document = json.loads(row.output)
    assert not document["balanced"]
    assert document["differences"][0] == {
        "kind": "entry_missing",
        "message": "entry 2 is missing, but entry 3 is there",
        "pipeline": "default",
        "entry": 2,
        "version": None,
        "file": None,
        "source": None,
    }


def test_a_table_that_cannot_be_looked_at_is_neither(damage, tmp_path):
    desk = Desk(tmp_path)
    damage.version_path(1).write_bytes(b"{")
    assert desk.cli("audit").exit_code == 2
    shutil.rmtree(damage.table)
    done = desk.cli("audit")
    assert (done.exit_code, "there is no table yet" in done.output) == (2, True)
