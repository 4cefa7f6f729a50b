"""Changing the hand-off of a table."""

import pytest

from blizzard.handoff.publish import set_handoff
from lakebed.documents.entry import DirectoryProtocol, encode
from lakebed.errors import DocumentUnreadable, ProtocolConflict
from lakebed.journal import latest_protocol
from lakebed.layout import journal_entry
from lakebed.storage.store import AlreadyThere, Store
from lakebed.types import Handoff
from tests.support.tables import TableDirectory, rows_of


@pytest.fixture
def table(tmp_path):
    return TableDirectory(tmp_path / "table")


def all_of(table):
    """A log that has every entry."""
    return lambda pipeline, _journal: len(table.journals[pipeline].bodies) - 1


def in_force(table):
    found = latest_protocol(table.store)
    return found and found.handoff


@pytest.mark.parametrize("theirs", [Handoff.STAGING, Handoff.DIRECT])
def test_of_two_that_change_it_at_once_one_is_told(table, theirs):
    class Raced(Store):
        def create(self, path, body):
            super().create(path, encode(DirectoryProtocol(handoff=theirs)))
            return AlreadyThere()

    raced = Raced(table.store.uri, table.store.options)
    if theirs is Handoff.STAGING:
        assert set_handoff(raced, Handoff.STAGING, all_of(table)) is False
    else:
        with pytest.raises(ProtocolConflict, match="another process has just changed"):
            set_handoff(raced, Handoff.STAGING, all_of(table))
    assert in_force(table) is theirs


def test_a_journal_that_cannot_be_read_is_never_taken_for_committed(table):
    """D05."""
    table.journal().batch(rows_of(1))
    table.store.replace(journal_entry("events", 1), b"{")
    with pytest.raises(DocumentUnreadable):
        set_handoff(table.store, Handoff.STAGING, all_of(table))
    assert in_force(table) is Handoff.JOURNAL
