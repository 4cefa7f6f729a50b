"""An audit of a table whose log or data files were damaged: the exact difference."""

import json
import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable

from blizzard.cli.audit import audit_of
from blizzard.inspect.audit.findings import FilePlace, FindingKind
from lakebed.storage.options import Location, StorageOptions
from lakebed.storage.store import Reader
from tests.support.audits import UNREADABLE, Damage, make_table, told
from tests.support.audits import audited as audit

pytestmark = pytest.mark.unbalanced(*FindingKind, UNREADABLE)

MEND = "; restore version 3, or accept it with blizzard audit --accept 4 --reason TEXT"


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    return make_table(tmp_path_factory.mktemp("whole"))


@pytest.fixture
def damage(whole, tmp_path) -> Damage:
    shutil.copytree(whole, tmp_path / "table")
    return Damage(tmp_path / "table")


def kinds(table: Path) -> list[str]:
    return [one.partition(":")[0] for one in told(audit(table))]


def test_a_data_file_that_is_gone_or_has_another_size_or_content_is_told(damage):
    (file,) = damage.added(2)
    path, size = damage.table / file["path"], file["size"]
    body = path.read_bytes()
    path.write_bytes(b"x" * size)
    assert told(audit(damage.table)) == [f"file_damaged: {file['path']}: its footer cannot be read"]
    path.write_bytes(body + b"more")
    other = f"the log says {size} bytes, but the object has {size + 4}"
    for deep in (False, True):
        assert told(audit(damage.table, deep=deep)) == [
            f"file_size_differs: {file['path']}: {other}"
        ]
    path.unlink()
    gone = "it is in the table, but the object is gone; see penguin fsck"
    for deep in (False, True):
        assert told(audit(damage.table, deep=deep)) == [f"file_gone: {file['path']}: {gone}"]


def test_a_sound_table_costs_one_listing_and_no_request_per_data_file(damage):
    """The check of existence is a default: it must stay flat per thousand files."""
    asked: list[str] = []

    class Counting(Reader):
        def head(self, path):
            asked.append(path)
            return super().head(path)

    place = Location(uri=str(damage.table), options=StorageOptions({}))
    found = audit_of(place, opens=lambda one: Counting(one.uri, one.options))
    assert (found.is_balanced, found.active.files) == (True, 4)
    assert [path for path in asked if path.endswith(".parquet")] == []


def test_what_the_log_says_otherwise_of_a_file_is_told_by_the_entry_and_the_footer(damage):
    (file,) = damage.added(2)
    path, size = file["path"], file["size"]
    for change, said in (
        (
            {"stats": '{"numRecords":6}'},
            [
                f"file_rows_differ: entry 2 says of {path}: 7 rows; the log's statistics say 6",
                f"file_rows_differ: {path}: the log's statistics say 6 rows, but its footer 7",
            ],
        ),
        (
            {"stats": None},
            [f"file_rows_differ: entry 2 says of {path}: 7 rows; the log's statistics say nothing"],
        ),
        (
            {"size": 1},
            [
                f"file_size_differs: entry 2 says of {path}: {size} bytes; the log says 1",
                f"file_size_differs: {path}: the log says 1 bytes, but the object has {size}",
            ],
        ),
        (
            {"partitionValues": {"date": None}},
            [
                (
                    f"file_partition_differs: entry 2 says of {path}: date=2024-01-01; the log "
                    "says date=null"
                )
            ],
        ),
    ):
        damage.edit_actions(2, "add", lambda add, change=change: add.update(file | change))
        assert told(audit(damage.table, deep="size" not in change)) == said


def test_transactions_that_are_missing_are_told(damage):
    damage.without(3, lambda one: "txn" in one)
    assert kinds(damage.table) == [
        "transaction_missing",  # The file is there, the entry is not committed.
        "receipt_ahead",
        "transaction_missing",  # The version says itself that it settles the entry.
    ]
    for version in (1, 2):
        damage.without(version, lambda one: "txn" in one)
    found = audit(damage.table)
    entries = [one.entry for one in found.differences if one.version is None]
    assert entries == [1, 2, 3, 3]
    assert "receipt_ahead" in kinds(damage.table)


def test_a_transaction_that_says_another_entry_or_digest_is_told(damage):
    def other_digest(txn):
        if txn["appId"].endswith("/digest"):
            txn["version"] += 1

    def other_entry(txn):
        if txn["appId"].count("/") == 2 and not txn["appId"].endswith("/digest"):
            txn["version"] = 7

    differs = "digest_differs: entry 2 is not the committed one: the log has another digest"
    damage.edit_actions(2, "txn", other_digest)
    assert told(audit(damage.table)) == [differs]
    damage.edit_actions(3, "txn", other_entry)
    assert told(audit(damage.table)) == [
        differs,
        "entry_missing: the log says that entry 7 is committed, but the journal ends with entry 3",
        "transaction_differs: version 3 settles entry 3 of default, but its transaction says 7",
    ]


def test_an_entry_that_was_committed_twice_is_told(damage):
    (file,) = damage.added(2)
    shutil.copy(damage.version_path(2), damage.version_path(4))
    found = told(audit(damage.table))
    assert found[-2:] == [
        (
            "entry_committed_twice: version 4 settles entry 2 of default again: entries up to 3 "
            "were settled before"
        ),
        f"file_committed_twice: version 4 adds {file['path']}, which version 2 has added before",
    ]
    # Its transactions go back to entry 2 as well.
    assert kinds(damage.table)[:-2] == ["transaction_missing", "receipt_ahead"]


def test_an_entry_that_was_skipped_is_told(damage):
    (file,) = damage.added(2)
    damage.write_version(2, [{"commitInfo": {"operation": "WRITE", "penguin": {"step": "x"}}}])
    assert told(audit(damage.table)) == [
        (
            "file_not_committed: entry 2 is committed, but no version has its file "
            f"{file['path']} with 7 rows"
        ),
        "entry_skipped: version 3 settles entry 3 of default, but the last one before was 1",
    ]


def test_a_file_that_is_committed_under_two_paths_or_in_two_spellings_is_told(damage):
    (file,) = damage.added(2)
    copy = "date=2024-01-09/" + file["path"].rpartition("/")[2]
    (damage.table / copy).parent.mkdir()
    shutil.copy(damage.table / file["path"], damage.table / copy)
    last = damage.commit({"add": {**file, "path": copy}})
    assert told(audit(damage.table)) == [
        (
            f"file_committed_twice: {copy} is in the table, and so is, or was, {file['path']} of "
            "the same name"
        )
    ]
    damage.version_path(last).unlink()
    spelled = {"add": {**file, "path": f"file://{damage.table}/{file['path']}"}}
    damage.commit(spelled)
    twice = f"file_committed_twice: version 4 adds {file['path']}, which version 2 has added before"
    assert told(audit(damage.table)) == [twice]
    damage.edit_actions(4, "add", lambda add: add.update(dataChange=False))
    assert told(audit(damage.table)) == [
        twice,
        (
            "rows_changed: version 4 (WRITE) says that it changes no data, but removes 0 rows and "
            "adds 7"
        ),
    ]
    assert DeltaTable(str(damage.table)).count() == 19 + 7


def test_a_file_that_came_back_after_it_was_rewritten_is_told(damage):
    DeltaTable(str(damage.table)).optimize.compact()
    (file,) = damage.added(2)
    version = damage.commit({"add": file})
    assert told(audit(damage.table)) == [
        (
            f"file_committed_twice: version {version} adds {file['path']}, which an earlier "
            "version has added before and version 4 removed"
        )
    ]


def test_a_file_that_two_entries_name_is_told(damage):
    (file,) = damage.entry(2)["files"]
    damage.edit_entry(3, lambda entry: entry["files"].append(file))
    assert (
        f"file_named_twice: entry 3 names {file['filename']}, which an earlier entry names"
        in told(audit(damage.table))
    )


def test_a_file_in_a_commit_of_penguins_that_nothing_names_is_told(damage):
    (file,) = damage.added(3)
    foreign = {**file, "path": "date=2024-01-02/foreign.parquet"}
    shutil.copy(damage.table / file["path"], damage.table / foreign["path"])
    damage.write_version(3, [*damage.actions(3), {"add": foreign}])
    assert told(audit(damage.table)) == [
        (
            "file_unnamed: version 3, which settles entry 3 of default, has added "
            "date=2024-01-02/foreign.parquet with 3 rows, and nothing names it"
        )
    ]


def test_a_file_that_penguin_removed_and_no_entry_explains_is_told(damage):
    (file,) = damage.added(2)
    damage.write_version(
        3, [*damage.actions(3), {"remove": {"path": file["path"], "dataChange": True}}]
    )
    assert told(audit(damage.table)) == [
        (
            f"file_removed: version 3 of penguin's removed {file['path']} of entry 2 with 7 rows, "
            "and no entry says why"
        )
    ]


def test_rows_that_another_writer_deleted_or_overwrote_are_told(damage):
    """With version and operation, and though it wrote as many."""
    (file,) = damage.added(2)
    removes = [
        {"remove": {"path": one["path"], "dataChange": True}}
        for version in (1, 2, 3)
        for one in damage.added(version)
    ]
    new = {**file, "path": "new.parquet", "stats": '{"numRecords":19}'}
    shutil.copy(damage.table / file["path"], damage.table / "new.parquet")
    last = damage.commit(*removes, {"add": new}, operationParameters={"mode": "Overwrite"})
    assert told(audit(damage.table, deep=False)) == [
        f"rows_removed: version 4 (WRITE of another) removed 19 rows{MEND}"
    ]
    damage.version_path(last).unlink()
    DeltaTable(str(damage.table)).delete("date = '2024-01-01'")
    found = audit(damage.table)
    (by,) = found.others
    assert told(found) == [f"rows_removed: version 4 (DELETE of {by.writer}) removed 12 rows{MEND}"]
    assert (by.version, by.operation) == (4, "DELETE")
    assert found.places.amounts[FilePlace.REMOVED_BY_OTHERS].rows == 12


def test_rows_that_a_deletion_vector_hides_are_told(damage):
    (file,) = damage.added(2)
    vector = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 2}
    damage.commit(
        {"remove": {"path": file["path"], "dataChange": True}},
        {"add": {**file, "deletionVector": vector}},
        operation="DELETE",
    )
    found = audit(damage.table, deep=False)
    assert told(found) == [f"rows_removed: version 4 (DELETE of another) removed 2 rows{MEND}"]
    assert found.active.rows == 17


def test_a_rewrite_that_loses_rows_is_told(damage):
    DeltaTable(str(damage.table)).optimize.compact()

    def fewer(add):
        add["stats"] = json.dumps({"numRecords": json.loads(add["stats"])["numRecords"] - 1})

    damage.edit_actions(4, "add", fewer)
    found = told(audit(damage.table, deep=False))
    assert found == [
        (
            "rows_changed: version 4 (OPTIMIZE) says that it changes no data, but removes 19 rows "
            "and adds 17"
        )
    ]


def test_a_version_that_is_gone_is_told_and_not_taken_for_an_empty_one(damage):
    damage.version_path(2).unlink()
    assert told(audit(damage.table)) == [
        (
            "log_version_missing: version 2 of the Delta log is gone, so nothing after can be "
            "read; the journals were not compared with the log"
        )
    ]


def test_rows_that_went_before_the_log_begins_are_told(damage):
    table = DeltaTable(str(damage.table))
    table.delete("date = '2024-01-01'")
    table.create_checkpoint()
    for version in range(5):
        damage.version_path(version).unlink()
    (found,) = told(audit(damage.table))
    assert found.startswith(
        "rows_missing: 2 files of committed entries with 12 rows were removed up to version 4, "
        "such as date=2024-01-01/"
    )
    assert found.endswith("and what was added in their place by then has 0 rows")
