"""Stores over a local folder that go wrong in one way each."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blizzard.model.work import Work
from blizzard.worker.download import OpenedStores, Stores
from lakebed.errors import LakeError, StoreUnavailable
from lakebed.storage.options import ObjectFacts, StorageOptions
from lakebed.storage.store import AlreadyThere, Created, Reader, Store


@dataclass
class OpenedAs(OpenedStores):
    """The stores of a batch, each of a kind of the test's."""

    reader: type[Reader] = Reader
    store: type[Store] = Store

    def source(self, name: str) -> Reader:
        place = self.work.sources[name]
        return self.reader(place.uri, place.options)

    def sink(self) -> Store:
        place = self.work.sink
        return self.store(place.uri, place.options, make_folder=True)


def opened_as(
    *, reader: type[Reader] = Reader, store: type[Store] = Store
) -> Callable[[Work], Stores]:
    """Return how a runner is to open the stores of a batch."""
    return lambda work: OpenedAs(work, reader=reader, store=store)


class Far(Reader):
    """A source whose files come in pieces only, as those of a remote store do."""

    def at_once(self, path: str, *, size: int, etag: str | None) -> bytes | None:
        return None


def local(root: Path) -> Store:
    return Store(str(root), StorageOptions(), make_folder=True)


class LosesAnswers(Store):
    """Create-only writes are carried out, but the answer to the first ones never arrives."""

    lost = 1
    only = "journal/"

    def create(self, path: str, body: bytes) -> Created | AlreadyThere:
        answer = super().create(path, body)
        if self.only in path and self.lost > 0:
            self.lost -= 1
            raise StoreUnavailable("the connection was reset", path=path)
        return answer


class DropsWrites(Store):
    """The first create-only writes never arrive, and nobody can tell."""

    dropped = 2
    only = "journal/"

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.bodies: list[tuple[str, bytes]] = []

    def create(self, path: str, body: bytes) -> Created | AlreadyThere:
        self.bodies.append((path, body))
        if self.only in path and self.dropped > 0:
            self.dropped -= 1
            raise StoreUnavailable("no answer", path=path)
        return super().create(path, body)


class Forgets(Store):
    """A store that lists what it then cannot read."""

    def get(self, path: str) -> bytes | None:
        return None


class Overwrites(Store):
    """A store without create-only writes: it says Created and overwrites."""

    def create(self, path: str, body: bytes) -> Created | AlreadyThere:
        self.replace(path, body)
        return Created()


class RefusesUploads(Store):
    """Uploads fail, by default all of them; documents can be written."""

    def __init__(
        self, root: Path, error: LakeError, *, when: Callable[[str, Path], bool] | None = None
    ) -> None:
        super().__init__(str(root), StorageOptions(), make_folder=True)
        self.error = error
        self.when = when or (lambda _path, _file: True)
        self.tried: list[str] = []

    def upload(self, path: str, file: Path, **how: Any) -> ObjectFacts:
        self.tried.append(path)
        if self.when(path, file):
            raise self.error
        return super().upload(path, file, **how)


def remote(store: Store) -> Store:
    """Take a local store for a remote one, which is read through obstore."""
    store.local_root = None
    return store


def refusing(name: str, error: BaseException, *, times: float = math.inf) -> type[Store]:
    """Return a kind of store that does not create what has such a name, so many times."""

    class Refuses(Store):
        refused = 0

        def create(self, path: str, body: bytes) -> Created | AlreadyThere:
            if name in path and Refuses.refused < times:
                Refuses.refused += 1
                raise error
            return super().create(path, body)

    return Refuses
