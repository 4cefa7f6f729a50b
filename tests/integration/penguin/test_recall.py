"""A penguin that runs for long, and what others do to its table between two of its looks.

It does not read a log again that is as it was. So each test lets it look until it recalls the
log, then changes something behind its back.
"""

import gc
import json
from dataclasses import replace

import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType

from lakebed.deltalog.snapshot import LogReader
from lakebed.errors import StoreUnavailable, TableUnreadable, TableUnsupported
from lakebed.layout import DELTA_LOG, LAST_CHECKPOINT, log_version
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from penguin.delta.table import Log
from tests.support.first_version import NOW
from tests.support.foreign import Directory
from tests.support.recall import running
from tests.support.tables import Penguin, before_commit, opened, rows_of


@pytest.fixture
def loads(monkeypatch):
    """Return the versions that logs were read anew for, None for the latest."""
    found: list[int | None] = []
    read = LogReader._read

    def noted(log, version):
        found.append(version)
        return read(log, version)

    monkeypatch.setattr(LogReader, "_read", noted)
    return found


# ---------------------------------------------------------------------- what is saved


def test_a_log_that_is_as_it_was_is_not_opened_again(table, loads):
    penguin = running(table, 1, 2)
    loads.clear()
    for _ in range(3):
        assert penguin.step() is False
    assert loads == []


def test_a_commit_does_not_open_the_table(table, loads):
    """What it needs is known; the files of the table are not part of that."""
    penguin = running(table, 1)
    loads.clear()
    for number in (2, 3):
        table.journal().batch(rows_of(number))
        assert penguin.step() is True
    assert penguin.step() is False
    assert loads == []
    assert table.ids() == [1, 2, 3]


def test_the_first_commit_of_a_process_reads_the_log_once_and_no_file_of_it(table, loads):
    running(table, 1)
    table.delta().create_checkpoint()
    table.journal().batch(rows_of(2))
    loads.clear()
    penguin = Penguin(table)
    assert penguin.step() is True
    assert loads == [None]
    known = penguin.run._log_cache.known
    assert known is not None
    assert known._files is None
    assert table.ids() == [1, 2]


@pytest.fixture
def opened_tables():
    """Count the tables that a test has opened and somebody still holds."""
    known = tables_held()  # Held here, so that no other object gets the identity of one.
    return lambda: sum(all(one is not other for other in known) for one in tables_held())


def tables_held():
    gc.collect()
    return [one for one in gc.get_objects() if isinstance(one, DeltaTable)]


def test_no_opened_table_is_kept_between_two_steps(table, opened_tables):
    """It costs some kilobytes for every file of the table, and there may be many tables."""
    penguin = running(table, 1, 2)
    table.journal().batch(rows_of(3))
    penguin.drain()
    assert opened_tables() == 0


def test_no_opened_table_is_kept_of_a_directory_of_others(tmp_path, opened_tables):
    """Nor after the first look of a process, when nothing is recalled yet."""
    table = Directory(tmp_path / "table")
    table.file(1)
    table.penguin().drain()
    penguin = table.penguin()
    assert penguin.run.step() is False
    assert opened_tables() == 0
    assert penguin.run.totals.commits == 0


def test_a_commit_holds_no_opened_table(table, opened_tables):
    """Nor does the first one of a process."""
    running(table, 1)
    table.journal().batch(rows_of(2))
    held: list[int] = []
    Penguin(table, log=before_commit(lambda: held.append(opened_tables()))).step()
    assert held == [0]


# ---------------------------------------------------------------------- what others commit


def test_two_penguins_that_take_turns_commit_each_entry_once(table):
    """D08: each finds what the other did, and goes on from there."""
    first = running(table, 1)
    second = running(table)
    for number in range(2, 12):
        table.journal().batch(rows_of(number))
        turn = (first, second)[number % 2]
        assert turn.step() is True
        if number % 3 == 0:
            assert first.step() is False
    for penguin in (first, second):
        assert penguin.step() is False
    assert table.ids() == [*range(1, 12)]
    assert table.versions() == 12
    assert first.run.totals.commits + second.run.totals.commits == 11


def test_a_commit_of_another_program_between_two_looks_is_seen(table):
    penguin = running(table, 1)
    opened(Log(table.store)).commit((), (("theirs", 1),), {}, NOW)
    table.journal().batch(rows_of(2))
    assert penguin.step() is True
    assert penguin.run.totals.version == 3
    assert (table.ids(), table.versions()) == ([1, 2], 4)


def test_a_column_that_somebody_adds_between_two_looks_is_seen(table):
    """The plan is made for the table as it is; the entry does not take the column away."""
    penguin = running(table, 1)
    table.delta().alter.add_columns([Field("extra", PrimitiveType("string"), nullable=True)])
    table.journal().batch(rows_of(2))
    assert penguin.step() is True
    assert [row["extra"] for row in table.rows()] == [None, None]
    assert penguin.run._log_cache.known.facts.schema["fields"][-1]["name"] == "extra"


def test_a_property_that_forbids_to_write_is_seen_at_the_next_look(table):
    """Also where there is nothing to commit."""
    penguin = running(table, 1)
    name = "delta.setTransactionRetentionDuration"
    now = opened(Log(table.store))
    after = replace(now.facts, configuration={**now.facts.configuration, name: "interval 1 day"})
    now.evolve(after, (), {}, NOW)
    with pytest.raises(TableUnsupported, match=name):
        penguin.step()
    with pytest.raises(TableUnsupported, match=name):
        penguin.step()


def test_optimize_and_vacuum_between_two_looks_bring_nothing_back(table):
    """D09."""
    penguin = running(table, 1, 2)
    assert table.delta().optimize.compact()["numFilesRemoved"] == 2
    table.delta().vacuum(0, enforce_retention_duration=False, dry_run=False)
    assert penguin.step() is False
    table.journal().batch(rows_of(3))
    penguin.drain()
    assert table.ids() == [1, 2, 3]
    assert len(penguin.run._log_cache.known.transactions) > 0


def test_optimize_between_two_looks_at_a_directory_of_others_brings_nothing_back(tmp_path):
    """D09: what OPTIMIZE wrote and what it replaced are no new files."""
    table = Directory(tmp_path / "table")
    penguin = table.penguin(file_pattern="*.parquet")
    for number in (1, 2):
        table.file(number)
        penguin.drain()
    penguin.drain()
    assert penguin.run._log_cache.known is not None
    assert table.delta().optimize.compact()["numFilesRemoved"] == 2
    versions = table.versions()
    penguin.drain()
    assert (table.ids(), table.versions()) == ([1, 2], versions)
    table.file(3)
    penguin.drain()
    assert table.ids() == [1, 2, 3]


def test_a_checkpoint_that_somebody_writes_changes_nothing(table):
    penguin = running(table, 1, 2)
    table.delta().create_checkpoint()
    assert penguin.step() is False
    table.journal().batch(rows_of(3))
    penguin.drain()
    assert table.ids() == [1, 2, 3]


def test_a_log_that_was_cleaned_up_is_read_anew(table):
    """The object of the version that is recalled is gone, for there are newer ones."""
    penguin = running(table, 1, 2)
    recalled = penguin.run._log_cache.known.version
    for number in range(2):
        opened(Log(table.store)).commit((), (("theirs", number),), {}, NOW)
    table.delta().create_checkpoint()
    for version in range(recalled + 1):
        (table.root / log_version(version)).unlink()
    assert penguin.step() is False
    table.journal().batch(rows_of(3))
    penguin.drain()
    assert (table.ids(), penguin.run.totals.version) == ([1, 2, 3], recalled + 3)


# ---------------------------------------------------------------------- what cannot be known


def test_a_store_that_tells_no_e_tags_has_its_log_opened_at_every_look(table, loads):
    """Unknown is never taken for unchanged: nothing could be bound to the object of a version."""

    class Bare(Store):
        def head(self, path):
            facts = super().head(path)
            return None if facts is None else replace(facts, etag=None)

        def fetch(self, path):
            found = super().fetch(path)
            return None if found is None else (found[0], replace(found[1], etag=None))

        def objects(self, *given, **named):
            return (replace(one, etag=None) for one in super().objects(*given, **named))

    table.store = Bare(str(table.root), StorageOptions())
    penguin = Penguin(table, options={"checkpoint_interval": 3})
    for number in (1, 2, 3):
        table.journal().batch(rows_of(number))
        penguin.drain()
    assert (table.ids(), table.versions()) == ([1, 2, 3], 4)
    assert (table.root / LAST_CHECKPOINT).exists()
    for _ in range(3):
        loads.clear()
        assert penguin.step() is False
        assert loads == [None]
    (table.root / log_version(3)).unlink()
    penguin.drain()
    assert penguin.codes == {"events": "log_rolled_back"}


@pytest.mark.parametrize("call", ["head", "fetch"])
def test_a_look_that_fails_is_an_error_and_never_taken_for_no_change(table, call):
    fails: set[str] = set()

    class Failing(Store):
        def head(self, path):
            self.refuse("head", path)
            return super().head(path)

        def fetch(self, path):
            self.refuse("fetch", path)
            return super().fetch(path)

        def refuse(self, call, path):
            if call in fails and path.startswith(DELTA_LOG):
                raise StoreUnavailable("503", path=path)

    table.store = Failing(str(table.root), StorageOptions())
    penguin = running(table, 1)
    fails.add(call)
    with pytest.raises(StoreUnavailable):
        penguin.step()
    fails.clear()
    table.journal().batch(rows_of(2))
    penguin.drain()
    assert table.ids() == [1, 2]


def test_a_torn_version_of_another_is_told_and_nothing_is_committed_after_it(table):
    """W14."""
    penguin = running(table, 1)
    table.store.create(log_version(2), json.dumps({"commitInfo": {}}).encode() + b'\n{"add":')
    table.journal().batch(rows_of(2))
    with pytest.raises(TableUnreadable):
        penguin.step()
    assert table.versions() == 3
