"""`penguin fsck`: what is missing is named with its sources, taken out, and read again once."""

import contextlib
import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from lakebed.documents.records import SourceRecord
from lakebed.errors import TableUnreadable, TableUnsupported
from lakebed.layout import accepted, log_version, receipt
from lakebed.storage.options import ObjectFacts, StorageOptions
from lakebed.storage.store import Store
from penguin.upkeep.fsck import FsckFault, check, list_all
from penguin.upkeep.repair import RepairOrder, RepairRefused
from tests.support.audits import audited
from tests.support.compactions import crowded
from tests.support.desk import Desk
from tests.support.dying import Died, dying, lives
from tests.support.penguin_commands import penguin
from tests.support.promotions import ID, PRICE
from tests.support.retractions import Taken
from tests.support.tables import Penguin, TableDirectory, rows_of

GONE = pytest.mark.unbalanced("file_gone")


def table_of(folder: Path, *batches: int) -> TableDirectory:
    """Return a table with entries of so many files each."""
    table = TableDirectory(folder / "table")
    number = 0
    for files in batches:
        parts = [rows_of(number + one) for one in range(files)]
        number += files
        table.journal().batch(*parts)
        Penguin(table).drain()
    return table


def files_of(table: TableDirectory, entry: int) -> list[str]:
    return [one["filename"] for one in json.loads(table.journal().bodies[entry])["files"]]


def test_an_empty_first_version_names_the_command_that_removes_it(tmp_path: Path) -> None:
    """L01: a power cut has left the name of the version alone; nothing was committed."""
    table = TableDirectory(tmp_path / "table")
    table.journal().batch(rows_of(1))
    first = table.root / log_version(0)
    first.parent.mkdir()
    first.touch()
    with pytest.raises(TableUnreadable, match="penguin fsck --repair --yes removes it"):
        Penguin(table).drain()
    assert penguin(table.root, "fsck", "--repair").exit_code == 2
    assert first.exists()
    done = penguin(table.root, "fsck", "--repair", "--yes")
    assert done.exit_code == 0, done.output
    Penguin(table).drain()
    assert table.ids() == [1]


def test_a_listing_goes_into_hidden_folders_below_the_root(tmp_path: Path) -> None:
    """Without them a table with many such files would have most of them reported as missing."""
    for name in ("a.parquet", "date=1/_late/b.parquet", "_staging/c.parquet"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"12")
    listed = list_all(Store(str(tmp_path), StorageOptions()))
    assert [listed[name] for name in ("a.parquet", "date=1/_late/b.parquet")] == [2, 2]
    assert "_staging/c.parquet" not in listed


def test_an_empty_later_version_is_one_without_actions(tmp_path: Path) -> None:
    """L01: its entry is committed again, because no receipt says that it was."""
    table = table_of(tmp_path, 1)
    receipt_before = table.store.get(receipt("events"))
    assert receipt_before is not None
    table.journal().batch(rows_of(1))
    Penguin(table).drain()
    table.store.replace(receipt("events"), receipt_before)
    (table.root / log_version(2)).write_bytes(b"")
    Penguin(table).drain()
    assert table.ids() == [0, 1]


@GONE
@pytest.mark.parametrize("checkpointed", [False, True])
def test_a_missing_file_is_named_with_its_version_and_sources_and_taken_out(tmp_path, checkpointed):
    table = table_of(tmp_path, 1, 1)
    if checkpointed:
        table.delta().create_checkpoint()
    (lost,) = files_of(table, 1)
    (table.root / lost).unlink()
    (one,) = check(table.store).damaged
    assert (one.path, one.trouble, one.found) == (lost, FsckFault.MISSING, None)
    assert one.action.version == (None if checkpointed else 1)
    assert dict(one.action.partition_values) == {"date": "2026-01-01"}
    assert one.origin is not None
    assert (one.origin.pipeline, one.origin.entry) == ("events", 1)
    assert one.origin.sources == ("in:a.ndjson",)
    planned = RepairOrder().plan(table.store)
    assert (len(planned.files), planned.version) == (1, None)
    done = RepairOrder().carry_out(table.store)
    assert table.ids() == [1]
    assert table.delta().history(1)[0]["operation"] == "FSCK"
    assert done.version == table.delta().version()
    assert check(table.store).damaged == ()
    assert RepairOrder().carry_out(table.store).files == ()
    Penguin(table).drain()
    assert table.ids() == [1]


@pytest.mark.unbalanced("file_size_differs")
def test_a_file_of_another_size_is_told_and_not_taken_out(tmp_path: Path) -> None:
    table = table_of(tmp_path, 1)
    (cut,) = files_of(table, 1)
    (table.root / cut).write_bytes(b"x")
    (one,) = check(table.store).damaged
    assert (one.trouble, one.found) == (FsckFault.SIZE, 1)
    assert RepairOrder().carry_out(table.store).version is None


@GONE
def test_the_requests_do_not_grow_with_the_files(tmp_path: Path) -> None:
    def calls(table: TableDirectory, files: int) -> int:
        count = 0

        class Counting(Store):
            def head(self, path: str) -> ObjectFacts | None:
                nonlocal count
                count += 1
                return super().head(path)

            def get(self, path: str) -> bytes | None:
                nonlocal count
                count += 1
                return super().get(path)

        found = check(Counting(str(table.root), StorageOptions()))
        assert (found.files, found.elsewhere, found.damaged) == (files, 0, ())
        return count

    few, many = table_of(tmp_path / "few", 1), table_of(tmp_path / "many", 30)
    assert calls(few, 1) == calls(many, 30)


def test_a_file_that_is_removed_meanwhile_is_not_missing(tmp_path: Path) -> None:
    table = table_of(tmp_path, 2)

    class Compacted(Store):
        done = False

        def get(self, path: str) -> bytes | None:
            found = super().get(path)
            if path == log_version(1) and not self.done:
                self.done = True
                table.delta().optimize.compact()
                for lost in files_of(table, 1):
                    (table.root / lost).unlink()
            return found

    store = Compacted(str(table.root), StorageOptions())
    assert check(store).damaged == ()


@pytest.mark.unbalanced("unreadable")
def test_a_log_with_a_gap_cannot_be_told(tmp_path: Path) -> None:
    """HOLES W14."""
    table = table_of(tmp_path, 1, 1, 1)
    (table.root / log_version(2)).unlink()
    with pytest.raises(TableUnreadable, match="missing"):
        check(table.store)


@GONE
def test_a_table_of_which_nothing_is_left_is_not_emptied(tmp_path: Path) -> None:
    table = table_of(tmp_path, 11)
    shutil.rmtree(table.root / "date=2026-01-01")
    with pytest.raises(RepairRefused, match="none of the table's 11 files"):
        RepairOrder().carry_out(table.store)
    assert RepairOrder(even_all=True).carry_out(table.store).version is not None


@GONE
def test_an_append_only_table_is_not_repaired(tmp_path: Path) -> None:
    table = table_of(tmp_path, 1, 1)
    table.delta().alter.set_table_properties({"delta.appendOnly": "true"})
    (table.root / files_of(table, 1)[0]).unlink()
    with pytest.raises(TableUnsupported, match="appendOnly"):
        RepairOrder().carry_out(table.store)


@GONE
def awaiting_redo(desk: Desk) -> object:
    """Return the files that status says wait for a redo."""
    return json.loads(desk.cli("status", "--output", "json").stdout)["awaiting_redo"]


def test_a_repair_that_dies_at_any_call_is_made_once(tmp_path: Path) -> None:
    table = table_of(tmp_path, 1, 1)
    (table.root / files_of(table, 1)[0]).unlink()
    version = table.delta().version()
    for fate in lives(table.root):
        with contextlib.suppress(Died):
            RepairOrder().carry_out(dying(Store(str(table.root), StorageOptions()), fate))
        RepairOrder().carry_out(Store(str(table.root), StorageOptions()))
        assert DeltaTable(str(table.root)).version() == version + 1
        assert table.ids() == [1]


def test_sources_of_a_missing_file_are_read_again_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.arrives("a.ndjson", 5)
    desk.arrives("b.ndjson", 7)
    lost = min(desk.table.glob("*.parquet"))
    lost.unlink()
    shown = desk.order("fsck")
    assert shown.exit_code == 1
    assert f"blizzard redo --held {lost.stem} --yes" in shown.stdout
    assert "default:a.ndjson" in shown.stdout
    dry = desk.order("fsck", "--repair", "--output", "json")
    assert (dry.exit_code, json.loads(dry.stdout)["taken_out"]) == (1, 1)
    done = desk.order("fsck", "--repair", "--yes")
    assert (done.exit_code, "restore it" in done.output) == (0, False), done.output
    assert desk.order("fsck").exit_code == 0
    waiting = {"file": lost.name, "entry": 1, "rows": 5, "sources": ["default:a.ndjson"]}
    assert awaiting_redo(desk) == [waiting]
    status, audit = desk.cli("status"), desk.cli("audit")
    assert "[redo_waiting]" in status.stdout
    assert f"{lost.stem}; see blizzard redo" in audit.stdout
    listed = desk.cli("redo")
    assert (listed.exit_code, "a.ndjson" in listed.stdout) == (1, True), listed.output
    redone = desk.cli("redo", "--held", lost.stem, "--yes")
    assert redone.exit_code == 0, redone.output
    assert awaiting_redo(desk) == []
    for _ in range(2):
        desk.penguin()
        desk.ends_well()
        desk.blizzard()
    desk.penguin()
    assert audited(desk.table).is_balanced
    rows = DeltaTable(str(desk.table)).to_pyarrow_table()["id"].to_pylist()
    assert sorted(map(str, rows)) == sorted(map(str, desk.landing.ids))
    again = desk.cli("redo", "--held", lost.stem, "--yes")
    assert "already" in again.output
    assert "no data file is known to be missing" in desk.cli("redo").stdout


def test_a_unit_of_which_files_are_left_is_read_again_only_as_a_whole(tmp_path: Path) -> None:
    table = table_of(tmp_path, 2)
    lost, left = files_of(table, 1)
    (table.root / lost).unlink()
    version = table.delta().version()
    with pytest.raises(RepairRefused, match="--with-unit"):
        RepairOrder().carry_out(table.store)
    assert table.delta().version() == version
    whole = RepairOrder(with_unit=True).carry_out(table.store)
    assert {one.path for one in whole.files} == {lost, left}
    assert (len(whole.marked), table.ids()) == (2, [])


@GONE
@pytest.mark.parametrize("with_unit", [False, True])
def test_a_unit_that_another_program_has_rewritten_is_not_taken_out(tmp_path, with_unit):
    table = TableDirectory(tmp_path / "table")
    table.journal().batch(rows_of(1), rows_of(2, date="2026-01-02"))
    Penguin(table).drain()
    _, lost = files_of(table, 1)
    table.delta().delete("id = 1")
    (table.root / lost).unlink()
    version = table.delta().version()
    with pytest.raises(RepairRefused, match="no longer in the table as it was written"):
        RepairOrder(with_unit=with_unit).carry_out(table.store)
    assert table.delta().version() == version


@GONE
def test_a_file_that_no_batch_wrote_is_never_taken_out(tmp_path: Path) -> None:
    desk = crowded(tmp_path)
    desk.tidy()
    (lost,) = desk.active
    (desk.table / lost).unlink()
    version = DeltaTable(str(desk.table)).version()
    shown = desk.order("fsck")
    assert (shown.exit_code, "blizzard redo --held" in shown.stdout) == (1, False)
    assert "(compact, entry" in shown.stdout
    for words in (("--repair",), ("--repair", "--yes"), ("--repair", "--with-unit", "--yes")):
        refused = desk.order("fsck", *words)
        assert refused.exit_code == 1
        assert f"{lost} (compact, entry" in refused.output
        assert "put the missing file back" in refused.output
    assert DeltaTable(str(desk.table)).version() == version


@pytest.mark.parametrize("beside_others", [False, True])
def test_rows_that_are_lost_with_a_file_are_told_and_can_be_read_again(tmp_path, beside_others):
    """Files of other programs may hold rows of one that they rewrote, not of one that is gone."""
    desk = crowded(tmp_path, files=3)
    desk.tidy()
    (lost,) = desk.active
    if beside_others:
        rows = DeltaTable(str(desk.table)).to_pyarrow_table().slice(0, 2)
        write_deltalake(str(desk.table), rows, mode="append")
    ours = Counter(pq.read_table(desk.table / lost, columns=["id"])["id"].to_pylist())
    before = desk.ids()
    (desk.table / lost).unlink()
    assert desk.order("fsck", "--rows-lost").exit_code == 2
    done = desk.order("fsck", "--repair", "--rows-lost", "--yes")
    assert done.exit_code == 0, done.output
    assert Counter(desk.ids()) == Counter(before) - ours
    audit = desk.cli("audit")
    assert audit.exit_code == 0, audit.output
    assert awaiting_redo(desk) == [], "it cannot be read again"
    assert "(FSCK of penguin" in " ".join(audit.stdout.split())
    assert "penguin fsck --repair --rows-lost" in " ".join(audit.stdout.split())
    told = desk.cli("why", "0.ndjson").output
    assert "It is in the table" not in told
    assert "FSCK by penguin" in told
    orders = re.findall(r"blizzard (retract .*)", done.stdout)
    assert len(orders) == 3
    (loss,) = desk.audited().accepted
    for number, words in enumerate(orders):
        again = desk.cli(*words.split())
        assert again.exit_code == 0, again.output
        desk.penguin()
        if number == 0:
            # Had nobody accepted the loss, the rows that are still to be read would be missed.
            document = (desk.table / accepted(loss.version)).rename(tmp_path / "aside")
            (missed,) = desk.audited().differences
            assert "removed 4 rows" in missed.message
            document.rename(desk.table / accepted(loss.version))
    assert desk.ids() == before
    assert "It is in the table" in desk.cli("why", "0.ndjson").output
    assert desk.audited().is_balanced


def test_rows_that_are_lost_with_the_file_of_a_promotion_are_named_by_their_sources(tmp_path):
    desk = Taken(tmp_path)
    for name in ("a", "b"):
        desk.land(f"{name}.ndjson", {"id": 1, "price": 1.5}, {"id": 2})
        desk.blizzard()
    desk.penguin()
    desk.configure({"fields": [ID, PRICE]})
    before = desk.active
    desk.promote("price")
    desk.penguin()
    lost = min(desk.active - before)
    (desk.table / lost).unlink()
    done = desk.order("fsck", "--repair", "--rows-lost", "--yes")
    assert done.exit_code == 0, done.output
    (source,) = re.findall(
        r"2 rows of pipeline default, entry 3 \(promote\), from:\n *(\S+)", done.stdout
    )
    assert f"blizzard retract {source} --replace {source} --yes -p default" in done.stdout
    assert desk.cli("files", "--check").exit_code == 1
    assert json.loads(desk.cli("why", source, "--output", "json").stdout)["state"] == "removed"
    again = desk.cli("retract", source, "--replace", source, "--yes")
    assert again.exit_code == 0, again.output
    desk.penguin()
    assert desk.ids() == [1, 1, 2, 2]
    assert desk.cli("files", "--check").exit_code == 0
    assert desk.audited().is_balanced


def test_rows_of_unknown_sources_are_not_taken_out_as_lost(tmp_path: Path) -> None:
    """What blizzard has rewritten of another program's file names no source."""
    desk = Taken(tmp_path)
    desk.land("a.ndjson", {"id": 1, "price": 1.5}, {"id": 2})
    desk.ingest()
    DeltaTable(str(desk.table)).delete("id = 2")
    desk.configure({"fields": [ID, PRICE]})
    desk.promote("price")
    desk.penguin()
    (lost,) = desk.active
    (desk.table / lost).unlink()
    refused = desk.order("fsck", "--repair", "--rows-lost", "--yes")
    assert refused.exit_code == 1
    assert f"no entry says which source files the rows of {lost} came from" in " ".join(
        refused.output.split()
    )
    assert "restore the table to a version before it" in " ".join(refused.output.split())
    DeltaTable(str(desk.table)).restore(desk.version - 1)
    assert (desk.ids(), desk.order("fsck").exit_code) == ([1], 0)


def test_the_command_says_whether_it_can_be_told(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert desk.order("fsck").exit_code == 1
    desk.arrives("a.ndjson", 5)
    desk.arrives("b.ndjson", 5)
    assert "all are there" in desk.order("fsck").stdout
    assert desk.order("fsck", "--yes").exit_code == 2
    kept = (desk.table / log_version(1)).read_bytes()
    (desk.table / log_version(1)).unlink()
    assert desk.order("fsck").exit_code == 2
    (desk.table / log_version(1)).write_bytes(kept)


def test_a_loss_that_was_not_written_down_can_be_accepted_later(tmp_path: Path) -> None:
    """A crash right after the repair leaves the version without its document."""
    desk = crowded(tmp_path, files=3)
    desk.tidy()
    (lost,) = desk.active
    (desk.table / lost).unlink()
    assert desk.order("fsck", "--repair", "--rows-lost", "--yes").exit_code == 0
    version = DeltaTable(str(desk.table)).version()
    (desk.table / accepted(version)).unlink()
    assert [one.kind for one in desk.audited().differences] == ["rows_removed"]
    words = ("audit", "--accept", str(version), "--reason", "the disk died")
    assert desk.cli(*words).exit_code == 0
    (loss,) = desk.audited().accepted
    assert (loss.version, len(loss.files), loss.reason) == (version, 1, "the disk died")


@GONE
def test_a_file_whose_source_was_read_over_several_batches_is_not_taken_out(tmp_path: Path) -> None:
    """`blizzard redo` would refuse it afterwards, and its rows would be lost in silence."""
    table = TableDirectory(tmp_path / "table")
    begun = SourceRecord(
        source="in", path="a.ndjson", size=9, etag=None, lines=2, rows=2, complete=False, unit="u"
    )
    table.journal().batch(rows_of(1), rows_of(2), sources=(begun,))
    Penguin(table).drain()
    lost = files_of(table, 1)[0]
    (table.root / lost).unlink()
    version = table.delta().version()
    with pytest.raises(RepairRefused, match=r"in:a\.ndjson was read over several batches"):
        RepairOrder(with_unit=True).carry_out(table.store)
    assert table.delta().version() == version
    done = RepairOrder(rows_lost=True).carry_out(table.store)
    assert ([one.path for one in done.lost], done.marked) == ([lost], ())
    assert table.ids() == [2]


@GONE
def test_rows_that_were_deleted_in_place_come_back_only_if_that_is_said(tmp_path: Path) -> None:
    table = table_of(tmp_path, 1, 1)
    (lost,) = files_of(table, 1)
    told = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 1}
    vector = json.dumps({**told, "sizeInBytes": 36, "cardinality": 1})
    first = table.root / log_version(1)
    first.write_text(first.read_text().replace('{"add":{', f'{{"add":{{"deletionVector":{vector},'))
    (table.root / lost).unlink()
    assert [one.path for one in check(table.store).missing] == [lost]
    with pytest.raises(RepairRefused, match=r"deleted, by a deletion vector.*--rows-back"):
        RepairOrder().plan(table.store)
    assert [one.path for one in RepairOrder(rows_back=True).plan(table.store).files] == [lost]


@pytest.mark.unbalanced("rows_removed")
@pytest.mark.parametrize("times", [1, 2])
def test_rows_that_went_with_a_file_of_another_program_are_nowhere_said_to_be_there(
    tmp_path: Path, times: int
) -> None:
    """`why` and `files` say what the audit says, however often the rows were rewritten.

    No journal names such a file, so nothing but the log tells that rows went with it.
    """
    desk = crowded(tmp_path, files=3)
    before = len(desk.ids())
    DeltaTable(str(desk.table)).optimize.compact()
    if times == 2:
        DeltaTable(str(desk.table)).optimize.z_order(["id"])
    (lost,) = desk.active
    (desk.table / lost).unlink()
    assert desk.order("fsck", "--repair", "--rows-lost", "--yes").exit_code == 0
    version = DeltaTable(str(desk.table)).version()
    for source in ("0.ndjson", "2.ndjson"):
        told = desk.cli("why", source).stdout
        assert "rows of it have been removed from the table since: FSCK by penguin" in told
        assert f"in version {version}" in told
    told = desk.cli("files", "--state", "removed").stdout
    assert all(f"{number}.ndjson" in told for number in range(3))
    (loss,) = desk.audited().accepted
    assert (loss.rows, desk.audited().is_balanced) == (before, True)
    (desk.table / accepted(version)).unlink()
    (found,) = desk.audited().differences
    assert (found.kind, f"removed {before} rows" in found.message) == ("rows_removed", True)
    words = ("audit", "--accept", str(version), "--reason", "the disk died")
    assert desk.cli(*words).exit_code == 0
    assert desk.audited().is_balanced


@pytest.mark.unbalanced("rows_removed")
def test_rows_may_be_in_the_other_file_of_two_that_another_program_wrote(tmp_path: Path) -> None:
    desk = crowded(tmp_path, files=3)
    lost, _ = rewritten_as_two(desk.table)
    (desk.table / lost).unlink()
    assert desk.order("fsck", "--repair", "--rows-lost", "--yes").exit_code == 0
    assert "Some of its rows may have been removed" in desk.cli("why", "0.ndjson").stdout


def rewritten_as_two(table: Path) -> list[str]:
    """Rewrite all rows of a table as an OPTIMIZE does that leaves two files; return these."""
    assert DeltaTable(str(table)).optimize.compact(target_size=1 << 20)["numFilesAdded"] == 1
    (whole,) = DeltaTable(str(table)).file_uris()
    log = table / log_version(DeltaTable(str(table)).version())
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    (add,) = [one for one in lines if "add" in one]
    halves = []
    rows = pq.read_table(whole)
    for number, part in enumerate((rows.slice(0, 3), rows.slice(3))):
        path = f"half-{number}.parquet"
        pq.write_table(part, table / path)
        stats = json.dumps({"numRecords": part.num_rows})
        size = (table / path).stat().st_size
        halves.append({"add": {**add["add"], "path": path, "size": size, "stats": stats}})
    kept = [one for one in lines if "add" not in one] + halves
    log.write_text("".join(json.dumps(one) + "\n" for one in kept))
    return [one["add"]["path"] for one in halves]


def shared_by_two(folder: Path) -> Taken:
    """Return a table with one data file, which holds rows of two source files."""
    desk = Taken(folder, {"fields": [ID]})
    desk.land("a.ndjson", {"id": 1}, {"id": 2})
    desk.land("b.ndjson", {"id": 3})
    desk.ingest()
    return desk


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_shares_its_rows_with_content_read_since_is_lost_only_by_order(
    tmp_path: Path, replaced: bool
) -> None:
    """`blizzard redo` reads whole work units, so it would read that content twice."""
    desk = shared_by_two(tmp_path)
    (lost,), version = desk.active, desk.version
    if replaced:
        desk.replace("a.ndjson", by="a.ndjson")
        desk.penguin()
    else:
        desk.take_back("a.ndjson")
    DeltaTable(str(desk.table)).restore(version)
    (desk.table / lost).unlink()
    shown = " ".join(desk.order("fsck").stdout.split())
    assert ("blizzard redo --held" in shown, "--rows-lost" in shown) == (False, True), shown
    refused = desk.order("fsck", "--repair", "--yes")
    assert refused.exit_code == 1
    assert "entry 1 of default: entry 2 has read or retracted source files" in refused.output
    done = desk.order("fsck", "--repair", "--rows-lost", "--yes")
    for words in re.findall(r"blizzard (retract .*)", done.stdout):
        again = desk.cli(*words.split())
        assert again.exit_code == 0, again.output
        desk.penguin()
    assert sorted(desk.ids()) == [1, 2, 3]
    assert desk.audited().is_balanced


def test_rows_that_wait_for_a_redo_are_not_replaced_before_it(tmp_path: Path) -> None:
    """The rows of other source files in the data file would never be read again."""
    desk = shared_by_two(tmp_path)
    (lost,) = desk.active
    (desk.table / lost).unlink()
    assert desk.order("fsck", "--repair", "--yes").exit_code == 0
    refused = desk.cli("retract", "a.ndjson", "--replace", "a.ndjson", "--yes")
    assert (refused.exit_code, "blizzard redo --held" in refused.output) == (1, True)
    words = re.findall(r"blizzard (redo --held \S+)", " ".join(refused.output.split()))[0].split()
    assert desk.cli(*words, "--yes").exit_code == 0
    desk.ingest()
    assert sorted(desk.ids()) == [1, 2, 3]
    desk.replace("a.ndjson", by="a.ndjson")
    desk.penguin()
    assert sorted(desk.ids()) == [1, 2, 3]
    assert desk.audited().is_balanced
