"""A library's errors in our words; its own text may hold URLs and secrets, and is dropped."""

import os

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
from lakebed.locations import place_of
from lakebed.storage import answers, detour, remote
from lakebed.storage.aws import sessions
from lakebed.storage.options import StorageOptions

NOWHERE = "the bucket, container or folder does not exist"
READ_ONLY = "the file system is read-only"
SIGNS: tuple[tuple[str, type[LakeError], str], ...] = (
    ("404 Not Found", ObjectMissing, NOWHERE),
    ("Permission denied", StoreDenied, "permission denied"),
    ("No space left", StoreFull, "no space is left on the device; free some and try again"),
    ("quota exceeded", StoreFull, "the disk quota is used up; free some space or raise the quota"),
    ("Read-only file system", StoreDenied, READ_ONLY),
    ("Input/output error", StoreUnavailable, "the disk reports an I/O error; check it with dmesg"),
    ("File system loop", NameUnusable, "a link leads to a folder above it; remove the link"),
)
"""Trouble that only a library's text tells."""


def translated(cause: Exception, where: str, *, uri: str, options: StorageOptions) -> LakeError:
    """Return our error for one of the library's, about an object as it is shown to a person."""
    text = str(cause)
    if isinstance(cause, InvalidPathError) and (name := detour.name_in(text)) is not None:
        root = "/".join(place_of(uri).folders)
        unusable = NameUnusable(
            "the store holds an object whose name cannot be used; rename or remove it",
            object=sort.readable(name),
        )
        unusable.key = name.removeprefix(f"{root}/") if root else name
        return unusable
    if (told := told_by_store(text, uri=uri, options=options)) is not None:
        told.facts = {"path": where}
        return told
    if isinstance(cause, PermissionDeniedError | UnauthenticatedError):
        return StoreDenied(answers.REFUSED, path=where)
    if isinstance(cause, FileNotFoundError):
        return ObjectMissing(NOWHERE, path=where)
    for sign, error, message in SIGNS:
        if sign in text:
            return error(message, path=where)
    return StoreUnavailable(remote.explained(text, options), path=where)


def told_by_store(text: str, *, uri: str, options: StorageOptions) -> LakeError | None:
    """Return what the store's own answer says is wrong; None if it says nothing of the kind."""
    if (over := sessions.no_new_keys(text)) is not None:
        return StoreUnavailable(over)
    answer = answers.answer_in(text)
    if answer is None:
        return None
    asker = answers.Asker(uri=uri, options=options, environment=os.environ)
    told = answers.meaning(answer, asker)
    return told or (answers.refused(answer, asker) if answer.status in (401, 403) else None)


def is_no_object(cause: Exception) -> bool:
    """Whether an object alone is not there: what it would be in is, as far as the store says."""
    answer = answers.answer_in(str(cause))
    return answer is None or not answers.has_meaning(answer)
