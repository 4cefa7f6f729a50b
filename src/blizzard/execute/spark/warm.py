"""Make the class archive: start Spark, use it as a batch does, save the JVM's classes."""

import subprocess
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from blizzard.execute.spark.cds_archive import Archive, settle, unfinished
from blizzard.execute.spark.job import idle_job
from blizzard.execute.spark.session import own_archive, start
from blizzard.model.settings import SparkSettings

PATIENCE_SECS = 900


class NotMade(Exception):
    """The archive could not be made; Spark starts without it, only slower."""


def warm(*, again: bool = False) -> Archive:
    """See that the archive of this Java and this Spark is there; with `again`, make it anew."""
    archive = own_archive()
    if archive is None:
        raise NotMade("there is no Java, or no cache folder that could hold an archive")
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
        raise NotMade(f"{archive.path.parent}: {cause}") from cause
    return archive


def _write(to: Path) -> None:
    """Run a job as a batch does; the JVM writes the classes it has loaded when it ends."""
    try:
        session = start(SparkSettings(master="local[2]"), archive_to=to)
        idle_job("make an archive of classes", tasks=2).collect(session)
        gateway: Any = session.sparkContext._gateway  # noqa: SLF001 - no other way to the JVM
        session.stop()
        gateway.proc.stdin.close()
        gateway.proc.wait(timeout=PATIENCE_SECS)
    except (PySparkException, Py4JError, subprocess.TimeoutExpired) as cause:
        raise NotMade(f"Spark did not start: {cause}") from cause
    if not to.exists() or not to.stat().st_size:
        raise NotMade("the JVM wrote no archive; run it with -Xlog:cds to see why")
