"""Penguin over a real table directory and a real Delta log."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lakebed.clock import Clock
from lakebed.documents.entry import SourceRecord, encode
from lakebed.errors import LakeError, NoExclusiveCreate
from lakebed.layout import data_file, journal_entry, log_version, protocol, receipt
from lakebed.schema import Field, Schema
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Created, Reader, Store
from lakebed.telemetry.events import Level
from lakebed.types import FieldType
from penguin import inline
from penguin.committer import AlreadyCommitted, Committer
from penguin.delta import preview
from penguin.delta.snapshot import pipeline_known
from penguin.delta.table import Log, Table
from penguin.events.backlog import BacklogSeen, FilesLookedAt
from penguin.events.commits import CommittedByOther, EntriesCommitted
from penguin.inspect.explain import explain
from penguin.model.errors import CommitFailed
from penguin.pipeline import commit_table
from tests.support.tables import EVENTS, Penguin, TableDirectory, next_commit, opened, rows_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def table(tmp_path):
    return TableDirectory(tmp_path / "table")


def with_column(name="extra", kind=FieldType.STRING, *, nullable=True):
    return Schema((*EVENTS.fields, Field(name=name, type=kind, nullable=nullable)))


def test_the_first_entry_creates_the_table_and_is_read_back(table):
    table.journal().batch(rows_of(1, 2), rows_of(3, date="2026-01-02"), rows_of(4, date=None))
    penguin = Penguin(table).drain()
    assert table.ids() == [1, 2, 3, 4]
    assert table.ids("date = '2026-01-02'") == [3]
    assert table.ids("date IS NULL") == [4]
    assert (penguin.run.totals.commits, penguin.run.totals.rows) == (1, 4)
    assert table.receipt().sequence == 1


def test_a_new_table_has_sound_properties(table):
    """W15, D16: files may wait for two weeks, others make few checkpoints, nothing expires."""
    table.journal().batch(rows_of(1))
    Penguin(table).drain()
    assert table.delta().metadata().configuration == {
        "delta.checkpointInterval": "100",
        "delta.deletedFileRetentionDuration": "interval 14 days",
        "delta.dataSkippingStatsColumns": "id,name",
    }


def test_a_second_penguin_finds_nothing_to_do(table):
    """D01."""
    table.journal().batch(rows_of(1))
    Penguin(table).drain()
    versions = table.versions()
    assert Penguin(table).drain().run.totals.commits == 0
    assert table.versions() == versions


def test_transactions_in_the_log_carry_no_time_so_they_never_expire(table):
    table.journal().batch(rows_of(1))
    Penguin(table).drain()
    lines = [json.loads(line) for line in table.commit_text(1).splitlines()]
    transactions = [line["txn"] for line in lines if "txn" in line]
    assert len(transactions) == 3
    assert all(not one.get("lastUpdated") for one in transactions)


def test_the_commit_says_which_entries_it_settles(table):
    journal = table.journal()
    journal.batch(rows_of(1))
    journal.batch(rows_of(2))
    Penguin(table).drain()
    told = table.delta().history(1)[0]["penguin"]
    assert told["entries"] == {"events": {"journal": journal.id, "first": 1, "last": 2}}
    assert told["token"]


def test_an_entry_that_only_a_twin_could_commit_is_already_committed(table):
    """D06, D08: the same plan carried out twice gives one version."""
    table.journal().batch(rows_of(1))
    plan = next_commit(table)
    Penguin(table).drain()
    versions = table.versions()
    committer = Committer(
        log=Log(table.store), store=table.store, clock=Clock(), pause=lambda _: None
    )
    assert committer.carry_out(plan) == AlreadyCommitted(1)
    assert table.versions() == versions
    assert table.ids() == [1]


class Forgetful(Table):
    """Commits, and then loses the answer."""

    failures = 1

    def commit(self, adds, transactions, metadata, *, next_version=False):
        super().commit(adds, transactions, metadata, next_version=next_version)
        if Forgetful.failures:
            Forgetful.failures -= 1
            raise CommitFailed("the connection was dropped")


class Unwilling(Table):
    """Fails before anything is written."""

    failures = 2

    def commit(self, adds, transactions, metadata, *, next_version=False):
        if Unwilling.failures:
            Unwilling.failures -= 1
            raise CommitFailed("503")
        super().commit(adds, transactions, metadata, next_version=next_version)


def log_with(kind):
    class Faulty(Log):
        def open(self):
            handle = self._handle()
            return None if handle is None else kind(handle, self.store)

    return Faulty


def test_a_lost_answer_is_one_commit(table):
    """D06."""
    Forgetful.failures = 1
    table.journal().batch(rows_of(1))
    penguin = Penguin(table, log=log_with(Forgetful)).drain()
    assert Forgetful.failures == 0
    assert table.versions() == 2
    assert table.ids() == [1]
    assert penguin.run.totals.commits == 1
    assert any(isinstance(event, EntriesCommitted) for event in penguin.events)


def test_a_failed_commit_is_tried_again_and_nothing_advances_meanwhile(table):
    """L06."""
    Unwilling.failures = 2
    table.journal().batch(rows_of(1))
    Penguin(table, log=log_with(Unwilling)).drain()
    assert Unwilling.failures == 0
    assert (table.ids(), table.versions()) == ([1], 2)


def test_a_commit_that_never_succeeds_is_an_error_and_no_receipt(table):
    """L06."""
    Unwilling.failures = 1000
    table.journal().batch(rows_of(1))
    with pytest.raises(CommitFailed) as failed:
        Penguin(table, log=log_with(Unwilling)).step()
    assert failed.value.retryable
    assert "503" in str(failed.value)
    assert table.receipt() is None
    assert table.rows() == []
    assert Penguin(table).drain().run.totals.commits == 1


def test_a_crash_after_the_commit_and_before_the_receipt_commits_nothing_again(table):
    """D11."""
    table.journal().batch(rows_of(1))
    Penguin(table).drain()
    table.store.delete(receipt("events"))
    Penguin(table).drain()
    assert (table.ids(), table.versions()) == ([1], 2)
    assert table.receipt().sequence == 1


def test_the_log_is_on_disk_before_the_receipt_says_so(table):
    done = []

    class Watched(Store):
        def sync(self, path):
            done.append(path)
            super().sync(path)

    table.journal().batch(rows_of(1))
    table.store = Watched(str(table.root), StorageOptions())
    Penguin(table).drain()
    assert done == [log_version(0), log_version(1), receipt("events")]


def test_optimize_between_polls_brings_nothing_back(table):
    """D09, D11: also after VACUUM took the old files."""
    journal = table.journal()
    journal.batch(rows_of(1))
    journal.batch(rows_of(2))
    Penguin(table).drain()
    table.delta().optimize.compact()
    table.delta().vacuum(0, enforce_retention_duration=False, dry_run=False)
    journal.batch(rows_of(3))
    Penguin(table).drain()
    assert table.ids() == [1, 2, 3]
    assert Penguin(table).drain().run.totals.commits == 0


def test_optimize_in_the_very_moment_of_a_commit_neither_loses_nor_doubles(table, monkeypatch):
    """D09, D08: another engine rewrites what is there while penguin adds."""
    journal = table.journal()
    for number in (1, 2):
        journal.batch(rows_of(number))
        Penguin(table).drain()
    journal.batch(rows_of(3))
    commit = Table.commit
    rewritten: list[int] = []

    def overtaken(self, *given):
        if not rewritten:
            rewritten.append(table.delta().optimize.compact()["numFilesRemoved"])
        commit(self, *given)

    monkeypatch.setattr(Table, "commit", overtaken)
    Penguin(table).drain()
    Penguin(table).drain()
    assert (table.ids(), rewritten) == ([1, 2, 3], [2])


def test_a_restored_table_does_not_get_its_files_back_by_itself(table):
    """D14."""
    journal = table.journal()
    journal.batch(rows_of(1))
    Penguin(table).drain()
    journal.batch(rows_of(2))
    Penguin(table).drain()
    table.delta().restore(1)
    assert Penguin(table).drain().run.totals.commits == 0
    assert table.ids() == [1]


def test_a_dropped_table_stops_the_pipeline_and_is_not_filled_again(table):
    """D16."""
    table.journal().batch(rows_of(1))
    Penguin(table).drain()
    for file in (table.root / "_delta_log").iterdir():
        file.unlink()
    assert Penguin(table).drain().codes == {"events": "log_rolled_back"}
    assert table.versions() == 0


def test_a_missing_file_is_held_and_everything_else_goes_on(table):
    """W21: never a dangling add."""
    journal = table.journal()
    journal.batch(rows_of(1))
    lost = journal.batch(rows_of(2), rows_of(3))
    journal.batch(rows_of(4))
    table.journal("other").batch(rows_of(5))
    (table.root / lost.files[1].filename).unlink()
    penguin = Penguin(table).drain()
    assert penguin.codes == {}
    assert table.ids() == [1, 4, 5]
    assert penguin.held == {file.filename: "file_missing" for file in lost.files}
    assert f"{lost.files[1].filename}: the file is gone" in penguin.why()
    assert table.receipt().sequence == 3


def test_a_file_of_another_size_is_not_committed(table):
    """L09."""
    entry = table.journal().batch(rows_of(1))
    with (table.root / entry.files[0].filename).open("ab") as file:
        file.write(b"x")
    penguin = Penguin(table).drain()
    assert penguin.held == {entry.files[0].filename: "file_missing"}
    assert "bytes, but was written with" in penguin.why()
    assert table.ids() == []


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
    assert "PipelineMended" in [type(event).__name__ for event in penguin.events]


def test_a_new_nullable_column_is_added_and_old_rows_have_none(table):
    """W07: in a commit of its own that repeats the pipeline's transactions."""
    journal = table.journal()
    journal.batch(rows_of(1))
    Penguin(table).drain()
    journal.schema = with_column()
    journal.batch([{**rows_of(2)[0], "extra": "new"}])
    penguin = Penguin(table).drain()
    assert {row["id"]: row["extra"] for row in table.rows()} == {1: None, 2: "new"}
    assert '"version":1' in table.commit_text(2)
    assert "metaData" in table.commit_text(2)
    assert any(getattr(event, "columns_added", ()) == ("extra",) for event in penguin.events)


def test_an_entry_that_does_not_fit_names_the_field_and_leaves_others_alone(table):
    """W07."""
    table.journal().batch(rows_of(1))
    Penguin(table).drain()
    fields = (Field(name="id", type=FieldType.STRING, nullable=False), *EVENTS.fields[1:])
    other = table.journal("other", schema=Schema(fields))
    other.batch([{"id": "x", "name": "n", "date": "2026-01-01"}])
    table.journal().batch(rows_of(2))
    penguin = Penguin(table).drain()
    assert set(penguin.held.values()) == {"schema_refused"}
    assert "id: the table has type long, the files have type string" in penguin.why()
    assert table.ids() == [1, 2]


def test_an_integer_file_in_a_long_table_reads_right(table):
    """W06."""
    table.journal().batch(rows_of(2**40))
    Penguin(table).drain()
    fields = (Field(name="id", type=FieldType.INT32, nullable=False), *EVENTS.fields[1:])
    table.journal("narrow", schema=Schema(fields)).batch(rows_of(7))
    Penguin(table).drain()
    assert table.ids() == [7, 2**40]
    assert table.ids("id = 7") == [7]


def test_a_partition_value_that_is_no_date_is_refused_before_the_commit(table):
    """W10."""
    journal = table.journal()
    file = journal.file(rows_of(1, date="notadate"))
    journal.write(journal.entry(files=(file,), sources=journal_sources(1)))
    penguin = Penguin(table).drain()
    assert penguin.codes == {"events": "entry_invalid"}
    assert "notadate" in penguin.reason()
    assert not (table.root / "_delta_log").exists()


def journal_sources(rows):
    return (SourceRecord(source="in", path="a", size=1, etag=None, lines=rows, rows=rows),)


@pytest.mark.parametrize("value", ["a/b", "a b", "100%", "x=y", "ü\U0001f427", "a%2Fb", "'\"#?"])
def test_a_partition_value_with_special_characters_is_read_back(table, value):
    """W09."""
    schema = Schema(
        (
            Field(name="id", type=FieldType.INT64, nullable=False),
            Field(name="city", type=FieldType.STRING),
        )
    )
    journal = table.journal(schema=schema, partitions=("city",))
    journal.batch([{"id": 1, "city": value}], [{"id": 2, "city": None}])
    Penguin(table).drain()
    assert {row["id"]: row["city"] for row in table.rows()} == {1: value, 2: None}


def test_a_batch_without_files_is_committed_so_that_its_pipeline_goes_on(table):
    journal = table.journal()
    journal.batch()
    journal.batch(rows_of(1))
    Penguin(table).drain()
    assert table.ids() == [1]
    assert table.receipt().sequence == 2


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
    assert not pipeline_known(uri, options, "events")
    assert not pipeline_known(f"{uri}/nowhere", options, "events")
    journal.batch(rows_of(1))
    assert inline.committer(None, uri, options, emit=lambda _: None, clock=Clock())() == 1
    assert commit_table(table.settings(), table.store, lambda _: None, Clock()) == 0
    assert pipeline_known(uri, options, "events")
    assert not pipeline_known(uri, options, "other")


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
    seen = preview.look(str(table.root), rows=2)
    assert (seen.rows, seen.files, len(seen.first_rows)) == (3, 2, 2)
    assert seen.columns == ("id", "name", "date")


def test_a_twin_that_was_faster_is_told_and_not_counted(table):
    """D08."""
    table.journal().batch(rows_of(1))

    class Overtaken(Log):
        done = False

        def open(self):
            if Overtaken.done is False and (table.root / "_delta_log").exists():
                Overtaken.done = True
                Penguin(table).drain()
            return super().open()

    penguin = Penguin(table, log=Overtaken).drain()
    assert penguin.run.totals.commits == 0
    assert any(isinstance(event, CommittedByOther) for event in penguin.events)
    assert (table.ids(), table.versions()) == ([1], 2)


def test_a_plan_for_a_table_that_changed_is_made_again(table):
    """An other program adds a column between the plan and the commit."""
    journal = table.journal()
    journal.batch(rows_of(1))
    Penguin(table).drain()
    journal.schema = with_column("extra", FieldType.STRING)
    journal.batch([{**rows_of(2)[0], "extra": "x"}])
    plan = next_commit(table)
    opened(Log(table.store)).evolve(plan.after, (), {}, NOW)
    committer = Committer(
        log=Log(table.store), store=table.store, clock=Clock(), pause=lambda _: None
    )
    committer.carry_out(plan)
    Penguin(table).drain()
    assert table.ids() == [1, 2]
    assert table.versions() == 4


def test_a_journal_renamed_on_disk_is_noticed(table):
    """L21: the pipeline was renamed; its entries are those of another pipeline."""
    table.journal().batch(rows_of(1))
    Penguin(table).drain()
    (table.root / "_blizzard/events").rename(table.root / "_blizzard/renamed")
    penguin = Penguin(table).drain()
    assert penguin.codes == {"renamed": "journal_broken"}
    assert table.ids() == [1]


def test_entry_files_changed_in_the_journal_after_the_commit_are_noticed(table):
    """L21."""
    journal = table.journal()
    entry = journal.batch(rows_of(1))
    Penguin(table).drain()
    table.store.replace(journal_entry("events", 1), encode(replace(entry, run="other")))
    assert Penguin(table).drain().codes == {"events": "journal_broken"}


class Overwrites(Store):
    """A store that knows nothing of create-only writes."""

    def create(self, path, body):
        self.replace(path, body)
        return Created()


def test_a_store_that_overwrites_is_refused_before_anything_is_committed(table):
    """D08: of two penguins both would write the same version."""
    table.journal().batch(rows_of(1))
    penguin = Penguin(table)
    careless = Overwrites(str(table.root), StorageOptions())
    penguin.run.open_store = lambda: careless
    with pytest.raises(NoExclusiveCreate, match="conditional writes"):
        penguin.step()
    assert not (table.root / "_delta_log").exists()
    Penguin(table).drain()
    table.store.delete(protocol(1))
    table.journal().batch(rows_of(2))
    with pytest.raises(NoExclusiveCreate):
        penguin.step()
    assert table.ids() == [1]


def test_ten_thousand_waiting_files_are_committed_in_a_few_commits(table):
    """Entries are read a commit's worth at a time, and the bar knows how far it is."""
    journal = table.journal()
    one = journal.file(rows_of(1))
    body = (table.root / one.filename).read_bytes()
    clock = Clock()
    for _ in range(100):
        paths = [data_file(one.partition_values, clock.fresh_id()) for _ in range(100)]
        for path in paths:
            (table.root / path).write_bytes(body)
        files = tuple(replace(one, filename=path) for path in paths)
        source = SourceRecord(source="in", path="a", size=1, etag=None, lines=100, rows=100)
        journal.write(journal.entry(files=files, sources=(source,)))
    penguin = Penguin(table, options={"max_files_per_commit": 4000}).drain()
    assert (penguin.run.totals.commits, penguin.run.totals.files) == (3, 10_000)
    assert max(event.files for event in penguin.events if isinstance(event, BacklogSeen)) == 4000
    looked = [event for event in penguin.events if isinstance(event, FilesLookedAt)]
    assert (looked[-1].done, looked[-1].files) == (2000, 2000)
    assert max(event.done for event in looked) == 4000
