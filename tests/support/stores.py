"""Stores over a local folder that go wrong in one way each."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from lakebed.errors import LakeError, StoreUnavailable
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import AlreadyThere, Created, ObjectFacts, Store


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
