"""What becomes of a journaled batch: metas, moves, doing it again, and waiting for commits."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from blizzard.handoff.publish import (
    CommitsBehind,
    HandoffResult,
    Publisher,
    check_commits,
    waiting_since,
)
from blizzard.model.settings import SinkSettings
from lakebed.clock import Clock
from lakebed.documents.entry import DirectoryProtocol, Entry, Receipt, digest, encode
from lakebed.errors import ObjectMissing, ProtocolConflict, StoreUnavailable
from lakebed.layout import data_file, protocol, receipt
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from lakebed.types import Handoff
from penguin.model.settings import TableSettings
from tests.support.builders import (
    Bench,
    PatientLog,
    finished_file,
    identity,
    ndjson,
    pipeline_settings,
    put,
    rows,
)
from tests.support.stores import local, refusing
from tests.support.tables import TableDirectory, commit_table, rows_of


def no(_entry: Entry) -> bool:
    return False


def entry_of(files: int = 2, handoff: Handoff = Handoff.STAGING, **given: Any) -> Entry:
    named = tuple(
        replace(
            finished_file(data_file({"date": f"2024-01-0{number + 1}"}, Clock().fresh_id())), size=4
        )
        for number in range(files)
    )
    return identity(
        kind="batch",
        journal="j-1",
        sequence=7,
        handoff=handoff,
        source_uris={"default": "s3://bucket/"},
        files=named,
        **given,
    )


def metas(root: Path) -> list[str]:
    return sorted(path.name for path in (root / "_staging/pending").glob("*"))


def test_a_meta_says_what_the_protocol_asks_for_and_which_entry_it_rings_for(tmp_path: Path):
    store = local(tmp_path)
    entry = entry_of(1)
    (file,) = entry.files

    assert Publisher(is_committed=no).publish(store, entry, redo=False) == HandoffResult(files=1)

    (path,) = (tmp_path / "_staging/pending").glob("*")
    assert path.name == file.filename.rpartition("/")[2].replace(".parquet", ".meta.json")
    assert json.loads(path.read_bytes()) == {
        "filename": file.filename,
        "size": 4,
        "record_count": 3,
        "partition_values": {"date": "2024-01-01", "region": None},
        "source_file": "s3://bucket/a.ndjson",
        "source_files": ["s3://bucket/a.ndjson"],
        "pipeline": "default",
        "journal": "j-1",
        "entry": 7,
    }


@pytest.mark.parametrize("handoff", [Handoff.STAGING, Handoff.DIRECT])
def test_of_a_committed_entry_no_meta_is_written_again_and_nothing_moved(
    tmp_path: Path, handoff: Handoff
) -> None:
    """D11: penguin has deleted the metas; VACUUM may have taken the files since (D09)."""
    publisher = Publisher(is_committed=lambda _entry: True)
    entry = entry_of(handoff=handoff)
    assert publisher.publish(local(tmp_path), entry, redo=True) == HandoffResult()
    assert metas(tmp_path) == []


def test_a_file_that_is_in_neither_place_stops_the_hand_off(tmp_path: Path) -> None:
    entry = entry_of(handoff=Handoff.DIRECT)
    with pytest.raises(ObjectMissing, match="neither in its waiting place"):
        Publisher(is_committed=no).publish(local(tmp_path), entry, redo=True)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    put(tmp_path / "in", "a.ndjson", ndjson(rows(3)))
    return tmp_path / "in"


def bench(tmp_path: Path, source: Path, handoff: Handoff, **given: object) -> Bench:
    sink = SinkSettings(table_uri=str(tmp_path / "table"), handoff=handoff)
    return Bench(
        pipeline_settings(source, tmp_path / "table", sink=sink),
        publisher=Publisher(is_committed=no),
        **given,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("handoff", [Handoff.STAGING, Handoff.DIRECT])
def test_nothing_is_seen_of_a_batch_before_its_entry(
    tmp_path: Path, source: Path, handoff: Handoff
) -> None:
    """L07: in `direct` not even the file; in `staging` no meta (D02)."""
    made = bench(tmp_path, source, handoff)
    breaks = refusing(f"{1:020d}.json", ProtocolConflict("it ends here"))
    with pytest.raises(ProtocolConflict):
        replace(made, store=breaks).pipeline().step()
    assert metas(made.table) == []
    assert len(list(made.table.glob("*.parquet"))) == (handoff is Handoff.STAGING)
    assert len(list(made.table.rglob("*.parquet"))) == 1


def test_an_entry_without_files_does_not_hide_the_last_one_with_files(tmp_path: Path, source: Path):
    made = bench(tmp_path, source, Handoff.STAGING)
    assert made.pipeline().step()
    put(source, "bad.ndjson", b"no json\n")
    assert made.again(run_id="run-2").pipeline().step()
    (meta,) = (made.table / "_staging/pending").glob("*")
    meta.unlink()
    made.again(run_id="run-3").pipeline().step()
    assert metas(made.table) == [meta.name]


def test_a_hand_off_that_was_changed_meanwhile_stops_the_pipeline_before_its_next_batch(
    tmp_path: Path, source: Path
) -> None:
    made = bench(tmp_path, source, Handoff.JOURNAL)
    pipeline = made.stepping()
    assert pipeline.step()
    local(made.table).create(protocol(2), encode(DirectoryProtocol(handoff=Handoff.STAGING)))
    put(source, "b.ndjson", ndjson(rows(3, 3)))
    with pytest.raises(ProtocolConflict, match="staging"):
        pipeline.step()
    assert len(made.entries()) == 2


@pytest.mark.parametrize("before", Handoff)
@pytest.mark.parametrize("now", Handoff)
def test_a_batch_is_handed_off_as_its_entry_says_whatever_the_configuration_says_by_then(
    tmp_path: Path, source: Path, before: Handoff, now: Handoff
) -> None:
    """HOLES W22: the hand-off was changed during a batch that died before it was handed off."""

    class Dies(Publisher):
        def publish(self, store: object, last: Entry, *, redo: bool) -> HandoffResult:
            if last.files:
                raise StoreUnavailable("it died here")
            return HandoffResult()

    made = bench(tmp_path, source, before)
    with pytest.raises(StoreUnavailable):
        replace(made, publisher=Dies()).pipeline().step()
    if now is not before:
        local(made.table).create(protocol(2), encode(DirectoryProtocol(handoff=now)))

    later = bench(tmp_path, source, now, run_id="run-2")
    assert not later.pipeline().step()

    (file,) = made.entries()[1].files
    assert (made.table / file.filename).stat().st_size == file.size
    assert len(metas(made.table)) == (before is Handoff.STAGING)


DAY = timedelta(days=1)


@pytest.fixture
def table(tmp_path):
    table = TableDirectory(tmp_path / "table")
    for number in (1, 2):
        table.journal().batch(rows_of(number), created=f"2026-01-0{number}T00:00:00+00:00")
    return table


def committed(table, sequence):
    journal = table.journal()
    body = journal.bodies[sequence]
    note = Receipt(journal=journal.id, sequence=sequence, digest=digest(body))
    table.store.replace(receipt("events"), encode(note))


def check(table, waited, keeps=14 * DAY):
    since = waiting_since(table.store, "events", last=2)
    asked = []

    def retention():
        asked.append(keeps)
        return keeps

    now = since + waited
    check_commits(table.store, "events", last=2, now=now, retention=retention)
    return asked


def test_the_oldest_entry_that_is_not_committed_counts(table):
    assert waiting_since(table.store, "events", last=2) == datetime(2026, 1, 1, tzinfo=UTC)
    committed(table, 1)
    assert waiting_since(table.store, "events", last=2) == datetime(2026, 1, 2, tzinfo=UTC)
    committed(table, 2)
    assert waiting_since(table.store, "events", last=2) is None


def test_new_work_is_refused_at_half_of_the_retention(table):
    """W15: what is written and not committed is not made more."""
    check(table, 6.9 * DAY)
    with pytest.raises(CommitsBehind, match="Start penguin"):
        check(table, 7 * DAY)
    with pytest.raises(CommitsBehind):
        check(table, 1 * DAY, keeps=2 * DAY)


def test_a_pipeline_reads_nothing_new_until_penguin_has_caught_up(tmp_path):
    """W15: the source files wait where they are safe, and are read once it has."""
    source = tmp_path / "in"
    source.mkdir()
    bench = Bench(settings=pipeline_settings(source, tmp_path / "table"))
    (source / "a.ndjson").write_bytes(ndjson(rows(1)))
    pipeline = bench.stepping()
    pipeline.log = PatientLog(pipeline.settings, keeps=2 * DAY)
    assert pipeline.step()
    bench.hands.at += 1.5 * DAY.total_seconds()
    (source / "b.ndjson").write_bytes(ndjson(rows(1)))
    with pytest.raises(CommitsBehind):
        pipeline.step()
    assert len(bench.entries()) == 2
    table = TableSettings(name="t", table_uri=str(bench.table))
    store = Store(str(bench.table), StorageOptions())
    commit_table(table, store, lambda _event: None, Clock())
    assert pipeline.step()
    assert len(bench.entries()) == 3


def test_entries_without_files_wait_for_no_commit(table):
    """W15: a clean-up or failures of long ago say nothing about the files of today."""
    committed(table, 2)
    journal = table.journal()
    journal.write(journal.entry(created="2026-01-03T00:00:00+00:00"))
    journal.batch(rows_of(3), created="2026-05-01T00:00:00+00:00")
    assert waiting_since(table.store, "events", last=3) is None
    assert waiting_since(table.store, "events", last=4) == datetime(2026, 5, 1, tzinfo=UTC)
