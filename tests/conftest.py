"""What holds for all tests."""

import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.builders import BEGUN

# Machines are shared: no test may fail because something else was running. The examples are those
# of every run, so that whoever changes something learns of that alone; EXPLORE=1 tries new ones.
settings.register_profile(
    "patient",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not os.environ.get("EXPLORE"),
)
settings.load_profile("patient")

# Commands in this process print to no terminal: the width of the pages, wherever pytest runs.
os.environ["COLUMNS"] = "80"

HERE = Path(__file__).parent
IN_MEMORY = Path("/dev/shm")
ENOUGH_BYTES = 4 << 30
# The programs sync what they write, and a life that dies at every call waits for the disk most of
# its time. What holds without a power cut can be seen in memory, too.
if os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free > ENOUGH_BYTES:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))

OURS = ("beat", "progress-client", "metrics", "download", "upload", "export")
"""How threads of the programs are called that end with whoever began them.

The progress server's is not among them: tests share a Spark session, and it lives as long.
"""

WITH_SPARK_SECS = 900

LONG = ("crash", "property", "integration")
"""Folders whose files take long, however few tests they have; those that take longest first."""


UNTIL = float(os.environ.get("TESTS_UNTIL", "inf"))
"""When the last test may begin, in seconds since 1970; .ci/run says it of its later suites."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take long: at the end no process waits for another one's.

    And allow tests that start Spark, some of them several times, the time of a slow machine.
    """
    tests = Counter(item.path for item in items)
    items.sort(key=lambda item: (_kind(item.path), -tests[item.path]))
    for item in items:
        if item.get_closest_marker("spark") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(WITH_SPARK_SECS))


def _kind(file: Path) -> int:
    kind = file.relative_to(HERE).parts[0]
    return LONG.index(kind) if kind in LONG else len(LONG)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Leave out what there is no time for, in words that the summary counts."""
    if time.time() > UNTIL:
        pytest.skip("no time is left: this machine is too slow for the whole suite")


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> Iterator[None]:
    """Leave no thread to the tests that follow, and let none of ours leave one."""
    before = set(threading.enumerate())
    yield
    BEGUN.clear()
    begun = (each for each in set(threading.enumerate()) - before if each.name.startswith(OURS))
    for thread in begun:
        thread.join(300)
        assert not thread.is_alive(), f"{thread.name} is left behind"
