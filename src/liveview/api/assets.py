"""The page and what belongs to it: files that come with the package, and nothing else."""

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from importlib.resources.abc import Traversable

from lakebed.telemetry.http import Answer, Request

NAME = re.compile(r"[a-z0-9][a-z0-9_-]*(\.[a-z0-9_-]+)*\.(css|js|svg|png|ico|woff2|webmanifest)")
TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "ico": "image/x-icon",
    "js": "text/javascript; charset=utf-8",
    "png": "image/png",
    "svg": "image/svg+xml",
    "webmanifest": "application/manifest+json",
    "woff2": "font/woff2",
}
INDEX = "index.html"


@dataclass(frozen=True, slots=True)
class Asset:
    """One file as it is served."""

    body: bytes
    content_type: str
    etag: str


@cache
def asset(name: str) -> Asset | None:
    """Return a file of the page; None where there is none of this name."""
    if name != INDEX and not NAME.fullmatch(name):
        return None
    folder: Traversable = files("liveview") / "page"
    found = folder / name
    if not found.is_file():
        return None
    body = found.read_bytes()
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    return Asset(body, TYPES[name.rpartition(".")[2]], etag)


def answer(request: Request, name: str) -> Answer | None:
    """Answer with a file of the page; None where there is none."""
    found = asset(name)
    if found is None:
        return None
    headers = {"ETag": found.etag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == found.etag:
        return Answer(HTTPStatus.NOT_MODIFIED, found.content_type, b"", headers)
    return Answer(HTTPStatus.OK, found.content_type, found.body, headers)
