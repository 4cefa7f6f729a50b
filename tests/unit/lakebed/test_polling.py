"""Run, wait, back off, repeat, stop. Nothing here waits on the clock: stops are injected."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.errors import (
    ConfigInvalid,
    JournalConflict,
    ObjectMissing,
    StoreDenied,
    StoreFull,
    StoreUnavailable,
)
from lakebed.polling import LEAVE_AT_ONCE, Stop, run_step
from lakebed.retry import Backoff, attempts, can_help, may_mend
from lakebed.telemetry.events import Event, StepFailed

AT_ONCE = Backoff(first_secs=0.0)
LONG = 120.0
"""Seconds after which a process that hangs is given up; one that works never needs them."""


@dataclass
class Loop:
    """A loop whose step does what a script says; at the script's end it asks for a stop."""

    script: Sequence[bool | Exception]
    once: bool = False
    stop: Stop = field(default_factory=Stop)
    events: list[Event] = field(default_factory=list)
    steps: int = 0
    waits: int = 0

    def run(self, max_tries: int = 5) -> BaseException | None:
        turns = iter(self.script)
        return run_step(
            lambda: self._step(turns),
            who="events",
            stop=self.stop,
            emit=self.events.append,
            once=self.once,
            interval=self._interval,
            backoff=AT_ONCE,
            max_tries=max_tries,
        )

    def _step(self, turns: Iterator[bool | Exception]) -> bool:
        self.steps += 1
        turn = next(turns)
        if self.steps == len(self.script) and not self.once:
            self.stop.request()
        if isinstance(turn, Exception):
            raise turn
        return turn

    def _interval(self) -> float:
        self.waits += 1
        return 0.0

    def failures(self) -> list[StepFailed]:
        return [event for event in self.events if isinstance(event, StepFailed)]


def test_once_ends_when_a_step_finds_nothing_left():
    loop = Loop([True, True, False], once=True)
    assert loop.run() is None
    assert loop.steps == 3
    assert loop.waits == 0


def test_polling_waits_only_after_a_step_that_found_nothing():
    loop = Loop([True, False, True, False, False])
    assert loop.run() is None
    assert (loop.steps, loop.waits) == (5, 3)


def test_a_stop_ends_the_loop_at_a_steps_end_and_not_before():
    stop = Stop()
    done = []

    def step() -> bool:
        stop.request()
        done.append("to the end")
        return True

    assert (
        run_step(step, who="p", stop=stop, emit=lambda _: None, once=False, interval=lambda: 60)
        is None
    )
    assert done == ["to the end"]


def test_a_passing_error_is_tried_again_and_told():
    """W01."""
    loop = Loop([StoreUnavailable("no answer"), True, False], once=True)
    assert loop.run() is None
    assert [event.code for event in loop.failures()] == ["store_unavailable"]
    assert loop.failures()[0].next_try_secs is not None
    assert "trying again" in loop.failures()[0].sentence()


def test_once_gives_up_after_so_many_failures_in_a_row_and_gives_the_error_back():
    """W01."""
    error = StoreUnavailable("no answer")
    loop = Loop([error] * 3, once=True)
    assert loop.run(max_tries=3) is error
    assert loop.steps == 3
    assert loop.failures()[-1].next_try_secs is None
    assert "pipeline stopped" in loop.failures()[-1].sentence()


def test_a_success_forgets_the_failures_before_it():
    error = StoreUnavailable("no answer")
    loop = Loop([error, error, True, error, error, False], once=True)
    assert loop.run(max_tries=3) is None


def test_polling_never_gives_up_on_a_passing_error():
    """W01."""
    loop = Loop([StoreUnavailable("no answer")] * 30 + [True])
    assert loop.run(max_tries=3) is None
    assert loop.steps == 31


@pytest.mark.parametrize("error", [StoreDenied("refused"), ObjectMissing("no folder")])
def test_polling_waits_for_an_operator_to_mend_it_and_once_does_not(error):
    """W16."""
    polling = Loop([error, True])
    assert polling.run() is None
    assert polling.steps == 2
    once = Loop([error, True], once=True)
    assert once.run() is error
    assert once.steps == 1


@pytest.mark.parametrize("once", [True, False])
def test_an_error_of_the_user_ends_the_loop(once):
    """D07."""
    error = JournalConflict("another run")
    loop = Loop([error, True], once=once)
    assert loop.run() is error
    assert loop.steps == 1


def test_an_error_nobody_foresaw_is_told_as_internal_and_tried_again():
    loop = Loop([KeyError("x"), True, False], once=True)
    assert loop.run() is None
    assert [event.code for event in loop.failures()] == ["internal_error"]


SIGNALLED = """
import signal, sys, threading, time
from lakebed.polling import Stop, stop_on_signals
from lakebed.types import LogFormat, LogLevel
from lakebed.telemetry.logs import log_events
stop = Stop()
stop_on_signals(stop, log_events(LogLevel.INFO, LogFormat.JSON, sys.stdout))
{before}
print("ready", flush=True)
while not stop.requested:
    time.sleep(0.01)
{then}
"""


@pytest.fixture
def signalled() -> Iterator[Callable[[str], "subprocess.Popen[str]"]]:
    started = []

    def start(then: str, before: str = "") -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-c", SIGNALLED.format(then=then, before=before)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_asks_for_an_orderly_end(signalled, number):
    """L02."""
    process = signalled("print('finished')")
    process.send_signal(number)
    out, _ = process.communicate(timeout=LONG)
    assert process.returncode == 0
    assert number.name in out
    assert out.endswith("finished\n")


def test_the_second_signal_leaves_at_once_with_130(signalled):
    process = signalled("import time\nwhile True: time.sleep(0.01)")
    process.send_signal(signal.SIGTERM)
    assert "SIGTERM" in process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=LONG)
    assert process.returncode == LEAVE_AT_ONCE == 130
    assert said == "SIGTERM received again: exiting at once\n"


ONE_SIGNAL_WITHIN_ANOTHER = """
class Interrupted(threading.Condition):
    def __enter__(self):
        super().__enter__()
        signal.raise_signal(signal.SIGTERM)
stop.event._cond = Interrupted(threading.Lock())
"""


def test_a_second_signal_in_the_middle_of_the_first_leaves_at_once(signalled):
    """A supervisor's SIGTERM right after a Ctrl-C: neither waits for the other."""
    process = signalled("print('finished')", before=ONE_SIGNAL_WITHIN_ANOTHER)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=LONG) == LEAVE_AT_ONCE


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_a_wait_is_never_longer_than_the_limit_nor_shorter_than_half(failures, chance):
    backoff = Backoff(first_secs=1, factor=2, limit_secs=60)
    full = min(60.0, 2.0 ** min(failures - 1, 60))
    assert full / 2 <= backoff.wait(failures, lambda: chance) <= full


@pytest.mark.parametrize(
    ("error", "again", "mends"),
    [
        (StoreUnavailable("x"), True, None),
        (StoreFull("x"), True, None),
        (RuntimeError("x"), True, None),
        (StoreDenied("x"), False, True),
        (ObjectMissing("x"), False, True),
        (ConfigInvalid(["x"]), False, False),
        (JournalConflict("x"), False, False),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, Exception) else str(one),
)
def test_an_error_says_itself_whether_trying_again_can_help_or_an_operator(error, again, mends):
    """Only a restart mends what neither does; one that nobody knows is tried again."""
    assert can_help(error) is again
    assert mends is None or may_mend(error) is mends


def tried(*errors: Exception | None, tries: int = 3) -> tuple[int, list[float]]:
    """Fail with each error in turn; None succeeds."""
    made = 0
    pauses: list[float] = []
    for attempt in attempts(tries, Backoff(), pauses.append, never=JournalConflict):
        with attempt:
            made += 1
            if (error := errors[made - 1]) is not None:
                raise error
            break
    return made, pauses


def test_trouble_that_may_pass_is_tried_again_after_a_pause():
    made, pauses = tried(StoreUnavailable("x"), StoreUnavailable("y"), None)
    assert made == 3
    assert 0.5 <= pauses[0] <= 1 <= pauses[1] <= 2


@pytest.mark.parametrize("error", [StoreDenied("x"), JournalConflict("x"), RuntimeError("x")])
def test_any_other_trouble_is_raised_at_once(error):
    with pytest.raises(type(error)):
        tried(error, None)


def test_the_last_attempt_raises_its_trouble():
    with pytest.raises(StoreUnavailable, match="last"):
        tried(StoreUnavailable("first"), StoreUnavailable("last"), tries=2)
