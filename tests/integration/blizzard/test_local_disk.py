"""A local disk that is full or read-only: a clear error, nothing half-done, and on when mended."""

import contextlib
import random
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from blizzard.model.settings import Sizing
from lakebed.errors import StoreDenied, StoreFull
from tests.support.builders import Bench, ndjson, pipeline_settings, put, rows
from tests.support.commands import Desk
from tests.support.readers import parquet_ids

HOUR = 3600


@dataclass
class Disk:
    """A small disk of its own, mounted at a folder."""

    folder: Path

    def mount(self, *, size_kb: int) -> None:
        self._run("mount", "-t", "tmpfs", "-o", f"size={size_kb}k", "tmpfs")

    def change(self, *options: str) -> None:
        self._run("mount", "-o", ",".join(("remount", *options)))

    def unmount(self) -> None:
        self._run("umount", "-l")

    def fill(self) -> None:
        """Leave no room at all."""
        with contextlib.suppress(OSError), (self.folder / "filler").open("wb", 0) as file:
            while True:
                file.write(bytes(4096))

    def clear(self) -> None:
        """Make room again."""
        (self.folder / "filler").unlink()

    def _run(self, *command: str) -> None:
        subprocess.run([*command, str(self.folder)], check=True, capture_output=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    found = Disk(tmp_path / "disk")
    found.folder.mkdir()
    try:
        found.mount(size_kb=1024)
    except (subprocess.CalledProcessError, FileNotFoundError):
        pytest.skip("only where a file system may be mounted")
    yield found
    found.unmount()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


@pytest.fixture
def bench(disk: Disk, source: Path) -> Bench:
    return Bench(pipeline_settings(source, disk.folder / "table"))


def large() -> bytes:
    """Return rows that fill more than the disk, also as Parquet."""
    chance = random.Random(7)
    return ndjson({"id": number, "name": chance.randbytes(1000).hex()} for number in range(1500))


def drain(bench: Bench) -> None:
    pipeline = bench.pipeline()
    while pipeline.step():
        pass


def data_files(bench: Bench) -> list[Path]:
    """Return whatever stands in the table beside the documents, half-written files included."""
    return [
        path
        for path in bench.table.rglob("*")
        if path.is_file() and "_blizzard" not in path.relative_to(bench.table).parts
    ]


def test_a_table_on_a_full_disk_fails_the_batch_and_takes_the_files_when_there_is_room(
    bench, source, disk
):
    """W16, L03: it is no fault of the files, so none of them is recorded as failed."""
    put(source, "large.ndjson", large())
    put(source, "small.ndjson", ndjson(rows(3, 5000)))
    pipeline = bench.pipeline()
    with pytest.raises(StoreFull, match="no space is left"):
        pipeline.step()
    assert [entry.kind for entry in bench.entries()] == ["open"]
    assert data_files(bench) == []
    assert pipeline.statistics.files_failed == 0
    disk.change("size=20m")
    assert pipeline.step()
    assert sorted(parquet_ids(bench.entries(), bench.table)) == [*range(1500), 5000, 5001, 5002]


def test_what_a_full_disk_still_had_room_for_is_journaled_before_the_batch_fails(
    bench, source, disk
):
    """W16: the files that were written take room already, and need not be read again."""
    put(source, "large.ndjson", large())
    put(source, "small.ndjson", ndjson(rows(3, 5000)))
    alone = replace(bench, settings=replace(bench.settings, sizing=Sizing(decoded_budget=1)))
    pipeline = alone.pipeline()
    for _attempt in range(20):  # The store's client gives room back in the background.
        with pytest.raises(StoreFull, match="no space is left"):
            pipeline.step()
        if alone.entries()[-1].sources:
            break
    (read,) = alone.entries()[-1].sources
    assert (read.path, read.failure) == ("small.ndjson", None)
    disk.change("size=20m")
    assert pipeline.step()
    assert [each.path for each in alone.entries()[-1].sources] == ["large.ndjson"]
    assert sorted(parquet_ids(alone.entries(), alone.table)) == [*range(1500), 5000, 5001, 5002]


def test_a_journal_on_a_full_disk_is_an_error_of_the_step_and_stays_whole(bench, source, disk):
    """W16, D05."""
    put(source, "a.ndjson", ndjson(rows(3)))
    drain(bench)
    put(source, "b.ndjson", b'{"id": "bad"}\n')
    pipeline = bench.again(run_id="run-2").pipeline()
    disk.fill()
    with pytest.raises(StoreFull, match="no space is left"):
        pipeline.step()
    assert len(bench.entries()) == 2
    disk.clear()
    assert pipeline.step()
    assert pipeline.step() is False
    assert len(bench.entries()) == 3
    assert parquet_ids(bench.entries(), bench.table) == [0, 1, 2]


def test_a_full_disk_of_a_worker_fails_the_files_whole_and_takes_them_later(
    tmp_path, source, disk, monkeypatch
):
    """W16: Parquet files stand on the worker's disk before they are uploaded."""
    monkeypatch.setattr("tempfile.tempdir", str(disk.folder))
    put(source, "large.ndjson", large())
    bench = Bench(pipeline_settings(source, tmp_path / "table"))
    drain(bench)
    (failed,) = bench.entries()[-1].sources
    assert failed.failure is not None
    assert failed.failure.code == "store_full"
    assert "the machine's own disk" in failed.failure.message
    assert list(disk.folder.iterdir()) == []
    disk.change("size=20m")
    bench.hands.at += HOUR
    drain(bench.again(run_id="run-2"))
    assert parquet_ids(bench.entries(), bench.table) == list(range(1500))


def test_a_run_in_which_trouble_kept_every_file_out_does_not_end_well(
    tmp_path, source, disk, monkeypatch
):
    """W16: an orchestrator looks at the exit code alone."""
    monkeypatch.setattr("tempfile.tempdir", str(disk.folder))
    put(source, "large.ndjson", large())
    desk = Desk(tmp_path)
    done = desk.run("--once")
    assert done.exit_code == 3
    disk.change("size=20m")
    put(source, "bad.ndjson", b'{"id": "bad"}\n')
    assert desk.run("--once").exit_code == 3


def test_a_read_only_disk_is_an_error_that_says_so_and_work_goes_on_when_it_is_mended(
    bench, source, disk
):
    """W16."""
    put(source, "a.ndjson", ndjson(rows(3)))
    drain(bench)
    put(source, "b.ndjson", b'{"id": "bad"}\n')
    pipeline = bench.again(run_id="run-2").pipeline()
    disk.change("ro")
    with pytest.raises(StoreDenied, match="read-only"):
        pipeline.step()
    disk.change("rw")
    assert pipeline.step()
    assert len(bench.entries()) == 3


def test_validate_says_of_a_read_only_disk_what_a_run_says(tmp_path, disk):
    """W16."""
    disk.change("ro")
    desk = Desk(disk.folder)
    config = tmp_path / "blizzard.yaml"
    config.write_text(
        f"source: {{path: {tmp_path}}}\nsink: {{path: {desk.table}}}\n"
        "schema: {fields: [{name: id, type: int64}]}\n"
    )
    done = desk.run("validate", "--online", config=config)
    assert done.exit_code == 1
    assert "the file system is read-only" in " ".join(f"{done.stdout} {done.stderr}".split())
