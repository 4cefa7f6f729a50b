"""One computation at a time for each question, shared by everybody who asks.

It runs in a few threads of its own, which are daemons: a store that does not answer holds up no
request for longer than it wants to wait, and never the end of the program. Who comes while it runs
waits for it, or gets what was found before.
"""

import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar, cast

THREADS = 3
MOST = 2000
"""Answers that are kept, those that were asked for last."""

LONGEST_SECS = 3600.0
"""An answer is asked for anew after this long, however long it takes to find."""

CHANGED_SECS = 30.0
"""After a change that is known, an answer that took long is kept no longer than this, unless asking
anew would take more of a processor than it may."""

CPU_SHARE = 100
"""Where so many times the CPU seconds that it took are more, it is kept for those: what waits for a
store is asked for anew soon, and what takes a processor is not. Never longer than without a change.
"""

FAILED_SECS = 5.0
"""What has failed is tried again after this long."""

STALE_SECS = 0.25
"""How long a newer answer is waited for by one who does not say so."""

Value = TypeVar("Value")


class Busy(Exception):
    """It takes longer than the one who asks wants to wait."""


class Waiting(Generic[Value]):
    """A question that somebody may wait for."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.value: Value | None = None
        self.error: BaseException | None = None


class _Slot:
    __slots__ = ("at", "cpu", "error", "mark", "running", "took", "value")

    def __init__(self) -> None:
        self.value: Any = None
        self.at: float | None = None
        self.took = 0.0
        self.cpu = 0.0
        self.mark: Hashable = None
        self.error: BaseException | None = None
        self.running: Waiting[Any] | None = None


class Desk:
    """Takes questions, and keeps the last answers."""

    def __init__(
        self,
        *,
        threads: int = THREADS,
        seconds: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.process_time,
        most: int = MOST,
    ) -> None:
        """`cpu` counts the seconds of all threads: looks have some of their own."""
        self._threads = threads
        self._seconds = seconds
        self._cpu = cpu
        self._most = most
        self._lock = threading.Lock()
        self._slots: OrderedDict[Hashable, _Slot] = OrderedDict()
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._started = 0
        self._closed = False

    def begin(
        self,
        key: Hashable,
        compute: Callable[[], Value],
        *,
        max_age: float,
        slow_share: float = 20,
        mark: Hashable = None,
    ) -> None:
        """Have a question answered, unless its answer is young enough; wait for nothing.

        An answer that took long is kept for so many times as long. Under another mark something has
        happened since: then it is kept for half a minute at most, or a hundred times the CPU
        seconds that it took. One that took no time is not young any more.
        """
        with self._lock:
            slot = self._slot(key)
            if slot.running is not None:
                return
            if self._is_young(slot, max_age, slow_share, changed=slot.mark != mark):
                return
            slot.running, slot.mark = Waiting(), mark
            self._hire()
        self._queue.put(lambda: self._compute(slot, compute))

    def result(self, key: Hashable, *, wait: float, stale_wait: float = STALE_SECS) -> Any:  # noqa: ANN401
        """Return the answer to a question that was begun; an older one where that takes long.

        Busy where there is none after the wait. What the computation raised is raised here.
        """
        with self._lock:
            slot = self._slot(key)
            running, known, error = slot.running, slot.at is not None, slot.error
        if running is None:
            if error is not None:
                raise error
            if not known:
                raise Busy
            return slot.value
        if not running.done.wait(stale_wait if known else wait):
            if error is not None:
                raise error
            if known:
                return slot.value
            raise Busy
        if running.error is not None:
            raise running.error
        return running.value

    def ask(
        self,
        key: Hashable,
        compute: Callable[[], Value],
        *,
        max_age: float,
        wait: float,
        stale_wait: float = STALE_SECS,
        mark: Hashable = None,
    ) -> Value:
        """Return the answer to a question, begun now unless it is known or under way."""
        self.begin(key, compute, max_age=max_age, mark=mark)
        return cast("Value", self.result(key, wait=wait, stale_wait=stale_wait))

    def last(self, key: Hashable) -> Any:  # noqa: ANN401 - whatever was computed for the key
        """Return the last answer; None where there is none yet."""
        with self._lock:
            return self._slot(key).value

    def settle(self, wait: float) -> None:
        """Wait until everything that was begun is answered, but so many seconds at most."""
        end = self._seconds() + wait
        with self._lock:
            under_way = [slot.running for slot in self._slots.values() if slot.running is not None]
        for each in under_way:
            each.done.wait(max(0.0, end - self._seconds()))

    def close(self) -> None:
        """Let the threads go; what they are at is not waited for."""
        self._closed = True
        for _ in range(self._started):
            self._queue.put(None)

    def _slot(self, key: Hashable) -> _Slot:
        slot = self._slots.get(key)
        if slot is None:
            slot = self._slots[key] = _Slot()
        self._slots.move_to_end(key)
        while len(self._slots) > self._most:
            self._slots.popitem(last=False)
        return slot

    def _is_young(self, slot: _Slot, max_age: float, slow_share: float, *, changed: bool) -> bool:
        if slot.at is None:
            return False
        if slot.error is not None:
            max_age = min(max_age, FAILED_SECS)
        kept = min(LONGEST_SECS, slow_share * slot.took)
        if changed:
            affordable = max(CPU_SHARE, slow_share) * slot.cpu
            max_age, kept = 0.0, min(kept, max(CHANGED_SECS, affordable))
        return self._seconds() - slot.at < max(max_age, kept)

    def _hire(self) -> None:
        if self._started < self._threads and not self._closed:
            self._started += 1
            threading.Thread(target=self._work, name="live look", daemon=True).start()

    def _work(self) -> None:
        while (task := self._queue.get()) is not None:
            task()

    def _compute(self, slot: _Slot, compute: Callable[[], Any]) -> None:
        waiting = slot.running
        if waiting is None:
            return
        began, cpu = self._seconds(), self._cpu()
        try:
            waiting.value = compute()
        except BaseException as error:  # noqa: BLE001 - whoever waits is told
            waiting.error = error
        ended = self._seconds()
        with self._lock:
            slot.error, slot.at, slot.took = waiting.error, ended, ended - began
            slot.cpu = self._cpu() - cpu
            if waiting.error is None:
                slot.value = waiting.value
            slot.running = None
        waiting.done.set()
