"""Which entry a source file was done with, or has failed since, without reading the entries."""

from dataclasses import replace
from datetime import timedelta

from blizzard.journal.ledger import Ledger
from blizzard.journal.segments import read_rows, write_segment
from blizzard.model.files import IngestedFile
from lakebed.clock import Clock
from lakebed.documents.entry import Entry, encode
from lakebed.types import Handoff
from tests.support.bucket import Bucket
from tests.support.builders import NOON, failure, record

KEY = "default:a.ndjson"


def named(key: str, number: int | None) -> IngestedFile:
    return IngestedFile(key=key, size=10, etag="e", entry=number)


def test_names_know_whether_their_rows_were_taken_out():
    store = Bucket()
    names = [replace(named("a", 3), retracted=True), named("b", 4)]
    rows = [name.row for name in names]
    segment = write_segment(store, "default", rows, Clock().fresh_id())
    assert [IngestedFile.of(row) for row in read_rows(store, "default", segment)] == names


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
