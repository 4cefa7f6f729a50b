"""Penguin over a real table directory and a real Delta log."""

import json
from dataclasses import replace

import pytest

from lakebed.clock import Clock
from lakebed.deltalog.tables import newest_snapshot, preview
from lakebed.documents.records import SourceRecord
from lakebed.errors import LakeError
from lakebed.layout import data_file, journal_entry
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Reader
from lakebed.telemetry.events import Level
from penguin.committer import CommitMade, Committer
from penguin.delta.table import Log
from penguin.events.backlog import BacklogSeen
from penguin.pipeline import InlineCommitter
from penguin.status import explain
from tests.support.tables import (
    Penguin,
    TableDirectory,
    before_commit,
    commit_table,
    next_commit,
    rows_of,
)


@pytest.fixture
def table(tmp_path):
    return TableDirectory(tmp_path / "table")


def test_the_first_entry_creates_the_table_and_is_read_back(table):
    """D01: and a second penguin finds nothing to do."""
    table.journal().batch(rows_of(1, 2), rows_of(3, date="2026-01-02"), rows_of(4, date=None))
    penguin = Penguin(table).drain()
    assert table.ids() == [1, 2, 3, 4]
    assert table.ids("date = '2026-01-02'") == [3]
    assert table.ids("date IS NULL") == [4]
    assert (penguin.run.totals.commits, penguin.run.totals.rows) == (1, 4)
    assert table.receipt().sequence == 1
    assert Penguin(table).drain().run.totals.commits == 0
    assert table.versions() == 2


def test_a_new_table_has_sound_properties(table):
    """W15, D16: files may wait for two weeks, others make few checkpoints, nothing expires."""
    table.journal().batch(rows_of(1))
    Penguin(table).drain()
    assert table.delta().metadata().configuration == {
        "delta.checkpointInterval": "100",
        "delta.deletedFileRetentionDuration": "interval 14 days",
        "delta.dataSkippingStatsColumns": "id,name",
    }


def test_the_commit_says_which_entries_it_settles_in_transactions_that_never_expire(table):
    """A transaction without a time has none after which it is forgotten."""
    journal = table.journal()
    journal.batch(rows_of(1))
    journal.batch(rows_of(2))
    Penguin(table).drain()
    told = table.delta().history(1)[0]["penguin"]
    assert told["entries"] == {"events": {"journal": journal.id, "first": 1, "last": 2}}
    assert told["token"]
    lines = [json.loads(line) for line in table.commit_text(1).splitlines()]
    transactions = [line["txn"] for line in lines if "txn" in line]
    assert len(transactions) == 3
    assert all(not one.get("lastUpdated") for one in transactions)


def test_an_entry_that_only_a_twin_could_commit_is_already_committed(table):
    """D06, D08: the same plan carried out twice gives one version."""
    table.journal().batch(rows_of(1))
    plan = next_commit(table)
    Penguin(table).drain()
    versions = table.versions()
    committer = Committer(
        log=Log(table.store), store=table.store, clock=Clock(), pause=lambda _: None
    )
    assert committer.carry_out(plan) == CommitMade(1, by_other=True)
    assert table.versions() == versions
    assert table.ids() == [1]


def test_what_others_do_between_polls_brings_nothing_back(table):
    """D09, D11, D14: OPTIMIZE, VACUUM of the old files, and a RESTORE to before some rows."""
    journal = table.journal()
    journal.batch(rows_of(1))
    journal.batch(rows_of(2))
    Penguin(table).drain()
    table.delta().optimize.compact()
    table.delta().vacuum(0, enforce_retention_duration=False, dry_run=False)
    before = table.delta().version()
    journal.batch(rows_of(3))
    Penguin(table).drain()
    assert table.ids() == [1, 2, 3]
    assert Penguin(table).drain().run.totals.commits == 0
    table.delta().restore(before)
    assert Penguin(table).drain().run.totals.commits == 0
    assert table.ids() == [1, 2]


def test_optimize_in_the_very_moment_of_a_commit_neither_loses_nor_doubles(table):
    """D09, D08: another engine rewrites what is there while penguin adds."""
    journal = table.journal()
    for number in (1, 2):
        journal.batch(rows_of(number))
        Penguin(table).drain()
    journal.batch(rows_of(3))
    rewritten: list[int] = []

    def rewrite() -> None:
        rewritten.append(table.delta().optimize.compact()["numFilesRemoved"])

    Penguin(table, log=before_commit(rewrite)).drain()
    Penguin(table).drain()
    assert (table.ids(), rewritten) == ([1, 2, 3], [2])


def test_a_stopped_pipeline_goes_on_once_it_is_mended(table):
    entry = table.journal().batch(rows_of(1))
    path = table.root / journal_entry("events", 1)
    body = path.read_bytes()
    path.write_bytes(b"{")
    penguin = Penguin(table)
    for _ in range(3):
        penguin.step()
    told = [event for event in penguin.events if event.level > Level.TRACE]
    assert [type(event).__name__ for event in told] == ["PipelineStopped"]
    path.write_bytes(body)
    penguin.drain()
    assert penguin.codes == {}
    assert table.ids() == [1]
    assert entry.files
    assert "PipelineResumed" in [type(event).__name__ for event in penguin.events]


def test_transactions_outlive_a_checkpoint_and_the_cleaning_of_the_log(table):
    journal = table.journal()
    journal.batch(rows_of(1))
    Penguin(table, options={"checkpoint_interval": 1}).drain()
    (table.root / "_delta_log/00000000000000000000.json").unlink()
    assert Penguin(table).drain().run.totals.commits == 0
    journal.batch(rows_of(2))
    Penguin(table).drain()
    assert table.ids() == [1, 2]


def test_files_of_one_commit_are_bounded_and_all_get_in(table):
    journal = table.journal()
    for number in range(5):
        journal.batch(rows_of(number), rows_of(number + 100))
    penguin = Penguin(table, options={"max_files_per_commit": 4}).drain()
    assert penguin.run.totals.commits == 3
    assert len(table.ids()) == 10


def test_a_dry_run_writes_nothing_and_is_handed_nothing_that_could(table):
    table.journal().batch(rows_of(1, 2))
    before = sorted(table.root.rglob("*"))
    found = explain(table.settings(), Reader(str(table.root), StorageOptions()))
    assert found.view.version is None
    assert found.proposal.commit is not None
    assert found.proposal.commit.rows == 2
    assert sorted(table.root.rglob("*")) == before


def test_blizzard_can_commit_inline_and_ask_the_log(table):
    journal = table.journal()
    options = StorageOptions()
    uri = str(table.root)
    assert newest_snapshot(uri, options) is None
    assert newest_snapshot(f"{uri}/nowhere", options) is None
    journal.batch(rows_of(1))
    assert InlineCommitter.of(None, uri, options, emit=lambda _: None, clock=Clock())() == 1
    assert commit_table(table.settings(), table.store, lambda _: None, Clock()) == 0
    found = newest_snapshot(uri, options)
    assert found is not None
    assert found.knows("events")
    assert not found.knows("other")


def test_inline_raises_the_trouble_of_the_named_pipeline_only(table):
    table.journal().batch(rows_of(1))
    broken = table.journal("broken")
    broken.batch(rows_of(2), previous="0" * 64)
    arguments = (table.settings(), table.store, lambda _: None, Clock())
    assert commit_table(*arguments, pipeline="events") == 1
    with pytest.raises(LakeError, match="does not follow"):
        commit_table(*arguments)


def test_a_preview_shows_counts_and_rows(table):
    table.journal().batch(rows_of(1, 2), rows_of(3))
    Penguin(table).drain()
    seen = preview(str(table.root), rows=2)
    assert (seen.rows, seen.files, len(seen.first_rows)) == (3, 2, 2)
    assert seen.columns == ("id", "name", "date")


def test_thousands_of_waiting_files_are_committed_in_a_few_commits(table):
    """Entries are read a commit's worth at a time, and the bar knows how far it is."""
    journal = table.journal()
    one = journal.file(rows_of(1))
    body = (table.root / one.filename).read_bytes()
    clock = Clock()
    for _ in range(30):
        paths = [data_file(one.partition_values, clock.fresh_id()) for _ in range(100)]
        for path in paths:
            (table.root / path).write_bytes(body)
        files = tuple(replace(one, filename=path) for path in paths)
        source = SourceRecord(source="in", path="a", size=1, etag=None, lines=100, rows=100)
        journal.write(journal.entry(files=files, sources=(source,)))
    penguin = Penguin(table, options={"max_files_per_commit": 1200}).drain()
    assert (penguin.run.totals.commits, penguin.run.totals.files) == (3, 3000)
    assert max(event.files for event in penguin.events if isinstance(event, BacklogSeen)) == 1200
