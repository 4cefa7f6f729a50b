"""What Spark's JVM prints, line by line, so that it becomes part of our own log.

Left to itself it writes to our standard error: between the lines of a log that a machine reads, and
through the bars at a terminal.
"""

import contextlib
import os
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum

from blizzard.events import SparkComplained, SparkMurmured, SparkSaid

KEPT_LINES = 30
"""The last lines of a JVM that ended before it could say why."""
END_SECS = 5.0


class Severity(Enum):
    """How much a line matters."""

    NOISE = "noise"
    WARNING = "warning"
    ERROR = "error"


SPARK_SAID: Mapping[Severity, type[SparkSaid]] = {
    Severity.NOISE: SparkMurmured,
    Severity.WARNING: SparkSaid,
    Severity.ERROR: SparkComplained,
}
"""The event for a line, by how much it matters."""

NOISE = (
    "WARNING: Using incubator modules",
    "WARNING: A terminally deprecated method",
    "WARNING: sun.misc.Unsafe",
    "WARNING: Please consider reporting this to",
    "Setting default log level to",
    "To adjust logging level use",
    "Using Spark's default log4j profile",
    "Setting Spark log level to",
    "Picked up JAVA_TOOL_OPTIONS",
    "Picked up _JAVA_OPTIONS",
    "Picked up JDK_JAVA_OPTIONS",
)
"""What a JVM says at each start that goes well."""

LOGGED = re.compile(r"^[\d\-/.,:TZ ]*\b(TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b\s*(?:spark: )?")
BROKEN = re.compile(r"^(Error: |Exception in thread |#|Error occurred during|Unrecognized )")
GOES_ON = re.compile(r"^(\s+\S|Caused by: |Suppressed: |\.\.\. \d+ more)")
LEVELS = {"TRACE": Severity.NOISE, "DEBUG": Severity.NOISE, "INFO": Severity.NOISE}
LEVELS |= {"WARN": Severity.WARNING, "ERROR": Severity.ERROR, "FATAL": Severity.ERROR}

Said = Callable[[str, Severity], None]
"""Takes a line and how much it matters."""


def graded(line: str, before: Severity) -> tuple[str, Severity]:
    """Return what a line says, without a time and level of its own, and how much it matters.

    A line that goes on with the one before matters as much; what is not known may matter.
    """
    if logged := LOGGED.match(line):
        return line[logged.end() :].strip(), LEVELS[logged[1]]
    if line.startswith(NOISE):
        return line, Severity.NOISE
    if GOES_ON.match(line):
        return line.rstrip(), before
    return line, Severity.ERROR if BROKEN.match(line) else Severity.WARNING


def on_standard_error(line: str, severity: Severity) -> None:
    """Write a line that may matter to standard error, where there is no log."""
    if severity is not Severity.NOISE:
        # The reader may be gone.
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"{line}\n")


class JvmOutput:
    """Reads a JVM's output, from its first line to its last, in a thread of its own."""

    def __init__(self, said: Said) -> None:
        self._said = said
        self._last: deque[str] = deque(maxlen=KEPT_LINES)
        self._thread: threading.Thread | None = None

    @property
    def last(self) -> tuple[str, ...]:
        """Return the last lines; of a JVM that has ended, once all of them have come."""
        if self._thread is not None:
            self._thread.join(END_SECS)
        return tuple(self._last)

    @contextmanager
    def pipe(self) -> Iterator[int]:
        """Yield a handle for a JVM to print to; it is the JVM's alone afterwards."""
        reading, writing = os.pipe()
        self._thread = threading.Thread(
            target=self._hear, args=(reading,), name="jvm output", daemon=True
        )
        self._thread.start()
        try:
            yield writing
        finally:
            os.close(writing)

    def _hear(self, handle: int) -> None:
        with os.fdopen(handle, "rb") as printed:
            self.hear(line.decode(errors="replace") for line in printed)

    def hear(self, lines: Iterable[str]) -> None:
        """Pass on every line that says something."""
        severity = Severity.WARNING
        for line in lines:
            if not line.strip():
                continue
            words, severity = graded(line.rstrip("\r\n"), severity)
            self._last.append(words)
            self._said(words, severity)
