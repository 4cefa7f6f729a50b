"""Durable writes on a local disk: a power cut leaves every object whole or absent.

Bytes are synced before the name leads to them: write a temporary file, fsync it, link or rename it,
fsync the folders above. The kernel reports a failed fsync once and treats the lost pages as
written, so a second fsync proves nothing: unsynced files are written again.
"""

import errno
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path

from lakebed.errors import NoExclusiveCreate

PIECE_BYTES = 1 << 20
"""Bytes read from a local file at once."""
NO_LINKS = frozenset({errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP})
"""Errors of `link()` on a file system without hard links."""

_unsynced: set[Path] = set()
"""Objects whose last sync, or that of a folder above, failed in this process."""


def make_folder(folder: Path) -> None:
    """Create a folder and missing ones above it, and sync their names."""
    missing = [above for above in (folder, *folder.parents) if not above.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for made in missing:
        _fsync(made.parent)


def create(root: Path, path: str, body: bytes) -> bool:
    """Write a new object and return True; leave an existing one alone and return False."""
    target = root / path
    if _publish(root, target, (body,), lambda part: _link(part, target)):
        return True
    if target in _unsynced:
        sync(root, path)
    return False


def replace(root: Path, path: str, pieces: Iterable[bytes]) -> None:
    """Write an object, replacing an existing one."""
    target = root / path
    _publish(root, target, pieces, lambda part: _rename(part, target))


def move(root: Path, source: str, target: str) -> None:
    """Rename an object; its bytes are synced first."""
    before, after = root / source, root / target
    _sync_file(root, before)
    after.parent.mkdir(parents=True, exist_ok=True)
    before.replace(after)
    _sync_folders(root, after)


def sync(root: Path, path: str) -> None:
    """Sync an object that another writer may have left unsynced, and its name."""
    target = root / path
    _sync_file(root, target)
    _sync_folders(root, target)


def pieces_of(file: Path) -> Iterator[bytes]:
    """Read a file piece by piece."""
    with file.open("rb") as body:
        while piece := body.read(PIECE_BYTES):
            yield piece


def _publish(
    root: Path,
    target: Path,
    pieces: Iterable[bytes],
    name: Callable[[Path], bool],
    *,
    like: Path | None = None,
) -> bool:
    """Write a file with the mode and times of `like`, and name it; False if the name exists."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part, handle = _temporary(target)
    try:
        with os.fdopen(handle, "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            if like is not None:
                shutil.copystat(like, part)
            os.fsync(handle)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    if not name(part):
        return False
    _sync_folders(root, target)
    return True


def _link(part: Path, target: Path) -> bool:
    """Link a temporary file under its final name if that is free; remove the temporary name."""
    try:
        os.link(part, target)
    except FileExistsError:
        return False
    except OSError as cause:
        if cause.errno not in NO_LINKS:
            raise
        raise NoExclusiveCreate(
            f"this file system has no hard links (link: {cause.strerror}), which a create-only "
            "write needs; put the table on one that has them, such as ext4, XFS, Btrfs or NFS, or "
            "on an object store",
            path=target,
        ) from cause
    finally:
        part.unlink(missing_ok=True)
    return True


def _rename(part: Path, target: Path) -> bool:
    """Rename a temporary file. On success its old name may already be another writer's."""
    try:
        part.replace(target)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    return True


def _temporary(target: Path) -> tuple[Path, int]:
    """Open a new file beside the target, by a name that `sort.is_unfinished` recognizes."""
    for number in count(1):
        part = target.with_name(f"{target.name}#{number}")
        try:
            return part, os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except FileExistsError:
            continue
    raise AssertionError("there is always a next number")


def _sync_file(root: Path, target: Path) -> None:
    if target in _unsynced:
        # Write the bytes that readers see to a new file, under a new folder entry.
        pieces = pieces_of(target)
        _publish(root, target, pieces, lambda part: _rename(part, target), like=target)
        return
    try:
        _fsync(target)
    except FileNotFoundError:
        raise
    except OSError:
        _unsynced.add(target)
        raise


def _sync_folders(root: Path, target: Path) -> None:
    try:
        for above in target.parents:
            _fsync(above)
            if above == root:
                break
    except OSError:
        _unsynced.add(target)
        raise
    _unsynced.discard(target)


def _fsync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
