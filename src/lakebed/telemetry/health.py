"""The health of pipelines and tables, from the health changes of events.

A part is unhealthy if its last step failed, if it ended with an error, if penguin has stopped one
of its pipelines, or if it is stuck: no step has ended for a long time, and no batch is running.
After a successful step it is healthy again. A degradation that only slows it down, such as a queue
that does not answer, is reported and leaves it healthy.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

STUCK_AFTER_POLLS = 30
STUCK_AFTER_SECS = 60.0
"""A part is stuck after 30 poll intervals without a finished step, and never before a minute."""

UNFORESEEN = "internal_error"


class PartKind(StrEnum):
    """The kind of a part: blizzard runs pipelines, penguin tables."""

    PIPELINE = "pipeline"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class HealthPart:
    """One pipeline or table of a program."""

    kind: PartKind
    name: str


class Mark(StrEnum):
    """The meaning of a health change."""

    WORKING = "working"
    """A batch is running, for as long as it takes."""
    WELL = "well"
    """A step succeeded."""
    OVER = "over"
    """The last step ended, as requested."""
    AILING = "ailing"
    """A step failed; it is retried unless the part ended."""
    HALTED = "halted"
    """One pipeline of a table is stopped until it is fixed."""
    DEGRADED = "degraded"
    """Something optional is unavailable, so the part works less well."""
    MENDED = "mended"
    """What was halted or degraded has recovered."""


@dataclass(frozen=True, slots=True)
class HealthChange:
    """A change of a part's health."""

    mark: Mark
    part: HealthPart
    what: str = ""
    """What is halted or degraded."""
    code: str = ""
    reason: str = ""
    ended: bool = False

    def trouble(self, before: "_Trouble | None", now: float) -> "_Trouble":
        """Return the trouble, without the reason of an unforeseen error."""
        reason = "see the log" if self.code == UNFORESEEN else self.reason
        return _Trouble(self.code, reason, before.since if before else now, self.ended)


@dataclass(frozen=True, slots=True)
class _Trouble:
    code: str
    reason: str
    since: float
    ended: bool = False

    def document(self) -> dict[str, str]:
        return {"code": self.code, "reason": self.reason, "since": _at(self.since)}


@dataclass(slots=True)
class _State:
    last: float
    """When a step last succeeded, or the watch began."""
    interval: float | None = None
    stepped: bool = False
    working: bool = False
    over: bool = False
    trouble: _Trouble | None = None
    halted: dict[str, _Trouble] = field(default_factory=dict)
    degraded: dict[str, _Trouble] = field(default_factory=dict)


class Health:
    """Tracks the health of every part."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._states: dict[HealthPart, _State] = {}

    def expect(self, part: HealthPart, *, interval: float) -> None:
        """Watch a part that polls at this interval, in seconds."""
        with self._lock:
            self._states[part] = _State(self._seconds(), interval)

    def note(self, sign: HealthChange) -> None:
        """Apply a sign."""
        with self._lock:
            now = self._seconds()
            state = self._states.setdefault(sign.part, _State(now))
            match sign.mark:
                case Mark.WORKING:
                    state.working = True
                case Mark.WELL:
                    state.last, state.stepped = now, True
                    state.working, state.trouble = False, None
                case Mark.OVER:
                    state.over = True
                case Mark.AILING:
                    state.working, state.trouble = False, sign.trouble(state.trouble, now)
                case Mark.HALTED:
                    state.halted[sign.what] = sign.trouble(None, now)
                case Mark.DEGRADED:
                    before = state.degraded.get(sign.what)
                    state.degraded[sign.what] = sign.trouble(before, now)
                case Mark.MENDED:
                    state.halted.pop(sign.what, None)
                    state.degraded.pop(sign.what, None)

    def report(self) -> dict[str, Any]:
        """Return the health of every part; the status is `ok` if all are healthy."""
        with self._lock:
            now = self._seconds()
            parts = {part: _document(state, now) for part, state in self._states.items()}
        well = all(document["status"] in HEALTHY for document in parts.values())
        grouped = {
            f"{kind}s": {part.name: parts[part] for part in parts if part.kind is kind}
            for kind in PartKind
            if any(part.kind is kind for part in parts)
        }
        return {"status": "ok" if well else "failing", **grouped}


HEALTHY = ("starting", "ok", "done")


def _document(state: _State, now: float) -> dict[str, Any]:
    document: dict[str, Any] = {"status": _status(state, now)}
    if state.stepped:
        document["last_step"] = _at(state.last)
    if state.trouble is not None:
        document |= state.trouble.document()
    elif document["status"] == "stuck":
        document |= {"reason": "no step has finished", "since": _at(state.last)}
    if state.halted:
        document["stopped"] = {name: why.document() for name, why in state.halted.items()}
    if state.degraded:
        document["degraded"] = {what: why.document() for what, why in state.degraded.items()}
    return document


def _status(state: _State, now: float) -> str:
    if state.trouble is not None:
        return "ended" if state.trouble.ended else "failing"
    if state.halted:
        return "stopped"
    if state.over:
        return "done"
    if state.interval is not None and not state.working:
        patience = max(STUCK_AFTER_SECS, STUCK_AFTER_POLLS * state.interval)
        if now - state.last > patience:
            return "stuck"
    return "ok" if state.stepped or state.interval is None else "starting"


def _at(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
