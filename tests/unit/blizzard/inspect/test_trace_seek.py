"""The entries of data files are found by what the files say of themselves."""

import io
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
import pyarrow.parquet as pq

from blizzard.answers.entries import FileOrigins
from blizzard.answers.trace import named_by
from blizzard.journal.checkpoint import SnapshotWriter, read_ledger
from lakebed import layout
from lakebed.clock import Clock, uuid7
from lakebed.documents.entry import digest, encode
from tests.support.bucket import Bucket
from tests.support.builders import NOON, finished_file, identity, rewrite

ENTRIES = 300


class CountsEntries(Bucket):
    """Counts how often an entry is read."""

    read = 0

    def stream(self, path: str, *, size: int, etag: str | None, start: int = 0) -> Iterator[bytes]:
        yield self.bodies[path][start:]

    def get(self, path: str) -> bytes | None:
        self.read += layout.entry_sequence(path) is not None
        return super().get(path)


def parquet(marks: dict[str, str]) -> bytes:
    body = io.BytesIO()
    table = pa.table({"id": [1]}).replace_schema_metadata(marks)
    pq.write_table(table, body)
    return body.getvalue()


def path_of(number: int) -> layout.TablePath:
    """Name the data file of an entry: it was begun half a minute before."""
    at = NOON + timedelta(minutes=number, seconds=-30)
    return layout.data_file({}, uuid7(round(at.timestamp() * 1000), number.to_bytes(10, "big")))


def table(*, marks: dict[str, str]) -> CountsEntries:
    """Return a table of a long journal, an entry a minute, the last of which is a promotion."""
    store, previous, body = CountsEntries(uri="s3://bucket/table"), None, parquet(marks)
    for number in range(ENTRIES):
        file = replace(finished_file(), filename=path_of(number))
        usual = identity(
            kind="batch" if number else "open",
            journal="j",
            sequence=number,
            created=(NOON + timedelta(minutes=number)).isoformat(),
            previous=previous,
            files=(file,) if number else (),
        )
        if number == ENTRIES - 1:
            one = rewrite(path_of(17), file)
            usual = replace(usual, kind="promote", files=(), rewrites=(one,))
        store.replace(layout.journal_entry("default", number), encode(usual))
        previous = digest(encode(usual))
        store.replace(path_of(number), body)
    return store


OURS = {"blizzard.pipeline": "default", "blizzard.journal": "j"}


def entries_of(found: dict[str, FileOrigins]) -> dict[str, int]:
    return {path: named.entry.sequence for path, named in found.items()}


def test_few_entries_are_read_for_the_rows_of_a_long_journal():
    store = table(marks=OURS)
    SnapshotWriter(store=store, pipeline="default", clock=Clock()).write(
        read_ledger(store, "default")
    )
    store.read = 0
    names = {path_of(5), path_of(200)}
    assert entries_of(named_by(store, names)) == {path_of(5): 5, path_of(200): 200}
    # There is a snapshot, so where the journal ends is read from that.
    assert store.read < 60


def test_a_file_in_the_place_of_another_is_found_by_that_one_even_if_it_is_deleted():
    store = table(marks=OURS)
    store.delete(path_of(17))
    new = path_of(ENTRIES - 1)
    (named,) = named_by(store, {new}).values()
    assert (named.entry.sequence, named.file.filename) == (17, new)


def test_a_file_without_a_mark_is_looked_for_in_every_entry():
    store = table(marks={})
    assert entries_of(named_by(store, {path_of(42)})) == {path_of(42): 42}


def test_a_file_of_another_program_is_looked_for_in_no_entry():
    store = table(marks={})
    store.replace("part-0.parquet", parquet({}))
    store.read = 0
    assert named_by(store, {"part-0.parquet"}) == {}
    assert store.read == 0
