"""A store in memory that lists as S3 does, page by page in order, and counts its requests."""

import hashlib
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from lakebed.errors import StoreUnavailable
from lakebed.storage.options import ObjectFacts, StorageOptions
from lakebed.storage.store import AlreadyThere, Created, Store
from tests.support.builders import NOON

PAGE = 1000
LONG_AGO = NOON - timedelta(days=30)


class Bucket(Store):
    """Objects by name. Those without a body have ten bytes and an e-tag made of their name."""

    def __init__(self, names: Iterable[str] = (), *, uri: str = "s3://bucket/in") -> None:
        self.uri = uri
        self.options = StorageOptions()
        self.local_root = None
        self.names = sorted(names)
        self.bodies: dict[str, bytes] = {}
        self.modified: dict[str, datetime] = {}
        self.etags: dict[str, str] = {}
        self.requests: Counter[str] = Counter()
        self.page = PAGE
        self.listed = 0
        """Names that listings have shown."""
        self.breaks_after: int | None = None
        """Names after which a listing breaks off."""
        self.backwards = False

    def add(self, name: str, *, modified: datetime = LONG_AGO, body: bytes | None = None) -> None:
        if name not in self.etags and name not in self.bodies and name not in self.modified:
            insort(self.names, name)
        self.modified[name] = modified
        if body is not None:
            self.bodies[name] = body

    def remove(self, name: str) -> None:
        self.names.remove(name)
        self.modified.pop(name, None)
        self.bodies.pop(name, None)

    def objects(self, prefix: str = "", *, after: str | None = None) -> Iterator[ObjectFacts]:
        folder = f"{prefix}/" if prefix else ""
        last, given = max(after or "", folder), 0
        while True:
            self.requests["list"] += 1
            at = bisect_right(self.names, last)
            most = None if self.backwards else at + self.page
            names = [name for name in self.names[at:most] if name.startswith(folder)]
            for name in reversed(names) if self.backwards else names:
                if given == self.breaks_after:
                    raise StoreUnavailable("the connection was reset", path=self.describe(prefix))
                given += 1
                self.listed += 1
                yield self.facts(name)
            if self.backwards or len(names) < self.page or at + self.page >= len(self.names):
                return
            last = names[-1]

    def facts(self, name: str) -> ObjectFacts:
        body = self.bodies.get(name)
        return ObjectFacts(
            path=name,
            size=10 if body is None else len(body),
            etag=self.etags.get(name, f"e-{name}"),
            modified=self.modified.get(name, LONG_AGO),
        )

    def head(self, path: str) -> ObjectFacts | None:
        self.requests["head"] += 1
        at = bisect_right(self.names, path) - 1
        return self.facts(path) if at >= 0 and self.names[at] == path else None

    def get(self, path: str) -> bytes | None:
        self.requests["get"] += 1
        return self.bodies.get(path)

    def get_range(self, path: str, *, start: int, length: int) -> bytes | None:
        self.requests["get"] += 1
        body = self.bodies.get(path)
        return None if body is None else body[start : start + length]

    def folders(self, prefix: str) -> list[str]:
        self.requests["list"] += 1
        depth = prefix.count("/") + 1
        inside = (name.split("/") for name in self.names if name.startswith(f"{prefix}/"))
        return sorted({"/".join(parts[: depth + 1]) for parts in inside if len(parts) > depth + 1})

    def level(self, prefix: str) -> tuple[list[str], list[ObjectFacts]]:
        self.requests["list"] += 1
        above = f"{prefix}/" if prefix else ""
        inside = [name for name in self.names if name.startswith(above)]
        folders = {
            above + name.removeprefix(above).split("/")[0]
            for name in inside
            if "/" in name.removeprefix(above)
        }
        files = [name for name in inside if "/" not in name.removeprefix(above)]
        return sorted(folders), [self.facts(name) for name in files]

    def create(self, path: str, body: bytes) -> Created | AlreadyThere:
        if path in self.bodies:
            return AlreadyThere()
        self.replace(path, body)
        return Created()

    def replace(self, path: str, body: bytes) -> None:
        self.requests["put"] += 1
        self.add(path, body=body)
        self.etags[path] = hashlib.sha256(body).hexdigest()

    def upload(self, path: str, file: Path, **_how: Any) -> ObjectFacts:
        self.replace(path, file.read_bytes())
        return self.facts(path)

    def delete(self, path: str) -> None:
        self.requests["delete"] += 1
        if path in self.bodies:
            self.remove(path)
            del self.etags[path]

    def sync(self, path: str) -> None:
        pass
