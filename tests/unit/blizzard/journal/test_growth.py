"""What is derived from a journal, and what asks for it, costs no more the longer the journal is."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from blizzard.answers.bad_lines import quarantine_of
from blizzard.answers.progress import PipelineEvidence
from blizzard.answers.status import PipelineStatus
from blizzard.answers.status_reader import StatusReader, dead_letter_queue
from blizzard.journal import checkpoint
from blizzard.journal.books import Books as JournalBooks
from blizzard.journal.checkpoint import SnapshotWriter, read_ledger
from blizzard.journal.journal import Journal
from blizzard.journal.segments import NAMES, TABLES, merged
from blizzard.model.settings import PipelineSettings, SinkSettings
from blizzard.rewrite import replay
from lakebed import layout
from lakebed.clock import Clock
from lakebed.errors import StoreUnavailable
from lakebed.storage.options import Location, ObjectFacts
from lakebed.storage.store import Reader
from tests.support.bucket import Bucket
from tests.support.builders import ID_AND_NAME, Hands, failure, record, source_settings
from tests.support.failed import find_failed
from tests.support.histories import TABLE, Story
from tests.support.recovery import OFTEN, grow, opened, state

SETTINGS = PipelineSettings(
    sources=(source_settings("/in"),), sink=SinkSettings(table_uri=TABLE), schema=ID_AND_NAME
)


class Weighed(Bucket):
    """Counts the bytes that are written of what is derived."""

    def __init__(self) -> None:
        super().__init__(uri=TABLE)
        self.written = 0

    def replace(self, path: str, body: bytes) -> None:
        self.written += len(body) if "snapshot" in path or "/known/" in path else 0
        super().replace(path, body)

    def upload(self, path: str, file: Path, *more: Any, **given: Any) -> ObjectFacts:
        self.written += file.stat().st_size
        return super().upload(path, file, *more, **given)


def status(table: Bucket, source: Bucket | None = None) -> PipelineStatus:
    def open_reader(place: Location) -> Reader:
        return table if place.uri == TABLE else source or Bucket(uri="/in")

    return StatusReader(SETTINGS, Hands().clock).read(open_reader)[1]


def evidence(store: Bucket) -> PipelineEvidence:
    return PipelineEvidence.read(SETTINGS, Clock(), opening=lambda _place: store)


def bare(store: Bucket) -> Bucket:
    """Return the same table without anything that is derived."""
    copy = Bucket(uri=TABLE)
    for name, body in store.bodies.items():
        if "snapshot" not in name and "/known/" not in name:
            copy.replace(name, body)
    return copy


ASKED: dict[str, Callable[[Bucket], object]] = {
    "status": status,
    "dlq list": lambda store: dead_letter_queue(evidence(store)),
    "dlq show": lambda store: quarantine_of(evidence(store)).files,
    "dlq replay": lambda store: replay.plan_replay(store, "default", None).files,
    "dlq retry": lambda store: find_failed(store, "default", frozenset({"bad-000007.ndjson"})),
}


@pytest.mark.parametrize("command", ASKED)
def test_a_command_asks_for_no_more_after_many_entries_than_after_few(command):
    store = Bucket(uri=TABLE)
    journal = opened(store)
    asked = []
    for batches in (35, 300):
        grow(journal, batches)
        for known in list(journal.ledger.unfinished.values()):
            journal.append((replace(known.record, failure=None, lines=1, rows=1),), ())
        grow(journal, 10 - journal.sequence % 10 + 5)
        store.requests.clear()
        shown = ASKED[command](store)
        asked.append(store.requests.total())
        assert shown == ASKED[command](bare(store))
    # The tail is at most ten entries; segments are as many as the ladder has rungs.
    assert asked[1] <= asked[0] + 8, asked
    assert asked[1] < 45


def fail(journal: Journal, files: int, *, batches: int) -> None:
    """Append batches of files that fail and are never mended, and snapshots."""
    for _ in range(batches):
        number = journal.sequence + 1
        bad = [record(f"{number:06d}-{n}.ndjson", failure=failure()) for n in range(files)]
        journal.append(tuple(bad), ())
        if journal.snapshot_is_due:
            journal.write_snapshot()


def test_files_that_failed_and_are_never_mended_are_not_written_with_every_snapshot():
    store = Weighed()
    journal = opened(store)
    sizes: list[int] = []
    written: list[float] = []
    for _ in range(4):
        store.written = 0
        fail(journal, 3, batches=10 * 2 ** len(sizes))
        sizes.append(len(store.bodies[layout.snapshot("default")]))
        written.append(store.written / len(journal.ledger.unfinished))
    assert len(journal.ledger.unfinished) == 450
    # A snapshot has a few changes and the names of some segments.
    assert max(sizes) < sizes[0] + 2_000, sizes
    # Each file is written once for each rung of the ladder, not once for each snapshot.
    assert written[-1] < 3 * written[0], written
    again = read_ledger(store, "default")
    assert (again.rebuilt, again.unfinished) == (None, journal.ledger.unfinished)


def test_a_file_that_is_mended_leaves_the_segments():
    store = Bucket(uri=TABLE)
    journal = opened(store)
    fail(journal, 5, batches=20)
    for known in list(journal.ledger.unfinished.values()):
        journal.append((replace(known.record, failure=None, lines=1, rows=1),), ())
    for _ in range(2):
        journal.write_snapshot()
    again = read_ledger(store, "default")
    assert again.kept == again.sequence
    assert not again.unfinished
    rows = merged(again.segments, TABLES, NAMES)
    assert [row for row in rows if row[0].startswith(f"{TABLES}unfinished/")] == []


def test_a_snapshot_of_another_format_is_not_used_and_changes_no_answer():
    """D05: every entry is read, until there is a snapshot of this format."""
    store = Bucket(uri=TABLE)
    grow(opened(store), 25)
    expected = status(store)
    path = layout.snapshot("default")
    store.bodies[path] = b"0" + store.bodies[path]
    assert "another version" in (read_ledger(store, "default").rebuilt or "")
    assert status(store) == expected
    opened(store, run="run-2").write_snapshot()
    assert read_ledger(store, "default").rebuilt is None


class Compacted(Bucket):
    """A table whose snapshot is replaced while it is read."""

    journal: Journal | None = None

    def get(self, path: str) -> bytes | None:
        found = super().get(path)
        if path == layout.snapshot("default") and self.journal is not None:
            journal, self.journal = self.journal, None
            fail(journal, 9, batches=30)
        return found


def test_a_snapshot_that_is_replaced_while_it_is_read_is_no_reason_to_read_every_entry():
    store = Compacted(uri=TABLE)
    journal = opened(store)
    fail(journal, 3, batches=30)
    store.journal = journal
    history = read_ledger(store, "default")
    assert (history.sequence, history.rebuilt) == (60, None)


def test_only_so_many_places_of_values_are_told_apart():
    books = JournalBooks(most_places=2)
    story = Story().tell([("batch", choice) for choice in (0, 1, 2, 3, 0)])
    for entry, _body in story.entries:
        books.learn(entry)
    assert books.placed("dropped") == {"y0": 2, "y1": 2, "y3": 4}
    assert books.sums.totals.dropped == 1 + 2 + 3 + 4 + 1


class Dies(Bucket):
    """A table whose writer dies with a write or a deletion."""

    lives = 1_000_000

    def replace(self, path: str, body: bytes) -> None:
        self._live()
        super().replace(path, body)

    def upload(self, *given: Any, **named: Any) -> ObjectFacts:
        self._live()
        return super().upload(*given, **named)

    def delete(self, path: str) -> None:
        self._live()
        super().delete(path)

    def _live(self) -> None:
        self.lives -= 1
        if self.lives < 0:
            raise StoreUnavailable("the process is dead", path=self.uri)


def test_death_at_any_write_of_a_snapshot_leaves_what_the_entries_say():
    """D05: and the next snapshot removes what the dead one left behind."""
    lives = 0
    while True:
        store = Dies(uri=TABLE)
        journal = opened(store)
        fail(journal, 3, batches=10)
        grow(journal, 3)
        journal.write_snapshot()
        bad = [record(f"more-{n}.ndjson", failure=failure()) for n in range(30)]
        journal.append((*bad, *(record(f"done-{n}.ndjson") for n in range(9))), ())
        expected = state(journal.ledger, store)
        store.lives = lives
        try:
            journal.write_snapshot()
        except StoreUnavailable:
            died = True
        else:
            died = False
        store.lives = 1_000_000
        history = read_ledger(store, "default")
        assert history.rebuilt is None
        assert state(history, store) == expected
        writer = SnapshotWriter(store=store, pipeline="default", clock=Clock(), limits=OFTEN)
        writer.write(history)
        assert state(read_ledger(store, "default"), store) == expected
        latest = checkpoint.read_snapshot(store, "default")
        assert latest is not None
        known = {layout.known_segment("default", name) for name in store.names} - {None}
        assert known == {ref.id for ref in latest.segments}
        if not died:
            break
        lives += 1
    # Names, index and changes, each again when merged; snapshot, and what it replaces.
    assert lives >= 10
