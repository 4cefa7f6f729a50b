"""Requests in, documents out. Errors are documents too, never tracebacks."""

import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Protocol

from lakebed.errors import LakeError
from lakebed.telemetry.events import Emit, Event, Level
from lakebed.telemetry.http import METHODS, HttpAnswer, Request
from liveview import routes
from liveview.answer_cache import Busy
from liveview.model import Fault, Overview, Refusal
from liveview.routes import (
    OPENAPI,
    OVERVIEW,
    ROUTES,
    STREAM,
    RequestRefused,
    Route,
    Values,
    encoded,
    segments_of,
    values_of,
)

EVERY_SECS = 1.0
BEAT_SECS = 15.0
LONGEST_SECS = 600.0
MOST = 8
JSON = "application/json"
FRAME_SECS = 0.9
NO_STORE = {"Cache-Control": "no-store"}


@dataclass(frozen=True, slots=True)
class Frame:
    """The overview at one moment."""

    mark: object
    """Equal for two frames that differ only in time."""
    body: bytes


class Streams:
    """The open event streams."""

    def __init__(
        self,
        frame: Callable[[], Frame],
        *,
        every: float = EVERY_SECS,
        beat: float = BEAT_SECS,
        longest: float = LONGEST_SECS,
        most: int = MOST,
        seconds: Callable[[], float] = time.monotonic,
        failed: Callable[[Exception], None] = lambda _error: None,
    ) -> None:
        self._frame = frame
        self._every, self._beat, self._longest = every, beat, longest
        self._seconds = seconds
        self._failed = failed
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._free = most

    @property
    def full(self) -> bool:
        """Whether the limit of open streams is reached."""
        return self._free <= 0

    def close(self) -> None:
        """Close all streams."""
        self._closed.set()

    def pieces(self) -> Generator[bytes, None, None]:
        """Yield one client's events until it disconnects, the program ends, or time is up."""
        with self._lock:
            if self.full:
                return
            self._free -= 1
        try:
            yield from self._pieces()
        finally:
            with self._lock:
                self._free += 1

    def _pieces(self) -> Generator[bytes, None, None]:
        end = self._seconds() + self._longest
        last: Frame | None = None
        sent = self._seconds()
        while True:
            try:
                frame = self._frame()
            except Exception as error:  # noqa: BLE001 - the client asks again, and gets the reason
                self._failed(error)
                return
            if last is None or frame.mark != last.mark:
                yield b"event: overview\ndata: " + frame.body + b"\n\n"
                last, sent = frame, self._seconds()
            elif self._seconds() - sent >= self._beat:
                yield b": still here\n\n"
                sent = self._seconds()
            if self._seconds() >= end or self._closed.wait(self._every):
                return


class ViewFailed(Event, level=Level.ERROR):
    """A request to the live page failed because of a bug."""

    route: str
    error: str

    def sentence(self) -> str:
        """Name the route and the error."""
        return f"the live page: {self.route} could not be answered: {self.error}"


class Documents(Protocol):
    """The documents of one configuration."""

    def overview(self) -> Overview:
        """Return all pipelines and tables."""

    def document(self, route: Route, name: str, values: Values) -> bytes:
        """Return the document of a route as JSON, at most as old as the route allows."""

    def close(self) -> None:
        """Release the threads."""


class Api:
    """The API of one configuration."""

    def __init__(
        self,
        documents: Documents,
        *,
        version: str,
        emit: Emit,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._documents = documents
        self._version = version
        self._emit = emit
        self._seconds = seconds
        self._frame_lock = threading.Lock()
        self._frame_at = 0.0
        self._last_frame: Frame | None = None
        self.streams = Streams(self._frame, failed=lambda error: self._log(STREAM, error))

    def close(self) -> None:
        """Close the streams and release the threads."""
        self.streams.close()
        self._documents.close()

    def answer(self, request: Request) -> HttpAnswer:
        """Answer a request below `/api/`."""
        try:
            return self._answer(request)
        except RequestRefused as refused:
            return _refusal(refused)
        except Busy:
            message = "this is still being read"
            return _refusal(_unavailable("being_read", message, "ask again in a moment", after=2))
        except LakeError as trouble:
            return _refusal(_unavailable(trouble.code, str(trouble), None, after=10))
        except Exception as error:  # noqa: BLE001 - a page must not end a thread of the server
            self._log(request.path, error)
            message = "an internal error; the program's log has the details"
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            return _refusal(RequestRefused("internal_error", message, status=status))

    def _answer(self, request: Request) -> HttpAnswer:
        if request.method not in METHODS:
            raise RequestRefused(
                "method_not_allowed",
                f"the API is read-only; use {' or '.join(METHODS)}",
                status=HTTPStatus.METHOD_NOT_ALLOWED,
                headers={"Allow": ", ".join(METHODS)},
            )
        if not request.trusted:
            raise RequestRefused(
                "token_needed",
                "the API needs the header Authorization: Bearer, with the token",
                status=HTTPStatus.UNAUTHORIZED,
                headers={"WWW-Authenticate": "Bearer"},
            )
        if request.path in (OPENAPI, STREAM):
            values_of(request.query, ())
            if request.path == STREAM:
                return self._stream(request)
            return _found(routes.text(self._version).encode())
        segments = segments_of(request.path)
        for route in ROUTES:
            name = route.name_in(segments)
            if name is not None:
                values = values_of(request.query, route.parameters)
                if route.path == OVERVIEW:
                    return _found(self._frame().body)
                return _found(self._documents.document(route, name, values))
        status = HTTPStatus.NOT_FOUND
        raise RequestRefused("not_found", "there is no such route", f"see {OPENAPI}", status)

    def _stream(self, request: Request) -> HttpAnswer:
        if self.streams.full:
            raise _unavailable(
                "too_many_streams",
                "the limit of open streams is reached",
                "close another page, or poll /api/v1/overview",
                after=30,
            )
        pieces = None if request.method == "HEAD" else self.streams.pieces()
        return HttpAnswer(HTTPStatus.OK, "text/event-stream", b"", NO_STORE, pieces)

    def _frame(self) -> Frame:
        """Return the current overview, computed at most once a second for all clients."""
        with self._frame_lock:
            if self._last_frame is None or self._seconds() - self._frame_at >= FRAME_SECS:
                found: Overview = self._documents.overview()
                timeless = [
                    replace(one, oldest_waiting_secs=None, behind_secs=None)
                    for one in found.pipelines
                ]
                mark = replace(found, at="", pipelines=timeless)
                self._last_frame, self._frame_at = Frame(mark, encoded(found)), self._seconds()
            return self._last_frame

    def _log(self, route: str, error: Exception) -> None:
        self._emit(ViewFailed(route=route, error=place_of(error)))


def _found(body: bytes) -> HttpAnswer:
    return HttpAnswer(HTTPStatus.OK, JSON, body, NO_STORE)


def _unavailable(code: str, message: str, way_out: str | None, *, after: int) -> RequestRefused:
    status = HTTPStatus.SERVICE_UNAVAILABLE
    return RequestRefused(code, message, way_out, status, {"Retry-After": str(after)})


def _refusal(refused: RequestRefused) -> HttpAnswer:
    fault = Fault(code=refused.code, message=refused.message, way_out=refused.way_out)
    headers = {**NO_STORE, **refused.headers}
    return HttpAnswer(refused.status, JSON, encoded(Refusal(error=fault)), headers)


def place_of(error: BaseException) -> str:
    """Return an error's type and location, without its text, which may hold values."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    if at is None:
        return type(error).__name__
    file = at.tb_frame.f_code.co_filename.replace("\\", "/").rpartition("/")[2]
    return f"{type(error).__name__} at {file}:{at.tb_lineno}"
