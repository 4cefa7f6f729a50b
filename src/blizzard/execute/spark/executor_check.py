"""Check that an executor's Python fits the driver's, and recognise its errors.

Before it runs, an executor can only report errors on standard error, which Spark quotes in the
middle of a Java stack trace.
"""

import re
import sys
from collections.abc import Mapping

DRIVERS_PYTHON = "BLIZZARD_DRIVER_PYTHON"
"""The environment variable that tells executors which Python the driver has."""

PAGE = "docs/cluster.md"
SETTINGS = (
    "build the archive with `make archive` and set spark.archives: "
    "dist/blizzard-env.tar.gz#blizzard-env and spark.executorEnv.PYTHONPATH: blizzard-env under "
    f"spark.conf, or use an image that has it; see {PAGE}"
)

MISSING = re.compile(r"No module named '?([\w.]+)")
NO_PYTHON = re.compile(r'Cannot run program "([^"]+)"')
OTHER_PYTHON = re.compile(r"blizzard: this is Python (\S+) and the driver's is (\S+)")
SPARKS_WORDS = re.compile(r"PYTHON_VERSION_MISMATCH.*?(\d+\.\d+)\D.*?(\d+\.\d+)", re.DOTALL)
SIGNS = (OTHER_PYTHON, SPARKS_WORDS, NO_PYTHON, MISSING)


def own_python() -> str:
    """Return the Python version that compiled modules depend on."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def require_drivers_python(environ: Mapping[str, str], here: str) -> None:
    """Exit if this Python is not the driver's version, which compiled modules require."""
    wanted = environ.get(DRIVERS_PYTHON, here)
    if wanted != here:
        sys.exit(f"blizzard: this is Python {here} and the driver's is {wanted}")


def unfit(text: str, *, local: bool = False) -> str | None:
    """Return why executors could not work, from Spark's error text; None for other errors.

    `local` says that a session of the caller started them on this machine.
    """
    if local and any(sign.search(text) for sign in SIGNS):
        return (
            "the Spark session starts its workers with another Python than this program's, which "
            "lacks what they need; set the environment variable PYSPARK_PYTHON to "
            f"{sys.executable} before the session is made"
        )
    if found := OTHER_PYTHON.search(text) or SPARKS_WORDS.search(text):
        return (
            f"the executors have Python {found[1]} and the driver has {found[2]}; install the "
            "driver's version on them and set spark.pyspark.python under spark.conf to it, see "
            f"{PAGE}"
        )
    if found := NO_PYTHON.search(text):
        return (
            f"the executors have no {found[1]}; set spark.pyspark.python under spark.conf to "
            f"their Python {own_python()}, see {PAGE}"
        )
    if found := MISSING.search(text):
        return f"the executors' Python has no module {found[1]}: {SETTINGS}"
    return None
