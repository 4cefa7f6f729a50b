"""The protocol of a queue of notifications, and the inbox of unsettled ones.

A message is deleted only after every file that it names is settled: the journal names it, or a
check has shown that there is nothing to do. Until then the message is hidden, and is delivered
again after a crash. Listener threads add messages; the pipeline processes the hints at its own
pace.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
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
    deliveries: int = 1
    """The approximate number of deliveries so far."""


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


MOST_CHECKS = 3
"""The most checks for a missing object; the next sweep finds it if it appears."""
RECHECK_SECS = 1.0
"""The pause before the second check; each further pause is four times as long."""

MessageId = tuple[str, str]
"""A queue and the id of a message in it."""


@dataclass(slots=True)
class _Message:
    receipt: str
    left: set[str]
    """The unsettled files that it names."""
    hidden_at: float


@dataclass(slots=True)
class _OpenNotice:
    """A file that one or more messages name."""

    hint: Hint
    messages: list[MessageId]
    due: float
    checks: int = 0
    busy: bool = False
    """Whether a check is in progress."""
    in_batch: bool = False
    after: list[tuple[Hint, MessageId]] = field(default_factory=list)
    """Hints that arrived since the check began and may be about a newer object."""


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
        self._open: dict[str, _OpenNotice] = {}
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
            left = {hint.key for hint in hints}
            self._messages[name] = _Message(receipt, left, now)
            for hint in {hint.key: hint for hint in hints}.values():
                self._add(hint, name, now)
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
            due = [
                each
                for each in self._open.values()
                if each.hint.source == source and each.due <= now
            ]
            for each in due:
                each.busy = True
            return [each.hint for each in due]

    def until_due(self, now: float) -> float:
        """Return the seconds until the next hint becomes due; infinite without one."""
        with self._lock:
            ahead = (each.due - now for each in self._open.values() if each.due > now)
            return min(ahead, default=float("inf"))

    def followed(self, result: HintsFollowed) -> None:
        """Process the outcome of checking hints."""
        now = self._clock.seconds()
        counts: dict[NoticeKind, int] = {}
        with self._lock:
            # Exclude files found before that a listing dropped before their batch began.
            new = [hint for hint in result.new if not self._open[hint.key].in_batch]
            for hint in result.waiting:
                self._open[hint.key].in_batch = True
            settled = dict(result.settled)
            for hint in result.missing:
                if not self._recheck(hint, now):
                    settled[hint] = NoticeKind.MISSING
            for hint, seconds in result.later.items():
                self._postpone(hint.key, now + seconds)
            for hint, kind in settled.items():
                counts[kind] = counts.get(kind, 0) + self._settle(hint.key, now)
        if new:
            lags = (now - each.at.timestamp() for each in new if each.at is not None)
            found_after = tuple(max(0.0, lag) for lag in lags)
            self._emit(FilesNoticed(pipeline=self._pipeline, files=len(new), lag_secs=found_after))
        for kind, notices in counts.items():
            self.count(kind, notices)

    def journaled(self, keys: Iterable[str]) -> None:
        """Settle the hints of files that a journal entry names.

        Hints that arrived during the batch stay for the next check.
        """
        now = self._clock.seconds()
        with self._lock:
            taken = sum(
                self._settle(key, now)
                for key in keys
                if key in self._open and self._open[key].in_batch
            )
        if taken:
            self.count(NoticeKind.TAKEN, taken)

    def _add(self, hint: Hint, name: MessageId, now: float) -> None:
        known = self._open.get(hint.key)
        if known is None:
            self._open[hint.key] = _OpenNotice(hint, [name], now)
        elif known.busy or known.in_batch:
            known.after.append((hint, name))
        else:
            # The last message describes the object; it settles all of them.
            known.hint, known.due, known.checks = hint, now, 0
            known.messages.append(name)

    def _recheck(self, hint: Hint, now: float) -> bool:
        known = self._open[hint.key]
        known.checks += 1
        if known.checks >= MOST_CHECKS:
            return False
        self._postpone(hint.key, now + RECHECK_SECS * 4 ** (known.checks - 1))
        return True

    def _postpone(self, key: str, until: float) -> None:
        """Check a file again later, or at once if more hints arrived meanwhile."""
        known = self._open[key]
        known.due, known.busy, known.in_batch = until, False, False
        for hint, name in known.after:
            known.hint, known.due, known.checks = hint, 0.0, 0
            known.messages.append(name)
        known.after.clear()

    def _settle(self, key: str, now: float) -> int:
        """Settle the messages about a file; return their number."""
        known = self._open.pop(key)
        for name in known.messages:
            message = self._messages[name]
            message.left.discard(key)
            if not message.left:
                del self._messages[name]
                self._done.setdefault(name[0], []).append(message.receipt)
        if known.after:
            hint = known.after[-1][0]
            self._open[key] = _OpenNotice(hint, [name for _, name in known.after], now)
        return len(known.messages)
