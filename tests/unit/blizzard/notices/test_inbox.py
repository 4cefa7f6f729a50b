"""A message goes once everything that it says is settled, and not before."""

from datetime import UTC, datetime

import pytest

from blizzard.events import FilesNoticed
from blizzard.model.notices import Hint, HintsFollowed, NoticeKind
from blizzard.notices.inbox import Inbox
from tests.support.builders import Hands
from tests.support.queues import counted

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
    post.inbox.followed(HintsFollowed(waiting=(A,), settled={B: NoticeKind.KNOWN}))
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
    post.inbox.followed(HintsFollowed(waiting=(A,), new=(A,)))
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
    post.inbox.followed(HintsFollowed(missing=(A,)))
    assert post.due() == [A], "not only when the pause after a missing object is over"


def test_an_entry_settles_no_hint_that_was_never_looked_at(post: Post):
    post.put("1", A)
    post.inbox.journaled(["s:a"])
    assert post.settled() == []
    assert post.due() == [A]


def test_the_lag_is_counted_from_the_event_once_for_each_file(post: Post):
    at = datetime.fromtimestamp(post.hands.at - 2, UTC)
    noticed = Hint(source="s", path="a", at=at)
    early = Hint(source="s", path="b", at=datetime.fromtimestamp(post.hands.at + 9, UTC))
    post.put("1", noticed, early, Hint(source="s", path="c"))
    hints = tuple(post.due())
    post.inbox.followed(HintsFollowed(waiting=hints, new=hints))
    post.inbox.followed(HintsFollowed(waiting=hints, new=hints))
    (told,) = [each for each in post.events if isinstance(each, FilesNoticed)]
    assert (told.files, told.lag_secs) == (3, (2.0, 0.0))


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
