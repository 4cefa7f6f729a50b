from dataclasses import replace
from types import SimpleNamespace

import pytest

from lakebed.documents.entry import Receipt, digest, digest_number, encode
from lakebed.layout import (
    digest_transaction,
    journal_entry,
    journal_transaction,
    pipeline_transaction,
    protocol,
    receipt,
)
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Reader, Store
from lakebed.types import DiscoverBy, Handoff
from penguin.backlog.journals import read_journals, read_pipelines
from tests.support.tables import TableDirectory, rows_of


@pytest.fixture
def table(tmp_path):
    return TableDirectory(tmp_path / "table")


def look(table, committed=None, max_files=100):
    log = committed or {}
    found = read_journals(table.store, read_pipelines(table.store), log.get, max_files=max_files)
    return SimpleNamespace(backlogs=found[0], stopped=found[1])


def committed(journal, sequence, *, body=None):
    """Return the log's transactions once an entry is committed."""
    name = journal.pipeline
    return {
        journal_transaction(name, journal.id): sequence,
        digest_transaction(name, journal.id): digest_number(
            digest(body or journal.bodies[sequence])
        ),
        pipeline_transaction(name): sequence,
    }


def sequences(found):
    return [ready.entry.sequence for backlog in found.backlogs for ready in backlog.entries]


def trouble(table, log=None):
    """Return what stops the only pipeline."""
    found = look(table, log)
    assert sequences(found) == []
    (stopped,) = found.stopped
    return stopped.error.code, str(stopped.error)


def three_batches(table):
    journal = table.journal()
    for number in (1, 2, 3):
        journal.batch(rows_of(number))
    return journal


def write_receipt(table, of, sequence, **changes):
    told = Receipt(journal=of.id, sequence=sequence, digest=digest(of.bodies[sequence]))
    table.store.replace(receipt(of.pipeline), encode(replace(told, **changes)))


@pytest.mark.parametrize(
    ("gone", "log_at", "code", "words"),
    [
        ((2,), None, "journal_broken", "entry 2 is missing, but entry 3"),
        ((3,), 3, "journal_lost", "entry 3"),
        (range(4), 3, "journal_lost", ""),
    ],
    ids=["a gap", "rolled back to an older state", "nothing is left"],
)
def test_entries_that_are_gone_stop_the_pipeline(table, gone, log_at, code, words):
    """L21"""
    journal = three_batches(table)
    log = committed(journal, log_at) if log_at else None
    for number in gone:
        table.store.delete(journal_entry("events", number))
    table.store.create("_blizzard/events/dlq/x.json", b"x")
    found, text = trouble(table, log)
    assert (found, words in text) == (code, True)


def test_an_entry_that_does_not_follow_the_one_before_stops_the_pipeline(table):
    """L21."""
    journal = table.journal()
    journal.batch(rows_of(1), previous="0" * 64)
    code, text = trouble(table)
    assert code == "journal_broken"
    assert "does not follow" in text


def test_a_committed_entry_with_another_digest_stops_the_pipeline(table):
    """L21: another batch was written in the place of a committed one."""
    journal = three_batches(table)
    code, text = trouble(table, committed(journal, 2, body=b"another"))
    assert code == "journal_broken"
    assert "not the one that was committed" in text


def test_another_journal_than_the_committed_one_stops_the_pipeline(table):
    """L21: the journal was deleted and started again."""
    three_batches(table)
    log = {pipeline_transaction("events"): 9}
    assert trouble(table, log)[0] == "journal_lost"


def test_a_journal_that_an_operator_started_in_place_of_another_goes_on(table):
    journal = three_batches(table)
    write_receipt(table, journal, 0)
    found = look(table, {pipeline_transaction("events"): 9})
    assert sequences(found) == [1, 2, 3]


@pytest.mark.parametrize(
    ("changes", "log_at", "code"),
    [
        ({}, None, "log_rolled_back"),
        ({}, 1, "log_rolled_back"),
        ({"journal": "another"}, None, "journal_lost"),
        ({"digest": "0" * 64}, 2, "journal_broken"),
    ],
)
def test_a_receipt_of_what_the_log_or_the_journal_lacks_stops_it(table, changes, log_at, code):
    """D16: the log was restored from a backup, or the table dropped and created again."""
    journal = three_batches(table)
    write_receipt(table, journal, 2, **changes)
    found, text = trouble(table, committed(journal, log_at) if log_at else None)
    assert found == code
    assert code != "log_rolled_back" or "entry 2" in text


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"format": 1}'])
def test_an_unreadable_entry_or_receipt_stops_the_pipeline(table, body):
    """D05: it is never taken for missing; the entries before it are committed."""
    journal = three_batches(table)
    table.store.replace(journal_entry("events", 2), body)
    assert sequences(look(table)) == [1]
    assert trouble(table, committed(journal, 1))[0] == "document_unreadable"
    table.store.replace(journal_entry("events", 2), journal.bodies[2])
    table.store.replace(receipt("events"), body)
    assert trouble(table)[0] == "document_unreadable"


def test_an_entry_of_a_newer_format_stops_the_pipeline(table):
    table.journal().batch(rows_of(1))
    path = journal_entry("events", 1)
    body = table.store.get(path)
    table.store.replace(path, body.replace(b'"format":1', b'"format":9', 1))
    code, text = trouble(table)
    assert code == "document_unreadable"
    assert "format 9" in text


@pytest.mark.parametrize(
    "changes", [{"journal": "another"}, {"pipeline": "other"}, {"sequence": 7}, {"kind": "open"}]
)
def test_an_entry_that_is_not_of_this_place_stops_the_pipeline(table, changes):
    journal = table.journal()
    entry = replace(journal.entry(), **changes)
    table.store.create(journal_entry("events", 1), encode(entry))
    assert trouble(table)[0] == "journal_broken"


@pytest.mark.parametrize(
    ("wish", "handoff"),
    [
        (DiscoverBy.AUTO, Handoff.JOURNAL),
        (DiscoverBy.STAGING, Handoff.STAGING),
        (DiscoverBy.WATERMARK, Handoff.DIRECT),
    ],
)
def test_where_the_table_says_nothing_yet_the_setting_counts(table, wish, handoff):
    table.store.delete(protocol(1))
    assert read_pipelines(table.store, wish).handoff is handoff


def test_the_protocol_with_the_highest_number_counts(table):
    table.journal()
    table.store.create(protocol(10), table.store.get(protocol(1)).replace(b"journal", b"direct"))
    table.store.create(protocol(9), table.store.get(protocol(1)))
    assert read_pipelines(table.store).handoff is Handoff.DIRECT


def test_a_known_protocol_is_not_listed_again_and_the_next_one_is_seen(table):
    """Also two that are written between two looks, and one that is taken away again."""
    table.journal()

    class Unlisted(Store):
        def objects(self, *_given, **_named):
            pytest.fail("it was listed")

    store = Unlisted(str(table.root), StorageOptions())
    assert read_pipelines(store, known_protocol=1).handoff is Handoff.JOURNAL
    first = table.store.get(protocol(1))
    for number, handoff in ((2, b"staging"), (3, b"direct")):
        table.store.create(protocol(number), first.replace(b"journal", handoff))
    assert read_pipelines(table.store, known_protocol=1).handoff is Handoff.DIRECT
    table.store.delete(protocol(3))
    found = read_pipelines(table.store, known_protocol=3)
    assert (found.handoff, found.protocol) == (Handoff.STAGING, 2)


def test_an_entry_written_while_the_journal_is_read_is_no_gap(table):
    """The missing entry and the next one appear between the read and the listing."""
    journal = table.journal()

    class Late(Reader):
        def objects(self, prefix="", *, after=None):
            if "journal" in prefix and len(journal.bodies) == 1:
                journal.batch(rows_of(1))
                journal.batch(rows_of(2))
            return super().objects(prefix, after=after)

    late = Late(table.store.uri, table.store.options)
    found = read_journals(late, read_pipelines(late), lambda _: None, max_files=100)
    assert found[1] == ()
    assert len(journal.bodies) == 3
