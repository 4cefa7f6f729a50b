"""What is derived and damaged is built again from the entries; a damaged entry stops the run."""

from typing import Any

import pytest

from blizzard.journal import segments
from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.journal import Journal
from blizzard.journal.ledger import Before
from blizzard.journal.source_names import KnownSources
from lakebed import layout
from lakebed.errors import DocumentUnreadable
from tests.support.bucket import Bucket
from tests.support.builders import Hands, identity
from tests.support.recovery import from_entries, grow, opened, state

GARBAGE = [b"", b"{", b"\0" * 64, b'{"sequence": 3}']


def derived(store: Bucket) -> list[str]:
    return [name for name in store.names if "snapshot" in name or "/known/" in name]


@pytest.mark.parametrize("body", GARBAGE)
def test_whatever_is_derived_and_damaged_is_built_again_from_the_entries(body):
    """D05: the snapshot, the note, a segment, its index."""
    store = Bucket()
    grow(opened(store), 25)
    truth = from_entries(store)
    for name in derived(store):
        kept = store.bodies[name]
        store.bodies[name] = body
        assert _known_after_all(store) == truth, name
        store.bodies[name] = kept


def test_a_name_that_no_entry_has_is_unknown_though_its_segment_is_damaged():
    """D05: what was built again is asked, not the segments of before."""
    store = Bucket()
    grow(opened(store), 25)
    known = KnownSources(read_ledger(store, "default"))
    for name in [name for name in store.names if name.endswith(".names")]:
        store.bodies[name] = b"\0" * len(store.bodies[name])
    assert known("default:000019-9.ndjson") == Before()
    assert known("default:000019-0.ndjson").finished is not None


def test_whatever_is_derived_and_missing_is_built_again_from_the_entries():
    """D05."""
    store = Bucket()
    grow(opened(store), 25)
    truth = from_entries(store)
    for name in derived(store):
        kept = store.bodies.pop(name)
        assert _known_after_all(store) == truth, name
        store.bodies[name] = kept


def test_a_single_wrong_byte_in_what_is_derived_is_noticed():
    """D05."""
    store = Bucket()
    grow(opened(store), 25)
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


@pytest.mark.parametrize("body", GARBAGE)
def test_a_damaged_entry_of_the_tail_stops_the_run_by_name(body):
    """D05."""
    store = Bucket()
    grow(opened(store), 25)
    path = layout.journal_entry("default", 23)
    store.bodies[path] = body
    with pytest.raises(DocumentUnreadable, match=f"{23:020d}"):
        read_ledger(store, "default")


def test_a_damaged_entry_is_named_when_everything_has_to_be_read():
    """D05: a lost snapshot does not make anything start fresh."""
    store = Bucket()
    grow(opened(store), 25)
    store.bodies[layout.journal_entry("default", 3)] = b"{"
    assert read_ledger(store, "default").sequence == 25
    store.bodies[layout.latest_snapshot("default")] = b"{"
    with pytest.raises(DocumentUnreadable, match=f"{3:020d}"):
        read_ledger(store, "default")


def test_a_missing_entry_of_the_tail_is_a_gap():
    """L21."""
    store = Bucket()
    grow(opened(store), 25)
    store.delete(layout.journal_entry("default", 23))
    with pytest.raises(DocumentUnreadable, match="entry 23 is missing"):
        read_ledger(store, "default")


def test_a_journal_rolled_back_behind_its_snapshot_is_read_from_its_entries():
    """L21: the snapshot is not believed, and nothing of what it alone knows is."""
    store = Bucket()
    grow(opened(store), 25)
    for number in range(18, 26):
        store.delete(layout.journal_entry("default", number))
    history = read_ledger(store, "default")
    assert (history.sequence, history.kept) == (17, None)
    assert history.lookup()("default:000019-0.ndjson") == Before()


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
