"""Appends that penguin writes itself: what others commit meanwhile, and what they are made from."""

import json
from dataclasses import replace
from functools import partial
from urllib.parse import unquote

import pyarrow as pa
import pytest
from deltalake import Field
from deltalake.schema import PrimitiveType

from lakebed.deltalog.snapshot import LogReader
from lakebed.errors import CommitUnconfirmed, TableUnreadable
from lakebed.layout import DELTA_LOG, LAST_CHECKPOINT, log_version
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from penguin.delta.table import Log
from tests.support.checkpoints import SIDECAR, classic, in_parts, with_sidecar
from tests.support.first_version import NOW, latest
from tests.support.first_version import add as added
from tests.support.tables import Penguin, TableDirectory, before_commit, opened, rows_of

add = partial(added, date="2026-01-01")


@pytest.fixture
def ready(tmp_path):
    """Return a table with two commits."""
    table = TableDirectory(tmp_path / "table")
    for number in (1, 2):
        table.journal(partitions=("date",)).batch(rows_of(number))
        Penguin(table).drain()
    return table


# ---------------------------------------------------------------------- what others commit


def test_appends_of_others_do_not_concern_an_append(ready):
    first, second = latest(ready), latest(ready)
    first.commit((add("a.parquet"),), (("a", 1),), {}, NOW)
    first.commit((add("b.parquet"),), (("b", 1),), {}, NOW)
    second.commit((add("c.parquet"),), (("c", 1),), {}, NOW)
    assert ready.delta().version() == 5
    assert [ready.delta().transaction_version(name) for name in "abc"] == [1, 1, 1]
    assert len(ready.delta().file_uris()) == 5


def test_an_append_goes_after_an_optimize(ready):
    stale = latest(ready)
    assert ready.delta().optimize.compact()["numFilesRemoved"] == 2
    stale.commit((add("c.parquet"),), (("c", 1),), {}, NOW)
    assert ready.delta().version() == 4
    assert len(ready.delta().file_uris()) == 2


def test_an_append_that_must_be_the_next_version_goes_after_nobody(ready):
    stale = latest(ready)
    latest(ready).commit((), (("a", 1),), {}, NOW)
    with pytest.raises(CommitUnconfirmed, match="first"):
        stale.commit((add(),), (("b", 1),), {}, NOW, next_version=True)
    assert ready.versions() == 4


def test_an_append_does_not_go_after_its_own_transaction(ready):
    """D08: whoever wrote it, and however many versions ago."""
    stale = latest(ready)
    latest(ready).commit((), (("ours", 1),), {}, NOW)
    latest(ready).commit((), (("theirs", 1),), {}, NOW)
    with pytest.raises(CommitUnconfirmed, match="first"):
        stale.commit((add(),), (("ours", 1),), {}, NOW)
    assert ready.versions() == 5


def change_the_table(ready):
    """The files were judged by another schema, or by other properties."""
    ready.delta().alter.add_columns([Field("extra", PrimitiveType("string"), nullable=True)])


def tear_the_next_version(ready):
    """W14."""
    ready.store.create(log_version(3), b'{"commitInfo":{}}\n{"add":')


@pytest.mark.parametrize("happens", [change_the_table, tear_the_next_version])
def test_an_append_does_not_go_after_a_version_of_another_kind(ready, happens):
    stale = latest(ready)
    happens(ready)
    with pytest.raises(CommitUnconfirmed, match="first"):
        stale.commit((add(),), (("a", 1),), {}, NOW)
    assert not (ready.root / log_version(4)).exists()
    assert ready.versions() == 4


def test_a_commit_is_made_once_among_many_of_others(ready):
    """More than an append goes after: the table is opened again, and the commit goes on."""
    ready.journal(partitions=("date",)).batch(rows_of(3))

    def others():
        for number in range(12):
            latest(ready).commit((), (("theirs", number),), {}, NOW)

    Penguin(ready, log=before_commit(others)).drain()
    assert (ready.ids(), ready.versions()) == ([1, 2, 3], 16)


@pytest.mark.parametrize("gone", [0, 1])
def test_nothing_is_committed_after_a_version_that_is_gone(ready, gone):
    """W14."""
    table = latest(ready)
    (ready.root / log_version(gone)).unlink()
    with pytest.raises(TableUnreadable, match="missing"):
        table.commit((add(),), (("a", 1),), {}, NOW)
    assert not (ready.root / log_version(3)).exists()


def test_versions_before_a_checkpoint_are_not_missed(ready):
    ready.delta().create_checkpoint()
    table = latest(ready)
    for number in (0, 1):
        (ready.root / log_version(number)).unlink()
    table.commit((add(),), (("a", 1),), {}, NOW)
    assert ready.delta().version() == 3


# ---------------------------------------------------------------------- what a commit says


def test_readers_find_what_an_append_says(ready):
    """The history, the statistics and the transactions are as the library would have them."""
    (told,) = ready.delta().history(1)
    assert told["operation"] == "WRITE"
    assert told["operationParameters"] == {"mode": "Append", "partitionBy": '["date"]'}
    assert told["penguin.writer"] == told["engineInfo"]
    assert told["isBlindAppend"] is True
    actions = pa.table(ready.delta().get_add_actions(flatten=True)).to_pylist()
    assert sorted(
        (row["num_records"], row["min.id"], row["max.id"], row["null_count.id"]) for row in actions
    ) == [(1, 1, 1, 0), (1, 2, 2, 0)]
    assert {str(row["partition.date"]) for row in actions} == {"2026-01-01"}


# ---------------------------------------------------------------------- what it is made from


def as_json(table, whole):
    lines = [
        line
        for version in range(3)
        for line in table.commit_text(version).splitlines()
        if "commitInfo" not in line
    ]
    whole.with_name(f"{2:020d}.checkpoint.{SIDECAR}.json").write_text("\n".join(lines))
    whole.unlink()


CHECKPOINTS = {
    "none": lambda table, whole: (whole.unlink(), (table.root / LAST_CHECKPOINT).unlink()),
    "classic": lambda _table, _whole: None,
    "parts": lambda table, _whole: in_parts(table.root),
    "without a note": lambda table, _whole: (table.root / LAST_CHECKPOINT).unlink(),
    "sidecars": lambda table, _whole: with_sidecar(table.root),
    "sidecars by uuid": lambda table, _whole: with_sidecar(table.root, f"checkpoint.{SIDECAR}"),
    "json by uuid": as_json,
}


@pytest.mark.parametrize("kind", CHECKPOINTS)
@pytest.mark.parametrize("more", [0, 2])
def test_what_is_read_without_the_library_is_what_the_library_reads(ready, kind, more):
    ready.delta().create_checkpoint()
    whole = classic(ready.root)
    by_library = ready.delta()
    pipeline = by_library.transaction_version("blizzard/events")
    paths = pa.table(by_library.get_add_actions()).column("path").to_pylist()
    before = LogReader(ready.store).open()
    assert before is not None
    CHECKPOINTS[kind](ready, whole)
    if kind != "none":
        for number in (0, 1):
            (ready.root / log_version(number)).unlink()
    for number in range(more):
        ready.store.create(
            log_version(3 + number),
            json.dumps({"txn": {"appId": "theirs", "version": number}}).encode(),
        )
    found = LogReader(ready.store).newest()
    assert found is not None
    metadata, protocol = by_library.metadata(), by_library.protocol()
    assert (found.version, found.id) == (2 + more, str(metadata.id))
    assert found.facts == replace(before.facts, version=2 + more)
    assert found.facts.schema == json.loads(by_library.schema().to_json())
    assert found.facts.configuration == metadata.configuration
    assert found.protocol.writer == protocol.min_writer_version
    assert found.metadata["createdTime"] == metadata.created_time
    assert found.transaction("blizzard/events") == pipeline is not None
    assert found.transaction("theirs") == (1 if more else None)
    assert found.domains == {}
    assert set(found.files) == {unquote(str(path)) for path in paths}


def test_a_copy_below_the_log_is_no_part_of_it(ready):
    for number in (0, 7):
        ready.store.create(f"{DELTA_LOG}/backup/{number:020d}.json", ready.commit_text(0).encode())
    latest(ready).commit((add(),), (("a", 1),), {}, NOW)
    assert ready.delta().version() == latest(ready).version == 3


def test_a_damaged_checkpoint_is_an_error(ready):
    """W14."""
    ready.delta().create_checkpoint()
    classic(ready.root).write_bytes(b"PAR1 and nothing else")
    with pytest.raises(TableUnreadable):
        Log(ready.store).open()


def test_a_commit_asks_the_same_of_a_store_however_many_files_the_table_has(ready):
    asked = []

    class Counting(Store):
        def __getattribute__(self, name):
            if name in ("head", "fetch", "get", "part"):
                asked.append(name)
            return super().__getattribute__(name)

    def commit(number):
        log = Log(Counting(str(ready.root), StorageOptions()))
        opened(log)
        asked.clear()
        opened(log).commit((add(f"{number}.parquet"),), ((f"a{number}", 1),), {}, NOW)
        return len(asked)

    few = commit(1)
    latest(ready).commit(tuple(add(f"m{n}.parquet") for n in range(500)), (("m", 1),), {}, NOW)
    ready.delta().create_checkpoint()
    assert 0 < commit(2) == few <= 6
