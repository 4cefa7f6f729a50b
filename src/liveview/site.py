"""The live page of one process: it records events from the start and reads data on request.

The programs import this module by name. Request handling and everything that reads journals and
logs are imported with the first request.
"""

import hashlib
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from http import HTTPStatus
from importlib.metadata import version as installed_version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lakebed.clock import Clock
from lakebed.config.files import Given
from lakebed.telemetry.events import Emit, Event
from lakebed.telemetry.health import HealthPart
from lakebed.telemetry.http import HttpAnswer, Request
from liveview.answer_cache import Timeouts
from liveview.live import Live

if TYPE_CHECKING:
    from liveview.api import Api

NAME = re.compile(r"[a-z0-9][a-z0-9_-]*(\.[a-z0-9_-]+)*\.(css|js)|index\.html")
TYPES = {"css": "text/css", "html": "text/html", "js": "text/javascript"}


@cache
def asset(name: str) -> tuple[bytes, str, str] | None:
    """Return a file of the page with its content type and ETag; None if it does not exist."""
    found = files("liveview") / "page" / name
    if not NAME.fullmatch(name) or not found.is_file():
        return None
    body = found.read_bytes()
    kind = f"{TYPES[name.rpartition('.')[2]]}; charset=utf-8"
    return body, kind, f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def served(request: Request, name: str) -> HttpAnswer | None:
    """Serve a file of the page; None if it does not exist."""
    found = asset(name)
    if found is None:
        return None
    body, kind, tag = found
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return HttpAnswer(HTTPStatus.NOT_MODIFIED, kind, b"", headers)
    return HttpAnswer(HTTPStatus.OK, kind, body, headers)


HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class LiveSite:
    """The page and the API that one process serves beside its metrics."""

    def __init__(
        self,
        program: Literal["blizzard", "penguin"],
        own: Any,  # noqa: ANN401 - the settings of either program
        *,
        files: Sequence[Given],
        folders: Sequence[Path],
        environment: Mapping[str, str],
        parts: Sequence[HealthPart] = (),
        clock: Clock | None = None,
        patience: Timeouts | None = None,
    ) -> None:
        self._program: Literal["blizzard", "penguin"] = program
        self._own = own
        self._files, self._folders = tuple(files), tuple(folders)
        self._environment = dict(environment)
        self._clock = clock or Clock()
        self._patience = patience
        self._version = installed_version("blizzard-penguin")
        self._live = Live(program, version=self._version, seconds=self._clock.seconds)
        for part in parts:
            self._live.expect(part.kind, part.name)
        self._lock = threading.Lock()
        self._api: Api | None = None
        self._log: Emit = lambda _event: None
        self.requests = 0
        """The number of API requests."""

    def emit(self, event: Event) -> None:
        """Record an event."""
        self._live.emit(event)

    def log_to(self, log: Emit) -> None:
        """Set where errors of the page are logged."""
        self._log = log

    def __call__(self, request: Request) -> HttpAnswer | None:
        """Answer a request to the page or the API; None for any other path."""
        answer = self._answer(request)
        if answer is None:
            return None
        return replace(answer, headers={**HEADERS, **answer.headers})

    def close(self) -> None:
        """Release the threads."""
        with self._lock:
            if self._api is not None:
                self._api.close()

    def _answer(self, request: Request) -> HttpAnswer | None:
        path = request.path
        if path.startswith("/api/") or path == "/api":
            self.requests += 1
            return self._opened().answer(request)
        if request.method not in ("GET", "HEAD"):
            return None
        if path == "/":
            return served(request, "index.html")
        if path.startswith("/live/"):
            return served(request, path.removeprefix("/live/"))
        return None

    def _opened(self) -> "Api":
        with self._lock:
            if self._api is None:
                from liveview.answers import Answers  # noqa: PLC0415
                from liveview.api import Api, ViewFailed, place_of  # noqa: PLC0415
                from liveview.lake import lake_of  # noqa: PLC0415
                from liveview.observer import Observer  # noqa: PLC0415

                def failed(error: BaseException) -> None:
                    if not hasattr(error, "whose"):
                        self._log(ViewFailed(route="overview", error=place_of(error)))

                lake = lake_of(self._own, self._files, self._folders, self._environment)
                observer = Observer(
                    lake,
                    self._live,
                    self._program,
                    clock=self._clock,
                    failed=failed,
                    patience=self._patience,
                )
                self._api = Api(Answers(observer), version=self._version, emit=self._log)
            return self._api
