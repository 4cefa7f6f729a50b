"""A start reads a snapshot and a tail; what is derived can be built again, entries cannot."""

import errno
import hashlib
import json
import threading
from collections import Counter, OrderedDict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from blizzard import events
from blizzard.journal import compaction, ingested, snapshot
from blizzard.journal.journal import Journal
from blizzard.journal.state import Before, History, read_history
from blizzard.model.files import IngestedFile
from lakebed import layout
from lakebed.clock import Clock
from lakebed.documents.entry import Entry, Receipt, decode_entry, digest, encode
from lakebed.errors import DocumentUnreadable, JournalLost, StoreUnavailable
from lakebed.storage.store import Store
from lakebed.types import Handoff, OnChange
from tests.support.bucket import Bucket
from tests.support.builders import (
    Bench,
    Hands,
    failure,
    finished_file,
    gz,
    identity,
    ndjson,
    no_options,
    pipeline_settings,
    put,
    record,
    rows,
)

GARBAGE = [b"", b"{", b"\0" * 64, b'{"sequence": 3}']


@pytest.fixture
def often(monkeypatch):
    """Let a snapshot be due after ten entries or twenty names."""
    monkeypatch.setattr(compaction, "EVERY_ENTRIES", 10)
    monkeypatch.setattr(compaction, "EVERY_NAMES", 20)


def opened(store: Store, *, run: str = "run-1", **given: Any) -> Journal:
    spill = compaction.SnapshotWriter(store=store, pipeline="default", clock=Clock()).spill
    history = read_history(store, "default", spill=spill)
    who = identity(run=run, **given)
    journal = Journal(store, who, history, Hands().clock, lambda _secs: None)
    journal.open_with(lambda: False)
    return journal


def grow(journal: Journal, batches: int, *, files: int = 3) -> None:
    """Append batches as the pipeline does, with a snapshot whenever one is due."""
    for _ in range(batches):
        number = journal.sequence + 1
        done = [record(f"{number:06d}-{file}.ndjson") for file in range(files)]
        bad = record(f"bad-{number:06d}.ndjson", failure=failure(retryable=True))
        journal.append((*done, bad) if number % 7 == 0 else tuple(done), (finished_file(),))
        if journal.snapshot_is_due:
            journal.write_snapshot()


def state(history: History, store: Store) -> dict[str, Any]:
    """Give all that a history knows, however it came to know it."""
    lookup = history.lookup(store, "default")
    every = [f"default:{n:06d}-{f}.ndjson" for n in range(80) for f in range(3)]
    return {
        "journal": history.journal,
        "sequence": history.sequence,
        "digest": history.digest,
        "names": history.source_names,
        "uris": history.source_uris,
        "since": history.since,
        "last": history.last,
        "unfinished": history.unfinished,
        "finished": {key: lookup(key).finished for key in every},
    }


def from_entries(store: Bucket) -> dict[str, Any]:
    """Give what the entries alone say."""
    bare = Bucket()
    for name in store.names:
        if layout.entry_sequence(name) is not None:
            bare.replace(name, store.bodies[name])
    return state(read_history(bare, "default"), bare)


def entry_reads(store: Bucket, monkeypatch) -> Counter[int]:
    """Count which entries are read from now on."""
    read: Counter[int] = Counter()
    real = store.get

    def get(path: str) -> bytes | None:
        number = layout.entry_sequence(path)
        if number is not None:
            read[number] += 1
        return real(path)

    monkeypatch.setattr(store, "get", get)
    return read


# ------------------------------------------------------------------------------ reading


@pytest.mark.parametrize("batches", [1, 9, 10, 11, 25, 60])
def test_a_start_from_a_snapshot_knows_what_the_entries_say(often, batches):
    """D01."""
    store = Bucket()
    grow(opened(store), batches)
    assert state(read_history(store, "default"), store) == from_entries(store)


def test_where_sources_are_and_were_is_known_from_a_snapshot_too(often):
    """HOLES L26, D19: a source that was moved, and one that is not configured any more."""
    store = Bucket()
    journal = opened(store, source_uris={"default": "/in", "old": "/old"})
    grow(journal, 3)
    last = decode_entry(store.bodies[layout.journal_entry("default", 3)], "")
    moved = last.successor(
        "moved",
        previous=journal._history.digest,
        run="r",
        created=last.created,
        source_uris={**last.source_uris, "default": "/moved"},
        moved="default",
    )
    store.create(layout.journal_entry("default", 4), encode(moved))
    grow(opened(store, run="run-2", source_uris={"default": "/moved"}), 20)
    history = read_history(store, "default")
    assert history.kept
    assert history.source_uris == {"default": "/moved", "old": "/old"}
    assert history.source_names == {"/moved": "default", "/old": "old"}
    assert state(history, store) == from_entries(store)


def test_a_snapshot_that_was_written_before_there_was_a_field_is_believed(often):
    """Nothing on disk becomes worthless by an upgrade."""
    store = Bucket()
    grow(opened(store, source_uris={"default": "/in", "old": "/old"}), 25)
    kept = read_history(store, "default").kept
    assert kept is not None
    path = layout.snapshot("default", kept)
    document = json.loads(store.bodies[path])
    del document["source_uris"]
    bare = json.dumps({**document, "check": ""}, separators=(",", ":"), ensure_ascii=False)
    document["check"] = hashlib.sha256(bare.encode()).hexdigest()
    older = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    store.bodies[path] = older.encode() + b"\n"
    history = read_history(store, "default")
    assert (history.rebuilt, history.kept) == (None, document["sequence"])
    assert state(history, store) == from_entries(store)


def test_a_start_reads_a_snapshot_and_a_tail_and_not_the_history(often, monkeypatch):
    """No more requests after 335 entries than after 35 can be."""
    store = Bucket()
    journal = opened(store)
    grow(journal, 35)
    requests = []
    for _ in range(2):
        store.requests.clear()
        read_history(store, "default")
        requests.append({kind: store.requests[kind] for kind in ("get", "list")})
        grow(journal, 300)
    assert requests[0]["list"] == requests[1]["list"] == 1
    # Receipt, note, snapshot, up to ten entries, one that is not there, and a few segments.
    assert max(each["get"] for each in requests) <= 14 + 8
    read = entry_reads(store, monkeypatch)
    history = read_history(store, "default")
    assert min(read) >= history.sequence - 10


def hundred_thousand(tail: int) -> tuple[Bucket, int]:
    """Make a journal whose entries before a snapshot cannot be read: they are not there."""
    store = Bucket()
    number, previous = 100_000, "0" * 64
    usual = Entry(
        kind="batch",
        pipeline="default",
        journal="j",
        sequence=number,
        run="r",
        created="2024-01-01T00:00:00+00:00",
        previous=previous,
        handoff=Handoff.JOURNAL,
        source_uris={"default": "/in"},
        table_schema={},
        partition_columns=(),
        files=(finished_file(),),
    )
    names = (IngestedFile(key=f"default:{n:08d}", size=1, etag="e") for n in range(100_000))
    segment = ingested.write_segment(store, "default", names, Clock().fresh_id())
    body = encode(usual)
    store.replace(layout.journal_entry("default", number), body)
    snapshot.write(
        store,
        "default",
        snapshot.Snapshot(
            journal="j",
            sequence=number,
            digest=digest(body),
            last=number,
            segments=(ingested.SegmentRef(id=segment.id, names=100_000, digest=segment.digest),),
        ),
    )
    for step in range(1, tail + 1):
        body = encode(replace(usual, sequence=number + step, previous=digest(body)))
        store.replace(layout.journal_entry("default", number + step), body)
    return store, number + tail


def test_a_start_with_a_hundred_thousand_entries_reads_the_tail_alone():
    store, last = hundred_thousand(tail=5)
    store.requests.clear()
    history = read_history(store, "default")
    assert history.sequence == last
    assert history.lookup(store, "default")("default:00099999").finished is not None
    # Receipt, note, snapshot, index, its entry, five more, one that is not there, one block.
    assert store.requests == {"get": 12, "list": 1}


def test_names_are_written_seldom_and_stand_in_few_segments(often):
    """The cost of writing grows as n log n."""
    store = Bucket()
    journal = opened(store)
    grow(journal, 400)
    segments = journal._history.segments
    assert len(segments) <= 8
    counts = [each.names for each in segments]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) + len(journal._history.recent) == 1200
    assert len([name for name in store.names if "/known/" in name]) == 2 * len(segments)
    assert len([name for name in store.names if ".snapshot." in name]) == 1


def test_the_receipt_is_held_against_the_entry_that_it_names(often):
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


def test_names_that_move_to_a_segment_while_they_are_asked_for_stay_known(often):
    """D01: a look ahead asks while the batch before it is written down."""
    store = Bucket()
    journal = opened(store)
    grow(journal, 4)
    asks = journal.lookup()
    assert asks("default:000001-0.ndjson").finished is not None
    journal.write_snapshot()
    assert asks("default:000001-0.ndjson").finished is not None
    grow(journal, 30)
    for number in range(1, 35):
        assert asks(f"default:{number:06d}-0.ndjson").finished is not None, number


# ------------------------------------------------------------------------------ damage


def derived(store: Bucket) -> list[str]:
    return [name for name in store.names if "snapshot" in name or "/known/" in name]


@pytest.mark.parametrize("body", GARBAGE)
def test_whatever_is_derived_and_damaged_is_built_again_from_the_entries(often, body):
    """D05: the snapshot, the note, a segment, its index."""
    store = Bucket()
    grow(opened(store), 25)
    truth = from_entries(store)
    for name in derived(store):
        kept = store.bodies[name]
        store.bodies[name] = body
        assert _known_after_all(store) == truth, name
        store.bodies[name] = kept


def test_whatever_is_derived_and_missing_is_built_again_from_the_entries(often):
    """D05."""
    store = Bucket()
    grow(opened(store), 25)
    truth = from_entries(store)
    for name in derived(store):
        kept = store.bodies.pop(name)
        assert _known_after_all(store) == truth, name
        store.bodies[name] = kept


def test_a_single_wrong_byte_in_what_is_derived_is_noticed(often):
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
    """Give what a run knows: it reads the entries again when names turn out to be damaged."""
    journal = Journal(store, identity(), read_history(store, "default"), Hands().clock)
    try:
        return state(journal._history, store)
    except ingested.SegmentBroken as broken:
        journal.rebuild(str(broken))
        assert journal.rebuilt
        return state(journal._history, store)


@pytest.mark.parametrize("body", GARBAGE)
def test_a_damaged_entry_of_the_tail_stops_the_run_by_name(often, body):
    """D05."""
    store = Bucket()
    grow(opened(store), 25)
    path = layout.journal_entry("default", 23)
    store.bodies[path] = body
    with pytest.raises(DocumentUnreadable, match=f"{23:020d}"):
        read_history(store, "default")


def test_a_damaged_entry_is_named_when_everything_has_to_be_read(often):
    """D05: a lost snapshot does not make anything start fresh."""
    store = Bucket()
    grow(opened(store), 25)
    store.bodies[layout.journal_entry("default", 3)] = b"{"
    assert read_history(store, "default").sequence == 25
    store.bodies[layout.latest_snapshot("default")] = b"{"
    with pytest.raises(DocumentUnreadable, match=f"{3:020d}"):
        read_history(store, "default")


def test_a_missing_entry_of_the_tail_is_a_gap(often):
    """L21."""
    store = Bucket()
    grow(opened(store), 25)
    store.delete(layout.journal_entry("default", 23))
    with pytest.raises(DocumentUnreadable, match="entry 23 is missing"):
        read_history(store, "default")


def test_a_journal_rolled_back_behind_its_snapshot_is_read_from_its_entries(often):
    """L21: the snapshot is not believed, and nothing of what it alone knows is."""
    store = Bucket()
    grow(opened(store), 25)
    for number in range(18, 26):
        store.delete(layout.journal_entry("default", number))
    history = read_history(store, "default")
    assert (history.sequence, history.kept) == (17, None)
    assert history.lookup(store, "default")("default:000019-0.ndjson") == Before()


def test_a_snapshot_of_another_entry_is_not_believed(often):
    """L21: the entry was replaced, with those after it."""
    store = Bucket()
    grow(opened(store), 20)
    other = Bucket()
    grow(opened(other, run="another"), 20, files=1)
    for name in other.names:
        if layout.entry_sequence(name) is not None:
            store.bodies[name] = other.bodies[name]
    assert state(read_history(store, "default"), store) == from_entries(other)


# ------------------------------------------------------------------------------ in a run


class NoSnapshots(Store):
    """Whatever is derived from the journal cannot be written."""

    def replace(self, path: str, body: bytes) -> None:
        if "snapshot" in path:
            raise StoreUnavailable("no answer", path=path)
        super().replace(path, body)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    (tmp_path / "in").mkdir()
    return Bench(pipeline_settings(tmp_path / "in", tmp_path / "table"))


def ingest(bench: Bench, number: int) -> None:
    source = Path(bench.settings.sources[0].uri)
    pipeline = bench.pipeline()
    for _ in range(number):
        place = len(list(source.iterdir()))
        put(source, f"{place:04d}.ndjson", ndjson(rows(1, place)))
        assert pipeline.step()
    assert not pipeline.step()


def test_a_run_writes_snapshots_and_the_next_ones_ingest_nothing_twice(bench, often):
    """D01."""
    ingest(bench, 12)
    assert (bench.table / layout.latest_snapshot("default")).exists()
    ingest(bench.again(run_id="run-2"), 12)
    found = [each.path for entry in bench.entries() for each in entry.sources]
    assert sorted(found) == [f"{number:04d}.ndjson" for number in range(24)]
    assert bench.said(events.HistoryRebuilt) == []


EMPTY = {
    "bytes.ndjson": b"",
    "stream.ndjson.gz": gz(b""),
    "blank.ndjson": b"\n\n",
}


@pytest.mark.parametrize("on_change", [OnChange.ERROR, OnChange.IGNORE])
def test_files_that_were_empty_are_read_when_they_are_filled(bench, often, on_change):
    """L27: also by a later run that knows them from a segment."""
    folder = Path(bench.settings.sources[0].uri)
    source = replace(bench.settings.sources[0], on_change=on_change)
    bench.settings = replace(bench.settings, sources=(source,))
    for name, body in EMPTY.items():
        put(folder, name, body)
    ingest(bench, 12)
    found = read_history(Store(str(bench.table), no_options()), "default")
    assert len(found.segments) == 1
    assert not any(f"default:{name}" in found.recent for name in EMPTY)
    body = ndjson(rows(2, 100))
    for name in EMPTY:
        put(folder, name, gz(body) if name.endswith(".gz") else body)
    later = bench.again(run_id="run-2").pipeline()
    assert later.step()
    assert {each.path: each.rows for each in bench.entries()[-1].sources} == dict.fromkeys(EMPTY, 2)
    assert not any(each.reingested for each in bench.entries()[-1].sources)
    assert not later.step()


def test_a_program_that_does_not_know_the_marks_of_empty_files_does_not_use_them(often):
    """L27: it reads the entries instead, as from any snapshot of another format."""
    store = Bucket()
    journal = opened(store)
    grow(journal, 12)
    latest = snapshot.read_latest(store, "default")
    assert latest is not None
    assert latest.format == 1
    empty = replace(record("stream.ndjson.gz"), lines=0, rows=0)
    journal.append((empty,), ())
    grow(journal, 12)
    latest = snapshot.read_latest(store, "default")
    assert latest is not None
    assert latest.format == 2
    again = opened(store, run="run-2")
    finished = again.lookup()("default:stream.ndjson.gz").finished
    assert finished is not None
    assert finished.empty
    grow(again, 12)
    latest = snapshot.read_latest(store, "default")
    assert latest is not None
    assert latest.format == 2


def test_names_move_only_while_no_look_ahead_can_ask_for_them(bench, often, monkeypatch):
    """D01: between memory and segment a name would be in neither."""
    ingest(bench, 11)
    held: list[bool] = []
    pipeline = bench.again(run_id="run-2").pipeline()
    real = Journal.write_snapshot

    def keep(journal: Journal) -> None:
        held.append(pipeline._schedule.journal_lock.locked())
        real(journal)

    monkeypatch.setattr(Journal, "write_snapshot", keep)
    monkeypatch.setattr(Journal, "snapshot_is_due", True)
    pipeline.step()
    assert held == [True]


def test_a_snapshot_that_cannot_be_written_fails_no_batch(bench, often):
    failing = replace(bench, store=NoSnapshots)
    ingest(failing, 13)
    assert len(bench.entries()) == 14
    (told, *_more) = bench.said(events.SnapshotFailed)
    assert "no answer" in told.sentence()
    ingest(bench.again(run_id="run-2"), 1)
    assert len(bench.entries()) == 15


def test_a_local_disk_without_room_for_the_names_fails_no_batch(bench, often, monkeypatch):
    """W16: they are spooled there before they go to the store."""

    def full(*_given: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(compaction, "write_segment", full)
    ingest(bench, 11)
    (told, *_more) = bench.said(events.SnapshotFailed)
    assert "No space left" in told.sentence()


def test_a_block_may_be_evicted_while_another_look_asks_for_it():
    """A look ahead that was dropped goes on beside the look that takes its place."""
    asked, evicted = threading.Event(), threading.Event()

    class Interrupted(OrderedDict[tuple[str, int], dict[str, IngestedFile]]):
        def get(self, *given: Any) -> Any:
            found = super().get(*given)
            asked.set()
            evicted.wait(0.2)
            return found

    blocks = ingested.Blocks(kept=Interrupted())
    blocks.put(("segment", 0), {})

    def other_look() -> None:
        asked.wait(60)
        for number in range(ingested.CACHED):
            blocks.put(("segment", number + 1), {})
        evicted.set()

    other = threading.Thread(target=other_look)
    other.start()
    assert blocks.get(("segment", 0)) == {}
    other.join(60)
    assert len(blocks.kept) == ingested.CACHED


@pytest.mark.parametrize("kind", ["gc", "redo", "batch"])
def test_names_are_built_again_beside_a_clean_up_and_not_beside_another_run(kind):
    """D05, D07, W20, and HOLES W48: a redo is no reason to take the journal for lost."""
    store = Bucket()
    journal = opened(store)
    grow(journal, 2)
    path = layout.journal_entry("default", 2)
    last = store.get(path)
    assert last is not None
    other = replace(
        decode_entry(last, path), kind=kind, sequence=3, previous=digest(last), sources=(), files=()
    )
    store.create(layout.journal_entry("default", 3), encode(other))
    if kind != "batch":
        journal.rebuild("damaged")
        assert journal.sequence == 3
    else:
        with pytest.raises(JournalLost):
            journal.rebuild("damaged")


@pytest.mark.parametrize("kind", ["*.names", "*.index.json"])
def test_damaged_names_are_told_and_nothing_is_ingested_twice(bench, often, kind):
    """D05, D01."""
    ingest(bench, 12)
    for damaged in (bench.table / layout.known_folder("default")).glob(kind):
        damaged.write_bytes(b"{" + damaged.read_bytes()[1:])
    later = bench.again(run_id="run-2")
    ingest(later, 1)
    assert len(later.said(events.HistoryRebuilt)) == 1
    found = [each.path for entry in bench.entries() for each in entry.sources]
    assert sorted(found) == [f"{number:04d}.ndjson" for number in range(13)]
