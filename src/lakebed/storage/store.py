"""The only door to obstore: local paths, `file://`, `s3://`, `gs://`, `az://`.

Errors of the library become ours, and secrets do not leave this package. A `Reader` cannot write,
so code that must not write gets one. On a local disk `disk` writes, because obstore does not sync:
a power cut would leave names without bytes.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError

from lakebed.errors import (
    ListingUnordered,
    NameUnusable,
    NoExclusiveCreate,
    ObjectMissing,
    StoreDenied,
    StoreUnavailable,
)
from lakebed.layout import TablePath
from lakebed.listing import sort
from lakebed.storage import disk, remote, unusable_names
from lakebed.storage.objects import ObjectReader, ahead, facts_of
from lakebed.storage.options import ObjectFacts, StorageOptions
from lakebed.storage.remote import check_readable, local_path
from lakebed.storage.store_errors import is_no_object, means_exists


@dataclass(frozen=True, slots=True)
class Created:
    """A create-only write created the object."""


@dataclass(frozen=True, slots=True)
class AlreadyThere:
    """A create-only write found an existing object and left it unchanged."""


class Reader(ObjectReader):
    """A read-only store."""

    def __init__(
        self,
        uri: str,
        options: StorageOptions,
        *,
        make_folder: bool = False,
        retry: Mapping[str, Any] | None = None,
    ) -> None:
        """`retry` configures retries of a remote store; None for the default."""
        self.uri = uri
        self.options = options = remote.with_region(options, uri)
        self.local_root = local_path(uri)
        self._store: Any = remote.open_uri(
            uri, self.local_root, options, make_folder=make_folder, retry=retry
        )

    def objects(self, prefix: str = "", *, after: str | None = None) -> Iterator[ObjectFacts]:
        """List every object below a prefix; a listing that fails raises, and is never short.

        With `after` only names that sort later are listed, so that a poll costs only what is new. A
        store that does not list names in order may omit some of them, too.
        """
        if self.local_root is not None:
            check_readable(self.local_root)
        with self._translating(prefix):
            try:
                for page in obstore.list(
                    self._store, prefix or None, offset=after, chunk_size=1000
                ):
                    for meta in page:
                        # The library drops the slash at the end of a name that a listing begins
                        # after.
                        if after is None or meta["path"] > after:
                            yield facts_of(meta)
            except FileNotFoundError as cause:
                if not is_no_object(cause):
                    raise
                # A file vanished while its folder was read, on a local disk. The rest
                # may be incomplete, so the listing fails and is repeated.
                raise StoreUnavailable(
                    "objects vanished while they were listed", path=self.describe(prefix)
                ) from None

    def in_order(
        self, prefix: str = "", *, after: str = "", guide: sort.ListingRules | None = None
    ) -> Iterator[ObjectFacts]:
        """List every object below a prefix in the order of their paths, a page at a time.

        A listing that fails raises, and is never short. Object stores list in this order; otherwise
        ListingUnordered is raised. On a local disk the names of a folder are sorted. With a guide,
        names that would fail the listing are skipped and reported.
        """
        if self.local_root is not None:
            yield from self._walk(prefix, after, guide)
            return
        last = ""
        for facts in self._past_unusable_names(prefix, after, guide):
            if not facts.path:
                continue  # The marker of the folder itself.
            if facts.path <= last < f"{facts.path}/" and not facts.size:
                # The library drops the final slash by which a folder's marker sorts.
                last = f"{facts.path}/"
                if guide is not None:
                    guide.skip(last, sort.NameFault.MARKER)
                continue
            if facts.path <= last:
                raise ListingUnordered(
                    "the store does not list objects in the order of their names",
                    path=self.describe(facts.path),
                )
            last = facts.path
            yield facts

    def _past_unusable_names(
        self, prefix: str, after: str, guide: sort.ListingRules | None
    ) -> Iterator[ObjectFacts]:
        """List every object; skip and report unusable names if there is a guide.

        A page with such a name fails whole, so the facts of its other names are requested one by
        one.
        """
        last, names = after, list[str]()
        while True:
            try:
                for facts in self.objects(prefix, after=last or None):
                    yield facts
                    last = max(last, facts.path)
            except NameUnusable as unusable:
                if guide is None or not unusable_names.can_name(self.uri):
                    raise
                odd = unusable_names.unusable_name(unusable.key)
            else:
                return
            names = names or unusable_names.names(self.uri, prefix, self.options)
            between = names[bisect_right(names, last) : bisect_left(names, odd.path)]
            # A listing begins after a name, so the next one is requested separately.
            beyond = [odd.next] if odd.next > last else []
            guide.skip(odd.shown, sort.NameFault.NAME)
            for _name, found in ahead(self.head, [*between, *beyond]):
                if found is not None:
                    yield found
            last = odd.next

    def _walk(
        self, prefix: str, after: str, guide: sort.ListingRules | None
    ) -> Iterator[ObjectFacts]:
        root = self.local_root
        if root is None:
            raise AssertionError("only a local disk is walked")
        check_readable(root)
        place = str(root)
        try:
            for path in sort.walk_in_order(root, prefix, after=after, guide=guide):
                found = self._listed(place, path, guide)
                # A dangling link is not a file. A file that vanished since its folder was read was
                # removed, but its neighbours are there.
                if found is not None:
                    yield found
        except FileNotFoundError:
            if prefix and not (root / prefix).exists():
                return  # As in an object store, a missing folder is empty.
            raise StoreUnavailable(
                "folders vanished while they were listed", path=self.describe(prefix)
            ) from None
        except PermissionError as cause:
            if guide is None or not prefix:
                raise self._translated(cause, prefix) from cause
            guide.skip(f"{prefix}/", sort.NameFault.UNREADABLE)
        except OSError as cause:
            raise self._translated(cause, prefix) from cause

    def _listed(self, place: str, path: str, guide: sort.ListingRules | None) -> ObjectFacts | None:
        try:
            # An ASCII path from a directory listing is always usable.
            return self._stat(place, path) if path.isascii() else self.head(path)
        except StoreDenied:
            if guide is None:
                raise
            guide.skip(path, sort.NameFault.UNREADABLE)
            return None

    def unfinished(self) -> Iterator[ObjectFacts]:
        """List unfinished files of the library on a local disk: those without their final name.

        A process that dies leaves them. No other listing shows them, and other stores have none.
        """
        for path in sort.walk_unfinished(self.local_root) if self.local_root else ():
            if (found := self.head(path)) is not None:
                yield found

    def folders(self, prefix: str) -> list[str]:
        """List the direct folders below a prefix."""
        return self.level(prefix)[0]

    def level(self, prefix: str) -> tuple[list[str], list[ObjectFacts]]:
        """List the direct folders and objects below a prefix."""
        with self._translating(prefix):
            try:
                found = obstore.list_with_delimiter(self._store, prefix or None)
            except FileNotFoundError as cause:
                if not is_no_object(cause):
                    raise
                return [], []
        return list(found["common_prefixes"]), [facts_of(meta) for meta in found["objects"]]


class Store(Reader):
    """A writable store. Every write says whether it creates or replaces."""

    def create(self, path: str, body: bytes) -> Created | AlreadyThere:
        """Write a new object, whole or not at all; an existing one is left unchanged."""
        self.require_name(path)
        with self._translating(path):
            try:
                if self.local_root is not None:
                    return Created() if disk.create(self.local_root, path, body) else AlreadyThere()
                obstore.put(self._store, path, body, mode="create")
            except AlreadyExistsError as cause:
                if not means_exists(str(cause)):
                    raise
                return AlreadyThere()
        return Created()

    def replace(self, path: str, body: bytes) -> None:
        """Write an object, whole or not at all, replacing any object of that name."""
        self.require_name(path)
        with self._translating(path):
            if self.local_root is not None:
                disk.replace(self.local_root, path, (body,))
            else:
                obstore.put(self._store, path, body)

    def upload(
        self,
        path: str,
        file: Path,
        *,
        part_size: int,
        multipart: bool,
        max_parts: int,
        part_taken: Callable[[], None] = lambda: None,
    ) -> ObjectFacts:
        """Upload a local file, whole or not at all, and return the store's facts.

        `part_taken` is called before each part of a multipart upload is sent.
        """
        self.require_name(path)
        parts = _parts(file, part_size, part_taken if multipart else (lambda: None))
        try:
            if self.local_root is not None:
                disk.replace(self.local_root, path, parts)
            else:
                obstore.put(
                    self._store,
                    path,
                    parts if multipart else file,
                    use_multipart=multipart,
                    chunk_size=part_size,
                    max_concurrency=max_parts,
                )
            return facts_of(obstore.head(self._store, path))
        except (BaseError, OSError) as cause:
            if "NoSuchUpload" in str(cause):  # A lifecycle rule of the bucket aborts old ones.
                raise StoreUnavailable(
                    "the upload was aborted before it was complete", path=self.describe(path)
                ) from cause
            raise self._translated(cause, path) from cause

    def move(self, source: str, target: str, *, size: int) -> bool:
        """Rename an object and return whether this call did it; it is idempotent.

        If the source is gone and the target has the right size, it was done before. Some stores
        copy and delete: after a crash in between, the same bytes are copied again.
        """
        self.require_name(source, target)
        with self._translating(source):
            try:
                if self.local_root is not None:
                    disk.move(self.local_root, source, target)
                else:
                    obstore.rename(self._store, source, target)
            except FileNotFoundError as cause:
                if not is_no_object(cause):
                    raise
                found = self.head(target)
                if found is None or found.size != size:
                    raise ObjectMissing(
                        "a file is neither in its waiting place nor complete in its final place",
                        waited=self.describe(source),
                        belongs=self.describe(target),
                    ) from cause
                self.sync(target)
                return False
        return True

    def delete(self, path: str) -> None:
        """Delete an object, or an unfinished one; a missing one is no error."""
        self.require_name(path)
        with self._translating(path):
            try:
                if self.local_root is not None and sort.is_unfinished(path):
                    (self.local_root / path).unlink()  # The library refuses such names.
                else:
                    obstore.delete(self._store, path)
            except FileNotFoundError as cause:
                if not is_no_object(cause):
                    raise

    def sync(self, path: str) -> None:
        """Sync an object on a local disk that another writer may have left unsynced."""
        if self.local_root is not None:
            with self._translating(path):
                disk.sync(self.local_root, path)


def _parts(file: Path, size: int, taken: Callable[[], None]) -> Iterator[bytes]:
    """Read a file in pieces on demand; the store's library forms parts of them.

    So a part is in memory once, not twice.
    """
    taken_of_part = 0
    with file.open("rb") as body:
        while piece := body.read(min(disk.PIECE_BYTES, size - taken_of_part)):
            if not taken_of_part:
                taken()
            yield piece
            taken_of_part = (taken_of_part + len(piece)) % size


def prove(store: Store, path: TablePath) -> None:
    """Check that the store has create-only writes, with an object that is removed again.

    An object left by a crash, or by a concurrent process, serves as well. If that process removes
    it in between, the result is inconclusive: then a unique name decides.
    """
    try:
        _prove_by(store, path)
    except NoExclusiveCreate:
        _prove_by(store, TablePath(f"{path}-{uuid4().hex}"))


def _prove_by(store: Store, path: TablePath) -> None:
    store.create(path, b"{}")
    try:
        probe(store, path)
    finally:
        store.delete(path)


def probe(store: Store, path: TablePath) -> bool:
    """Check that the store has create-only writes, by one that must be refused; False if unknown.

    It writes the existing content, so nothing changes if it is not refused.
    """
    body = store.get(path)
    if body is None:
        return False
    if isinstance(store.create(path, body), Created):
        raise NoExclusiveCreate(
            "this store overwrites on a create-only write, so nothing could be committed "
            "exactly once; use one that supports conditional writes",
            path=store.uri,
        )
    return True
