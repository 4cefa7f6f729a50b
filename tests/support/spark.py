"""One Spark session for all tests of a process."""

import functools

from blizzard.execute.spark.runner import SparkRunner
from blizzard.model.settings import SparkSettings


@functools.cache
def shared_runner() -> SparkRunner:
    """Start Spark once; two cores, and tasks that are tried again."""
    return SparkRunner(SparkSettings(master="local[2,4]"))
