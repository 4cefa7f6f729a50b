"""One Spark session for all tests of a process."""

import functools
from pathlib import Path

from blizzard.execute.spark.jvm import Archive, settle, unfinished
from blizzard.execute.spark.runner import SparkRunner
from blizzard.model.settings import SparkSettings


@functools.cache
def shared_runner() -> SparkRunner:
    """Start Spark once; two cores, and tasks that are tried again."""
    return SparkRunner(SparkSettings(master="local[2,4]"))


def archived(path: Path) -> Archive:
    """Make an archive that a JVM could start from."""
    archive = Archive(path=path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = unfinished(archive)
    part.write_bytes(b"an archive")
    settle(archive, part)
    return archive
