"""Concurrent requests with answers in order, and only a few answers in memory."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")

CONCURRENT = 16


def ahead(
    ask: Callable[[Asked], Answer], questions: Iterable[Asked], concurrent: int = CONCURRENT
) -> Iterator[tuple[Asked, Answer]]:
    """Yield each question with its answer, in order; at most `concurrent` are pending."""
    waiting: deque[tuple[Asked, Future[Answer]]] = deque()
    with ThreadPoolExecutor(concurrent, thread_name_prefix="ahead") as pool:
        try:
            for question in questions:
                waiting.append((question, pool.submit(ask, question)))
                if len(waiting) >= concurrent:
                    asked, answer = waiting.popleft()
                    yield asked, answer.result()
            while waiting:
                asked, answer = waiting.popleft()
                yield asked, answer.result()
        finally:
            for _asked, answer in waiting:
                answer.cancel()
