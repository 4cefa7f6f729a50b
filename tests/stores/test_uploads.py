"""Uploads that a kill left open: `blizzard gc` finds them, and aborts those without a writer."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from pathlib import Path
from threading import Thread

import pytest
from typer.testing import CliRunner, Result

from blizzard.cli import app as blizzard_cli
from blizzard.repair.gc import Garbage, GarbageKind, GarbagePiece, collect, find_garbage
from lakebed.deltalog import tables
from lakebed.errors import StoreUnavailable
from lakebed.storage.store import ObjectFacts, Unseen
from tests.support.dying import Fate
from tests.support.servers_lake import Lake
from tests.support.servers_reached import Contestant
from tests.support.waits import hurried

pytestmark = pytest.mark.stores

MB = 1 << 20
DAY = timedelta(hours=24)
OURS = "date=2024-01-01/018cc4e5-2200-7000-8000-000000000001.parquet"
OTHERS = "date=2024-01-01/part-00000-of-another-program.parquet"
KILLED = """
import json, os, signal, sys
from pathlib import Path
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
table, name, body, options = sys.argv[1:]
parts = iter(range(1, 9))
def die():
    if next(parts) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
Store(table, StorageOptions(json.load(open(options)))).upload(
    name, Path(body), part_size=5 << 20, multipart=True, max_parts=1, part_taken=die
)
"""


@dataclass
class Cleaner:
    """`blizzard gc` on a lake, as many hours later as it is told."""

    lake: Lake

    def __post_init__(self) -> None:
        (self.settings,) = self.lake.programs.pipelines
        self.store = self.lake.store("table")

    def names(self) -> frozenset[str]:
        sink = self.settings.sink
        return tables.named_files(sink.table_uri, sink.storage_options)

    def look(self, *, hours: float = 0.0) -> Garbage:
        now = hurried(hours=hours).now()
        return find_garbage(self.store, self.settings.name, self.names, now=now, older_than=DAY)

    def collect(self, *, hours: float) -> tuple[GarbagePiece, ...]:
        name, clock = self.settings.name, hurried(hours=hours)
        return collect(self.store, name, self.names, clock=clock, older_than=DAY).pieces


def kill_in_an_upload(lake: Lake, folder: Path, name: str) -> None:
    """Upload a file in parts, in a process that is killed before the third."""
    body, options = folder / "body", folder / "options.json"
    with body.open("wb") as file:
        file.truncate(13 * MB)
    options.write_text(json.dumps(lake.contestant.options()))
    command = [sys.executable, "-c", KILLED, lake.table, name, str(body), str(options)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL


def test_an_upload_that_a_kill_left_open_is_found_and_aborted(
    remote: Contestant, tmp_path: Path
) -> None:
    """W46: what costs money and no listing shows; on Azure it goes by itself."""
    lake = Lake(remote, tmp_path)
    lake.land("date=2024-01-01/a.ndjson")
    lake.life(Fate.none())
    kill_in_an_upload(lake, tmp_path, OURS)
    kill_in_an_upload(lake, tmp_path, OTHERS)
    gc = Cleaner(lake)

    if remote.scheme == "az":
        assert (gc.look(hours=25).leftovers, gc.store.open_uploads()) == ((), ())
    elif remote.scheme == "gs":
        assert gc.look(hours=25).unseen.startswith("unfinished uploads cannot be seen on Google")
        assert "AbortIncompleteMultipartUpload" in gc.look(hours=25).unseen
    else:
        both = gc.store.open_uploads()
        assert not isinstance(both, Unseen)
        assert sorted(each.path for each in both) == [OURS, OTHERS]
        assert all(each.size >= 5 * MB for each in both)
        assert [each.path for each in gc.look().young] == [OURS]
        assert gc.collect(hours=23) == ()
        (piece,) = gc.look(hours=25).leftovers
        assert (piece.path, piece.kind) == (OURS, GarbageKind.UPLOAD)
        assert gc.collect(hours=25) == (piece,)
        left = gc.store.open_uploads()
        assert not isinstance(left, Unseen)
        assert [each.path for each in left] == [OTHERS]
    lake.balances()


def upload_and(lake: Lake, folder: Path, meanwhile: Callable[[], None]) -> ObjectFacts:
    """Upload a file in parts, and do something before the last of them is sent."""
    body, parts = folder / "body", count(1)
    with body.open("wb") as file:
        file.truncate(11 * MB)

    def part_taken() -> None:
        if next(parts) == 3:
            # In another thread: this one drives the store's library.
            other = Thread(target=meanwhile)
            other.start()
            other.join()

    return lake.store("table").upload(
        OURS, body, part_size=5 * MB, multipart=True, max_parts=1, part_taken=part_taken
    )


def test_an_upload_that_goes_on_is_left_alone_whatever_age_is_asked_for(
    remote: Contestant, tmp_path: Path
) -> None:
    """One that got a part within the hour has a writer."""
    lake = Lake(remote, tmp_path)
    lake.land("date=2024-01-01/a.ndjson")
    lake.life(Fate.none())
    command = ["gc", "-c", str(lake.config()), "--older-than", "0s", "--delete"]
    done: list[Result] = []
    facts = upload_and(
        lake, tmp_path, lambda: done.append(CliRunner().invoke(blizzard_cli.app, command))
    )
    assert facts.size == 11 * MB
    assert done[0].exit_code == 0
    if remote.scheme == "s3":
        assert "1 file (" in done[0].output
        assert "too young to be touched" in " ".join(done[0].output.split())


def test_a_writer_whose_upload_was_aborted_is_told_so_and_may_try_again(
    s3: Contestant, tmp_path: Path
) -> None:
    """A process that slept for a day: its upload is gone, and that is no missing bucket."""
    lake = Lake(s3, tmp_path)
    store = lake.store("table")

    def abort() -> None:
        found = store.open_uploads()
        assert not isinstance(found, Unseen)
        (upload,) = found
        store.abort(upload.path, upload.id)
        store.abort(upload.path, upload.id)

    with pytest.raises(StoreUnavailable, match="was aborted before it was complete"):
        upload_and(lake, tmp_path, abort)
    assert store.head(OURS) is None
    assert upload_and(lake, tmp_path, lambda: None).size == 11 * MB
    assert store.open_uploads() == ()
