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
from typing import Any, Generic, TypeVar, cast

THREADS = 3
MOST = 2000
"""The most answers in the cache; the least recently used are evicted."""
LONGEST_SECS = 3600.0
"""The age after which even a slow answer is renewed."""
SHARE = 20
"""An answer is kept for at least this many times the time it took, even after a change."""
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
    """For the whole answer."""


class Busy(Exception):
    """No answer within the caller's timeout."""


class CachedAnswer(Generic[Value]):
    """The last answer to one question, or the error instead of it."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self.value: Value | None = None
        self.error: Exception | None = None
        self.at: float | None = None
        self.took = 0.0
        self.mark: Hashable = None
        self.done: threading.Event | None = None
        """Set when the computation in progress ends."""

    def age(self, max_age: float, mark: Hashable) -> tuple[float, float]:
        """Return the age, and the age up to which it is young; a new `mark` reports a change."""
        if self.error is not None:
            max_age = min(max_age, FAILED_SECS)
        since = float("-inf") if self.at is None else self.at
        return self._seconds() - since, 0.0 if mark != self.mark else max_age

    def compute(self, compute: Callable[[], Value], mark: Hashable) -> None:
        """Compute a new answer, and keep an error in its place."""
        self.mark, began = mark, self._seconds()
        try:
            self.value, self.error = compute(), None
        except Exception as raised:  # noqa: BLE001 - it is raised where the answer is awaited
            self.error = raised
        self.at = self._seconds()
        self.took = self.at - began

    def now(self, compute: Callable[[], Value], *, max_age: float, mark: Hashable) -> Value:
        """Return an answer of at most this age, computed in this thread unless another does."""
        with self._lock:
            age, young = self.age(max_age, mark)
            if age >= young:
                self.compute(compute, mark)
            return self.found()

    def found(self) -> Value:
        """Return the last answer, or raise the error."""
        if self.error is not None:
            raise self.error
        return cast("Value", self.value)


class AnswerCache:
    """Computes answers in the background, and keeps the last ones."""

    def __init__(
        self,
        *,
        threads: int = THREADS,
        seconds: Callable[[], float] = time.monotonic,
        most: int = MOST,
    ) -> None:
        self._threads = threads
        self._seconds = seconds
        self._most = most
        self._lock = threading.Lock()
        self._answers: OrderedDict[Hashable, CachedAnswer[Any]] = OrderedDict()
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._started = 0

    def begin(
        self, key: Hashable, compute: Callable[[], Any], *, max_age: float, mark: Hashable = None
    ) -> None:
        """Renew an answer in a background thread, unless it is young enough."""
        with self._lock:
            answer = self._answer(key)
            age, young = answer.age(max_age, mark)
            if answer.done is not None or age < max(young, min(LONGEST_SECS, SHARE * answer.took)):
                return
            done = answer.done = threading.Event()
            if self._started < self._threads:
                self._started += 1
                threading.Thread(target=self._work, name="live refresh", daemon=True).start()

        def renew() -> None:
            answer.compute(compute, mark)
            answer.done = None
            done.set()

        self._queue.put(renew)

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
            answer = self._answer(key)
            done, is_known = answer.done, answer.at is not None
        if done is not None:
            done.wait(stale_wait if is_known else wait)
        if answer.at is None:
            raise Busy
        return answer.found()

    def last(self, key: Hashable) -> Any:  # noqa: ANN401 - any value that was computed for the key
        """Return the last answer; None if there is none yet."""
        with self._lock:
            return self._answer(key).value

    def settle(self, wait: float) -> None:
        """Wait up to `wait` seconds until no computation is in progress."""
        end = time.monotonic() + wait
        with self._lock:
            running = [each.done for each in self._answers.values() if each.done is not None]
        for done in running:
            done.wait(max(0.0, end - time.monotonic()))

    def close(self) -> None:
        """Stop the threads without waiting for computations."""
        for _ in range(self._threads):
            self._queue.put(None)

    def _answer(self, key: Hashable) -> CachedAnswer[Any]:
        answer = self._answers.setdefault(key, CachedAnswer(self._seconds))
        self._answers.move_to_end(key)
        while len(self._answers) > self._most:
            self._answers.popitem(last=False)
        return answer

    def _work(self) -> None:
        while (renew := self._queue.get()) is not None:
            renew()
