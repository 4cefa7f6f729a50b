"""A start reads a snapshot and a tail; damaged derived state is built again, entries cannot be."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from blizzard.journal import checkpoint, segments
from blizzard.journal.books import Sums
from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.journal import Journal
from blizzard.journal.ledger import LedgerState
from blizzard.journal.segments import NAMES, merged
from blizzard.journal.source_names import KnownSources
from blizzard.model.source.file import IngestedFile, Recorded
from lakebed import layout
from lakebed.clock import Clock
from lakebed.documents.entry import Receipt, digest, encode
from lakebed.errors import DocumentUnreadable, JournalLost
from tests.support.bucket import Bucket
from tests.support.builders import Hands, finished_file, identity
from tests.support.recovery import from_entries, grow, opened, state


class CountsEntries(Bucket):
    """Counts how often each entry is read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: Counter[int] = Counter()

    def get(self, path: str) -> bytes | None:
        number = layout.entry_sequence(path)
        if number is not None:
            self.read[number] += 1
        return super().get(path)


def test_a_start_reads_a_snapshot_and_a_tail_and_not_the_history():
    """No more requests after 335 entries than after 35 can be."""
    store = CountsEntries()
    journal = opened(store)
    grow(journal, 35)
    requests = []
    for _ in range(2):
        store.requests.clear()
        read_ledger(store, "default")
        requests.append({kind: store.requests[kind] for kind in ("get", "list")})
        grow(journal, 300)
    assert requests[0]["list"] == requests[1]["list"] == 1
    # Receipt, snapshot, up to ten entries, one that is not there, and a few segments.
    assert max(each["get"] for each in requests) <= 14 + 8
    store.read.clear()
    history = read_ledger(store, "default")
    assert min(store.read) >= history.sequence - 10


def hundred_thousand(tail: int) -> tuple[Bucket, int]:
    """Make a journal whose entries before a snapshot cannot be read: they are not there."""
    store = Bucket()
    number, created = 100_000, "2024-01-01T00:00:00+00:00"
    usual = identity(
        kind="batch", journal="j", sequence=number, created=created, files=(finished_file(),)
    )
    names = (IngestedFile(key=f"default:{n:08d}", size=1, etag="e").row for n in range(100_000))
    segment = segments.write_segment(store, "default", names, Clock().fresh_id())
    body = encode(usual)
    store.replace(layout.journal_entry("default", number), body)
    checkpoint.write_snapshot(
        store,
        "default",
        checkpoint.LedgerSnapshot(
            state=LedgerState(journal="j", sequence=number, digest=digest(body), last_batch=number),
            sums=Sums(),
            segments=(segment.ref,),
        ),
    )
    for step in range(1, tail + 1):
        body = encode(replace(usual, sequence=number + step, previous=digest(body)))
        store.replace(layout.journal_entry("default", number + step), body)
    return store, number + tail


def test_a_start_with_a_hundred_thousand_entries_reads_the_tail_alone():
    store, last = hundred_thousand(tail=5)
    store.requests.clear()
    history = read_ledger(store, "default")
    assert history.sequence == last
    assert history.lookup()("default:00099999").finished is not None
    # Receipt, snapshot, index, its entry, five more, one that is not there, one block.
    assert store.requests == {"get": 11, "list": 1}


def test_names_are_written_seldom_and_stand_in_few_segments():
    """The cost of writing grows as n log n."""
    store = Bucket()
    journal = opened(store)
    grow(journal, 400)
    segments = journal.ledger.segments
    assert len(segments) <= 8
    counts = [each.names for each in segments]
    assert counts == sorted(counts, reverse=True)
    names = sum(1 for _row in merged(segments, NAMES))
    assert names + len(journal.ledger.recent) == 1200
    derived = [name for name in store.names if "/known/" in name]
    assert len(derived) == 2 * len(segments)
    assert layout.snapshot("default") in store.names


def test_the_receipt_is_held_against_the_entry_that_it_names():
    """L21: also where that entry is older than the snapshot."""
    store = Bucket()
    journal = opened(store)
    grow(journal, 30)
    entry = store.bodies[layout.journal_entry("default", 4)]
    good = Receipt(journal=journal.id, sequence=4, digest=digest(entry))
    store.replace(layout.receipt("default"), encode(good))
    assert opened(store, run="run-2").sequence == 30
    store.replace(layout.receipt("default"), encode(replace(good, digest="ab")))
    with pytest.raises(JournalLost, match="entry 4"):
        opened(store, run="run-2")


def test_names_that_move_to_a_segment_while_they_are_asked_for_stay_known():
    """D01: a look ahead asks while the batch before it is written down."""
    store = Bucket()
    journal = opened(store)
    grow(journal, 4)
    asks = journal.ledger.lookup()
    assert asks("default:000001-0.ndjson").finished is not None
    journal.write_snapshot()
    assert asks("default:000001-0.ndjson").finished is not None
    grow(journal, 30)
    for number in range(1, 35):
        assert asks(f"default:{number:06d}-0.ndjson").finished is not None, number


@pytest.fixture
def store() -> Bucket:
    """Return the store of a journal of 25 entries."""
    store = Bucket()
    grow(opened(store), 25)
    return store


GARBAGE = [b"", b"{", b"\0" * 64, b'{"sequence": 3}']


def derived(store: Bucket) -> list[str]:
    return [name for name in store.names if "snapshot" in name or "/known/" in name]


@pytest.mark.parametrize("body", [*GARBAGE, None])
def test_whatever_is_derived_and_damaged_or_missing_is_built_again_from_the_entries(store, body):
    """D05: the snapshot, a segment, its index."""
    truth = from_entries(store)
    for name in derived(store):
        kept = store.bodies.pop(name)
        if body is not None:
            store.bodies[name] = body
        assert _known_after_all(store) == truth, name
        store.bodies[name] = kept


def test_a_name_that_no_entry_has_is_unknown_though_its_segment_is_damaged(store):
    """D05: what was built again is asked, not the segments of before."""
    known = KnownSources(read_ledger(store, "default"))
    for name in [name for name in store.names if name.endswith(".names")]:
        store.bodies[name] = b"\0" * len(store.bodies[name])
    assert known("default:000019-9.ndjson") == Recorded()
    assert known("default:000019-0.ndjson").finished is not None


def test_a_single_wrong_byte_in_what_is_derived_is_noticed(store):
    """D05."""
    truth = from_entries(store)
    for name in derived(store):
        kept = store.bodies[name]
        for place in range(0, len(kept), 97):
            store.bodies[name] = kept[:place] + bytes([kept[place] ^ 1]) + kept[place + 1 :]
            assert _known_after_all(store) == truth, (name, place)
        store.bodies[name] = kept


def _known_after_all(store: Bucket) -> dict[str, Any]:
    """Return what a run knows: it reads the entries again when names turn out to be damaged."""
    journal = Journal(store, identity(), read_ledger(store, "default"), Hands().clock)
    try:
        return state(journal.ledger, store)
    except segments.SegmentBroken as broken:
        journal.rebuild(str(broken))
        assert journal.ledger.rebuilt
        return state(journal.ledger, store)


def test_a_damaged_entry_is_named_in_the_tail_and_when_everything_has_to_be_read(store):
    """D05: a lost snapshot does not make anything start fresh."""
    path = layout.journal_entry("default", 23)
    kept = store.bodies[path]
    for body in GARBAGE:
        store.bodies[path] = body
        with pytest.raises(DocumentUnreadable, match=f"{23:020d}"):
            read_ledger(store, "default")
    store.bodies[path] = kept
    store.bodies[layout.journal_entry("default", 3)] = b"{"
    assert read_ledger(store, "default").sequence == 25
    store.bodies[layout.snapshot("default")] = b"{"
    with pytest.raises(DocumentUnreadable, match=f"{3:020d}"):
        read_ledger(store, "default")


def test_a_missing_entry_of_the_tail_is_a_gap(store):
    """L21."""
    store.delete(layout.journal_entry("default", 23))
    with pytest.raises(DocumentUnreadable, match="entry 23 is missing"):
        read_ledger(store, "default")


def test_a_journal_rolled_back_behind_its_snapshot_is_read_from_its_entries(store):
    """L21: the snapshot is not believed, and nothing of what it alone knows is."""
    for number in range(18, 26):
        store.delete(layout.journal_entry("default", number))
    history = read_ledger(store, "default")
    assert (history.sequence, history.kept) == (17, None)
    assert history.lookup()("default:000019-0.ndjson") == Recorded()


def test_a_snapshot_of_another_entry_is_not_believed():
    """L21: the entry was replaced, with those after it."""
    store = Bucket()
    grow(opened(store), 20)
    other = Bucket()
    grow(opened(other, run="another"), 20, files=1)
    for name in other.names:
        if layout.entry_sequence(name) is not None:
            store.bodies[name] = other.bodies[name]
    assert state(read_ledger(store, "default"), store) == from_entries(other)


def test_names_in_a_segment_know_whether_their_rows_were_taken_out():
    store, taken = Bucket(), IngestedFile(key="a", size=10, etag="e", entry=3, retracted=True)
    rows = [taken.row, replace(taken, key="b", retracted=False).row]
    segment = segments.write_segment(store, "default", rows, Clock().fresh_id())
    found = [IngestedFile.of(row) for row in segment.rows()]
    assert [one.retracted for one in found] == [True, False]
    assert found[0] == taken
