"""Export spans and other documents: OTLP encoding, and delivery from a separate thread.

A batch has one trace for both programs: its id is derived from the journal and the entry number,
which blizzard and penguin both know. So penguin's commit is in the trace of the batch whose rows it
makes visible, and no document needs to carry ids.

The caller never waits for a delivery. Documents that cannot be delivered are dropped: telemetry
must not cost a batch its time, or a process its memory. The start and the end of a failure are
reported once each.
"""

import contextlib
import hashlib
import json
import queue
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from importlib.metadata import version
from typing import Any, Generic, TypeVar

from lakebed.telemetry.events import Emit, ExportFailed, ExportResumed, shared
from lakebed.telemetry.settings import ExportTarget

Value = str | int | float | bool

BATCH = "batch"
"""The root span of a batch."""
INTERNAL = 1
"""The OTLP kind of a span that is not a request."""
FAILED = 2
"""The OTLP status of a failed span."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A span of a trace."""

    trace: str
    id: str
    parent: str | None = None
    name: str
    start: float
    end: float
    """Both in seconds since the epoch."""
    attributes: Mapping[str, Value] = field(default_factory=dict)
    error: str | None = None
    """Why it failed; None if it did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedBatch:
    """The batch of a trace."""

    pipeline: str
    journal: str
    entry: int
    attempt: str = ""
    """Distinguishes spans of a failed attempt from those of the journaled one."""

    @property
    def trace(self) -> str:
        """Return the id of its trace."""
        return _digits(f"{self.journal}/{self.pipeline}/{self.entry}", 32)

    def span(self, *name: str) -> str:
        """Return the id of one of its spans, which is deterministic."""
        return _digits("/".join((self.trace, *filter(None, [self.attempt]), *name)), 16)

    def part(
        self,
        *name: str,
        below: str | None = BATCH,
        took: tuple[float, float],
        attributes: Mapping[str, Value],
        error: str | None = None,
    ) -> Span:
        """Return one of its spans: the first word names it, the others make its id unique.

        It is `below` another one; only the root span is below none.
        """
        return Span(
            trace=self.trace,
            id=self.span(*name),
            parent=None if below is None else self.span(below),
            name=name[0],
            start=took[0],
            end=took[1],
            attributes=attributes,
            error=error,
        )


def _digits(text: str, count: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:count]


def encoder(service: str) -> Callable[[Sequence[Span]], bytes]:
    """Return an encoder of spans as an OTLP request in JSON."""
    scope = {"name": service, "version": version("blizzard-penguin")}
    resource: dict[str, Value] = {
        "service.name": service,
        "service.version": scope["version"],
        "telemetry.sdk.language": "python",
    }

    def encode(spans: Sequence[Span]) -> bytes:
        scoped = {"scope": scope, "spans": [_span(span) for span in spans]}
        of_service = {
            "resource": {"attributes": _attributes(resource)},
            "scopeSpans": [scoped],
        }
        return json.dumps({"resourceSpans": [of_service]}, ensure_ascii=False).encode()

    return encode


def _span(span: Span) -> dict[str, object]:
    written: dict[str, object] = {
        "traceId": span.trace,
        "spanId": span.id,
        "name": span.name,
        "kind": INTERNAL,
        "startTimeUnixNano": _nanoseconds(span.start),
        "endTimeUnixNano": _nanoseconds(max(span.start, span.end)),
        "attributes": _attributes(span.attributes),
    }
    if span.parent is not None:
        written["parentSpanId"] = span.parent
    if span.error is not None:
        written["status"] = {"code": FAILED, "message": span.error}
    return written


def _attributes(values: Mapping[str, Value]) -> list[dict[str, object]]:
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: Value) -> dict[str, object]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": value}


def _nanoseconds(seconds: float) -> str:
    # Whole microseconds: the precision of a float for present times.
    return str(round(seconds * 1_000_000) * 1000)


Item = TypeVar("Item")
Send = Callable[[ExportTarget, bytes], None]
"""Delivers a document; raises OSError on failure."""

WAITING = 4096
"""The most waiting items; later ones are dropped."""
PAUSE_SECS = 1.0
"""How long the first item of a request waits for others."""
END_SECS = 5.0
"""How long the end of a run waits for pending items."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: headers may hold a secret for the configured address alone."""

    def redirect_request(self, *_given: Any) -> None:  # noqa: ANN401 - the library's
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)


def post(target: ExportTarget, body: bytes, *, seconds: float = 10.0) -> None:
    """Deliver a document of JSON."""
    headers = {"Content-Type": "application/json", **target.headers}
    request = urllib.request.Request(target.url, body, headers)  # noqa: S310 - only http(s) gets here
    try:
        with _OPENER.open(request, timeout=seconds) as answer:
            answer.read()
    except urllib.error.HTTPError as refused:
        with refused:
            raise OSError(f"HTTP {refused.code}") from None
    except HTTPException as broken:
        raise OSError(type(broken).__name__) from broken


class Courier(Generic[Item]):
    """Collects items and sends them as documents during a run, at most `together` in each."""

    def __init__(
        self,
        target: ExportTarget,
        encode: Callable[[Sequence[Item]], bytes],
        emit: Emit,
        *,
        together: int = 512,
        send: Send = post,
    ) -> None:
        self._target, self._encode, self._emit, self._send = target, encode, emit, send
        self._together = together
        self._waiting: queue.Queue[Item | None] = queue.Queue(WAITING)
        self._ending = threading.Event()
        self._lost = 0
        self._failing = False
        name = f"export {target.what}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, item: Item) -> None:
        """Add an item; drop it if too many are waiting."""
        try:
            self._waiting.put_nowait(item)
        except queue.Full:
            self._lost += 1

    def close(self) -> None:
        """Send the waiting items, for some seconds at most."""
        self._ending.set()
        with contextlib.suppress(queue.Full):  # The thread is awake then, and sees the end.
            self._waiting.put_nowait(None)
        self._thread.join(END_SECS)

    def _run(self) -> None:
        while not (self._ending.is_set() and self._waiting.empty()):
            items = [self._waiting.get()]
            if self._together > 1:
                self._ending.wait(PAUSE_SECS)
            with contextlib.suppress(queue.Empty):
                while len(items) < self._together:
                    items.append(self._waiting.get_nowait())
            if found := [item for item in items if item is not None]:
                self._deliver(found)

    def _deliver(self, items: Sequence[Item]) -> None:
        try:
            self._send(self._target, self._encode(items))
        except Exception as error:  # noqa: BLE001 - no error may end the thread
            self._failed(error, len(items))
        else:
            self._worked()

    def _failed(self, error: Exception, items: int) -> None:
        self._lost += items
        if not self._failing:
            self._failing = True
            self._emit(ExportFailed(what=self._target.what, reason=_reason(error)))

    def _worked(self) -> None:
        if self._failing:
            self._failing = False
            lost, self._lost = self._lost, 0
            self._emit(ExportResumed(what=self._target.what, lost=lost))


def _reason(error: Exception) -> str:
    """Return why delivery fails, without addresses and headers."""
    if isinstance(error, urllib.error.URLError) and isinstance(error.reason, OSError):
        error = error.reason
    if str(error).startswith("HTTP "):
        return str(error)
    return getattr(error, "strerror", None) or type(error).__name__


@contextmanager
def delivered(
    emit: Emit,
    target: ExportTarget | None,
    encode: Callable[[Sequence[Item]], bytes],
    *listeners: Callable[[Callable[[Item], None]], Emit],
    together: int = 512,
) -> Iterator[Emit]:
    """Deliver what listeners make of events during the block; yield the emitter for them, too.

    A listener is created with the function that takes its items. Without a target the given emitter
    is yielded.
    """
    if target is None:
        yield emit
        return
    courier = Courier[Item](target, encode, emit, together=together)
    try:
        yield shared(emit, *(made(courier.put) for made in listeners))
    finally:
        courier.close()
