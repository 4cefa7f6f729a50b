"""The only door to obstore: local paths, `file://`, `s3://`, `gs://`, `az://`.

Behind it the library's errors become ours, and secrets do not leave it. A `Reader` has no way to
write, so what must not write is handed one. On a local disk every write is fsynced, file and
folder, before it counts as done: obstore renames, but does not sync.
"""

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    InvalidPathError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import LocalStore, from_url

from lakebed.errors import (
    ConfigInvalid,
    LakeError,
    ListingUnordered,
    NameUnusable,
    ObjectChanged,
    ObjectMissing,
    StoreDenied,
    StoreFull,
    StoreUnavailable,
)
from lakebed.listing import sort
from lakebed.storage import arrow_s3, detour, remote
from lakebed.storage.options import StorageOptions

REMOTE_SCHEMES = ("s3", "s3a", "gs", "az", "abfs", "abfss", "adl", "azure")
DOWNLOAD_CHUNK = 1 << 20

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NO_NAMES = frozenset({"", ".", ".."})

REFUSED = "access was refused; check permissions and credentials"
NOWHERE = "the bucket, container or folder does not exist"
SIGNS: tuple[tuple[str, type[LakeError], str], ...] = (
    ("403 Forbidden", StoreDenied, REFUSED),
    ("401 Unauthorized", StoreDenied, REFUSED),
    ("404 Not Found", ObjectMissing, NOWHERE),
    ("Permission denied", StoreDenied, "permission denied"),
    ("No space left", StoreFull, "no space is left on the device; free some and try again"),
    ("quota exceeded", StoreFull, "the disk quota is used up; free some space or raise the quota"),
    ("Read-only file system", StoreDenied, "the file system is read-only"),
)
"""Trouble that only a library's text tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectFacts:
    """What a listing or a HEAD says of an object."""

    path: str
    size: int
    etag: str | None
    modified: datetime


@dataclass(frozen=True, slots=True)
class Created:
    """A create-only write made the object: nobody else did."""


@dataclass(frozen=True, slots=True)
class AlreadyThere:
    """A create-only write found an object; it was left as it is."""


class Reader:
    """A store that can only be read."""

    def __init__(self, uri: str, options: StorageOptions, *, make_folder: bool = False) -> None:
        self.uri = uri
        self.options = options
        self.local_root = local_path(uri)
        self._store: Any = _open(uri, self.local_root, options, make_folder=make_folder)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.uri!r})"

    def describe(self, path: str) -> str:
        """Name an object for a person."""
        return f"{self.uri.rstrip('/')}/{path}"

    def get(self, path: str) -> bytes | None:
        """Read a whole object; None if there is none. Any other trouble is an error."""
        try:
            return bytes(obstore.get(self._store, path).bytes())
        except FileNotFoundError:
            return None
        except (BaseError, OSError) as cause:
            raise self._translated(cause, path) from cause

    def fetch(self, path: str) -> tuple[bytes, ObjectFacts] | None:
        """Read a whole object with the facts of that very object, in one request; None if none."""
        try:
            found = obstore.get(self._store, path)
            return bytes(found.bytes()), _facts(found.meta)
        except FileNotFoundError:
            return None
        except (BaseError, OSError) as cause:
            raise self._translated(cause, path) from cause

    def get_range(self, path: str, *, start: int, length: int) -> bytes | None:
        """Read some bytes of an object; None if there is none. It may be shorter than asked."""
        try:
            return bytes(obstore.get_range(self._store, path, start=start, length=length))
        except FileNotFoundError:
            return None
        except (BaseError, OSError) as cause:
            raise self._translated(cause, path) from cause

    def head(self, path: str) -> ObjectFacts | None:
        """Look at an object without reading it; None if there is none."""
        if self.local_root is not None and not _NO_NAMES & set(path.split("/")):
            return self._stat(self.local_root, path)
        try:
            return _facts(obstore.head(self._store, path))
        except FileNotFoundError:
            return None
        except (BaseError, OSError) as cause:
            raise self._translated(cause, path) from cause

    def _stat(self, root: Path, path: str) -> ObjectFacts | None:
        """Say of a local file what the library says, at a tenth of the time."""
        try:
            found = os.stat(root / path)  # noqa: PTH116 - a Path's own way takes twice the time
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as cause:
            raise self._translated(cause, path) from cause
        if not stat.S_ISREG(found.st_mode):
            return None
        return ObjectFacts(
            path=path,
            size=found.st_size,
            etag=f'"{found.st_ino:x}-{max(0, found.st_mtime_ns) // 1000:x}-{found.st_size:x}"',
            modified=_EPOCH + timedelta(microseconds=found.st_mtime_ns // 1000),
        )

    def stream(self, path: str, *, size: int, etag: str | None, start: int = 0) -> Iterator[bytes]:
        """Read the very object that was listed, in pieces, from a byte on to its end.

        A replaced, growing or shortened object is an ObjectChanged, also when it changes while
        it is read: a part of a file is never taken for the whole. Leaving early is fine.
        """
        received = start
        try:
            for piece in self._pieces(path, etag, start):
                received += len(piece)
                yield piece
        except FileNotFoundError as cause:
            raise self._gone(path) from cause
        except PreconditionError as cause:
            raise self._changed(path) from cause
        except (BaseError, OSError) as cause:
            raise self._translated(cause, path) from cause
        if received != size:
            raise self._changed(path)
        self.require_unchanged(path, etag)

    def _pieces(self, path: str, etag: str | None, start: int) -> Iterator[bytes]:
        if self.local_root is not None:
            # Read with Python: a file that is shortened while obstore streams it hangs for ever.
            self.require_unchanged(path, etag)
            with (self.local_root / path).open("rb") as file:
                file.seek(start)
                while piece := file.read(DOWNLOAD_CHUNK):
                    yield piece
            return
        options: Any = {"if_match": etag} if etag else {}
        if start:
            options["range"] = {"offset": start}
        for piece in obstore.get(self._store, path, options=options).stream(
            min_chunk_size=DOWNLOAD_CHUNK
        ):
            yield bytes(piece)

    def part(self, path: str, start: int, end: int, *, etag: str | None) -> bytes:
        """Read some bytes of the very object that was listed, in one request.

        An object that was replaced or shortened since is an ObjectChanged, one that is gone an
        ObjectMissing: a part of another object is never taken for this one's.
        """
        try:
            body = self._some(path, start, end, etag)
        except FileNotFoundError as cause:
            raise ObjectMissing("the object is gone", path=self.describe(path)) from cause
        except PreconditionError as cause:
            raise self._replaced(path) from cause
        except (BaseError, OSError) as cause:
            raise self._translated(cause, path) from cause
        if len(body) != end - start:
            raise self._replaced(path)
        if self.local_root is not None and etag is not None:
            found = self.head(path)
            if found is None or found.etag != etag:
                raise self._replaced(path)
        return body

    def _some(self, path: str, start: int, end: int, etag: str | None) -> bytes:
        if self.local_root is not None:
            with (self.local_root / path).open("rb") as file:
                file.seek(start)
                return file.read(end - start)
        options: Any = {"range": (start, end)}
        if etag:
            options["if_match"] = etag
        return bytes(obstore.get(self._store, path, options=options).bytes())

    def require_unchanged(self, path: str, etag: str | None) -> None:
        """See that a local file is still the one that was listed; elsewhere objects are whole."""
        if self.local_root is not None:
            found = self.head(path)
            if found is None:
                raise self._gone(path)
            if etag is not None and found.etag != etag:
                raise self._changed(path)

    def objects(self, prefix: str = "", *, after: str | None = None) -> Iterator[ObjectFacts]:
        """List every object below a prefix; a listing that breaks off is an error, never short.

        With `after` only names that sort later are listed, so that a poll costs what is new.
        """
        if self.local_root is not None:
            _check_readable(self.local_root)
        try:
            for page in obstore.list(self._store, prefix or None, offset=after, chunk_size=1000):
                for meta in page:
                    yield _facts(meta)
        except FileNotFoundError:
            # A file that vanished while its folder was read, on a local disk. What is left
            # cannot be told from what was never there, so the listing starts again.
            raise StoreUnavailable(
                "objects vanished while they were listed", path=self.describe(prefix)
            ) from None
        except (BaseError, OSError) as cause:
            raise self._translated(cause, prefix) from cause

    def in_order(
        self, prefix: str = "", *, after: str = "", guide: sort.Guide | None = None
    ) -> Iterator[ObjectFacts]:
        """List every object below a prefix in the order of their paths, a page at a time.

        A listing that breaks off is an error, never short. Object stores list in this order; one
        that does not is a ListingUnordered. On a local disk the names of a folder are sorted.
        Names that would fail the listing are left out where a guide is there to be told of them.
        """
        if self.local_root is not None:
            yield from self._walk(prefix, after, guide)
            return
        last = ""
        for facts in self._past_odd_names(prefix, after, guide):
            if not facts.path:
                continue  # The marker of the folder itself.
            if facts.path <= last < f"{facts.path}/" and not facts.size:
                # The library leaves the slash out by which a folder's marker ends and is sorted.
                last = f"{facts.path}/"
                if guide is not None:
                    guide.passes(last, sort.Oddity.MARKER)
                continue
            if facts.path <= last:
                raise ListingUnordered(
                    "the store does not list objects in the order of their names",
                    path=self.describe(facts.path),
                )
            last = facts.path
            yield facts

    def _past_odd_names(
        self, prefix: str, after: str, guide: sort.Guide | None
    ) -> Iterator[ObjectFacts]:
        """List every object, and go around names that cannot be used if somebody is told."""
        way = detour.Detour(store=self, names=self._names, odd=NameUnusable)
        last = after
        while True:
            try:
                for facts in self.objects(prefix, after=last or None):
                    yield facts
                    last = max(last, facts.path)
            except NameUnusable as unusable:
                if guide is None or not arrow_s3.can_name(self.uri):
                    raise
                odd = detour.odd_name(unusable.key)
            else:
                return
            yield from way.before(prefix, low=last, high=odd.path)
            guide.passes(odd.shown, sort.Oddity.NAME)
            # A listing begins after a name, so this one is asked for by itself.
            found = self.head(odd.next) if odd.next > last else None
            if found is not None:
                yield found
            last = odd.next

    def _names(self, folder: str) -> tuple[list[str], list[str]]:
        options = self.options.plain()
        return arrow_s3.names(self.uri, folder, options=options, environment=os.environ)

    def _walk(self, prefix: str, after: str, guide: sort.Guide | None) -> Iterator[ObjectFacts]:
        root = self.local_root
        if root is None:
            raise AssertionError("only a local disk is walked")
        _check_readable(root)
        try:
            for path in sort.walk_in_order(root, prefix, after=after, guide=guide):
                found = self._listed(path, guide)
                # A link to nowhere is no file. A file that is gone since its folder was read was
                # removed: it is not there, and the names beside it are.
                if found is not None:
                    yield found
        except FileNotFoundError:
            if prefix and not (root / prefix).exists():
                return  # As in an object store, a folder that is not there is empty.
            raise StoreUnavailable(
                "folders vanished while they were listed", path=self.describe(prefix)
            ) from None
        except PermissionError as cause:
            if guide is None or not prefix:
                raise self._translated(cause, prefix) from cause
            guide.passes(f"{prefix}/", sort.Oddity.UNREADABLE)
        except OSError as cause:
            raise self._translated(cause, prefix) from cause

    def _listed(self, path: str, guide: sort.Guide | None) -> ObjectFacts | None:
        try:
            return self.head(path)
        except StoreDenied:
            if guide is None:
                raise
            guide.passes(path, sort.Oddity.UNREADABLE)
            return None

    def unfinished(self) -> Iterator[ObjectFacts]:
        """List the files that the library writes to before they get their names, on a local disk.

        A process that dies leaves them. No other listing shows them, and other stores have none.
        """
        for path in sort.walk_unfinished(self.local_root) if self.local_root else ():
            if (found := self.head(path)) is not None:
                yield found

    def folders(self, prefix: str) -> list[str]:
        """List the folders right below a prefix."""
        return self.level(prefix)[0]

    def level(self, prefix: str) -> tuple[list[str], list[ObjectFacts]]:
        """List the folders and the objects right below a prefix, and nothing further down."""
        try:
            found = obstore.list_with_delimiter(self._store, prefix or None)
        except FileNotFoundError:
            return [], []
        except (BaseError, OSError) as cause:
            raise self._translated(cause, prefix) from cause
        return list(found["common_prefixes"]), [_facts(meta) for meta in found["objects"]]

    def _gone(self, path: str) -> ObjectMissing:
        return ObjectMissing(
            "the source file is gone since it was listed", path=self.describe(path)
        )

    def _changed(self, path: str) -> ObjectChanged:
        return ObjectChanged(
            "the source file changed while it was read; it is left for a later batch",
            path=self.describe(path),
        )

    def _replaced(self, path: str) -> ObjectChanged:
        return ObjectChanged("the object was replaced since it was seen", path=self.describe(path))

    def _translated(self, cause: Exception, path: str) -> LakeError:
        """Say what went wrong in our words; a library's text may hold URLs and secrets."""
        where = self.describe(path)
        text = str(cause)
        if isinstance(cause, InvalidPathError) and (name := detour.name_in(text)) is not None:
            root = self.uri.partition("://")[2].strip("/").partition("/")[2]
            unusable = NameUnusable(
                "the store holds an object whose name cannot be used; rename or remove it",
                object=sort.readable(name),
            )
            unusable.key = name.removeprefix(f"{root}/") if root else name
            return unusable
        if isinstance(cause, PermissionDeniedError | UnauthenticatedError):
            return StoreDenied(REFUSED, path=where)
        if isinstance(cause, FileNotFoundError):
            return ObjectMissing(NOWHERE, path=where)
        for sign, error, message in SIGNS:
            if sign in text:
                return error(message, path=where)
        return StoreUnavailable(_harmless(cause, self.options), path=where)


class Store(Reader):
    """A store that can be written, too. Every write says whether it creates or replaces."""

    def create(self, path: str, body: bytes) -> Created | AlreadyThere:
        """Write a new object, whole or not at all; one that is there already is left alone."""
        try:
            obstore.put(self._store, path, body, mode="create")
        except AlreadyExistsError:
            return AlreadyThere()
        except (BaseError, OSError) as cause:
            raise self._translated(cause, path) from cause
        self.sync(path)
        return Created()

    def replace(self, path: str, body: bytes) -> None:
        """Write an object, whole or not at all, whatever stood there before."""
        try:
            obstore.put(self._store, path, body)
        except (BaseError, OSError) as cause:
            raise self._translated(cause, path) from cause
        self.sync(path)

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
        """Bring a local file into the store, whole or not at all, and give the store's facts.

        `part_taken` is called for each part of a multipart upload that is about to be sent.
        """
        try:
            obstore.put(
                self._store,
                path,
                _parts(file, part_size, part_taken) if multipart else file,
                use_multipart=multipart,
                chunk_size=part_size,
                max_concurrency=max_parts,
            )
            self.sync(path)
            return _facts(obstore.head(self._store, path))
        except (BaseError, OSError) as cause:
            raise self._translated(cause, path) from cause

    def move(self, source: str, target: str, *, size: int) -> bool:
        """Give an object another name, and say if it was done now; once more changes nothing.

        Where the source is gone and the target is there with the right size, it has been done
        before. Some stores copy and delete: a crash in between leaves both, and the copy is made
        again, of the same bytes.
        """
        moved = True
        try:
            obstore.rename(self._store, source, target)
        except FileNotFoundError as cause:
            moved = False
            found = self.head(target)
            if found is None or found.size != size:
                raise ObjectMissing(
                    "a file is neither where it waited nor, whole, where it belongs",
                    waited=self.describe(source),
                    belongs=self.describe(target),
                ) from cause
        except (BaseError, OSError) as cause:
            raise self._translated(cause, source) from cause
        self.sync(target)
        return moved

    def delete(self, path: str) -> None:
        """Remove an object, or an unfinished one; one that is gone already is no error."""
        try:
            if self.local_root is not None and sort.is_unfinished(path):
                (self.local_root / path).unlink()  # The library refuses such names.
            else:
                obstore.delete(self._store, path)
        except FileNotFoundError:
            return
        except (BaseError, OSError) as cause:
            raise self._translated(cause, path) from cause

    def sync(self, path: str) -> None:
        """Make a write on a local disk survive a power cut: the file, then every folder above."""
        if self.local_root is None:
            return
        target = self.local_root / path
        try:
            _fsync(target)
            for above in target.parents:
                _fsync(above)
                if above == self.local_root:
                    break
        except OSError as cause:
            raise self._translated(cause, path) from cause


def local_path(uri: str) -> Path | None:
    """Give the folder that a URI means on this machine, or None for a remote store."""
    if uri.startswith("file://"):
        # Not by urlsplit: in a path, `#` and `?` are characters like any other.
        return Path(unquote(uri.removeprefix("file://").removeprefix("localhost")))
    if "://" in uri:
        return None
    return Path(uri).expanduser()


def _open(uri: str, root: Path | None, options: StorageOptions, *, make_folder: bool) -> Any:  # noqa: ANN401 - obstore's stores share no public type
    try:
        if root is not None:
            if not make_folder:
                _check_readable(root)
            return LocalStore(root.absolute(), mkdir=make_folder)
        if uri.partition("://")[0] not in REMOTE_SCHEMES:
            raise ConfigInvalid(
                [f"{uri}: cannot be opened; use a path, file://, s3://, gs:// or az://"]
            )
        return _open_remote(uri, options)
    except PermissionError as cause:
        raise StoreDenied("permission denied", path=uri) from cause
    except (BaseError, OSError) as cause:
        raise StoreUnavailable(_harmless(cause, options), path=uri) from cause


def _open_remote(uri: str, options: StorageOptions) -> Any:  # noqa: ANN401 - obstore's stores share no public type
    """Open a store without asking it anything: what fails here is the configuration's fault."""

    def opened(given: Mapping[str, str]) -> Any:  # noqa: ANN401 - obstore's stores share no public type
        config: Any
        client: Any
        retry: Any = remote.RETRY
        config, client = remote.split(given, uri=uri, environment=os.environ)
        return from_url(uri, config=config or None, client_options=client, retry_config=retry)

    try:
        return opened(options.plain())
    except (BaseError, ValueError) as cause:
        words = _harmless(cause, options)
        fault = remote.fault_of(options.plain(), str(cause), opened)
        told = f"{fault} ({words})" if fault else words
        raise ConfigInvalid([f"{uri}: storage_options: {told}"]) from cause


def _check_readable(folder: Path) -> None:
    """Tell an unreadable folder from an empty one: obstore lists both as empty."""
    try:
        with os.scandir(folder) as entries:
            next(entries, None)
    except NotADirectoryError as cause:
        raise ObjectMissing(
            "this is a file, not a folder; name its folder or, as a source.path, the file by a "
            f"pattern such as {folder.parent / f'[{folder.name[:1]}]{folder.name[1:]}'}",
            path=folder,
        ) from cause
    except FileNotFoundError as cause:
        raise ObjectMissing("the folder does not exist", path=folder) from cause
    except PermissionError as cause:
        raise StoreDenied("the folder cannot be read: permission denied", path=folder) from cause


def _parts(file: Path, size: int, taken: Callable[[], None]) -> Iterator[bytes]:
    """Read a file part by part, as the store asks for them."""
    with file.open("rb") as body:
        while part := body.read(size):
            taken()
            yield part


def _fsync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _facts(meta: Any) -> ObjectFacts:  # noqa: ANN401 - obstore's ObjectMeta is a TypedDict of a stub
    return ObjectFacts(
        path=meta["path"], size=meta["size"], etag=meta["e_tag"], modified=meta["last_modified"]
    )


def _harmless(cause: Exception, options: StorageOptions) -> str:
    """Say what a library's error comes down to, without what may be secret in it."""
    return remote.explained(str(cause), options)
