"""A log read from its oldest version, or its oldest checkpoint, to its newest."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from blizzard.inspect.audit.log_books import LogBooks
from lakebed.deltalog.actions import LogHistory
from lakebed.deltalog.tables import whole_log
from lakebed.errors import TableUnreadable
from lakebed.storage.options import StorageOptions
from tests.support.checkpoints import SIDECAR, in_parts, with_sidecar
from tests.support.tables import Penguin, TableDirectory, rows_of


@pytest.fixture
def table(tmp_path) -> TableDirectory:
    """Return a table with five commits, the second of which is rewritten with the first."""
    table = TableDirectory(tmp_path / "table")
    journal = table.journal()
    for number in range(4):
        journal.batch(rows_of(number, number + 10), rows_of(number, date="2026-02-02"))
        Penguin(table).drain()
        if number == 1:
            table.delta().optimize.compact()
    return table


def history(table: TableDirectory) -> LogHistory:
    found = whole_log(str(table.root), StorageOptions())
    assert found is not None
    return found


def books(table: TableDirectory) -> LogBooks:
    found = history(table)
    books = LogBooks(found.first)
    for version in found.versions:
        books.take(version)
    return books


def log(table: TableDirectory) -> Path:
    return table.root / "_delta_log"


def clean(table: TableDirectory, *versions: int) -> None:
    for version in versions:
        (log(table) / f"{version:020d}.json").unlink()


def agrees(table: TableDirectory) -> LogBooks:
    """Assert that the books hold what deltalake shows of the same table; return them."""
    found, judge = books(table), DeltaTable(str(table.root))
    actions = pa.table(judge.get_add_actions(flatten=True)).to_pylist()
    assert {name: (one.size, one.rows, one.values) for name, one in found.active.items()} == {
        row["path"]: (
            row["size_bytes"],
            row["num_records"],
            (("date", str(row["partition.date"])),),
        )
        for row in actions
    }
    assert found.totals().rows == judge.count()
    assert found.version == judge.version()
    for app_id, version in found.transactions.items():
        assert judge.transaction_version(app_id) == version
    assert len(found.transactions) == 3
    return found


def test_a_log_of_versions_alone_is_all_of_its_history(table):
    found = agrees(table)
    assert found.is_whole
    assert (len(found.commits), len(found.removed)) == (1, 4)


def test_all_versions_count_before_a_checkpoint_while_they_are_there(table):
    table.delta().create_checkpoint()
    assert agrees(table).is_whole


def test_the_oldest_checkpoint_from_which_all_is_there_is_where_it_begins(table):
    for version in (2, 4):
        DeltaTable(str(table.root), version=version).create_checkpoint()
    clean(table, 0, 1)
    assert agrees(table).first == 3
    clean(table, 2, 3)
    found = agrees(table)
    assert (found.first, found.is_whole) == (5, False)
    assert set(found.removed.values()) == {-1}, "tombstones, of which nobody knows the version"


def test_a_checkpoint_alone_is_enough(table):
    table.delta().create_checkpoint()
    clean(table, *range(6))
    assert agrees(table).first == 6


def test_a_checkpoint_in_parts_counts_once_all_of_them_are_there(table):
    table.delta().create_checkpoint()
    in_parts(table.root)
    (log(table) / "_last_checkpoint").unlink()
    clean(table, *range(6))
    found = books(table)
    assert (len(found.active), found.totals().rows) == (6, 12)
    next(log(table).glob("*.0000000002.0000000002.parquet")).unlink()
    assert whole_log(str(table.root), StorageOptions()) is None


@pytest.mark.parametrize("name", ["checkpoint", f"checkpoint.{SIDECAR}"])
def test_a_checkpoint_with_sidecars_is_read_whole(table, name):
    table.delta().create_checkpoint()
    sidecar = with_sidecar(table.root, name)
    clean(table, *range(6))
    found = books(table)
    assert (len(found.active), found.totals().rows, len(found.transactions)) == (6, 12, 3)
    sidecar.unlink()
    with pytest.raises(TableUnreadable, match="names a file that is gone"):
        books(table)


def test_a_checkpoint_that_is_written_as_json_is_read_whole(table):
    before = agrees(table)
    lines = [
        line
        for version in range(6)
        for line in (log(table) / f"{version:020d}.json").read_text().splitlines()
        if "commitInfo" not in line and '"remove"' not in line
    ]
    there = [one for one in lines if '"add"' not in one or _path(one) in before.active]
    (log(table) / f"{5:020d}.checkpoint.{SIDECAR}.json").write_text("\n".join(there))
    clean(table, *range(6))
    found = books(table)
    assert found.active.keys() == before.active.keys()
    assert (found.transactions, found.first) == (before.transactions, 6)


def _path(line: str) -> str:
    return str(json.loads(line)["add"]["path"])


@pytest.mark.parametrize(
    ("gone", "checkpoint", "told"),
    [
        ((0,), None, (0,)),
        ((3,), None, (3,)),
        ((0, 1, 4), 2, (4,)),
        ((1, 2, 4), None, (1, 2, 4)),
    ],
)
def test_versions_that_nothing_stands_for_are_named(table, gone, checkpoint, told):
    if checkpoint is not None:
        DeltaTable(str(table.root), version=checkpoint).create_checkpoint()
    clean(table, *gone)
    found = history(table)
    assert (found.gone, list(found.versions)) == (told, [])


def test_what_is_no_log_is_none(table, tmp_path):
    shutil.rmtree(log(table))
    assert whole_log(str(table.root), StorageOptions()) is None


def test_a_version_that_cannot_be_read_is_an_error_and_never_an_empty_one(table):
    (log(table) / f"{2:020d}.json").write_text('{"add":')
    with pytest.raises(TableUnreadable, match="cannot be read"):
        books(table)
