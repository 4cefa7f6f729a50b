"""Whether every pipeline and table is working, from what events say about them.

A part is unhealthy when its last step failed, when it ended with an error, when penguin has stopped
one of its pipelines, or when it is stuck: no step of it came to an end for a long time, and no
batch is running. After a good step it is healthy again. What only makes it slower, such as a queue
that does not answer, is told and leaves it healthy.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, assert_never

STUCK_AFTER_POLLS = 30
STUCK_AFTER_SECS = 60.0
"""A part is stuck after 30 poll intervals without a finished step, and never before a minute."""

UNFORESEEN = "internal_error"


class PartKind(StrEnum):
    """What a program takes steps for: blizzard for pipelines, penguin for tables."""

    PIPELINE = "pipeline"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Part:
    """One pipeline or table of a program."""

    kind: PartKind
    name: str


@dataclass(frozen=True, slots=True)
class Working:
    """A batch is running, for as long as it takes."""

    part: Part


@dataclass(frozen=True, slots=True)
class Well:
    """A step succeeded."""

    part: Part


@dataclass(frozen=True, slots=True)
class Over:
    """The last step was taken, as it was asked for."""

    part: Part


@dataclass(frozen=True, slots=True)
class Ailing:
    """A step failed; it is retried unless this was the end."""

    part: Part
    code: str
    reason: str
    ended: bool


@dataclass(frozen=True, slots=True)
class Halted:
    """One pipeline of a table is stopped until it is fixed."""

    part: Part
    pipeline: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Resumed:
    """A stopped pipeline of a table continues."""

    part: Part
    pipeline: str


@dataclass(frozen=True, slots=True)
class Degraded:
    """Something is not available without which the part works, and works less well."""

    part: Part
    what: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Mended:
    """It is available again."""

    part: Part
    what: str


Sign = Working | Well | Over | Ailing | Halted | Resumed | Degraded | Mended


@dataclass(frozen=True, slots=True)
class Report:
    """The health of a process: one word for a machine, and the reasons for a person."""

    well: bool
    document: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Trouble:
    code: str
    reason: str
    since: float
    ended: bool = False

    def told(self) -> dict[str, str]:
        return {"code": self.code, "reason": self.reason, "since": _at(self.since)}


@dataclass(slots=True)
class _State:
    last: float
    """When a step last came to a good end, or when the watch began."""
    interval: float | None = None
    stepped: bool = False
    working: bool = False
    over: bool = False
    trouble: _Trouble | None = None
    halted: dict[str, _Trouble] = field(default_factory=dict)
    degraded: dict[str, _Trouble] = field(default_factory=dict)


class Health:
    """Keeps what is known of every part."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._states: dict[Part, _State] = {}

    def expect(self, part: Part, *, interval: float) -> None:
        """Watch a part that looks for work at this interval, in seconds."""
        with self._lock:
            self._states[part] = _State(self._seconds(), interval)

    def note(self, sign: Sign) -> None:
        """Take in what an event says."""
        with self._lock:
            now = self._seconds()
            state = self._states.setdefault(sign.part, _State(now))
            match sign:
                case Working():
                    state.working = True
                case Well():
                    state.last, state.stepped = now, True
                    state.working, state.trouble = False, None
                case Over():
                    state.over = True
                case Ailing():
                    state.working = False
                    since = state.trouble.since if state.trouble else now
                    state.trouble = _Trouble(sign.code, _public(sign), since, sign.ended)
                case Halted():
                    state.halted[sign.pipeline] = _Trouble(sign.code, _public(sign), now)
                case Resumed():
                    state.halted.pop(sign.pipeline, None)
                case Degraded():
                    since = state.degraded[sign.what].since if sign.what in state.degraded else now
                    state.degraded[sign.what] = _Trouble(sign.code, _public(sign), since)
                case Mended():
                    state.degraded.pop(sign.what, None)
                case _:
                    assert_never(sign)

    def report(self) -> Report:
        """Return the health of every part, and whether all of them are well."""
        with self._lock:
            now = self._seconds()
            told = {part: _told(state, now) for part, state in self._states.items()}
        well = all(document["status"] in HEALTHY for document in told.values())
        grouped = {
            f"{kind}s": {part.name: told[part] for part in told if part.kind is kind}
            for kind in PartKind
            if any(part.kind is kind for part in told)
        }
        return Report(well, {"status": "ok" if well else "failing", **grouped})


HEALTHY = ("starting", "ok", "done")


def _told(state: _State, now: float) -> dict[str, Any]:
    document: dict[str, Any] = {"status": _status(state, now)}
    if state.stepped:
        document["last_step"] = _at(state.last)
    if state.trouble is not None:
        document |= state.trouble.told()
    elif document["status"] == "stuck":
        document |= {"reason": "no step has finished", "since": _at(state.last)}
    if state.halted:
        document["stopped"] = {name: why.told() for name, why in state.halted.items()}
    if state.degraded:
        document["degraded"] = {what: why.told() for what, why in state.degraded.items()}
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


def _public(sign: Ailing | Halted | Degraded) -> str:
    """Return the reason; that of an error nobody foresaw may hold anything, so it is not shown."""
    return "see the log" if sign.code == UNFORESEEN else sign.reason


def _at(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
