"""One Spark session with the Delta package, for all tests of a process."""

import fcntl
import functools
import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from datetime import timedelta
from functools import reduce
from pathlib import Path
from typing import Any

from py4j.java_gateway import get_field
from pyspark.errors import IllegalArgumentException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"
"""For the pyspark that is pinned; Spark fetches it and what it needs into its own cache."""

QUIET = """
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p spark: %m%n%ex{short}
"""

CONF = {
    "spark.jars.packages": PACKAGE,
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    # Tables of a few rows: a task more costs more than it brings.
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.default.parallelism": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
    "spark.databricks.delta.optimize.maxThreads": "1",
    # Nor is it worth compiling a query that looks at a hundred rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    # The tests vacuum at once, which nobody else should.
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@functools.cache
def session() -> SparkSession:
    """Start Spark with Delta once."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    logging = Path(tempfile.gettempdir()) / f"interop-log4j2-{os.getuid()}.properties"
    logging.write_text(QUIET)
    java = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dlog4j2.configurationFile=file:{logging}"
    builder = SparkSession.builder.master("local[2]").appName("interop")
    for key, value in {**CONF, "spark.driver.extraJavaOptions": java}.items():
        builder = builder.config(key, value)
    # Processes that start at the same time would fetch the package into one folder.
    with (Path(tempfile.gettempdir()) / f"interop-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return builder.getOrCreate()


def table(root: Path) -> DataFrame:
    """Read the latest version of a table."""
    return session().read.format("delta").load(str(root))


def rows(root: Path) -> list[dict[str, Any]]:
    """Read all rows, by their ids."""
    found = [row.asDict(recursive=True) for row in table(root).collect()]
    return sorted(found, key=lambda row: int(row["id"]))


def ids_under(root: Path, conditions: Sequence[Column]) -> list[list[int]]:
    """Return the ids that each filter finds, each by a scan of its own that skips files by it."""
    found: list[list[int]] = [[] for _ in conditions]
    for start in range(0, len(conditions), 20):
        part = range(start, min(start + 20, len(conditions)))
        scans = (
            table(root).where(conditions[place]).select(fn.lit(place).alias("place"), "id")
            for place in part
        )
        for row in _union(scans).collect():
            found[row["place"]].append(row["id"])
    return [sorted(one) for one in found]


def sql(statement: str) -> DataFrame:
    """Run a statement."""
    return session().sql(statement)


def forget() -> None:
    """Forget what was read of tables, which tests edit behind Spark's back."""
    jvm: Any = session()._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def interval(text: str) -> timedelta | None:
    """Read the interval of a table property as Delta does; None where it refuses it."""
    jvm: Any = session()._jvm
    configs = jvm.org.apache.spark.sql.delta.DeltaConfigs
    try:
        found = configs.parseCalendarInterval(text)
    except IllegalArgumentException:
        return None
    if not configs.isValidIntervalConfigValue(found):
        return None
    return timedelta(days=get_field(found, "days"), microseconds=get_field(found, "microseconds"))


def _union(frames: Iterable[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionAll, frames)
