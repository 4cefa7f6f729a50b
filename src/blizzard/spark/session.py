"""The Spark session: one per process, started when the first batch needs it."""

import os
import re
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from blizzard.settings import SparkSettings

QUIET = """
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yyyy-MM-dd HH:mm:ss} %-5p spark: %m%n%ex{short}
logger.task.name = org.apache.spark.scheduler.TaskSetManager
logger.task.level = warn
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
"""
"""Spark says what matters (a task that failed) and nothing of how it started.

The gateway's level equals the root's, or Spark announces that it changed the level.
"""

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""The JVM only schedules, rows never enter it: quick to start beats fast in the long run."""

LOCAL = re.compile(r"local(?:\[(\*|\d+)(,\d+)?\])?")


def start(settings: SparkSettings) -> SparkSession:
    """Start Spark with settings that suit many small Python tasks; the user's conf wins."""
    # The executors' Python must be the one that has this package.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    conf = {
        "spark.app.name": "blizzard",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.scheduler.mode": "FAIR",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
        "spark.python.worker.reuse": "true",
        "spark.sql.artifact.isolation.enabled": "false",
        **settings.conf,
    }
    if settings.most_tasks is not None:
        # A cluster's own way to say it; one that knows another way is told by the user's conf.
        conf.setdefault("spark.cores.max", str(settings.most_tasks))
    if settings.master.startswith("local"):
        # On a machine without DNS, Spark's guess of its own address fails.
        conf.setdefault("spark.driver.host", "127.0.0.1")
        conf.setdefault("spark.driver.bindAddress", "127.0.0.1")
    conf.setdefault("spark.driver.extraJavaOptions", _java_options())
    builder = SparkSession.builder.master(capped_master(settings))
    for key, value in conf.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def local_cores(settings: SparkSettings) -> int | None:
    """Say how many tasks run at a time where Spark runs on this machine; None for a cluster."""
    local = LOCAL.fullmatch(settings.master)
    if local is None:
        return None
    cores = (os.cpu_count() or 1) if local[1] == "*" else int(local[1] or 1)
    return cores if settings.most_tasks is None else min(cores, settings.most_tasks)


def capped_master(settings: SparkSettings) -> str:
    """Give the master, on this machine with no more cores than tasks may run."""
    local = LOCAL.fullmatch(settings.master)
    if local is None or settings.most_tasks is None:
        return settings.master
    return f"local[{local_cores(settings)}{local[2] or ''}]"


def _java_options() -> str:
    """Write the logging settings where the JVM can read them when it starts."""
    file = Path(tempfile.gettempdir()) / f"blizzard-log4j2-{os.getuid()}.properties"
    if not file.exists() or file.read_text() != QUIET:
        file.write_text(QUIET)
    return f"{JAVA} -Dlog4j2.configurationFile=file:{file}"
