"""Commits that fail or lose their answers, and which entries and files a commit takes."""

from dataclasses import replace

import pytest

from lakebed.clock import Clock
from lakebed.columns.schema import Field, Schema
from lakebed.documents.entry import encode
from lakebed.documents.records import SourceRecord
from lakebed.errors import CommitUnconfirmed, NoExclusiveCreate
from lakebed.layout import journal_entry, log_version, protocol, receipt
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from lakebed.types import FieldType
from penguin.committer import Committer
from penguin.delta.table import Log, WritableTable
from penguin.events.commits import CommittedByOther, EntriesCommitted
from tests.support.first_version import NOW
from tests.support.stores import Overwrites
from tests.support.tables import EVENTS, Penguin, log_of, losing, next_commit, opened, rows_of


def with_column(name="extra", kind=FieldType.STRING, *, nullable=True):
    return Schema((*EVENTS.fields, Field(name=name, type=kind, nullable=nullable)))


class Unwilling(WritableTable):
    """Fails before anything is written."""

    failures = 2

    def commit(self, *given, **named):
        if Unwilling.failures:
            Unwilling.failures -= 1
            raise CommitUnconfirmed("503")
        super().commit(*given, **named)


def test_a_lost_answer_is_one_commit(table):
    """D06."""
    table.journal().batch(rows_of(1))
    lossy = losing()
    penguin = Penguin(table, log=log_of(lossy)).drain()
    assert lossy.answers_to_lose == 0
    assert table.versions() == 2
    assert table.ids() == [1]
    assert penguin.run.totals.commits == 1
    assert any(isinstance(event, EntriesCommitted) for event in penguin.events)


def test_a_failed_commit_is_tried_again_and_nothing_advances_meanwhile(table):
    """L06."""
    Unwilling.failures = 2
    table.journal().batch(rows_of(1))
    Penguin(table, log=log_of(Unwilling)).drain()
    assert Unwilling.failures == 0
    assert (table.ids(), table.versions()) == ([1], 2)


def test_a_commit_that_never_succeeds_is_an_error_and_no_receipt(table):
    """L06."""
    Unwilling.failures = 1000
    table.journal().batch(rows_of(1))
    with pytest.raises(CommitUnconfirmed) as failed:
        Penguin(table, log=log_of(Unwilling)).step()
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

        def replace(self, path, body):
            done.append(path)
            super().replace(path, body)

    table.journal().batch(rows_of(1))
    table.store = Watched(str(table.root), StorageOptions())
    Penguin(table).drain()
    assert done == [log_version(0), log_version(1), receipt("events")]


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


def test_partition_values_with_special_characters_are_read_back(table):
    """W09."""
    values = [None, "a/b", "a b", "100%", "x=y", "ü\U0001f427", "a%2Fb", "'\"#?"]
    city = Field(name="city", type=FieldType.STRING)
    journal = table.journal(schema=Schema((EVENTS.fields[0], city)), partitions=("city",))
    journal.batch(*([{"id": number, "city": value}] for number, value in enumerate(values)))
    Penguin(table).drain()
    assert {row["id"]: row["city"] for row in table.rows()} == dict(enumerate(values))


def test_a_batch_without_files_is_committed_so_that_its_pipeline_goes_on(table):
    journal = table.journal()
    journal.batch()
    journal.batch(rows_of(1))
    Penguin(table).drain()
    assert table.ids() == [1]
    assert table.receipt().sequence == 2
