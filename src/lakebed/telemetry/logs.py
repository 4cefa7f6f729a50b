"""Events as log lines on standard error, for a person (text) or a machine (json)."""

import contextlib
import json
import logging
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TextIO

from lakebed.errors import printable
from lakebed.telemetry.events import Emit, Event
from lakebed.types import LogFormat, LogLevel

LONGEST_TEXT = 8192
"""The most characters of one text in a log line."""


def log_events(
    least: LogLevel,
    shape: LogFormat,
    to: TextIO | None = None,
    *,
    write: Callable[[str], None] | None = None,
) -> Emit:
    """Return an emitter that writes one line per event from a level on; lines never mix.

    `write` replaces the stream if something else is drawn on the same terminal.
    """
    # A signal handler emits, too, and may interrupt a write in progress.
    lock = threading.RLock()

    def to_stream(line: str) -> None:
        stream = to or sys.stderr
        stream.write(line + "\n")
        stream.flush()

    def emit(event: Event) -> None:
        if event.level < least.level:
            return
        now = datetime.now(UTC)
        line = _as_json(event, now) if shape is LogFormat.JSON else _as_text(event, now)
        # The reader of the log may be gone; continue anyway.
        with lock, contextlib.suppress(OSError, ValueError):
            (write or to_stream)(line)

    return emit


def log_to(logger: logging.Logger) -> Emit:
    """Return an emitter that passes every event to a logger of the standard library."""

    def emit(event: Event) -> None:
        if logger.isEnabledFor(event.level):
            logger.log(event.level, "%s", printable(_cut(event.sentence())))

    return emit


def _cut(fact: Any) -> Any:  # noqa: ANN401 - any fact of an event
    """Truncate a long text for log collectors; return other facts unchanged."""
    if not isinstance(fact, str) or len(fact) <= LONGEST_TEXT:
        return fact
    return f"{fact[:LONGEST_TEXT]}… ({len(fact):,} characters)"


def _as_text(event: Event, now: datetime) -> str:
    # One event is one line: line breaks could imitate other events.
    sentence = _cut(printable(event.sentence()))
    return f"{now:%Y-%m-%d %H:%M:%S} {event.level.name:<5} {sentence}"


def _as_json(event: Event, now: datetime) -> str:
    return json.dumps(
        {
            "time": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": event.level.name.lower(),
            "event": type(event).__name__,
            "message": _cut(event.sentence()),
            **{name: _cut(fact) for name, fact in event.facts().items()},
        },
        ensure_ascii=False,
        default=str,
    )
