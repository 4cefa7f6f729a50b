"""Messages are received, told apart, and deleted when they are settled; a queue may be away."""

import threading
import time
from dataclasses import replace
from typing import Self

from blizzard.events import QueueFailed
from blizzard.model.notices import HintsFollowed, NoticeKind
from blizzard.notices.inbox import Inbox
from blizzard.notices.listener import QueueLimits, QueueListener
from blizzard.notices.messages import SourceRoute
from blizzard.notices.queue import QueueUnavailable
from lakebed.clock import Clock
from lakebed.retry import Backoff
from lakebed.telemetry.events import Event
from tests.support.queues import MemoryQueue, counted, s3_body
from tests.support.waits import until

QUICK = QueueLimits(tidy_secs=0.001, backoff=Backoff(first_secs=0.001, limit_secs=0.002))
ROUTES = [SourceRoute(source="s", bucket="lake", prefix="in/")]


class Ear:
    """A listener to a queue in memory."""

    def __init__(self, limits: QueueLimits = QUICK) -> None:
        self.events: list[Event] = []
        self.queue = MemoryQueue()
        self.inbox = Inbox("p", clock=Clock(), emit=self.events.append)
        self.listener = QueueListener(
            lambda: self.queue,
            self.queue.name,
            self.inbox,
            ROUTES,
            pipeline="p",
            emit=self.events.append,
            limits=limits,
        )

    def said(self, kind: type[Event]) -> list[Event]:
        return [each for each in self.events if isinstance(each, kind)]

    def counted(self) -> dict[str, int]:
        return counted(self.events)

    def __enter__(self) -> Self:
        self.listener.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.listener.close()


def test_what_could_not_be_deleted_is_deleted_later():
    ear = Ear()
    failing = [QueueUnavailable("no answer", queue="q")] * 3
    ear.queue.fails = lambda: failing.pop() if failing and not ear.queue.waiting else None
    ear.inbox.to_delete(ear.queue.name, ["r1"])
    with ear:
        until(lambda: ear.queue.deleted == ["r1"])
    assert ear.said(QueueFailed)


def test_an_end_waits_for_no_message_and_deletes_what_is_settled():
    """A queue may hold a request for twenty seconds; a stop does not."""
    ear = Ear()
    held, came = threading.Event(), threading.Event()

    def receive(*, hide_secs: int) -> list[object]:
        came.set()
        held.wait(300)
        return []

    ear.queue.receive = receive  # type: ignore[method-assign, assignment]
    with ear:
        assert came.wait(300)
        ear.inbox.to_delete(ear.queue.name, ["r1"])
    assert ear.queue.deleted == ["r1"]
    assert not ear.queue.closed
    held.set()
    until(lambda: ear.queue.closed)


def test_no_more_is_received_than_may_be_open():
    with Ear(replace(QUICK, most_open=1)) as ear:
        ear.queue.send(s3_body("in/a.ndjson"))
        until(lambda: ear.inbox.messages)
        held = ear.queue.send(s3_body("in/b.ndjson"))
        (hint,) = ear.inbox.due("s", time.time() + 1)
        time.sleep(0.02)
        assert ear.queue.waiting == [held]
        ear.inbox.followed(HintsFollowed(settled={hint: NoticeKind.KNOWN}))
        until(lambda: ear.inbox.messages and not ear.queue.waiting)
