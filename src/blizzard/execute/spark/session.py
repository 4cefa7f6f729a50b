"""The Spark session: one per process, started for the first batch; and `warm`, for its archive."""

import os
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from blizzard.config.overlaps import (
    runs_in_this_process,
    stays_on_this_machine,
    unreachable_driver,
)
from blizzard.execute.spark.executor_check import DRIVERS_PYTHON, own_python
from blizzard.execute.spark.job import idle_job
from blizzard.execute.spark.jvm import (
    JAVA,
    SILENT,
    Archive,
    JvmOutput,
    Said,
    archive_of,
    java_options,
    on_standard_error,
    require_java,
    settle,
    unfinished,
)
from blizzard.model.settings import SparkSettings
from lakebed.errors import ConfigInvalid

LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")

REDACTED = (
    "(?i)secret|password|passwd|token|credential|signature|access[._]?key|account[._]?key|sas"
)
"""Settings that Spark redacts in its pages and event logs; its default lacks the keys of some
stores."""
HOST = "spark.driver.host"
BIND = "spark.driver.bindAddress"
PYTHON = "spark.pyspark.python"
USERS_JAVA = "spark.driver.extraJavaOptions"

ENDING_SECS = 1.0
"""How long a killed JVM may take to end."""
WAIT_FOR_EXECUTORS_SECS = 30.0
NO_MORE_COME_SECS = 1.0

TELLING = re.compile(r"\b(Error|Exception)\b|error", re.IGNORECASE)

LOCAL = re.compile(r"local(?:\[(\*|\d+)(,\d+)?\])?")


def own_archive() -> Archive | None:
    """Return the place of the archive for this process's Java and Spark."""
    return archive_of(Path(_find_spark_home()), os.environ)


def launch_jvm(master: str, conf: Mapping[str, str], said: Said) -> None:
    """Start the JVM unless one is running, and capture its output.

    If it ends before it answers, its last lines become the error.
    """
    with SparkContext._lock:  # noqa: SLF001 - pyspark has no other way to be given a gateway
        if SparkContext._gateway and not _has_ended(SparkContext._gateway):  # noqa: SLF001
            return
        given = SparkConf().setMaster(master)
        for key, value in conf.items():
            given.set(key, value)
        listener = JvmOutput(said)
        try:
            with listener.pipe() as handle:
                launch: Any = launch_gateway
                gateway = launch(given, {"stdout": handle, "stderr": handle})
        except PySparkRuntimeError as cause:
            raise did_not_start(listener.last) from cause
        SparkContext._gateway = gateway  # noqa: SLF001
        SparkContext._jvm = gateway.jvm  # noqa: SLF001


@dataclass(frozen=True, slots=True, kw_only=True)
class Jvm:
    """How to start the JVM and the session; tests replace these."""

    archive: Callable[[], Archive | None] = own_archive
    """Returns the place of the CDS archive."""
    launch: Callable[[str, Mapping[str, str], Said], None] = launch_jvm
    """Starts the JVM for a master with a configuration."""
    session: Any = SparkSession
    """Its builder makes the session."""


OWN_JVM = Jvm()


def start(
    settings: SparkSettings,
    *,
    archive_to: Path | None = None,
    said: Said = on_standard_error,
    stop_requested: Callable[[], bool] = lambda: False,
    jvm: Jvm = OWN_JVM,
) -> SparkSession:
    """Start Spark with settings for many small Python tasks; the user's conf wins.

    With `archive_to` the JVM writes its loaded classes there when it ends. Its output goes to
    `said`.
    """
    require_java(os.environ)
    os.environ["PYSPARK_PYTHON"] = executors_python(settings, os.environ)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    # Spark's scripts start a Python and a JVM of their own to find these out.
    os.environ.setdefault("SPARK_HOME", _find_spark_home())
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", " ".join(JAVA))
    conf = {
        "spark.app.name": "blizzard",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.scheduler.mode": "FAIR",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
        "spark.python.worker.reuse": "true",
        "spark.python.daemon.module": "blizzard.execute.spark.daemon",
        "spark.sql.artifact.isolation.enabled": "false",
        "spark.redaction.regex": REDACTED,
        f"spark.executorEnv.{DRIVERS_PYTHON}": own_python(),
        # Do not import modules from the worker's folder: a `random.py` there would replace the
        # standard one.
        "spark.executorEnv.PYTHONSAFEPATH": "1",
        **settings.conf,
    }
    if settings.most_tasks is not None:
        # This applies to standalone clusters; others have settings of their own.
        conf.setdefault("spark.cores.max", str(settings.most_tasks))
    if stays_on_this_machine(settings.master):
        # On a machine without DNS, Spark's guess of its own address fails.
        conf.setdefault(HOST, "127.0.0.1")
        conf.setdefault(BIND, conf[HOST])
    if fault := unreachable_driver(settings.master, conf.get(HOST, "")):
        raise ConfigInvalid([fault])
    if archive_to is not None:
        conf |= {USERS_JAVA: _writing(archive_to)}
        return _started(jvm, capped_master(settings), conf, None, said)
    archive = jvm.archive()
    if archive is None or not archive.there:
        return _started(jvm, capped_master(settings), conf, None, said)
    try:
        return _started(jvm, capped_master(settings), conf, archive, said)
    except PySparkRuntimeError:
        if stop_requested():
            raise  # The signal may have ended the JVM; that says nothing of the archive.
        # The JVM ended before it answered. If the archive is not the cause, the retry fails, too.
        archive.path.unlink(missing_ok=True)
        return _started(jvm, capped_master(settings), conf, None, said)


def _started(
    jvm: Jvm, master: str, conf: Mapping[str, str], archive: Archive | None, said: Said
) -> SparkSession:
    options = java_options(
        users=conf.get(USERS_JAVA, ""), archive=archive, log_settings=LOG_SETTINGS
    )
    all_of_it = {**conf, USERS_JAVA: options}
    try:
        jvm.launch(master, all_of_it, said)
        builder = jvm.session.builder.master(master)
        for key, value in all_of_it.items():
            builder = builder.config(key, value)
        session: SparkSession = builder.getOrCreate()
    except Exception as cause:
        # Calls to a dying JVM fail in many ways, including a TypeError of py4j.
        if drop_dead_jvm():
            raise PySparkRuntimeError("Java ended while Spark was starting") from cause
        raise
    return session


def did_not_start(last: tuple[str, ...]) -> Exception:
    """Return the error of a JVM that exited early, from its last lines."""
    for line in last:
        if "UnsupportedClassVersionError" in line:
            return ConfigInvalid(
                [
                    (
                        "Spark needs Java 17 or newer, but an older one was found; "
                        "set JAVA_HOME to a newer one"
                    )
                ]
            )
    telling = [line for line in last if TELLING.search(line)] or list(last)
    reason = telling[0] if telling else "it printed nothing"
    return PySparkRuntimeError(f"Java exited before Spark was up: {reason}")


def is_gone(session: SparkSession) -> bool:
    """Whether a session is unusable: its context was stopped, or its JVM is dead."""
    try:
        context: Any = session.sparkContext._jsc  # noqa: SLF001 - Python does not know it otherwise
        return context is None or bool(context.sc().isStopped())
    except (Py4JError, OSError):
        return True


def forget(session: SparkSession) -> None:
    """End a session, even if its Spark is gone: pyspark would keep returning it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # An unclean end of Spark is expected here.
        try:
            session.stop()
        except Exception:  # noqa: BLE001 - calls to a dead JVM fail in many ways
            _drop_jvm()


def drop_dead_jvm() -> bool:
    """Drop the JVM if it has ended, so that the next start launches another; return whether."""
    gateway = SparkContext._gateway  # noqa: SLF001 - there is no other way
    if gateway is None or not _has_ended(gateway, wait=ENDING_SECS):
        return False
    _drop_jvm()
    return True


def _drop_jvm() -> None:
    """Kill the JVM and make pyspark forget it."""
    gateway: Any = SparkContext._gateway  # noqa: SLF001 - there is no other way
    SparkContext._gateway = None  # noqa: SLF001
    SparkContext._jvm = None  # noqa: SLF001
    SparkContext._active_spark_context = None  # noqa: SLF001
    SparkSession._instantiatedSession = None  # noqa: SLF001
    SparkSession._activeSession = None  # noqa: SLF001
    if gateway is not None:
        if gateway.proc is not None:
            gateway.proc.kill()
            gateway.proc.wait()
        with suppress(Exception):
            gateway.shutdown()


def _has_ended(gateway: Any, *, wait: float = 0.0) -> bool:  # noqa: ANN401 - py4j has no types
    """Whether the process of a JVM has ended, or does so within some seconds."""
    try:
        # A JVM started by others has no process here.
        return gateway.proc is not None and gateway.proc.wait(wait) is not None
    except TimeoutExpired:
        return False


def executors_python(settings: SparkSettings, environ: Mapping[str, str]) -> str:
    """Return the Python that runs the tasks: locally this one, on a cluster one found by name.

    The configuration wins, then the environment, as in Spark itself.
    """
    ours = sys.executable if runs_in_this_process(settings.master) else f"python{own_python()}"
    return settings.conf.get(PYTHON) or environ.get("PYSPARK_PYTHON") or ours


def await_executors(
    count: Callable[[], int],
    *,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> int:
    """Wait until executors have registered and no more arrive; return their number.

    A session starts before its executors. Planned without them, the first batch would be cut for
    two cores. The wait is bounded: if a cluster has no free executors, the batch waits in Spark.
    """
    began = changed = clock()
    found = count()
    while clock() - began < WAIT_FOR_EXECUTORS_SECS:
        now = count()
        if now != found:
            found, changed = now, clock()
        if found and clock() - changed >= NO_MORE_COME_SECS:
            break
        pause(0.1)
    return found


def executors(session: SparkSession) -> int:
    """Count the executors; Spark's list also contains the driver."""
    tracker: Any = session.sparkContext._jsc.sc().statusTracker()  # noqa: SLF001 - Python's has no such call
    return len(tracker.getExecutorInfos()) - 1


def local_cores(settings: SparkSettings) -> int | None:
    """Return the concurrent tasks of a local Spark; None for a cluster."""
    local = LOCAL.fullmatch(settings.master)
    if local is None:
        return None
    cores = (os.cpu_count() or 1) if local[1] == "*" else int(local[1] or 1)
    return cores if settings.most_tasks is None else min(cores, settings.most_tasks)


def capped_master(settings: SparkSettings) -> str:
    """Return the master, limiting a local one to the cores that tasks may use."""
    local = LOCAL.fullmatch(settings.master)
    if local is None or settings.most_tasks is None:
        return settings.master
    return f"local[{local_cores(settings)}{local[2] or ''}]"


def _writing(archive: Path) -> str:
    return " ".join([f'"-XX:ArchiveClassesAtExit={archive}"', *SILENT])


PATIENCE_SECS = 900


class ArchiveFailed(Exception):
    """The archive could not be made; Spark starts without it, only slower."""


def warm(*, again: bool = False) -> Archive:
    """Create the archive for this Java and Spark if it is missing, or `again`."""
    archive = own_archive()
    if archive is None:
        raise ArchiveFailed("there is no Java, or no cache folder that could hold an archive")
    if archive.there and not again:
        return archive
    try:
        archive.path.parent.mkdir(parents=True, exist_ok=True)
        written = unfinished(archive)
        try:
            _write(written)
            settle(archive, written)
        finally:
            written.unlink(missing_ok=True)
    except OSError as cause:
        raise ArchiveFailed(f"{archive.path.parent}: {cause}") from cause
    return archive


def _write(to: Path) -> None:
    """Run a job as a batch does; the JVM writes its loaded classes when it ends."""
    try:
        session = start(SparkSettings(master="local[2]"), archive_to=to)
        idle_job("make an archive of classes", tasks=2).collect(session)
        gateway: Any = session.sparkContext._gateway  # noqa: SLF001 - no other way to the JVM
        session.stop()
        gateway.proc.stdin.close()
        gateway.proc.wait(timeout=PATIENCE_SECS)
    except (PySparkException, Py4JError, subprocess.TimeoutExpired) as cause:
        raise ArchiveFailed(f"Spark did not start: {cause}") from cause
    if not to.exists() or not to.stat().st_size:
        raise ArchiveFailed("the JVM wrote no archive; run it with -Xlog:cds to see why")
