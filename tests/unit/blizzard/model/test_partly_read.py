"""What an operator may give up of files that failed and are gone, and what stays known of it."""

from dataclasses import replace

import pytest

from blizzard.journal.ledger import Ledger
from blizzard.model.source.file import Recorded
from blizzard.model.source.partly_read import (
    can_be_given_up,
    given_up,
    is_partly_read,
    lacks_its_object,
    partial_file_changed,
    partial_file_gone,
)
from blizzard.repair.new_journal import to_learn
from blizzard.repair.old_journal import inherited
from lakebed.documents.entry import encode
from tests.support.builders import NOON, facts, failure, identity, record

PART = replace(record(), complete=False)
"""One line of it is in the table."""
GONE = partial_file_gone(PART)
WHOLE = record(failure=failure())


@pytest.mark.parametrize(
    ("one", "can"),
    [
        (GONE, True),
        (replace(GONE, retry=True), False),
        (given_up(GONE), False),
        (partial_file_changed(PART), False),
        (partial_file_changed(given_up(GONE)), False),
        (partial_file_gone(given_up(GONE)), True),
        (PART, False),
        (WHOLE, False),
        (replace(WHOLE, gone=True), True),
        (given_up(replace(WHOLE, gone=True)), False),
    ],
)
def test_only_what_failed_and_is_gone_can_be_given_up(one, can):
    assert can_be_given_up(one) is can


def learned(*records):
    history = Ledger()
    for number, each in enumerate(records):
        entry = identity(
            kind="discard" if each.discarded else "batch",
            journal="j",
            sequence=number,
            created=NOON.isoformat(),
            previous=history.digest,
            sources=(each,),
        )
        history.learn(entry, encode(entry))
    return history


def test_a_journal_keeps_the_object_that_was_begun_and_the_entry_that_read_it():
    """Its rows are in the table: a source at another place must not be taken for a new one."""
    history = learned(PART, GONE, given_up(GONE))

    (left,) = history.unfinished.values()
    assert (left.record.gone, left.record.discarded) == (True, True)
    assert (left.record.size, left.record.etag, left.record.records_read) == (10, "e1", 1)
    assert (left.failed_in, left.read_in) == (1, 0)
    assert history.has_files("default")
    assert history.books.sums.totals.rows == 1


def test_a_file_of_which_nothing_was_read_is_no_file_of_its_source_once_it_is_given_up():
    lost = replace(WHOLE, gone=True)
    assert not learned(WHOLE, lost, given_up(lost)).has_files("default")


def test_a_rest_that_was_given_up_is_read_where_a_moved_source_has_the_file():
    """At another place it has another e-tag; the operator says that it is the same."""
    history = learned(PART, GONE, given_up(GONE))
    (left,) = history.unfinished.values()

    (told,) = to_learn(Recorded(unfinished=left), facts("a.ndjson", size=10, etag="moved"))

    assert (told.etag, told.records_read) == ("moved", 1)
    assert (told.gone, told.discarded) == (False, False)
    assert lacks_its_object(told)


def test_a_journal_that_takes_over_knows_what_was_given_up():
    history = learned(inherited(given_up(GONE)))

    (left,) = history.unfinished.values()
    assert left.record.discarded
    assert is_partly_read(left.record)
