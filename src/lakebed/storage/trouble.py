"""A library's errors in our words; its own text may hold URLs and secrets, and is dropped."""

from obstore.exceptions import InvalidPathError, PermissionDeniedError, UnauthenticatedError

from lakebed.errors import (
    LakeError,
    NameUnusable,
    ObjectMissing,
    StoreDenied,
    StoreFull,
    StoreUnavailable,
)
from lakebed.listing import sort
from lakebed.storage import detour, remote
from lakebed.storage.options import StorageOptions

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
    ("File system loop", NameUnusable, "a link leads to a folder above it; remove the link"),
)
"""Trouble that only a library's text tells."""


def translated(cause: Exception, where: str, *, uri: str, options: StorageOptions) -> LakeError:
    """Return our error for one of the library's, about an object as it is shown to a person."""
    text = str(cause)
    if isinstance(cause, InvalidPathError) and (name := detour.name_in(text)) is not None:
        root = uri.partition("://")[2].strip("/").partition("/")[2]
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
    return StoreUnavailable(remote.explained(text, options), path=where)
