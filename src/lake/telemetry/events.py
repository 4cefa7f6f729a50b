"""What happened, as values. An event owns its log line; code that emits it knows no logger."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import ClassVar

from lake.errors import LakeError


class Level(IntEnum):
    """How much an event matters; the numbers are those of the standard library's logging."""

    TRACE = 5
    DEBUG = 10
    INFO = 20
    WARN = 30
    ERROR = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened. Its fields are facts; `sentence` tells them to a person."""

    level: ClassVar[Level] = Level.INFO

    def sentence(self) -> str:
        """Say it in one line."""
        raise NotImplementedError

    def facts(self) -> dict[str, object]:
        """Give the fields, for a machine."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


Emit = Callable[[Event], None]
"""Where events go. It never raises and never blocks for long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFailed(Event):
    """A pipeline or table could not finish a step; it will be tried again, or it stops."""

    level: ClassVar[Level] = Level.ERROR
    who: str
    code: str
    error: str
    next_try_secs: float | None

    def sentence(self) -> str:
        """Say what went wrong and what happens next."""
        then = (
            "it stops here"
            if self.next_try_secs is None
            else f"trying again in {self.next_try_secs:.1f} s"
        )
        return f"{self.who}: {self.error} [{self.code}]; {then}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingNotActedOn(Event):
    """A setting was accepted that nothing acts on yet."""

    level: ClassVar[Level] = Level.WARN
    warning: str

    def sentence(self) -> str:
        """Repeat the warning of the configuration."""
        return self.warning


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRequested(Event):
    """A signal asked for an orderly end."""

    signal: str

    def sentence(self) -> str:
        """Say what happens now, and how to be quicker."""
        return f"{self.signal} received: finishing the work in hand; once more to leave at once"


def code_of(error: BaseException) -> str:
    """Give the stable code of an error, ours or not."""
    return error.code if isinstance(error, LakeError) else "internal_error"
