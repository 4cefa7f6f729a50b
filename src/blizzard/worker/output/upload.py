"""Upload finished files to the table's directory, several at a time, each atomically."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self, TypeVar

from blizzard.model.progress import Progress
from blizzard.model.settings import UploadSettings
from blizzard.model.work import ClosedFile
from lakebed.documents.records import BadLines, FinishedFile, QuarantineFile, Run
from lakebed.errors import LakeError, StoreUnavailable, panic_as_error
from lakebed.layout import TablePath, data_file, outbox
from lakebed.retry import Backoff, attempts
from lakebed.storage.options import ObjectFacts
from lakebed.storage.store import Store

Uploaded = TypeVar("Uploaded")
TRIES = 4
BACKOFF = Backoff(limit_secs=10)


class Uploads:
    """Uploads files in the background; `hand_in` blocks while too many wait."""

    def __init__(
        self,
        store: Store,
        settings: UploadSettings,
        progress: Progress | None = None,
        *,
        outbox: str | None = None,
        pause: Callable[[float], object] = time.sleep,
        pool: type[ThreadPoolExecutor] = ThreadPoolExecutor,
    ) -> None:
        self._store = store
        self._settings = settings
        self._progress = progress or Progress()
        self.retries = 0
        """Retried uploads."""
        self._lock = threading.Lock()
        self._outbox = outbox
        self._pause = pause
        self._pool = pool(settings.max_concurrent_uploads, thread_name_prefix="upload")
        self._room = threading.Semaphore(settings.max_concurrent_uploads * 4)

    def hand_in(
        self,
        file: ClosedFile,
        *,
        unit: str,
        source_file: str | None,
        runs: tuple[Run, ...] = (),
    ) -> Future[FinishedFile]:
        """Upload a data file in the background; the future holds the result or the error."""
        # The journal entry has the final name, outside of the outbox.
        name = data_file(file.partition_values, file.name)

        def upload() -> FinishedFile:
            facts = self._put_counted(self.stored_as(name), file)
            return FinishedFile(
                filename=name,
                size=file.size,
                record_count=file.rows,
                partition_values=file.partition_values,
                source_file=source_file,
                source_files=file.sources,
                runs=runs,
                unit=unit,
                statistics=file.statistics,
                modification_time=int(facts.modified.timestamp() * 1000),
            )

        return self._submit(upload)

    def hand_in_quarantine(
        self, file: ClosedFile, name: TablePath, *, unit: str, of: tuple[BadLines, ...]
    ) -> Future[QuarantineFile]:
        """Upload a quarantine file in the background; readers of the table do not see it."""

        def upload() -> QuarantineFile:
            self._put(name, file)
            return QuarantineFile(
                filename=name, size=file.size, record_count=file.rows, unit=unit, sources=of
            )

        return self._submit(upload)

    def _submit(self, upload: Callable[[], Uploaded]) -> Future[Uploaded]:
        """Run an upload in the background, once there is room for one more."""
        self._room.acquire()
        try:
            answer = self._pool.submit(upload)
        except RuntimeError:  # No thread is available; later files must not wait for this one.
            self._room.release()
            raise
        answer.add_done_callback(lambda _done: self._room.release())
        return answer

    def delete_unnamed(self, names: Iterable[TablePath]) -> None:
        """Delete files that no entry will name, ignoring errors of the store.

        In a full store they would take up the space of the next attempt.
        """
        for name in names:
            with contextlib.suppress(LakeError):
                self._store.delete(name)

    def stored_as(self, name: TablePath) -> TablePath:
        """Return the path of a data file until its batch is handed off."""
        return outbox(self._outbox, name) if self._outbox else name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _put_counted(self, name: TablePath, file: ClosedFile) -> ObjectFacts:
        """Upload a data file, and count it as progress."""
        with self._lock:
            self._progress.active_uploads += 1
        try:
            facts = self._put(name, file)
        finally:
            with self._lock:
                self._progress.active_uploads -= 1
        with self._lock:
            self._progress.parquet_files += 1
            self._progress.bytes_written += file.size
        return facts

    def _put(self, name: TablePath, file: ClosedFile) -> ObjectFacts:
        """Upload a file, with retries, and delete the local copy."""
        for attempt in attempts(TRIES, BACKOFF, self._pause, retried=self._count_retry):
            with attempt:
                facts = self._put_once(name, file)
                break
        if facts.size != file.size:
            raise StoreUnavailable(
                f"the store has {facts.size} bytes of a file of {file.size} bytes",
                path=self._store.describe(name),
            )
        file.path.unlink()
        return facts

    def _count_retry(self) -> None:
        with self._lock:
            self.retries += 1

    def _put_once(self, name: TablePath, file: ClosedFile) -> ObjectFacts:
        """Upload a file once, counting the parts that may be in flight."""
        multipart, most = self._settings.in_parts(file.size), self._settings.max_concurrent_parts
        parts = min(most, -(-file.size // self._settings.part_size)) if multipart else 0
        with self._lock:
            self._progress.active_parts += parts
        try:
            return self._store.upload(
                name,
                file.path,
                part_size=self._settings.part_size,
                multipart=multipart,
                max_parts=most,
            )
        except BaseException as error:
            if (ours := panic_as_error(error)) is not error:
                raise ours from error
            raise
        finally:
            with self._lock:
                self._progress.active_parts -= parts
