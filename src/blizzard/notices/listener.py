"""One queue listened to, in threads of its own that nobody waits for.

One thread receives, and waits at the queue for messages; another deletes those that are settled
and hides those that are not. A queue that does not answer is tried again with backoff: files are
found by looking meanwhile, as they are without a queue.
"""

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from blizzard.events import NoticeUnreadable, QueueAnswers, QueueFailed
from blizzard.model.notices import Hint, NoticeKind
from blizzard.notices.inbox import Inbox
from blizzard.notices.messages import Route, contents_of, hint_for
from blizzard.notices.queue import Message, Queue
from lakebed.errors import LakeError
from lakebed.retry import Backoff
from lakebed.telemetry.events import Emit
from lakebed.telemetry.health import UNFORESEEN

EMPTY_SECS = 0.05
"""The pause after no message came: a queue that does not wait itself is not asked all the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
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


class Listener:
    """Listens to one queue for one pipeline, from `start` to `close`."""

    def __init__(
        self,
        open_queue: Callable[[], Queue],
        queue: str,
        inbox: Inbox,
        routes: Sequence[Route],
        *,
        pipeline: str,
        emit: Emit,
        limits: Limits | None = None,
    ) -> None:
        self._open_queue = open_queue
        self._name = queue
        self._inbox = inbox
        self._routes = tuple(routes)
        self._pipeline = pipeline
        self._emit = emit
        self._limits = limits or Limits()
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
            except Exception as error:  # noqa: BLE001 - whatever it is, files are found without it
                if last or self._ended.is_set():
                    return
                failures += 1
                pause = self._limits.backoff.wait(failures, random.random)
                self._emit(
                    QueueFailed(
                        pipeline=self._pipeline,
                        queue=self._name,
                        code=error.code if isinstance(error, LakeError) else UNFORESEEN,
                        # What nobody foresaw may hold anything.
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
            return  # Whoever receives tells what is wrong with it.
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
        found = [hint_for(each, self._routes) for each in contents.created]
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
