"""Spark's JVM: its options, its class-data-sharing (CDS) archive, and its output.

A CDS archive holds Spark's classes, verified and in memory layout, and halves the start time. Only
`blizzard warm` creates it, never a process with data at hand, and it is optional: if it cannot be
created, read or used, Spark starts without it.

The JVM's output is read line by line and becomes part of our own log. Left to itself it would write
to standard error, between machine-readable log lines and through progress bars.
"""

import contextlib
import hashlib
import os
import re
import shlex
import shutil
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from blizzard.events import SparkDebugLogged, SparkErrorLogged, SparkWarningLogged
from lakebed.errors import ConfigInvalid

JAVA = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""The JVM only schedules and never sees rows, so a fast start beats long-run speed."""

CHECKED = ("-Xshare:auto", "-XX:+VerifySharedSpaces")
"""An archive that does not match is ignored, and a corrupt one is detected."""

SILENT = ("-Xlog:disable", "-Xlog:all=error:stderr")
"""By default the JVM reports an unusable archive on standard output, where results go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """The place of the archive for one Java, one Spark and one user."""

    path: Path

    @property
    def there(self) -> bool:
        """Whether it exists; it appears complete."""
        return self.path.is_file()


def archive_of(spark_home: Path, environ: Mapping[str, str]) -> Archive | None:
    """Return the place of the archive for this Java and Spark; None if there can be none."""
    java = _java(environ)
    try:
        cache = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        if java is None:
            return None
        parts = [*JAVA, str(java), _fingerprint(java.parent.parent / "lib/modules")]
        parts += [environ.get("SPARK_CONF_DIR", ""), str(spark_home)]
        jars = (spark_home / "jars").iterdir()
        parts += sorted(f"{jar.name} {_fingerprint(jar)}" for jar in jars)
    except (OSError, RuntimeError):
        return None
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]
    path = cache / "blizzard" / "jvm" / f"{key}.jsa"
    # The JVM splits its option at colons; XDG says to ignore a relative cache folder.
    return None if ":" in str(path) or not path.is_absolute() else Archive(path=path)


def require_java(environ: Mapping[str, str]) -> None:
    """Raise ConfigInvalid if Spark's own scripts would find no Java."""
    if _java(environ) is not None:
        return
    if home := environ.get("JAVA_HOME"):
        raise ConfigInvalid(
            [f"JAVA_HOME: there is no bin/java in {home}; set it to the folder of Java 17 or newer"]
        )
    raise ConfigInvalid(
        ["Spark needs Java, and none was found: install Java 17 or newer, or set JAVA_HOME"]
    )


def java_options(*, users: str, archive: Archive | None, log_settings: Path) -> str:
    """Return the driver's JVM options: ours unless the user's contradict them, then the user's."""
    ours = list(JAVA)
    if re.search(r"-XX:\+Use\w+GC\b", users):
        ours.remove("-XX:+UseSerialGC")
    ours.append(f"-Dlog4j2.configurationFile={log_settings.as_uri()}")
    if archive is not None and archive.there and may_share(users):
        ours += [f"-XX:SharedArchiveFile={archive.path}", *CHECKED, *SILENT]
    return " ".join([*(_quoted(option) for option in ours), users]).strip()


def may_share(users: str) -> bool:
    """Whether the user's JVM options leave the choice of the archive to us."""
    return not re.search(r"-Xshare:|-XX:\S*(SharedArchive|ArchiveClasses|SharedClassList)", users)


def unfinished(archive: Archive) -> Path:
    """Return a temporary path unique to this process."""
    return archive.path.with_suffix(f".{os.getpid()}.part")


def settle(archive: Archive, written: Path) -> None:
    """Publish a complete archive atomically: a truncated one crashes the JVM."""
    with written.open("rb") as file:
        os.fsync(file.fileno())
    written.replace(archive.path)


def _java(environ: Mapping[str, str]) -> Path | None:
    """Return the Java that Spark's own scripts will find."""
    if home := environ.get("JAVA_HOME"):
        found = Path(home) / "bin" / "java"
        return found.resolve() if found.exists() else None
    on_path = shutil.which("java", path=environ.get("PATH"))
    return Path(on_path).resolve() if on_path else None


def _fingerprint(file: Path) -> str:
    """Return the size and time of a file, by which the JVM validates it."""
    facts = file.stat()
    return f"{facts.st_size} {facts.st_mtime_ns}"


def _quoted(option: str) -> str:
    return option if shlex.quote(option) == option else f'"{option}"'


KEPT_LINES = 30
"""Last lines kept to explain why a JVM ended."""
END_SECS = 5.0


class Severity(Enum):
    """The severity of a line."""

    NOISE = "noise"
    WARNING = "warning"
    ERROR = "error"


SPARK_SAID: Mapping[Severity, type[SparkWarningLogged]] = {
    Severity.NOISE: SparkDebugLogged,
    Severity.WARNING: SparkWarningLogged,
    Severity.ERROR: SparkErrorLogged,
}
"""The event for a line, by severity."""

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
"""Lines that a JVM prints at every normal start."""

LOGGED = re.compile(r"^[\d\-/.,:TZ ]*\b(TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b\s*(?:spark: )?")
BROKEN = re.compile(r"^(Error: |Exception in thread |#|Error occurred during|Unrecognized )")
GOES_ON = re.compile(r"^(\s+\S|Caused by: |Suppressed: |\.\.\. \d+ more)")
LEVELS = {"TRACE": Severity.NOISE, "DEBUG": Severity.NOISE, "INFO": Severity.NOISE}
LEVELS |= {"WARN": Severity.WARNING, "ERROR": Severity.ERROR, "FATAL": Severity.ERROR}

Said = Callable[[str, Severity], None]
"""Takes a line and its severity."""


def graded(line: str, before: Severity) -> tuple[str, Severity]:
    """Return a line without its own time and level, and its severity.

    A continuation line inherits the severity of the line before; an unknown line is a warning.
    """
    if logged := LOGGED.match(line):
        return line[logged.end() :].strip(), LEVELS[logged[1]]
    if line.startswith(NOISE):
        return line, Severity.NOISE
    if GOES_ON.match(line):
        return line.rstrip(), before
    return line, Severity.ERROR if BROKEN.match(line) else Severity.WARNING


def on_standard_error(line: str, severity: Severity) -> None:
    """Write a line to standard error unless it is noise."""
    if severity is not Severity.NOISE:
        # The reader may be gone.
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"{line}\n")


class JvmOutput:
    """Reads all of a JVM's output in a separate thread."""

    def __init__(self, said: Said) -> None:
        self._said = said
        self._last: deque[str] = deque(maxlen=KEPT_LINES)
        self._thread: threading.Thread | None = None

    @property
    def last(self) -> tuple[str, ...]:
        """Return the last lines, after waiting for the output of a JVM that has ended."""
        if self._thread is not None:
            self._thread.join(END_SECS)
        return tuple(self._last)

    @contextmanager
    def pipe(self) -> Iterator[int]:
        """Yield a file handle for the JVM's output; our copy is closed afterwards."""
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
        """Pass on every non-blank line."""
        severity = Severity.WARNING
        for line in lines:
            if not line.strip():
                continue
            words, severity = graded(line.rstrip("\r\n"), severity)
            self._last.append(words)
            self._said(words, severity)
