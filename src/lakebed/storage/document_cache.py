"""Documents of one folder, each read once for as long as it is the very same object."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from lakebed.storage.store import ObjectFacts, Reader

CONCURRENT = 16

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
    ) -> dict[str, Kind]:
        """Read those of the listed documents that are not known; one that is gone is left out."""

        def look(facts: ObjectFacts) -> tuple[ObjectFacts, Kind] | None:
            known = self._read.get(facts.path)
            if known is not None and known[0] == facts:
                return known
            body = store.get(facts.path)
            # Another penguin may have deleted it since it was listed.
            return None if body is None else (facts, decode(body, facts.path))

        with ThreadPoolExecutor(CONCURRENT, thread_name_prefix="document") as pool:
            found = [one for one in pool.map(look, listed) if one is not None]
        self.asked = True
        self._read = {facts.path: (facts, document) for facts, document in found}
        return {facts.path: document for facts, document in found}
