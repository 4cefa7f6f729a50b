"""What is asked of a queue, and how it can fail."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from blizzard.model.settings import QueueSettings
from lakebed.errors import LakeError, Whose


class QueueUnavailable(LakeError, code="queue_unavailable", whose=Whose.EXTERNAL, retryable=True):
    """The queue did not answer, or answered that it cannot now."""


class QueueMissing(LakeError, code="queue_missing", whose=Whose.USER):
    """There is no such queue."""


class QueueDenied(LakeError, code="queue_denied", whose=Whose.EXTERNAL):
    """The queue refused us: credentials or permissions."""


QUEUE_ERRORS: tuple[type[LakeError], ...] = (QueueUnavailable, QueueMissing, QueueDenied)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One delivery of a message."""

    id: str
    receipt: str
    """What this delivery is deleted by; another delivery of the message has another."""
    body: str
    deliveries: int = 1
    """How often the message was delivered so far, about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """How many messages are in a queue, about."""

    waiting: int | None
    """None where the queue does not tell."""
    in_flight: int | None
    """Delivered and not deleted; None where the queue counts them among those that wait."""


class Queue(Protocol):
    """A queue of messages. A message that is delivered is hidden for a while, then comes again."""

    def receive(self, *, hide_secs: int) -> Sequence[Message]:
        """Wait for messages, some seconds at most, and hide those that are returned."""
        ...

    def delete(self, receipts: Sequence[str]) -> None:
        """Delete messages; those that are gone or were delivered anew are passed over."""
        ...

    def hide(self, receipts: Sequence[str], *, secs: int) -> None:
        """Hide delivered messages for so many seconds from now."""
        ...

    def depth(self) -> Depth:
        """Count the messages, and take none of them."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...


OpenQueue = Callable[[QueueSettings], Queue]
