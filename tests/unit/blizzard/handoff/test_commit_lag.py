from datetime import UTC, datetime, timedelta

import pytest

from blizzard.handoff.publish import CommitsBehind, check_commits, waiting_since
from lakebed.clock import Clock
from lakebed.documents.entry import Receipt, digest, encode
from lakebed.layout import receipt
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from penguin.model.settings import TableSettings
from tests.support.builders import Bench, PatientLog, ndjson, pipeline_settings, rows
from tests.support.tables import TableDirectory, commit_table, rows_of

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
