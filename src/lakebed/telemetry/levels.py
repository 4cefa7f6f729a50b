"""Levels of events, and their names on the command line.

They are apart from the events because every command takes them, and help needs no events.
"""

from enum import IntEnum, StrEnum


class Level(IntEnum):
    """Levels of events, numbered as in the standard library's logging."""

    TRACE = 5
    DEBUG = 10
    INFO = 20
    WARN = 30
    ERROR = 40


class LogFormat(StrEnum):
    """Formats of log lines."""

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
        """Return the level of the name."""
        return Level[self.name]
