"""Spans of a trace, and how OTLP writes them as JSON. Pure.

A batch has one trace for both programs: its id is made of the journal and the number of the
entry, which blizzard and penguin both know. So penguin's commit is in the trace of the batch whose
rows it makes visible, and nothing has to be written down for that.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version

Value = str | int | float | bool

BATCH = "batch"
"""The span that covers a batch: all others are below it."""
INTERNAL = 1
"""The kind of a span that is no request."""
FAILED = 2
"""The status of a span whose work failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Something that took time."""

    trace: str
    id: str
    parent: str | None = None
    name: str
    start: float
    end: float
    """Both in seconds since the epoch."""
    attributes: Mapping[str, Value] = field(default_factory=dict)
    error: str | None = None
    """Why it failed; None where it did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedBatch:
    """The batch that a trace is about."""

    pipeline: str
    journal: str
    entry: int
    attempt: str = ""
    """Tells the spans of an attempt that was not journaled from those of the one that was."""

    @property
    def trace(self) -> str:
        """Return the id of its trace."""
        return _digits(f"{self.journal}/{self.pipeline}/{self.entry}", 32)

    def span(self, *name: str) -> str:
        """Return the id of one of its spans, the same whenever it is asked for."""
        return _digits("/".join((self.trace, *filter(None, [self.attempt]), *name)), 16)

    def part(
        self,
        *name: str,
        below: str | None = BATCH,
        took: tuple[float, float],
        attributes: Mapping[str, Value],
        error: str | None = None,
    ) -> Span:
        """Return one of its spans: the first word names it, the others tell it from its like.

        It is `below` another one; only the span that covers the batch is below none.
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
    """Return what writes spans of a program as a request of OTLP over HTTP, in JSON."""
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
    # Whole microseconds: a float has no more than that in our time.
    return str(round(seconds * 1_000_000) * 1000)
