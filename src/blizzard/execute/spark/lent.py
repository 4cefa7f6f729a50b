"""A Spark session that the caller has already, as in a notebook or a job of their own."""

from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from blizzard.execute.spark.runner import SparkRunner
from blizzard.execute.spark.session import is_gone
from blizzard.model.settings import SparkSettings
from lakebed.errors import ConfigInvalid

CONNECT = "pyspark.sql.connect"


def on_lent_session(spark: Any) -> Any:  # noqa: ANN401 - any session object
    """Return what makes the runner of a run on this session; a session that cannot is refused."""
    session = checked(spark)

    def make(settings: SparkSettings, **told: Any) -> SparkRunner:  # noqa: ANN401 - MakeRunner says what
        master = str(session.sparkContext.master)
        return SparkRunner(replace(settings, master=master), lent=session, **told)

    return make


def checked(spark: Any) -> SparkSession:  # noqa: ANN401
    """Return a session that tasks can be run on; ConfigInvalid says why one is not."""
    if type(spark).__module__.startswith(CONNECT):
        raise ConfigInvalid(
            [
                (
                    "spark: this is a Spark Connect session, and blizzard's tasks report to the "
                    "process that starts them, which Connect does not allow; pass a classic "
                    "SparkSession, or none, and blizzard starts its own"
                )
            ]
        )
    if not isinstance(spark, SparkSession):
        raise ConfigInvalid([f"spark: must be a SparkSession, is a {type(spark).__name__}"])
    if is_gone(spark):
        raise ConfigInvalid(["spark: this session has been stopped; pass one that is running"])
    return spark
