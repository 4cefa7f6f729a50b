"""Translate errors of the store's library to ours, with the way out and without secrets. Pure.

`answers` handles answers of stores; this module handles missing answers and errors of a local disk.
"""

import os
import re

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
from lakebed.storage import answers
from lakebed.storage.answers import ARROW, CODE, CREDENTIALS_OF_THE_MACHINE, LOGIN
from lakebed.storage.aws import sessions
from lakebed.storage.options import StorageOptions, bare, is_endpoint


def explained(text: str, options: StorageOptions) -> str:
    """Return the essence of a client's error without secrets, and what to do about it."""
    return options.redact(in_words(text)) + _way_out(text, options)


def _way_out(text: str, options: StorageOptions) -> str:
    """Return the address of a store that gave no answer, and what to check."""
    asked = _ASKED.search(ARROW.sub(": ", text))
    if asked is None or _STATUS.search(ARROW.sub(": ", text)):
        return ""
    endpoints = {name: value for name, value in options.plain().items() if is_endpoint(name)}
    where = LOGIN.sub(r"\1", asked[1])
    if where == _HIDDEN:  # The library hides an address that is signed.
        own = _HOST.match(LOGIN.sub(r"\1", next(iter(endpoints.values()), "")))
        where = own[0] if own else ""
    if any(place in where for place in CREDENTIALS_OF_THE_MACHINE):
        return (
            f"; it was asked at {where} for the credentials of this machine, because there are "
            f"none in {options.origin.section} or in the environment: set them, or give the "
            "machine a role"
        )
    proxies = [name for name in options.plain() if bare(name.lower()) == "proxy_url"]
    proxy = f", through the proxy of {options.key(proxies[0])}" if proxies else ""
    checked = "that proxy, " if proxies else ""
    asked_at = f"it was asked at {where}" if where else "it was asked at its usual address"
    if endpoints:
        leading = (name for name, value in endpoints.items() if where in LOGIN.sub(r"\1", value))
        name = next(leading, next(iter(endpoints)))
        return (
            f"; {asked_at}, as {options.key(name)} specifies{proxy}: check {checked}that "
            "address, and that the store is up"
        )
    return (
        f"; {asked_at}{proxy}: check {checked}the network, or set an endpoint in "
        f"{options.origin.section}"
    )


def in_words(text: str) -> str:
    """Return the essence of a client's error: the store's answer, or that there was none.

    Of the store's answer only the status and the error code are kept: stores repeat headers,
    signatures and keys in the rest.
    """
    first = next(iter(text.splitlines()), "").strip() or "no reason given"
    if answered := _STATUS.search(ARROW.sub(": ", text)):
        code = CODE.search(text)
        named = f" ({code[1]})" if code else ""
        return f"the store answered {answered[1].strip()}{named}"
    _request, trouble, reason = ARROW.sub(": ", text).partition(" - HTTP error: ")
    if trouble:
        reason = next(iter(reason.splitlines()), "").strip()
        known = (words for sign, words in _REASONS.items() if sign in text)
        return without_urls(f"the store gave no answer: {next(known, reason)}")
    return without_urls(first)


def without_urls(text: str) -> str:
    """Remove logins and queries from URLs in a text: they may hold passwords and signatures."""
    return _QUERY.sub(r"\1?…", LOGIN.sub(r"\1", text))


_STATUS = re.compile(r"status code: (\d{3}[A-Za-z ]*)")
_QUERY = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s?]*)\?[^\s)]*", re.IGNORECASE)


_REASONS = {
    "ConnectionRefused": "the connection was refused",
    "Connection refused": "the connection was refused",
    "failed to lookup address": "there is no host of that name",
    "dns error": "there is no host of that name",
    "InvalidCertificate": "its certificate is not trusted",
    "invalid peer certificate": "its certificate is not trusted",
    "ConnectionReset": "the connection was reset",
}
"""Explanations of failed requests, by their signs in the library's text."""
_ASKED = re.compile(r"Error performing [A-Z]+ (https?://[^\s/?]+|REDACTED)")
_HIDDEN = "REDACTED"
_HOST = re.compile(r"https?://[^\s/?]+", re.IGNORECASE)


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
"""Errors that only the library's text identifies."""


def translated(cause: Exception, where: str, *, uri: str, options: StorageOptions) -> LakeError:
    """Return our error for one of the library's about an object."""
    text = str(cause)
    if isinstance(cause, InvalidPathError) and (name := name_in(text)) is not None:
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
    return StoreUnavailable(explained(text, options), path=where)


def told_by_store(text: str, *, uri: str, options: StorageOptions) -> LakeError | None:
    """Return the error that the store's own answer describes; None without one."""
    if (over := sessions.no_new_keys(text)) is not None:
        return StoreUnavailable(over)
    answer = answers.answer_in(text)
    if answer is None:
        return None
    asker = answers.Asker(uri=uri, options=options, environment=os.environ)
    told = answers.meaning(answer, asker)
    return told or (answers.refused(answer, asker) if answer.status in (401, 403) else None)


def is_no_object(cause: Exception) -> bool:
    """Whether only the object is missing, not its bucket or container."""
    answer = answers.answer_in(str(cause))
    return answer is None or not answers.has_meaning(answer)


_PATH = re.compile(r'\bpath: "((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\u\{([0-9a-f]+)\}|\\(.)")
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "0": "\0"}


def name_in(text: str) -> str | None:
    """Return the object name in an error of the library, unescaped."""
    found = _PATH.search(text)
    return None if found is None else _ESCAPE.sub(_plain, found[1])


def _plain(escape: re.Match[str]) -> str:
    code, letter = escape.groups()
    return chr(int(code, 16)) if code else _ESCAPES.get(letter, letter)
