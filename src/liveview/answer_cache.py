"""A cache of answers with a maximum age; concurrent requests share one computation.

Computations run in a few daemon threads, so a store that hangs delays no request beyond its timeout
and never the exit of the program. A request waits for a running computation, or gets the last
answer.
"""

import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

THREADS = 3
MOST = 2000
"""The most answers in the cache; the least recently used are evicted."""
LONGEST_SECS = 3600.0
"""The age after which even a slow answer is renewed."""
CHANGED_SECS = 30.0
"""The age after which a slow answer is renewed if its subject changed, unless that costs too much
CPU."""
CPU_SHARE = 100
"""A changed answer is kept for this many times its CPU seconds, but never longer than an unchanged
one: waiting for a store is free, CPU is not."""
FAILED_SECS = 5.0
"""The age after which a failed computation is repeated."""

STALE_SECS = 0.3

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Request timeouts in seconds; all are short, since a page repeats its requests."""

    first: float = 5.0
    """For a first answer."""
    stale: float = STALE_SECS
    """For a newer answer when an older one is known."""
    other: float = 1.0
    """For the other program."""
    answer: float = 7.0
    """For the whole answer; the server's own limit is longer."""


class Busy(Exception):
    """No answer within the caller's timeout."""


class _Slot:
    """The last answer for a key, and the computation that renews it."""

    __slots__ = ("at", "cpu", "error", "mark", "task", "took", "value")

    def __init__(self) -> None:
        self.value: Any = None
        self.at: float | None = None
        self.took = self.cpu = 0.0
        self.mark: Hashable = None
        self.error: BaseException | None = None
        self.task: _Task | None = None


class _Task:
    """A computation; the first thread to claim it runs it."""

    def __init__(self, slot: _Slot, compute: Callable[[], Any]) -> None:
        self.slot, self.compute = slot, compute
        self.claim, self.done = threading.Lock(), threading.Event()


class AnswerCache:
    """Computes answers on request and keeps the last ones."""

    def __init__(
        self,
        *,
        threads: int = THREADS,
        seconds: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.process_time,
        most: int = MOST,
    ) -> None:
        """`cpu` measures all threads, since computations may start their own."""
        self._threads = threads
        self._seconds = seconds
        self._cpu = cpu
        self._most = most
        self._lock = threading.Lock()
        self._slots: OrderedDict[Hashable, _Slot] = OrderedDict()
        self._queue: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._started = 0

    def begin(
        self,
        key: Hashable,
        compute: Callable[[], Any],
        *,
        max_age: float,
        slow_share: float = 20,
        mark: Hashable = None,
    ) -> None:
        """Renew an answer in a background thread, unless it is young enough.

        A slow answer is kept for `slow_share` times the time it took. A new `mark` reports a
        change: then it is kept for at most CHANGED_SECS, or CPU_SHARE times its CPU seconds.
        """
        with self._lock:
            is_new, task = self._task(key, compute, max_age, slow_share, mark)
            if is_new and self._started < self._threads:
                self._started += 1
                threading.Thread(target=self._work, name="live refresh", daemon=True).start()
        if is_new:
            self._queue.put(task)

    def now(
        self,
        key: Hashable,
        compute: Callable[[], Value],
        *,
        max_age: float,
        mark: Hashable = None,
    ) -> Value:
        """Return an answer of at most this age, computed in this thread unless another does."""
        for _ in range(2):  # A computation that began before a change may miss it.
            with self._lock:
                is_new, task = self._task(key, compute, max_age, 0, mark)
            if task is not None:
                self._run(task)
                task.done.wait()
            if task is None or is_new:
                break
        return cast("Value", self.result(key, wait=0, stale_wait=0))

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
        """Return an answer, starting its computation unless it is young or in progress."""
        self.begin(key, compute, max_age=max_age, mark=mark)
        return cast("Value", self.result(key, wait=wait, stale_wait=stale_wait))

    def result(self, key: Hashable, *, wait: float, stale_wait: float) -> Any:  # noqa: ANN401
        """Return the answer that was begun, or the previous one if that takes too long.

        Raise Busy if there is none after `wait`, and any error of the computation.
        """
        with self._lock:
            slot = self._slot(key)
            task, is_known = slot.task, slot.at is not None
        if task is not None:
            task.done.wait(stale_wait if is_known else wait)
        if slot.at is None:
            raise Busy
        if slot.error is not None:
            raise slot.error
        return slot.value

    def last(self, key: Hashable) -> Any:  # noqa: ANN401 - any value that was computed for the key
        """Return the last answer; None if there is none yet."""
        with self._lock:
            return self._slot(key).value

    def settle(self, wait: float) -> None:
        """Wait up to `wait` seconds for computations in progress."""
        end = self._seconds() + wait
        with self._lock:
            tasks = [slot.task for slot in self._slots.values() if slot.task is not None]
        for task in tasks:
            task.done.wait(max(0.0, end - self._seconds()))

    def close(self) -> None:
        """Stop the threads without waiting for computations."""
        for _ in range(self._threads):
            self._queue.put(None)

    def _slot(self, key: Hashable) -> _Slot:
        slot = self._slots.setdefault(key, _Slot())
        self._slots.move_to_end(key)
        while len(self._slots) > self._most:
            self._slots.popitem(last=False)
        return slot

    def _task(
        self,
        key: Hashable,
        compute: Callable[[], Any],
        max_age: float,
        slow_share: float,
        mark: Hashable,
    ) -> tuple[bool, _Task | None]:
        """Return the computation that renews an old answer, and whether it is new."""
        slot = self._slot(key)
        if slot.task is not None:
            return False, slot.task
        if self._is_young(slot, max_age, slow_share, changed=slot.mark != mark):
            return False, None
        slot.task, slot.mark = _Task(slot, compute), mark
        return True, slot.task

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

    def _work(self) -> None:
        while (task := self._queue.get()) is not None:
            self._run(task)

    def _run(self, task: _Task) -> None:
        if not task.claim.acquire(blocking=False):
            return
        slot, began, cpu = task.slot, self._seconds(), self._cpu()
        value, error = slot.value, None
        try:
            value = task.compute()
        except BaseException as raised:  # noqa: BLE001 - it is raised where the answer is awaited
            error = raised
        with self._lock:
            slot.value, slot.error = value, error
            slot.at = self._seconds()
            slot.took, slot.cpu = slot.at - began, self._cpu() - cpu
            slot.task = None
        task.done.set()
