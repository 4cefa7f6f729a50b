"""Which entry a source file was done with, or has failed since, without reading the entries."""

import json
from dataclasses import replace
from datetime import timedelta

from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.ingested import merged, read_names, write_segment
from blizzard.journal.ledger import Ledger
from blizzard.model.files import IngestedFile
from lakebed import layout
from lakebed.clock import Clock
from lakebed.documents.entry import Entry, encode
from lakebed.types import Handoff
from tests.support.bucket import Bucket
from tests.support.builders import NOON, failure, record
from tests.support.recovery import grow, opened

KEY = "default:a.ndjson"


def named(key: str, number: int | None) -> IngestedFile:
    return IngestedFile(key=key, size=10, etag="e", entry=number)


def test_the_names_of_a_long_journal_know_their_entries():
    store = Bucket()
    grow(opened(store), 60)
    history = read_ledger(store, "default")
    assert history.segments
    lookup = history.lookup(store, "default")
    for number in range(1, 61):
        finished = lookup(f"default:{number:06d}-1.ndjson").finished
        assert finished is not None
        assert finished.entry == number


def test_names_of_an_earlier_version_are_read_and_merged_without_an_entry():
    store = Bucket()
    bare = write_segment(store, "default", [named("a", None), named("b", None)], Clock().fresh_id())
    body = store.bodies[layout.known_names("default", bare.id)]
    assert [json.loads(line) for line in body.splitlines()] == [["a", 10, "e"], ["b", 10, "e"]]
    later = write_segment(store, "default", [named("b", 7)], Clock().fresh_id())
    both = write_segment(
        store, "default", merged(store, "default", [bare, later]), Clock().fresh_id()
    )
    assert list(read_names(store, "default", both)) == [named("a", None), named("b", 7)]


def test_names_know_whether_their_rows_were_taken_out():
    store = Bucket()
    names = [replace(named("a", 3), retracted=True), named("b", 4)]
    segment = write_segment(store, "default", names, Clock().fresh_id())
    assert list(read_names(store, "default", segment)) == names


def test_an_earlier_version_reads_names_with_an_entry():
    """It takes the fourth value for whether the file gave no row, and leaves out the rest."""
    store = Bucket()
    names = [named("a", 3), IngestedFile(key="b", size=20, etag=None, empty=True, entry=4)]
    segment = write_segment(store, "default", names, Clock().fresh_id())
    body = store.bodies[layout.known_names("default", segment.id)]
    for line, name in zip(body.splitlines(), names, strict=True):
        key, size, etag, *mark = json.loads(line)
        assert (key, size, etag, mark[0]) == (name.key, name.size, name.etag, name.empty)


def learned(*records) -> Ledger:
    """Return what one record after the other says, an hour between them."""
    history = Ledger()
    for number, each in enumerate(records):
        told = Entry(
            kind="batch" if number else "open",
            pipeline="default",
            journal="j",
            sequence=number,
            run="run-1",
            created=(NOON + timedelta(hours=number)).isoformat(),
            previous=history.digest,
            handoff=Handoff.JOURNAL,
            source_uris={"default": "/in"},
            table_schema={"type": "struct", "fields": []},
            partition_columns=(),
            sources=(each,),
        )
        history.learn(told, encode(told))
    return history


def test_a_file_has_failed_since_its_first_failure_in_a_row():
    bad, good = record("a.ndjson", failure=failure(retryable=True)), record("a.ndjson")
    assert learned(bad, bad, bad).unfinished[KEY].since == NOON
    again = learned(bad, good, bad, bad).unfinished[KEY]
    assert (again.since, again.entry) == (NOON + timedelta(hours=2), 3)


def test_a_snapshot_remembers_since_when_and_in_which_entry_a_file_failed():
    store = Bucket()
    grow(opened(store), 35)
    history = read_ledger(store, "default")
    assert history.kept
    for number in (7, 14, 21, 28):
        known = history.unfinished[f"default:bad-{number:06d}.ndjson"]
        assert (known.entry, known.since) == (number, known.at)
