"""Spans of a trace, and their encoding as OTLP JSON. Pure.

A batch has one trace for both programs: its id is derived from the journal and the entry number,
which blizzard and penguin both know. So penguin's commit is in the trace of the batch whose rows it
makes visible, and no document needs to carry ids.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version

Value = str | int | float | bool

BATCH = "batch"
"""The root span of a batch."""
INTERNAL = 1
"""The OTLP kind of a span that is no request."""
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
