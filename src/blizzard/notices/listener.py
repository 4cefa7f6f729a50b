"""Listen to the queues of a pipeline, each in a thread, and wake the pipeline.

Between two requests for messages, settled messages are deleted and the others hidden again. A queue
that does not answer is retried with backoff; meanwhile, files are found by listing.
"""

import os
import random
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self, assert_never

from blizzard.events import NoticeUnreadable, QueueFailed, QueueRecovered
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
"""The wait for more messages after the first, so that one listing follows all of them."""
EMPTY_SECS = 0.05
"""The pause after an empty response, for queues that do not wait themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLimits:
    """The limits of a listener; not configurable."""

    most_open: int = 10_000
    """The most unsettled messages; beyond that, none are received."""
    hide_secs: int = 300
    """How long a message is hidden; after a crash it is delivered again this late."""
    hide_again_secs: float = 100.0
    """The age at which unsettled messages are hidden again."""
    full_secs: float = 0.5
    """The pause before the next look at an inbox with `most_open` messages."""
    end_secs: float = 2.0
    """The most seconds to wait at the end for a request in progress."""
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
        self._unreadable_reported = False
        self._thread = threading.Thread(target=self._listen, name="notices", daemon=True)

    def start(self) -> None:
        """Start listening."""
        self._thread.start()

    def close(self) -> None:
        """Stop listening.

        A pending receive is not waited for long: messages that are not deleted are delivered again.
        """
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(self._limits.end_secs)

    def _listen(self) -> None:
        queue: Queue | None = None
        failures = 0
        while not self._ended.is_set():
            try:
                queue = queue or self._open_queue()
                self._receive(queue)
                self._tidy(queue)
                if failures:
                    self._emit(QueueRecovered(pipeline=self._pipeline, queue=self._name))
                failures = 0
            except Exception as error:  # noqa: BLE001 - on any error, files are found without it
                if self._ended.is_set():
                    break
                failures += 1
                pause = self._limits.backoff.wait(failures, random.random)
                self._failed(error, pause)
                self._ended.wait(pause)
        if queue is not None:
            with suppress(Exception):
                self._tidy(queue)
            queue.close()

    def _failed(self, error: Exception, pause: float) -> None:
        """Report an error; the text of an unforeseen one may hold anything."""
        known = isinstance(error, LakeError)
        self._emit(
            QueueFailed(
                pipeline=self._pipeline,
                queue=self._name,
                code=error.code if isinstance(error, LakeError) else UNFORESEEN,
                error=str(error) if known else type(error).__name__,
                next_try_secs=pause,
            )
        )

    def _receive(self, queue: Queue) -> None:
        if self._inbox.messages >= self._limits.most_open:
            self._ended.wait(self._limits.full_secs)
            return
        messages = queue.receive(hide_secs=self._limits.hide_secs)
        for message in messages:
            self.take(message)
        if not messages:
            self._ended.wait(EMPTY_SECS)

    def _tidy(self, queue: Queue) -> None:
        settled = self._inbox.take_settled(self._name)
        try:
            queue.delete(settled)
        except Exception:
            self._inbox.to_delete(self._name, settled)
            raise
        hidden = self._inbox.to_hide(self._name, older=self._limits.hide_again_secs)
        queue.hide(hidden, secs=self._limits.hide_secs)

    def take(self, message: Message) -> None:
        """Add the files that a message names to the inbox; settle it if none is in our sources."""
        contents = contents_of(message.body)
        for kind in contents.others:
            self._inbox.count(kind)
        found = [hint_for(each, self._sources) for each in contents.created]
        hints: list[Hint] = [hint for hint in found if hint is not None]
        if len(hints) < len(found):
            self._inbox.count(NoticeKind.ELSEWHERE, len(found) - len(hints))
        if hints:
            self._inbox.put(self._name, message.id, message.receipt, hints)
        elif not contents.is_unreadable:
            self._inbox.to_delete(self._name, [message.receipt])
        if contents.is_unreadable and not self._unreadable_reported:
            self._unreadable_reported = True
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
        self._woken = threading.Event()
        # A signal handler requests the stop and must not take our locks.
        threading.Thread(target=self._wake_at_stop, name="notices-stop", daemon=True).start()
        self.hints = Inbox(settings.name, clock=clock, emit=emit, ring=self._woken.set)
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
        """Sleep until a message, a stop or the timeout; one in between ends the next wait."""
        if self._woken.wait(seconds) and not self._stop.requested:
            self._stop.wait(GATHER_SECS)
        self._woken.clear()

    def _wake_at_stop(self) -> None:
        self._stop.event.wait()
        self._woken.set()

    def __enter__(self) -> Self:
        for listener in self._listeners:
            listener.start()
        return self

    def __exit__(self, *_error: object) -> None:
        for listener in self._listeners:
            listener.close()


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
            # Otherwise, it writes connection warnings to the terminal once imported.
            os.environ.setdefault("GRPC_VERBOSITY", "NONE")
            from blizzard.notices.pubsub import PubSubQueue  # noqa: PLC0415 - and so is this

            return PubSubQueue(settings)
        case never:
            assert_never(never)
