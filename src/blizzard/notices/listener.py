"""Listen to the queues of a pipeline in threads, and wake the pipeline.

One thread waits for messages; another deletes settled messages and hides the others again. A queue
that does not answer is retried with backoff: files are found by listing meanwhile.
"""

import os
import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Self, assert_never

from blizzard.events import NoticeUnreadable, QueueAnswers, QueueFailed
from blizzard.model.notices import Hint, NoticeKind
from blizzard.model.settings import PipelineSettings, QueueService, QueueSettings, SourceSettings
from blizzard.notices.messages import contents_of, hint_for, place_of_source
from blizzard.notices.queue import Inbox, Message, OpenQueue, Queue
from lakebed.clock import Clock
from lakebed.errors import LakeError
from lakebed.locations import Place
from lakebed.polling import Stop
from lakebed.retry import Backoff
from lakebed.telemetry.events import Emit
from lakebed.telemetry.health import UNFORESEEN

GATHER_SECS = 0.1
"""After the first message more are likely: they are followed by one look."""
EMPTY_SECS = 0.05
"""The pause after no message came: a queue that does not wait itself is not asked all the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLimits:
    """How a queue is listened to; no key of a config sets it."""

    most_open: int = 10_000
    """Messages that are not settled; no more are received beyond that."""
    hide_secs: int = 300
    """How long a message is hidden from others: after a death it comes again this late."""
    hide_again_secs: float = 100.0
    """Messages that are still open after so long are hidden anew."""
    tidy_secs: float = 0.5
    """How often settled messages are deleted."""
    most_deliveries: int = 20
    """Deliveries of a message that cannot be read, before it is deleted: a dead letter queue has
    had its chance to take it by then."""
    end_secs: float = 2.0
    """How long an end may wait until settled messages are deleted."""
    backoff: Backoff = field(default_factory=Backoff)


class QueueListener:
    """Listens to one queue for one pipeline, from `start` to `close`."""

    def __init__(
        self,
        open_queue: Callable[[], Queue],
        queue: str,
        inbox: Inbox,
        sources: Mapping[str, Place],
        *,
        pipeline: str,
        emit: Emit,
        limits: QueueLimits | None = None,
    ) -> None:
        self._open_queue = open_queue
        self._name = queue
        self._inbox = inbox
        self._sources = sources
        self._pipeline = pipeline
        self._emit = emit
        self._limits = limits or QueueLimits()
        self._ended = threading.Event()
        self._told_unreadable = False
        self._queue: Queue | None = None
        self._opened = threading.Lock()
        self._running = 2
        self._threads = [
            threading.Thread(target=self._loop, args=(each,), name=name, daemon=True)
            for each, name in ((self._receive, "notices"), (self._tidy, "notices-tidy"))
        ]

    def start(self) -> None:
        """Begin to listen."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End, and wait a little until what is settled is deleted; a receive is not waited for.

        A message that it still brings is not ours any more: it comes again.
        """
        self._ended.set()
        if self._threads[1].is_alive():
            self._threads[1].join(self._limits.end_secs)

    def _loop(self, work: Callable[[], None]) -> None:
        try:
            self._repeat(work)
        finally:
            with self._opened:
                self._running -= 1
                if not self._running and self._queue is not None:
                    self._queue.close()

    def _repeat(self, work: Callable[[], None]) -> None:
        failures = 0
        while True:
            last = self._ended.is_set()
            try:
                work()
                if failures:
                    self._emit(QueueAnswers(pipeline=self._pipeline, queue=self._name))
                failures = 0
            except Exception as error:  # noqa: BLE001 - on any error, files are found without it
                if last or self._ended.is_set():
                    return
                failures += 1
                pause = self._limits.backoff.wait(failures, random.random)
                self._emit(
                    QueueFailed(
                        pipeline=self._pipeline,
                        queue=self._name,
                        code=error.code if isinstance(error, LakeError) else UNFORESEEN,
                        # The text of an unforeseen error may hold anything.
                        error=str(error) if isinstance(error, LakeError) else type(error).__name__,
                        next_try_secs=pause,
                    )
                )
                self._ended.wait(pause)
            if last:
                return

    def _receive(self) -> None:
        if self._ended.is_set():
            return
        queue = self._connected()
        if self._inbox.messages >= self._limits.most_open:
            self._ended.wait(self._limits.tidy_secs)
            return
        messages = queue.receive(hide_secs=self._limits.hide_secs)
        for message in messages:
            self.take(message)
        if not messages:
            self._ended.wait(EMPTY_SECS)

    def _connected(self) -> Queue:
        if self._queue is None:
            queue = self._open_queue()
            with self._opened:
                self._queue = queue
        return self._queue

    def _tidy(self) -> None:
        self._ended.wait(self._limits.tidy_secs)
        with self._opened:
            queue = self._queue
        if queue is None:
            return  # The receiver reports what is wrong with it.
        settled = self._inbox.take_settled(self._name)
        try:
            queue.delete(settled)
        except Exception:
            self._inbox.to_delete(self._name, settled)
            raise
        if not self._ended.is_set():
            hidden = self._inbox.to_hide(self._name, older=self._limits.hide_again_secs)
            queue.hide(hidden, secs=self._limits.hide_secs)

    def take(self, message: Message) -> None:
        """Put the files that a message names into the inbox; settle it if it names none of ours."""
        contents = contents_of(message.body)
        for kind in contents.others:
            self._inbox.count(kind)
        found = [hint_for(each, self._sources) for each in contents.created]
        hints: list[Hint] = [hint for hint in found if hint is not None]
        if len(hints) < len(found):
            self._inbox.count(NoticeKind.ELSEWHERE, len(found) - len(hints))
        if hints:
            self._inbox.put(self._name, message.id, message.receipt, hints)
        elif not contents.is_unreadable or message.deliveries >= self._limits.most_deliveries:
            self._inbox.to_delete(self._name, [message.receipt])
        if contents.is_unreadable and not self._told_unreadable:
            self._told_unreadable = True
            self._emit(NoticeUnreadable(pipeline=self._pipeline, queue=self._name))


class Subscription:
    """The queues of one pipeline, listened to within a `with` block."""

    def __init__(
        self,
        settings: PipelineSettings,
        open_queue: OpenQueue,
        *,
        stop: Stop,
        clock: Clock,
        emit: Emit,
        limits: QueueLimits | None = None,
    ) -> None:
        self._stop = stop
        self._rung = threading.Event()
        # A stop is requested within a signal handler, which must not take a lock of ours.
        threading.Thread(target=self._ring_at_stop, name="notices-stop", daemon=True).start()
        self.hints = Inbox(settings.name, clock=clock, emit=emit, ring=self._rung.set)
        self._listeners = [
            QueueListener(
                lambda queue=queue: open_queue(queue),  # type: ignore[misc]
                queue.url,
                self.hints,
                {source.name: place_of_source(source) for source in sources},
                pipeline=settings.name,
                emit=emit,
                limits=limits,
            )
            for queue, sources in _by_queue(settings).values()
        ]

    def wait(self, seconds: float) -> None:
        """Sleep until a message or a stop comes, but no longer; later ones end the next wait."""
        if self._rung.wait(seconds) and not self._stop.requested:
            self._stop.wait(GATHER_SECS)
        self._rung.clear()

    def _ring_at_stop(self) -> None:
        self._stop.event.wait()
        self._rung.set()

    def __enter__(self) -> Self:
        for listener in self._listeners:
            listener.start()
        return self

    def __exit__(self, *_error: object) -> None:
        for listener in self._listeners:
            listener.close()


def has_queue(settings: PipelineSettings) -> bool:
    """Whether a queue announces files of a pipeline."""
    return any(source.notifications is not None for source in settings.sources)


def _by_queue(
    settings: PipelineSettings,
) -> dict[str, tuple[QueueSettings, list[SourceSettings]]]:
    """Return the sources of each queue, which several sources may share."""
    found: dict[str, tuple[QueueSettings, list[SourceSettings]]] = {}
    for source in settings.sources:
        if source.notifications is not None:
            queue = source.notifications
            found.setdefault(queue.url, (queue, []))[1].append(source)
    return found


def open_queue(settings: QueueSettings) -> Queue:
    """Open a queue of notifications of new files."""
    match settings.service:
        case QueueService.SQS:
            from blizzard.notices.sqs import SqsQueue  # noqa: PLC0415 - botocore is optional

            return SqsQueue(settings)
        case QueueService.AZURE:
            from blizzard.notices.azure import AzureQueue  # noqa: PLC0415 - it is optional, too

            return AzureQueue(settings)
        case QueueService.PUBSUB:
            # Once it is imported, it writes to the terminal what it thinks of a connection.
            os.environ.setdefault("GRPC_VERBOSITY", "NONE")
            from blizzard.notices.pubsub import PubSubQueue  # noqa: PLC0415 - and so is this

            return PubSubQueue(settings)
        case never:
            assert_never(never)
