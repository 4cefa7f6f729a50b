"""The protocol of a queue of notifications, and the inbox of unsettled ones.

A message is deleted only after every file that it names is settled: the journal names it, or a
check has shown that there is nothing to do. Until then the message is hidden, and is delivered
again after a crash. Listener threads add messages; the pipeline processes the hints at its own
pace.
"""

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from blizzard.events import FilesNoticed, NoticesSettled
from blizzard.model.notices import Hint, Hints, HintsFollowed, NoticeKind
from blizzard.model.settings import QueueSettings
from lakebed.clock import Clock
from lakebed.errors import LakeError, Whose
from lakebed.telemetry.events import Emit


class QueueUnavailable(LakeError, code="queue_unavailable", whose=Whose.EXTERNAL, retryable=True):
    """The queue did not answer, or reported a temporary failure."""


class QueueMissing(LakeError, code="queue_missing", whose=Whose.USER):
    """The queue does not exist."""


class QueueDenied(LakeError, code="queue_denied", whose=Whose.EXTERNAL):
    """The queue refused the credentials, or they lack permissions."""


QUEUE_ERRORS: tuple[type[LakeError], ...] = (QueueUnavailable, QueueMissing, QueueDenied)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One delivery of a message."""

    id: str
    receipt: str
    """Identifies this delivery when it is deleted; each delivery has another."""
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """The approximate number of messages in a queue."""

    waiting: int | None
    """None if the queue does not report it."""
    in_flight: int | None
    """Delivered and not deleted; None if the queue counts them as waiting."""


class Queue(Protocol):
    """A queue of messages; delivered messages are hidden for a while, then delivered again."""

    def receive(self, *, hide_secs: int) -> Sequence[Message]:
        """Wait up to some seconds for messages, and hide the returned ones."""

    def delete(self, receipts: Sequence[str]) -> None:
        """Delete messages; ignore those that are gone or were delivered again."""

    def hide(self, receipts: Sequence[str], *, secs: int) -> None:
        """Hide delivered messages for `secs` seconds from now."""

    def depth(self) -> Depth:
        """Count the messages without receiving any."""

    def close(self) -> None:
        """Close connections."""


OpenQueue = Callable[[QueueSettings], Queue]


MessageId = tuple[str, str]
"""A queue and the id of a message in it."""


@dataclass(slots=True)
class _Message:
    receipt: str
    left: int
    """How many files that it names are unsettled."""
    hidden_at: float


@dataclass(slots=True)
class _OpenNotice:
    """A file that a message names."""

    hint: Hint
    message: MessageId
    due: float
    in_batch: bool = False


class Inbox(Hints):
    """The hints of one pipeline; thread-safe."""

    def __init__(
        self, pipeline: str, *, clock: Clock, emit: Emit, ring: Callable[[], None] = lambda: None
    ) -> None:
        self._pipeline = pipeline
        self._clock = clock
        self._emit = emit
        self._ring = ring
        self._lock = threading.Lock()
        self._open: dict[str, list[_OpenNotice]] = {}
        """By file; those of one check are settled together."""
        self._checked: dict[str, list[_OpenNotice]] = {}
        """Those in the current check; others may arrive meanwhile, about a newer object."""
        self._messages: dict[MessageId, _Message] = {}
        self._done: dict[str, list[str]] = {}

    # -------------------------------------------------------------------------- for the listeners

    def put(self, queue: str, message: str, receipt: str, hints: Collection[Hint]) -> None:
        """Add a message with files of our sources; a redelivered one gets a new receipt."""
        now = self._clock.seconds()
        with self._lock:
            name = (queue, message)
            if (known := self._messages.get(name)) is not None:
                known.receipt, known.hidden_at = receipt, now
                return
            unique = {hint.key: hint for hint in hints}
            self._messages[name] = _Message(receipt, len(unique), now)
            for key, hint in unique.items():
                self._open.setdefault(key, []).append(_OpenNotice(hint, name, now))
        self._ring()

    def count(self, kind: NoticeKind, notices: int = 1) -> None:
        """Count settled notices."""
        self._emit(NoticesSettled(pipeline=self._pipeline, kind=kind, notices=notices))

    @property
    def messages(self) -> int:
        """Return the number of unsettled messages."""
        return len(self._messages)

    def take_settled(self, queue: str) -> list[str]:
        """Return the receipts of a queue's messages to delete, and forget them."""
        with self._lock:
            return self._done.pop(queue, [])

    def to_delete(self, queue: str, receipts: Iterable[str]) -> None:
        """Add messages to delete: they name no file of our sources, or deleting them failed."""
        with self._lock:
            self._done.setdefault(queue, []).extend(receipts)

    def to_hide(self, queue: str, *, older: float) -> list[str]:
        """Return the receipts of unsettled messages hidden at least `older` seconds ago.

        They count as hidden from now on.
        """
        now = self._clock.seconds()
        with self._lock:
            found = [
                each
                for (of, _), each in self._messages.items()
                if of == queue and now - each.hidden_at >= older
            ]
            for each in found:
                each.hidden_at = now
            return [each.receipt for each in found]

    # --------------------------------------------------------------------------- for the pipeline

    def due(self, source: str, now: float) -> Collection[Hint]:
        """Return the hints for a source to check now."""
        with self._lock:
            self._checked = {
                key: due
                for key, notices in self._open.items()
                if notices[0].hint.source == source
                and (due := [each for each in notices if each.due <= now])
            }
            return [due[-1].hint for due in self._checked.values()]

    def until_due(self, now: float) -> float:
        """Return the seconds until the next hint becomes due; infinite without one."""
        with self._lock:
            times = (each.due - now for notices in self._open.values() for each in notices)
            return min((left for left in times if left > 0), default=float("inf"))

    def followed(self, result: HintsFollowed) -> None:
        """Process the outcome of checking hints."""
        now = self._clock.seconds()
        counts: Counter[NoticeKind] = Counter()
        with self._lock:
            checked = self._checked
            # Exclude files found before that a listing dropped before their batch began.
            new = [
                hint for hint in result.new if not any(each.in_batch for each in checked[hint.key])
            ]
            for hint in result.waiting:
                for each in checked[hint.key]:
                    each.in_batch = True
            for hint, seconds in result.later.items():
                for each in checked[hint.key]:
                    each.due, each.in_batch = now + seconds, False
            for hint, kind in result.settled.items():
                counts[kind] += self._settle(checked[hint.key])
        if new:
            self._emit(FilesNoticed(pipeline=self._pipeline, files=len(new)))
        for kind, notices in counts.items():
            self.count(kind, notices)

    def journaled(self, keys: Iterable[str]) -> None:
        """Settle the hints of files that a journal entry names.

        Hints that arrived during the batch stay for the next check.
        """
        with self._lock:
            taken = sum(
                self._settle([each for each in self._open.get(key, ()) if each.in_batch])
                for key in keys
            )
        if taken:
            self.count(NoticeKind.TAKEN, taken)

    def _settle(self, notices: Sequence[_OpenNotice]) -> int:
        """Settle the messages about a file; return their number."""
        for each in notices:
            key, message = each.hint.key, self._messages[each.message]
            self._open[key].remove(each)
            if not self._open[key]:
                del self._open[key]
            message.left -= 1
            if not message.left:
                del self._messages[each.message]
                self._done.setdefault(each.message[0], []).append(message.receipt)
        return len(notices)
