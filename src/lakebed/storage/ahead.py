"""Reading ahead: several requests at a time, answers in order, never more than a few in memory."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from lakebed.errors import DocumentUnreadable
from lakebed.storage.store import ObjectFacts, Reader

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")

CONCURRENT = 16


def ahead(
    ask: Callable[[Asked], Answer], questions: Iterable[Asked], concurrent: int = CONCURRENT
) -> Iterator[tuple[Asked, Answer]]:
    """Yield each question with its answer, in their order; at most `concurrent` are under way."""
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


CONCURRENT = 16
LARGEST = 16 << 20
"""Bytes of a meta: it names one data file, and the source files of it."""

Kind = TypeVar("Kind")


@dataclass(slots=True)
class Documents(Generic[Kind]):
    """What was read of a folder, bound to the objects: one that is written anew is read anew."""

    asked: bool = False
    """Whether anybody has looked yet."""
    _read: dict[str, tuple[ObjectFacts, Kind]] = field(default_factory=dict)

    def read(
        self,
        store: Reader,
        listed: Iterable[ObjectFacts],
        decode: Callable[[bytes, str], Kind],
        unreadable: Callable[[str, DocumentUnreadable], Kind],
    ) -> dict[str, Kind]:
        """Read those of the listed documents that are not known; one that is gone is left out.

        `unreadable` replaces one that cannot be decoded, or is too large to be tried.
        """

        def look(facts: ObjectFacts) -> tuple[ObjectFacts, Kind] | None:
            known = self._read.get(facts.path)
            if known is not None and known[0] == facts:
                return known
            try:
                _require_small(facts)
                body = store.get(facts.path)
                # Another penguin may have deleted it since it was listed.
                return None if body is None else (facts, decode(body, facts.path))
            except DocumentUnreadable as why:
                return facts, unreadable(facts.path, why)

        with ThreadPoolExecutor(CONCURRENT, thread_name_prefix="document") as pool:
            found = [one for one in pool.map(look, listed) if one is not None]
        self.asked = True
        self._read = {facts.path: (facts, document) for facts, document in found}
        return {facts.path: document for facts, document in found}


def _require_small(facts: ObjectFacts) -> None:
    if facts.size > LARGEST:
        raise DocumentUnreadable(
            f"this meta cannot be read: it has {facts.size:,} bytes, more than {LARGEST:,}",
            path=facts.path,
        )
