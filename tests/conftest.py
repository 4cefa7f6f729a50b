"""What holds for all tests."""

import threading
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.support.builders import BEGUN

# Machines are shared: no test may fail because something else was running.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


OURS = ("look-ahead", "beat", "line", "switchboard", "metrics", "download", "upload")
"""How threads of the programs are called that end with whoever began them."""


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> Iterator[None]:
    """Leave no thread to the tests that follow, and let none of ours leave one."""
    before = set(threading.enumerate())
    yield
    while BEGUN:
        BEGUN.pop().close()
    begun = (each for each in set(threading.enumerate()) - before if each.name.startswith(OURS))
    for thread in begun:
        thread.join(60)
        assert not thread.is_alive(), f"{thread.name} is left behind"
