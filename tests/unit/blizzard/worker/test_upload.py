"""Finished files into the store, several at a time."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from blizzard.model.progress import Progress
from blizzard.model.settings import UploadSettings
from blizzard.worker.output.upload import TRIES, Uploads
from lakebed.documents.records import FinishedFile
from lakebed.errors import LakeError, StoreDenied, StoreFull, StoreUnavailable
from lakebed.storage.options import ObjectFacts
from lakebed.storage.store import Store
from tests.support.builders import closed_file, no_options
from tests.support.stores import RefusesUploads, local

LONG = 120.0


def hand_in(uploads: Uploads, file, **given):
    file = replace(file, partition_values={"date": "2024-01-01"})
    return uploads.hand_in(file, **({"unit": "0.0", "source_file": None} | given))


def upload_one(store: Store, file, waits: list[float] | None = None) -> FinishedFile:
    pause = waits.append if waits is not None else (lambda _secs: None)
    with Uploads(store, UploadSettings(), Progress(), pause=pause) as uploads:
        found: FinishedFile = hand_in(uploads, file).result(LONG)
    return found


def test_the_local_copy_is_removed_once_the_store_has_it(tmp_path):
    file = closed_file(tmp_path)
    upload_one(local(tmp_path / "table"), file)
    assert not file.path.exists()


def test_a_passing_error_is_tried_again_with_longer_waits(tmp_path):
    """W01."""
    store = RefusesUploads(tmp_path / "table", StoreUnavailable("503"))
    store.when = lambda _path, _file: len(store.tried) < 3
    waits: list[float] = []
    file = closed_file(tmp_path)
    done = upload_one(store, file, waits)
    assert store.tried == [done.filename] * 3
    assert len(waits) == 2
    assert 0.5 <= waits[0] <= 1 <= waits[1] <= 2


@pytest.mark.parametrize(
    ("error", "tries"),
    [(StoreUnavailable("503"), TRIES), (StoreFull("full"), TRIES), (StoreDenied("403"), 1)],
)
def test_an_upload_that_cannot_be_done_gives_its_error(tmp_path, error, tries):
    """L03, W16."""
    store = RefusesUploads(tmp_path / "table", error)
    with pytest.raises(LakeError) as caught:
        upload_one(store, closed_file(tmp_path))
    assert caught.value is error
    assert len(store.tried) == tries


def test_a_file_for_which_no_thread_is_to_be_had_keeps_no_other_waiting(tmp_path):
    """It failed, and so will the next one; but it must be told, however many there are."""

    class NoThread(ThreadPoolExecutor):
        def submit(self, *_given: object, **_named: object) -> Any:
            raise RuntimeError("can't start new thread")

    settings = UploadSettings(max_concurrent_uploads=1)
    told: list[str] = []

    def hand_in_many() -> None:
        with Uploads(local(tmp_path / "table"), settings, pool=NoThread) as uploads:
            for _ in range(10):
                with pytest.raises(RuntimeError, match="new thread") as caught:
                    hand_in(uploads, closed_file(tmp_path))
                told.append(str(caught.value))

    worker = threading.Thread(target=hand_in_many, daemon=True)
    worker.start()
    worker.join(LONG)
    assert len(told) == 10


def test_a_store_that_holds_fewer_bytes_than_the_file_is_an_error(tmp_path):
    """L03."""
    file = replace(closed_file(tmp_path, body=b"12345"), size=9)
    with pytest.raises(StoreUnavailable, match="5 bytes of a file of 9"):
        upload_one(local(tmp_path / "table"), file)
    assert file.path.exists()


class Gated(Store):
    """Uploads that wait at a gate, counted."""

    def __init__(self, root: Path) -> None:
        super().__init__(str(root), no_options(), make_folder=True)
        self.gate = threading.Event()
        self.inside = threading.Semaphore(0)
        self.lock = threading.Lock()
        self.now = self.most = 0
        self.multipart: list[bool] = []

    def upload(self, path: str, file: Path, **how: Any) -> ObjectFacts:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.multipart.append(how["multipart"])
        self.inside.release()
        assert self.gate.wait(LONG)
        with self.lock:
            self.now -= 1
        return super().upload(path, file, **how)


def test_handing_in_waits_when_too_many_files_wait(tmp_path):
    """W18: finished files do not pile up on the disk."""
    store = Gated(tmp_path / "table")
    files = [closed_file(tmp_path, number=number) for number in range(5)]
    with Uploads(store, UploadSettings(max_concurrent_uploads=1), Progress()) as uploads:
        for file in files[:4]:
            hand_in(uploads, file)
        handed_in = threading.Event()

        def one_more() -> None:
            hand_in(uploads, files[4])
            handed_in.set()

        thread = threading.Thread(target=one_more)
        thread.start()
        assert not handed_in.wait(0.2)
        store.gate.set()
        assert handed_in.wait(LONG)
        thread.join()
