"""`blizzard audit --accept`: a known loss is accepted, and exactly that one."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from typer.testing import CliRunner, Result

from blizzard.cli.audit import accept
from blizzard.inspect.audit.log_books import LogBooks
from blizzard.repair.gc import collect
from lakebed import layout
from lakebed.clock import Clock
from lakebed.deltalog.files import named_files
from lakebed.documents.losses import Accepted
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from lakebed.units import plural
from penguin.cli.app import app as penguin_app
from tests.support.adoptions import ParquetFolder
from tests.support.audits import assert_balanced, audited, told
from tests.support.desk import Desk
from tests.support.foreign import Directory

Committed = Callable[[Path], Path]
ACCEPT = ("audit", "--accept", "3", "--reason", "GDPR request 17")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A table from which somebody has deleted rows with version 3."""
    desk = Desk(tmp_path)
    landed = [row["id"] for row in desk.landing.land("a.ndjson", 5)]
    for _round in range(2):
        desk.blizzard()
        desk.penguin()
        desk.landing.land("b.ndjson", 7)
    delete(desk, *landed[:2])
    return desk


def delete(desk: Desk, *ids: int | None) -> None:
    DeltaTable(str(desk.table)).delete(f"id IN ({', '.join(map(str, ids))})")


def document(desk: Desk) -> Path:
    return Path(desk.table, "_blizzard", "_accepted", f"{3:020d}.json")


def test_an_accepted_deletion_is_listed_apart_and_the_table_is_balanced(desk: Desk) -> None:
    before = desk.cli("audit")
    assert before.exit_code == 1
    assert "rows_removed: version 3 (DELETE of delta-rs" in before.stdout
    shown = desk.cli(*ACCEPT)

    assert shown.exit_code == 0, shown.output
    assert "accepted: version 3 (DELETE of delta-rs" in shown.stdout
    assert "removed 2 rows of 1 file: GDPR request 17" in shown.stdout
    (row,) = map(json.loads, desk.cli("audit", "--output", "json").stdout.splitlines())
    (one,) = row["accepted"]
    assert (one["version"], one["rows"], one["files"], one["applies"]) == (3, 2, 1, True)
    assert (row["balanced"], row["differences"]) == (True, [])
    assert len(json.loads(document(desk).read_text())["files"]) == 1


@pytest.mark.unbalanced("rows_removed")
def test_it_outlives_a_clean_up_is_no_pipeline_and_accepts_no_later_deletion(desk: Desk) -> None:
    desk.cli(*ACCEPT)
    collect(
        desk.store,
        "default",
        lambda: named_files(str(desk.table), desk.sink.storage_options),
        clock=Clock(),
        older_than=timedelta(0),
    )
    assert layout.pipelines(desk.store.folders(layout.OURS)) == ["default"]
    found = assert_balanced(desk.table)
    assert [one.version in found.applied for one in found.accepted] == [True]
    delete(desk, *DeltaTable(str(desk.table)).to_pyarrow_table()["id"].to_pylist()[:1])
    assert [one.version for one in audited(desk.table).differences] == [4]


@pytest.mark.unbalanced("rows_removed", "unreadable")
def test_another_loss_of_the_same_version_is_not_accepted(desk: Desk) -> None:
    """A log that was restored from a backup may have another version of the number."""
    desk.cli(*ACCEPT)
    said = json.loads(document(desk).read_text())
    for other in ({"rows": 1}, {"files": ["other.parquet"]}):
        document(desk).write_text(json.dumps(said | other))
        found = audited(desk.table)
        (one,) = told(found)
        assert "removed 2 rows, but" in one
        assert "1 file were accepted" in one
        assert "; other rows are missing now" in desk.cli("audit").stdout
        again = desk.cli(*ACCEPT)
        assert again.exit_code == 1
        assert "version 3 was accepted before, with other rows or files" in again.stderr
    document(desk).write_text("{")
    done = desk.cli("audit")
    assert done.exit_code == 2
    assert "delete it and accept the version again" in done.stderr


def test_rows_that_come_back_need_no_accepting(desk: Desk) -> None:
    desk.cli(*ACCEPT)
    DeltaTable(str(desk.table)).restore(2)
    found = assert_balanced(desk.table)
    assert (len(found.accepted), found.applied) == (1, frozenset())
    assert "; none of it is missing now" in desk.cli("audit").stdout


def test_it_holds_once_the_log_has_been_cleaned_up(desk: Desk) -> None:
    desk.cli(*ACCEPT)
    DeltaTable(str(desk.table)).create_checkpoint()
    for version in range(3):
        (desk.table / f"_delta_log/{version:020d}.json").unlink()
    found = assert_balanced(desk.table)
    assert found.history_since == 3
    assert [one.version in found.applied for one in found.accepted] == [True]

    (unseen,) = desk.table.glob("_blizzard/_accepted/*")
    body = unseen.read_bytes()
    unseen.unlink()
    (one,) = told(audited(desk.table))
    assert "were removed up to version 3" in one or "was removed up to version 3" in one
    unseen.write_bytes(body)


@pytest.mark.unbalanced("rows_removed")
def test_what_is_not_clear_or_not_there_is_refused(desk: Desk) -> None:
    together = "VERSION and --reason TEXT belong together"
    for options, code, fault in (
        (("--accept", "3"), 2, f"--accept {together}"),
        (("--accept", "3", "--reason", " "), 2, together),
        (("--reason", "why"), 2, f"--accept {together}"),
        (("--accept", "2", "--reason", "why"), 1, "version 2 has no difference of kind rows_"),
    ):
        done = desk.cli("audit", *options)
        assert done.exit_code == code, options
        assert fault in done.stderr, options
    assert not (desk.table / "_blizzard" / "_accepted").exists()


def handed_off(folder: Path) -> Path:
    directory = Directory(folder)
    for number in (1, 2):
        directory.file(number, 10 + number, folder="")
        directory.penguin().drain()
    return folder


def adopted(folder: Path) -> Path:
    files = ParquetFolder(folder)
    for number in (1, 2):
        files.file(f"part-{number}.parquet", [number, 10 + number])
    files.adopt()
    return folder


def accept_loss(table: Path) -> None:
    (loss,) = audited(table).losses
    given = replace(loss, reason="not needed", created="2026-01-01T00:00:00+00:00")
    accept(Store(str(table), StorageOptions()), given)


def one_row(table: str) -> pa.Table:
    return DeltaTable(table).to_pyarrow_table().slice(0, 1)


@pytest.mark.parametrize("committed", [handed_off, adopted])
@pytest.mark.parametrize(
    ("removes", "rows"),
    [
        (lambda table: DeltaTable(table).delete("id in (1, 11)"), 2),
        (lambda table: DeltaTable(table).delete("id = 1"), 1),
        (lambda table: (DeltaTable(table).optimize.compact(), DeltaTable(table).delete()), 4),
        (lambda table: write_deltalake(table, one_row(table), mode="overwrite"), 4),
    ],
    ids=["file", "row", "all_after_optimize", "overwrite"],
)
def test_files_of_other_programs_that_penguin_committed_are_expected(
    tmp_path: Path, committed: Committed, removes: Callable[[str], object], rows: int
) -> None:
    """No entry names them, but penguin did commit them."""
    table = committed(tmp_path / "table")
    assert_balanced(table)
    removes(str(table))
    (found,) = audited(table).differences
    assert (found.kind, f"removed {plural(rows, 'row')}" in found.message) == ("rows_removed", True)
    accept_loss(table)
    (loss,) = assert_balanced(table).accepted
    assert loss.rows == rows


@pytest.mark.parametrize("optimized", [False, True])
@pytest.mark.parametrize("committed", [handed_off, adopted])
def test_a_missing_file_of_another_program_is_taken_out_only_by_order(
    tmp_path: Path, committed: Committed, optimized: bool
) -> None:
    table = committed(tmp_path / "table")
    if optimized:
        DeltaTable(str(table)).optimize.compact()
    before = set(DeltaTable(str(table)).file_uris())
    write_deltalake(str(table), one_row(str(table)), mode="append")
    (appended,) = {*DeltaTable(str(table)).file_uris()} - before
    version = DeltaTable(str(table)).version()
    for path in (appended, min(before)):
        Path(path).unlink()

    file = tmp_path / "penguin.yaml"
    file.write_text(f"tables: {{events: {{table_uri: {table}}}}}")

    def fsck(*options: str) -> Result:
        return CliRunner().invoke(penguin_app, ["fsck", "-c", str(file), *options])

    refused = fsck("--repair", "--yes")
    assert (refused.exit_code, "no entry names it" in refused.output) == (1, True)
    assert DeltaTable(str(table)).version() == version
    done = fsck("--repair", "--rows-lost", "--yes")
    assert "rows of 2 files that other programs wrote are lost with that" in done.stdout
    (loss,) = assert_balanced(table).accepted
    rows = 5 if optimized else 3
    assert (loss.rows, loss.version) == (rows, version + 1)
    (table / layout.accepted(loss.version)).unlink()
    (found,) = audited(table).differences
    assert (found.kind, f"removed {rows} rows" in found.message) == ("rows_removed", True)
    accept_loss(table)
    assert_balanced(table)


@pytest.mark.parametrize(
    ("rows", "files", "given_up", "accepted"),
    [
        (2, ("a",), 0, True),
        (1, ("a",), 0, False),
        (1, ("a",), 1, True),
        (2, ("a", "b"), 0, False),
        (3, ("a",), 1, False),
        (2, ("b",), 1, False),
    ],
)
def test_other_files_or_more_rows_than_were_accepted_are_not(
    rows: int, files: tuple[str, ...], given_up: int, accepted: bool
) -> None:
    """Entries may have given up some of what was accepted; what came back is another loss."""
    document = Accepted(version=3, operation=None, writer=None, rows=2, files=("a",))
    loss = replace(document, rows=rows, files=files)
    assert LogBooks(accepted={3: document}).accepts(loss, given_up) is accepted
