"""Snapshots and names of a running pipeline: written, moved, and unable to fail a batch."""

import errno
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from blizzard import events
from blizzard.journal.checkpoint import read_ledger
from blizzard.model.settings import Sizing
from lakebed import layout
from lakebed.documents.entry import decode_entry, digest, encode
from lakebed.errors import JournalConflict, StoreUnavailable
from lakebed.storage.options import ObjectFacts
from lakebed.storage.store import Store
from lakebed.types import OnChange
from tests.support.bucket import Bucket
from tests.support.builders import Bench, gz, ndjson, no_options, pipeline_settings, put, rows
from tests.support.recovery import OFTEN, grow, opened


class NoSnapshots(Store):
    """Whatever is derived from the journal cannot be written."""

    def replace(self, path: str, body: bytes) -> None:
        if "snapshot" in path:
            raise StoreUnavailable("no answer", path=path)
        super().replace(path, body)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    (tmp_path / "in").mkdir()
    sizing = Sizing(snapshots=OFTEN)
    return Bench(pipeline_settings(tmp_path / "in", tmp_path / "table", sizing=sizing))


def ingest(bench: Bench, number: int) -> None:
    source = Path(bench.settings.sources[0].uri)
    pipeline = bench.stepping()
    for _ in range(number):
        place = len(list(source.iterdir()))
        put(source, f"{place:04d}.ndjson", ndjson(rows(1, place)))
        assert pipeline.step()
    assert not pipeline.step()


def test_a_run_writes_snapshots_and_the_next_ones_ingest_nothing_twice(bench):
    """D01."""
    ingest(bench, 12)
    assert (bench.table / layout.snapshot("default")).exists()
    ingest(bench.again(run_id="run-2"), 12)
    found = [each.path for entry in bench.entries() for each in entry.sources]
    assert sorted(found) == [f"{number:04d}.ndjson" for number in range(24)]
    assert bench.said(events.HistoryRebuilt) == []


EMPTY = {"bytes.ndjson": b"", "stream.ndjson.gz": gz(b""), "blank.ndjson": b"\n\n"}


@pytest.mark.parametrize("on_change", [OnChange.ERROR, OnChange.IGNORE])
def test_files_that_were_empty_are_read_when_they_are_filled(bench, on_change):
    """L27: also by a later run that knows them from a segment."""
    folder = Path(bench.settings.sources[0].uri)
    source = replace(bench.settings.sources[0], on_change=on_change)
    bench.settings = replace(bench.settings, sources=(source,))
    for name, body in EMPTY.items():
        put(folder, name, body)
    ingest(bench, 12)
    found = read_ledger(Store(str(bench.table), no_options()), "default")
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


def test_a_snapshot_that_cannot_be_written_fails_no_batch(bench):
    failing = replace(bench, store=NoSnapshots)
    ingest(failing, 13)
    assert len(bench.entries()) == 14
    (told, *_more) = bench.said(events.SnapshotFailed)
    assert "no answer" in told.sentence()
    ingest(bench.again(run_id="run-2"), 1)
    assert len(bench.entries()) == 15


def test_a_local_disk_without_room_for_the_names_fails_no_batch(bench):
    """W16: they are spooled there before they go to the store."""

    class Full(Store):
        def upload(self, path: str, *given: Any, **how: Any) -> ObjectFacts:
            if "/known/" in path:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().upload(path, *given, **how)

    ingest(replace(bench, store=Full), 11)
    (told, *_more) = bench.said(events.SnapshotFailed)
    assert "No space left" in told.sentence()


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
        with pytest.raises(JournalConflict, match=r"has appended entry 3 \(batch\)"):
            journal.rebuild("damaged")


@pytest.mark.parametrize("kind", ["*.names", "*.index.json"])
def test_damaged_names_are_told_and_nothing_is_ingested_twice(bench, kind):
    """D05, D01."""
    ingest(bench, 12)
    for damaged in (bench.table / layout.known_folder("default")).glob(kind):
        damaged.write_bytes(b"{" + damaged.read_bytes()[1:])
    later = bench.again(run_id="run-2")
    ingest(later, 1)
    assert len(later.said(events.HistoryRebuilt)) == 1
    found = [each.path for entry in bench.entries() for each in entry.sources]
    assert sorted(found) == [f"{number:04d}.ndjson" for number in range(13)]
