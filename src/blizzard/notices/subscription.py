"""The notifications of one pipeline: its queues, its inbox, and what wakes it."""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from blizzard.model.settings import PipelineSettings, QueueSettings, SourceSettings
from blizzard.notices.inbox import Inbox
from blizzard.notices.listener import Limits, Listener
from blizzard.notices.messages import Route
from blizzard.notices.queue import Queue
from lakebed.clock import Clock
from lakebed.polling import Stop
from lakebed.telemetry.events import Emit

GATHER_SECS = 0.1
"""After the first message more are likely: they are followed by one look."""


OpenQueue = Callable[[QueueSettings], Queue]


class Subscription:
    """The queues of one pipeline; within the block they are listened to."""

    def __init__(
        self,
        settings: PipelineSettings,
        open_queue: OpenQueue,
        *,
        stop: Stop,
        clock: Clock,
        emit: Emit,
        limits: Limits | None = None,
    ) -> None:
        self._stop = stop
        self._rung = threading.Event()
        # A stop is requested within a signal handler, which must not take a lock of ours.
        threading.Thread(target=self._ring_at_stop, name="notices-stop", daemon=True).start()
        self.hints = Inbox(settings.name, clock=clock, emit=emit, ring=self._rung.set)
        self._listeners = [
            Listener(
                lambda queue=queue: open_queue(queue),  # type: ignore[misc]
                queue.url,
                self.hints,
                [Route.to(source) for source in sources],
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for listener in self._listeners:
            listener.close()


def has_queue(settings: PipelineSettings) -> bool:
    """Whether a queue tells of files of a pipeline."""
    return any(source.notifications is not None for source in settings.sources)


def _by_queue(
    settings: PipelineSettings,
) -> dict[str, tuple[QueueSettings, list[SourceSettings]]]:
    """Return the sources of each queue: one may tell of several."""
    found: dict[str, tuple[QueueSettings, list[SourceSettings]]] = {}
    for source in settings.sources:
        if source.notifications is not None:
            queue = source.notifications
            found.setdefault(queue.url, (queue, []))[1].append(source)
    return found
