"""A message is received while there is room, and goes once all that it says is settled."""

import threading
import time
from dataclasses import replace
from typing import Self

import pytest

from blizzard.events import FilesNoticed, QueueFailed
from blizzard.model.notices import Hint, HintsFollowed, NoticeKind
from blizzard.notices.listener import QueueLimits, QueueListener
from blizzard.notices.queue import Inbox, QueueUnavailable
from lakebed.clock import Clock
from lakebed.locations import place_of
from lakebed.retry import Backoff
from lakebed.telemetry.events import Event
from tests.support.builders import Hands
from tests.support.queues import MemoryQueue, counted, s3_body
from tests.support.waits import until

A, B = Hint(source="s", path="a"), Hint(source="s", path="b")


class Post:
    """An inbox, its clock, and what an operator could see of it."""

    def __init__(self) -> None:
        self.hands = Hands(at=1000.0)
        self.events: list[object] = []
        self.rung = 0
        self.inbox = Inbox("p", clock=self.hands.clock, emit=self.events.append, ring=self.ring)

    def ring(self) -> None:
        self.rung += 1

    def put(self, message: str, *hints: Hint, receipt: str = "") -> None:
        self.inbox.put("q", message, receipt or f"r-{message}", hints)

    def due(self) -> list[Hint]:
        return list(self.inbox.due("s", self.hands.at))

    def settled(self) -> list[str]:
        return self.inbox.take_settled("q")

    def counted(self) -> dict[str, int]:
        return counted(self.events)


@pytest.fixture
def post() -> Post:
    return Post()


def test_a_message_with_two_files_waits_for_both(post: Post):
    post.put("1", A, B)
    post.due()
    post.inbox.followed(HintsFollowed(waiting=[A], settled={B: NoticeKind.KNOWN}))
    assert post.settled() == []
    post.inbox.journaled(["s:a"])
    assert post.settled() == ["r-1"]
    assert post.counted() == {"taken": 1, "known": 1}


def test_a_message_that_is_delivered_anew_is_deleted_by_its_last_receipt(post: Post):
    post.put("1", A)
    post.put("1", A, receipt="later")
    assert post.inbox.messages == 1
    post.due()
    post.inbox.followed(HintsFollowed(settled={A: NoticeKind.KNOWN}))
    assert post.settled() == ["later"]
    assert post.counted() == {"known": 1}


def test_what_comes_while_a_file_is_in_a_batch_is_asked_of_the_journal_afterwards(post: Post):
    """It may be about a newer object than the one that the batch reads."""
    post.put("1", A)
    post.due()
    post.inbox.followed(HintsFollowed(waiting=[A], new=[A]))
    post.put("2", A)
    post.inbox.journaled(["s:a"])
    assert post.settled() == ["r-1"]
    assert post.due() == [A]
    post.inbox.followed(HintsFollowed(settled={A: NoticeKind.KNOWN}))
    assert post.settled() == ["r-2"]


def test_what_comes_during_a_look_is_looked_at_again(post: Post):
    post.put("1", A)
    post.due()
    post.put("2", A)
    post.inbox.followed(HintsFollowed(settled={A: NoticeKind.KNOWN}))
    assert post.settled() == ["r-1"]
    assert post.due() == [A]
    post.put("3", A)
    post.inbox.followed(HintsFollowed(later={A: 30.0}))
    assert post.due() == [A], "not only when the file is old enough"


def test_an_entry_settles_no_hint_that_was_never_looked_at(post: Post):
    post.put("1", A)
    post.inbox.journaled(["s:a"])
    assert post.settled() == []
    assert post.due() == [A]


def test_each_file_is_told_once(post: Post):
    post.put("1", A, B)
    hints = tuple(post.due())
    post.inbox.followed(HintsFollowed(waiting=list(hints), new=list(hints)))
    post.inbox.followed(HintsFollowed(waiting=list(hints), new=list(hints)))
    (told,) = [each for each in post.events if isinstance(each, FilesNoticed)]
    assert told.files == 2


def test_open_messages_are_hidden_anew_in_time(post: Post):
    post.put("1", A)
    post.hands.at += 60
    post.put("2", B)
    post.hands.at += 40
    assert post.inbox.to_hide("q", older=100) == ["r-1"]
    assert post.inbox.to_hide("q", older=100) == []
    assert post.inbox.to_hide("other", older=0) == []
    post.hands.at += 60
    assert post.inbox.to_hide("q", older=100) == ["r-2"]


QUICK = QueueLimits(full_secs=0.001, backoff=Backoff(first_secs=0.001, limit_secs=0.002))
SOURCES = {"s": place_of("s3://lake/in")}


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
            SOURCES,
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


def test_an_end_waits_for_no_message():
    """A queue may hold a request for some seconds; a stop does not."""
    ear = Ear(replace(QUICK, end_secs=0.001))
    held, came = threading.Event(), threading.Event()

    def receive(*, hide_secs: int) -> list[object]:
        came.set()
        held.wait(300)
        return []

    ear.queue.receive = receive  # type: ignore[method-assign, assignment]
    with ear:
        assert came.wait(300)
        ear.inbox.to_delete(ear.queue.name, ["r1"])
    assert not ear.queue.closed
    held.set()
    until(lambda: ear.queue.closed)
    assert ear.queue.deleted == ["r1"]


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
