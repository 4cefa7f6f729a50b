"""`penguin vacuum`: what no version within the retention needs goes, and nothing else does."""

import json
import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lakebed.errors import DocumentUnreadable, StoreDenied, TableUnsupported
from lakebed.layout import log_version, outbox, pending_meta
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from lakebed.types import Handoff
from penguin.upkeep.vacuum import KeptReason, VacuumRefused, VacuumReport
from tests.support.change_files import BOTH, write_changes
from tests.support.desk import Desk
from tests.support.dying import Died, dying, lives
from tests.support.foreign import Directory
from tests.support.tables import EVENTS, MARKS, Penguin, TableDirectory, rows_of, write_file
from tests.support.upkeep import A_DAY, data, grow_old, later, order, vacuumed

RETENTION = "delta.deletedFileRetentionDuration"


@pytest.fixture
def table(tmp_path: Path) -> TableDirectory:
    """Return a table of two files, and of their compacted copy, made fifteen days ago."""
    table = TableDirectory(tmp_path / "table")
    for number in (1, 2):
        table.journal().batch(rows_of(number))
        Penguin(table).drain()
    table.delta().optimize.compact()
    grow_old(table.root, 15)
    return table


def active(table: TableDirectory) -> set[str]:
    root = f"{table.root}/"
    return {uri.split(root)[-1] for uri in table.delta().file_uris()}


def looked(table: TableDirectory, **given: Any) -> VacuumReport:
    """Return what would be deleted."""
    seen = order(table.settings(), **given).plan(table.store)
    assert seen is not None
    return seen


def carried_out(table: TableDirectory, store: Store | None = None, **given: Any) -> VacuumReport:
    """Delete what may be deleted, which a look beforehand would not notice."""
    done = order(table.settings(), **given).carry_out(store or table.store)
    assert done is not None
    return done


def test_files_that_were_compacted_before_the_retention_are_deleted(table: TableDirectory) -> None:
    """Without an order nothing is deleted or written."""
    before = {path: path.stat().st_mtime_ns for path in table.root.rglob("*")}
    seen = looked(table)
    assert (seen.files, seen.bytes > 0) == (2, True)
    assert {path: path.stat().st_mtime_ns for path in table.root.rglob("*")} == before
    done = vacuumed(table.settings(), table.store)
    assert done.files == 2
    assert data(table.root) == active(table)
    assert table.ids() == [1, 2]
    assert carried_out(table).files == 0


def test_what_a_version_within_the_retention_refers_to_stays(tmp_path: Path) -> None:
    table = TableDirectory(tmp_path / "table")
    for number in (1, 2):
        table.journal().batch(rows_of(number))
        Penguin(table).drain()
    grow_old(table.root, 15)
    table.delta().optimize.compact()
    grow_old(table.root, 13)
    assert carried_out(table).files == 0
    # Time travel to the version before the removal, which is what was there two weeks ago.
    travelled = table.delta()
    travelled.load_as_version(2)
    assert {*travelled.to_pyarrow_table()["id"].to_pylist()} == {1, 2}


def test_a_removal_counts_from_the_time_of_its_version_too(table: TableDirectory) -> None:
    """A writer whose clock is behind says that it removed files long ago."""
    newest = max((table.root / "_delta_log").glob("*.json"))
    os.utime(newest)
    assert vacuumed(table.settings(), table.store).files == 0


def test_what_waits_for_its_commit_stays_at_any_age(table: TableDirectory) -> None:
    """HOLES W15, W21: penguin's own vacuum takes nothing that an entry names."""
    entry = table.journal().batch(rows_of(3))
    grow_old(table.root, 100)
    done = vacuumed(table.settings(), table.store, ignore_retention=True, older_than=timedelta(0))
    assert done.kept[KeptReason.WAITING] == 1
    assert entry.files[0].filename in data(table.root)
    Penguin(table).drain()
    assert table.ids() == [1, 2, 3]


def test_what_blizzard_left_and_no_entry_names_is_left_to_gc(table: TableDirectory) -> None:
    """HOLES W20: a batch that has been running for weeks may still name it."""
    leftover = write_file(table, EVENTS, rows_of(9), {"date": "2026-01-01"}, MARKS)
    other = write_file(table, EVENTS, rows_of(9), {"date": "2026-01-01"}, {})
    grow_old(table.root, 30)
    done = vacuumed(table.settings(), table.store)
    assert done.kept[KeptReason.LEFTOVER] == 1
    assert leftover.filename in data(table.root)
    assert other.filename not in data(table.root)


def test_what_is_held_stays(table: TableDirectory) -> None:
    table.journal().batch([{"id": 4, "name": "n4", "date": "2026-01-01"}], rows_of(5))
    body = json.loads(table.journal().bodies[-1])
    (table.root / body["files"][0]["filename"]).rename(table.root / "moved")
    held = set(Penguin(table).drain().held)
    assert held
    (table.root / "moved").rename(table.root / body["files"][0]["filename"])
    for meta in (table.root / "_staging/held").iterdir():
        meta.unlink()  # The log says it as well.
    grow_old(table.root, 30)
    before = data(table.root)
    done = vacuumed(table.settings(), table.store)
    assert done.kept[KeptReason.HELD] == len(held)
    assert held <= data(table.root) < before


def test_files_in_the_outbox_and_in_quarantine_are_not_looked_at(tmp_path: Path) -> None:
    table = TableDirectory(tmp_path / "table", Handoff.DIRECT)
    entry = table.journal().batch(rows_of(1))
    Penguin(table).drain()
    hidden = [
        outbox("events", entry.files[0].filename),
        "_blizzard/events/quarantine/a.parquet",
        "_something/b.parquet",
        ".hidden/c.parquet",
        "metadata/v1.parquet",
        "date=2026-01-01/.part.parquet",
        "date=2026-01-01/_temporary/d.parquet",
        "notes.txt",
    ]
    for path in hidden:
        table.store.replace(path, b"x")
    table.store.replace("date=2026-01-01/orphan.parquet", b"x")
    table.store.replace("_change_data/cdc-1.parquet", b"x")
    grow_old(table.root, 30)
    done = vacuumed(table.settings(), table.store)
    assert done.some == ("_change_data/cdc-1.parquet", "date=2026-01-01/orphan.parquet")
    assert done.kept[KeptReason.OTHER] == 1
    assert all((table.root / path).exists() for path in hidden)


def test_files_of_the_change_data_feed_stay_as_long_as_their_version(table: TableDirectory) -> None:
    """In both places that Delta has for them: a folder, and random prefixes."""
    write_changes(table.root, [{"id": 1}])
    for path in BOTH:
        at = time.time() - 30 * A_DAY
        os.utime(table.root / path, (at, at))
    vacuumed(table.settings(), table.store)
    assert all((table.root / path).exists() for path in BOTH)
    grow_old(table.root, 15)
    vacuumed(table.settings(), table.store)
    assert not any((table.root / path).exists() for path in BOTH)
    assert table.ids() == [1, 2]


def test_what_a_meta_asks_for_stays(tmp_path: Path) -> None:
    table = Directory(tmp_path / "table")
    table.file(1)
    table.penguin().drain()
    waiting = table.file(2, path="date=2024-01-01/other-name.parquet")
    table.meta(waiting)
    grow_old(table.root, 30)
    done = vacuumed(table.settings(), table.store)
    assert done.kept[KeptReason.WAITING] == 1
    meta = table.root / pending_meta(waiting)  # type: ignore[arg-type]
    meta.write_text("{")
    with pytest.raises(DocumentUnreadable):
        order(table.settings()).carry_out(table.store)
    assert waiting in data(table.root)


def test_what_a_scan_may_still_commit_stays(tmp_path: Path) -> None:
    table = Directory(tmp_path / "table")
    table.file(1)
    table.penguin().drain()
    grow_old(table.root, 15)
    waiting = table.file(2)
    grow_old(table.root, 15)
    done = vacuumed(table.settings(), table.store)
    assert (done.kept[KeptReason.SCANNED], done.files) == (1, 0)
    table.penguin().drain()
    assert table.ids() == [1, 2]
    table.delta().delete("id = 2")
    grow_old(table.root, 15)
    assert vacuumed(table.settings(), table.store).some == (waiting,)


def test_less_than_the_table_says_is_refused(table: TableDirectory) -> None:
    with pytest.raises(VacuumRefused, match="keeps files for 14 days"):
        order(table.settings(), older_than=timedelta(hours=1)).carry_out(table.store)
    assert not (table.root / ".penguin-clock").exists()
    table.delta().alter.set_table_properties({RETENTION: "interval 30 days"})
    assert vacuumed(table.settings(), table.store).files == 0
    with pytest.raises(VacuumRefused, match="keeps files for 30 days"):
        order(table.settings(), older_than=timedelta(days=14)).plan(table.store)
    forced = carried_out(table, older_than=timedelta(days=14), ignore_retention=True)
    assert forced.files == 2


def test_a_retention_that_nobody_can_read_deletes_nothing(table: TableDirectory) -> None:
    """HOLES L31."""
    edit(table, 0, lambda text: text.replace("interval 14 days", "a week"))
    with pytest.raises(VacuumRefused, match="cannot read"):
        order(table.settings()).plan(table.store)


def test_a_clock_of_ours_that_is_ahead_makes_no_file_older(tmp_path: Path) -> None:
    """HOLES L29."""
    table = TableDirectory(tmp_path / "table")
    table.journal().batch(rows_of(1))
    Penguin(table).drain()
    table.store.replace("date=2026-01-01/orphan.parquet", b"x")
    done = carried_out(table, clock=later(30))
    assert (done.files, done.kept) == (0, {KeptReason.YOUNG: 1})


def test_deletion_vectors_that_are_referred_to_stay(table: TableDirectory) -> None:
    """The name of a vector's file is in the log only as 20 letters of base 85."""
    vector = "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    for name in (f"ab/{vector}", vector.replace("d2c6", "d2c7")):
        table.store.replace(name, b"x")
    last = table.delta().version()
    text = (table.root / log_version(last)).read_text()
    add = next(json.loads(line) for line in text.splitlines() if '"add"' in line)["add"]
    told = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4}
    kept = {**told, "sizeInBytes": 40, "cardinality": 6}
    lines = [
        {"remove": {"path": add["path"], "deletionTimestamp": 1, "dataChange": True}},
        {"add": {**add, "deletionVector": kept}},
    ]
    body = "".join(json.dumps(line) + "\n" for line in lines)
    (table.root / log_version(last + 1)).write_text(body)
    grow_old(table.root, 30)
    some = looked(table).some
    assert f"ab/{vector}" not in some
    assert vector.replace("d2c6", "d2c7") in some
    assert add["path"] not in some


def test_a_feature_that_nobody_here_knows_deletes_nothing(table: TableDirectory) -> None:
    edit(
        table,
        0,
        lambda text: text.replace(
            '"minReaderVersion":1,"minWriterVersion":2',
            '"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["filesElsewhere"],'
            '"writerFeatures":["filesElsewhere","vacuumProtocolCheck"]',
        ),
    )
    with pytest.raises(TableUnsupported, match="filesElsewhere"):
        order(table.settings()).plan(table.store)


def test_what_is_restored_meanwhile_stays(table: TableDirectory) -> None:
    """A RESTORE names files again that were removed long ago."""

    class Restored(Store):
        has_listed = False

        def in_order(self, prefix: str = "", **named: Any) -> Any:
            self.has_listed = self.has_listed or prefix.startswith("date=")
            return super().in_order(prefix, **named)

        def delete(self, path: str) -> None:
            if path.endswith(".parquet"):
                raise AssertionError("a file was deleted that a commit has just put back")
            super().delete(path)

        def get(self, path: str) -> bytes | None:
            found = super().get(path)
            if path == log_version(table.delta().version() + 1) and self.has_listed:
                self.has_listed = False
                table.delta().restore(2)
                found = super().get(path)
            return found

    done = carried_out(table, Restored(str(table.root), StorageOptions()))
    assert done.deleted
    assert (done.spared, done.files) == (2, 0)
    assert table.ids() == [1, 2]


def test_what_cannot_be_deleted_is_told_and_deleted_later(table: TableDirectory) -> None:
    class Denies(Store):
        refused: str | None = None

        def delete(self, path: str) -> None:
            if path.endswith(".parquet") and self.refused in (None, path):
                self.refused = path
                raise StoreDenied("access was refused", path=path)
            super().delete(path)

    done = carried_out(table, Denies(str(table.root), StorageOptions()))
    assert done.deleted
    assert (done.failed, done.files) == (1, 1)
    assert "refused" in (done.error or "")
    assert vacuumed(table.settings(), table.store).files == 1


@pytest.mark.parametrize("inner", ["inner", "deep/below/inner", "date=2026-01-01"])
def test_files_of_a_table_in_a_folder_below_stay(table: TableDirectory, inner: str) -> None:
    other = table.root / inner
    # Some are listed before their log, some after it.
    for name in ("00.parquet", "part=1/a.parquet", "z.parquet"):
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        (other / name).write_bytes(b"PAR1")
    (other / "_delta_log").mkdir()
    (other / log_version(0)).write_text("{}\n")
    grow_old(table.root, 15)
    before = data(other)
    done = vacuumed(table.settings(), table.store)
    assert data(other) >= before
    assert done.kept[KeptReason.NESTED] >= 3


def test_a_path_with_an_upper_case_scheme_is_referred_to(table: TableDirectory) -> None:
    (kept,) = active(table)
    newest = table.delta().version()
    edit(table, newest, lambda text: text.replace(f'"{kept}"', f'"FILE://{table.root}/{kept}"'))
    vacuumed(table.settings(), table.store)
    assert (table.root / kept).exists()


def test_the_command_says_what_it_kept_and_refuses_an_age_of_no_file(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.arrives("a.ndjson", 5)
    shown = desk.order("vacuum")
    assert "there is nothing to delete" in shown.stdout
    inner = desk.table / "inner"
    (inner / "_delta_log").mkdir(parents=True)
    (inner / log_version(0)).write_text("{}\n")
    (inner / "a.parquet").write_bytes(b"PAR1")
    grow_old(desk.table, 15)
    kept = "kept: 1 file: in a folder with a Delta log of its own, which is another table"
    assert kept in desk.order("vacuum").stdout
    wrong = desk.order("vacuum", "--older-than", "10000000d")
    assert (wrong.exit_code, wrong.stderr) == (
        2,
        "error: --older-than '10000000d': no file is that old\n",
    )
    wrong = desk.order("vacuum", "--older-than", "5")
    way_out = "'5' is not a duration; use for example 90m, 24h or 7d"
    assert (wrong.exit_code, wrong.stderr) == (2, f"error: --older-than: {way_out}\n")


def test_a_vacuum_that_dies_at_any_call_is_finished_by_the_next(table: TableDirectory) -> None:
    kept = active(table)
    for fate in lives(table.root):
        try:
            store = dying(Store(str(table.root), StorageOptions()), fate)
            order(table.settings()).carry_out(store)
        except Died:
            pass
        assert kept <= data(table.root)
        assert table.ids() == [1, 2]
        order(table.settings()).carry_out(Store(str(table.root), StorageOptions()))
        assert data(table.root) == kept


def test_two_at_once_are_as_good_as_one(table: TableDirectory) -> None:
    class Overtaken(Store):
        overtaken = False

        def delete(self, path: str) -> None:
            if path.endswith(".parquet") and not self.overtaken:
                self.overtaken = True
                order(table.settings()).carry_out(table.store)
            super().delete(path)

    done = carried_out(table, Overtaken(str(table.root), StorageOptions()))
    assert done.deleted
    assert done.failed == 0
    assert data(table.root) == active(table)
    assert table.ids() == [1, 2]


def test_checkpoints_and_cleaned_up_versions_change_nothing(table: TableDirectory) -> None:
    table.delta().create_checkpoint()
    for version in (table.root / "_delta_log").glob("*.json"):
        if version.name < f"{table.delta().version():020d}":
            version.unlink()
    grow_old(table.root, 0)
    assert vacuumed(table.settings(), table.store).files == 2
    assert table.ids() == [1, 2]


def edit(table: TableDirectory, version: int, change: object) -> None:
    path = table.root / log_version(version)
    at = path.stat().st_mtime
    changed = change(path.read_text())  # type: ignore[operator]
    assert changed != path.read_text()
    path.write_text(changed)
    os.utime(path, (at, at))
