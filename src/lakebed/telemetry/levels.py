"""How much an event matters, and what the command line takes for that.

Apart from the events: every command takes these, and help is printed without anything to log.
"""

from enum import IntEnum, StrEnum


class Level(IntEnum):
    """How much an event matters; the numbers are those of the standard library's logging."""

    TRACE = 5
    DEBUG = 10
    INFO = 20
    WARN = 30
    ERROR = 40


class LogFormat(StrEnum):
    """How a log line looks."""

    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    """The names of the levels on the command line."""

    TRACE = "trace"
    DEBUG = "debug"
    INFO = "info"
    WARN = "warn"
    ERROR = "error"

    @property
    def level(self) -> Level:
        """Return the level that the name means."""
        return Level[self.name]
