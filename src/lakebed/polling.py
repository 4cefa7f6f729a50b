"""The polling loop: run, wait, repeat; stop after a step on request, or at once. Signals."""

import os
import random
import signal
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import FrameType
from typing import TypeVar

from lakebed.retry import Backoff, can_help, may_mend
from lakebed.telemetry.events import (
    Emit,
    LastStepTaken,
    NextStepDue,
    StepFailed,
    StepFinished,
    StopRequested,
    code_of,
)
from lakebed.telemetry.health import PartKind

LEAVE_AT_ONCE = 130
Outcome = TypeVar("Outcome")


@dataclass(frozen=True, slots=True)
class Stop:
    """The request for an orderly stop; it wakes every waiter."""

    event: threading.Event = field(default_factory=threading.Event)

    def request(self) -> None:
        """Request a stop at the next safe point."""
        self.event.set()

    @property
    def requested(self) -> bool:
        """Whether a stop was requested."""
        return self.event.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep until the time is up or a stop is requested; return whether it was.

        Not for the main thread: a signal handler could deadlock on the event's lock.
        """
        return self.event.wait(seconds)


def stop_on_signals(stop: Stop, emit: Emit) -> None:
    """Request an orderly stop on the first SIGINT or SIGTERM, and exit on the second.

    Install this after the Spark session exists: SparkContext handles SIGINT itself and would cancel
    the jobs that an orderly stop must finish.
    """
    asked = False

    def handle(number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        # Set before the request: a second signal may interrupt the first, and
        # would wait forever for the lock that its own thread holds.
        if asked or stop.requested:
            # Not logged: the first may hold the lock of the log.
            os.write(2, f"{signal.Signals(number).name} received again: exiting at once\n".encode())
            os._exit(LEAVE_AT_ONCE)
        asked = True
        stop.request()
        emit(StopRequested(signal=signal.Signals(number).name))

    signal.signal(signal.SIGINT, handle)
    signal.signal(signal.SIGTERM, handle)


def finished(run: Callable[[], Outcome], stop: Stop) -> Outcome:
    """Run a function in a thread; on Ctrl-C request an orderly stop and wait for it.

    A second Ctrl-C raises at once.
    """
    threads = ThreadPoolExecutor(max_workers=1)
    running = threads.submit(run)
    threads.shutdown(wait=False)
    try:
        return running.result()
    except KeyboardInterrupt:
        stop.request()
        running.result()
        raise


def run_step(
    step: Callable[[], bool],
    *,
    who: str,
    stop: Stop,
    emit: Emit,
    once: bool,
    interval: Callable[[], float],
    kind: PartKind = PartKind.PIPELINE,
    delay: float = 0.0,
    backoff: Backoff | None = None,
    max_tries: int = 5,
    wait: Callable[[float], object] | None = None,
    mends: Callable[[BaseException], bool] = may_mend,
) -> BaseException | None:
    """Repeat a step until a stop is requested or, with `once`, until nothing is left to do.

    The first step comes after `delay` seconds, so that many loops need not start at once. Between
    steps `wait` sleeps; it may end early, and must when a stop is requested. The step returns
    whether it found work. When polling, an error that time or an operator may fix, by `mends`, is
    retried forever, with backoff. With `once`, only an error that time may fix is retried,
    `max_tries` times in a row. Any other error ends the loop and is returned.
    """
    policy = backoff or Backoff()
    failures = 0
    stop.wait(delay)
    while not stop.requested:
        try:
            found = step()
            failures = 0
        except Exception as error:  # noqa: BLE001 - the loop is where one failure must not stop the rest
            failures += 1
            hopeless = (failures >= max_tries or not can_help(error)) if once else not mends(error)
            pause = None if hopeless else policy.wait(failures, random.random)
            emit(
                StepFailed(
                    kind=kind, who=who, code=code_of(error), error=str(error), next_try_secs=pause
                )
            )
            if pause is None or stop.wait(pause):
                # Also on a stop: the step's work is not done.
                return error
            continue
        emit(StepFinished(kind=kind, who=who, found=found))
        if found:
            continue
        if once:
            break
        seconds = interval()
        emit(NextStepDue(kind=kind, who=who, seconds=seconds))
        (wait or stop.wait)(seconds)
    emit(LastStepTaken(kind=kind, who=who))
    return None


def run_together(
    loops: Mapping[str, Callable[[], BaseException | None]],
    emit: Emit,
    *,
    kind: PartKind = PartKind.PIPELINE,
) -> dict[str, BaseException]:
    """Run every loop in a thread of its own until all have ended; return the errors by name.

    The failure of one does not affect the others.
    """
    errors: dict[str, BaseException] = {}

    def run(name: str, loop: Callable[[], BaseException | None]) -> None:
        try:
            error = loop()
        except BaseException as fatal:
            # A library's panic is not an Exception, but must count for the exit code.
            errors[name] = fatal
            emit(
                StepFailed(
                    kind=kind, who=name, code=code_of(fatal), error=repr(fatal), next_try_secs=None
                )
            )
            raise
        if error is not None:
            errors[name] = error

    threads = [
        threading.Thread(target=run, args=(name, loop), name=f"{kind.value} {name}", daemon=True)
        for name, loop in loops.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            # With a timeout, so that the main thread can run signal handlers in between.
            thread.join(0.2)
    return errors
