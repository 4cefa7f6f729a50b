"""The reconciliation of files costs what is asked for, and no entry is read that says nothing."""

from datetime import timedelta

import pytest

from blizzard.answers.lifecycle import FileStanding, FileState
from blizzard.answers.reconcile import DayBooks, RowCount
from blizzard.answers.report import Question
from tests.support.builders import NOON
from tests.support.long_journals import TAIL, LongJournal

ENTRIES, FILES = 200, 3


@pytest.fixture(scope="module")
def journal() -> LongJournal:
    return LongJournal.of(ENTRIES, FILES)


def day(number: int) -> str:
    return f"{NOON + timedelta(days=number):%Y-%m-%d}"


def test_a_day_is_told_from_the_entries_of_its_files_alone(journal):
    journal.table.requests.clear()

    found = journal.reconciler().reconcile(Question(days=(day(3),)))

    (group,) = found.groups
    assert (group.landed, group.in_table, group.rows) == (24 * FILES, 24 * FILES, 24 * 2 * FILES)
    assert group.complete
    # A start, the names, and the entries of the day; none of the other 150.
    assert journal.table.requests["get"] <= 24 + TAIL + 15


def test_no_entry_is_read_where_rows_are_not_asked_for(journal):
    journal.table.requests.clear()

    found = journal.reconciler().reconcile(Question(rows=False))

    assert sum(group.in_table for group in found.groups) == (ENTRIES - 1) * FILES
    assert {group.rows for group in found.groups} == {None}
    assert journal.table.requests["get"] <= TAIL + 15


def test_a_second_look_reads_no_entry_again(journal):
    reconciler = journal.reconciler()
    first = reconciler.reconcile(Question())
    journal.table.requests.clear()

    assert reconciler.reconcile(Question()) == first
    assert journal.table.requests["get"] <= 5


def test_files_that_left_the_source_are_found_by_a_few_entries(journal):
    gone = [journal.name(number, 0) for number in range(1, ENTRIES)]
    stays = [name for name in journal.source.names if name not in gone]
    there = LongJournal(ENTRIES, FILES, journal.table, type(journal.source)(stays))
    there.source.modified = journal.source.modified
    journal.table.requests.clear()

    found = there.reconciler().reconcile(Question(days=(day(3),), rows=False))

    (group,) = found.groups
    assert (group.landed, group.deleted) == (24 * FILES, 24)
    assert journal.table.requests["get"] <= TAIL + 60


def test_a_store_that_lists_in_no_order_gives_the_same_answer(journal):
    expected = journal.reconciler().reconcile(Question())
    journal.source.backwards = True
    try:
        assert journal.reconciler().reconcile(Question()) == expected
    finally:
        journal.source.backwards = False


def standing(state: FileState, **given: object) -> FileStanding:
    usual = {"source": "s", "path": "a.ndjson", "at": NOON, "size": 5}
    return FileStanding(**(usual | given), state=state)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("states", "complete", "words"),
    [
        ([], False, "no file of"),
        ([FileState.IN_TABLE], True, "is in: 1 file, 7 rows, 5 B"),
        ([FileState.RETRACTED, FileState.DISCARDED], True, "; 1 was retracted, 1 was discarded by"),
        ([FileState.WAITING], False, "of 1 file, 1 is waiting to be read"),
        ([FileState.JOURNALED] * 2, False, "of 2 files, 2 are waiting to be committed"),
        ([FileState.HELD, FileState.FAILED], False, "1 failed, penguin holds rows of 1"),
        ([FileState.CHANGED], False, "1 changed after being read"),
        (
            [FileState.REMOVED],
            False,
            "penguin fsck or forget took rows of 1 out, and nobody",
        ),
    ],
)
def test_a_verdict_says_what_is_missing(states, complete, words):
    books = DayBooks()
    for state in states:
        books.add(standing(state))

    group = books.group(day(0), listed=True, counted=RowCount(rows=7))

    assert group.complete is complete
    assert words in group.sentence
    assert group.landed == len(states) == sum(group.states.values())


def test_a_day_of_which_not_all_was_listed_is_undecided():
    group = DayBooks().group(day(0), listed=False)
    assert group.complete is None
    assert "is not known" in group.sentence
