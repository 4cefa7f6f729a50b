"""Requests in, documents out. Whatever goes wrong is a document, too, and never a traceback."""

import json
import threading
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import ClassVar

from pydantic_core import to_json

from lakebed.errors import LakeError
from lakebed.telemetry.events import Emit, Event, Level
from lakebed.telemetry.http import METHODS, Answer, Request
from liveview.answers import Answers, NoSuchFile
from liveview.api import openapi
from liveview.api.parameters import Refused, segments_of, values_of
from liveview.api.routes import OPENAPI, ROUTES, STREAM, Route, Sources
from liveview.looks.desk import Busy
from liveview.model import Overview
from liveview.observer import Observer
from liveview.parts import Fault, Refusal
from liveview.views.summary import same_but_for_time

EVERY_SECS = 1.0
BEAT_SECS = 15.0
LONGEST_SECS = 600.0
MOST = 8


@dataclass(frozen=True, slots=True)
class Frame:
    """One state of the overview."""

    mark: object
    """Equal where nothing has changed but the time."""
    body: bytes


class Streams:
    """All streams that are open."""

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
        self._every, self._beat, self._longest, self._most = every, beat, longest, most
        self._seconds = seconds
        self._failed = failed
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._open = 0

    @property
    def full(self) -> bool:
        """Whether no more can be opened."""
        return self._open >= self._most

    def close(self) -> None:
        """End all streams."""
        self._closed.set()

    def pieces(self) -> Generator[bytes, None, None]:
        """Yield what one client is sent, until it goes, the program ends, or the time is up."""
        with self._lock:
            if self._open >= self._most:
                return
            self._open += 1
        try:
            yield from self._pieces()
        finally:
            with self._lock:
                self._open -= 1

    def _pieces(self) -> Generator[bytes, None, None]:
        end = self._seconds() + self._longest
        last: Frame | None = None
        sent = self._seconds()
        while True:
            try:
                frame = self._frame()
            except Exception as error:  # noqa: BLE001 - the client asks again, and is told why
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


JSON = "application/json"
FRAME_SECS = 0.9
NO_STORE = {"Cache-Control": "no-store"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewFailed(Event):
    """A request to the live page could not be answered: a fault of the program."""

    level: ClassVar[Level] = Level.ERROR
    route: str
    error: str

    def sentence(self) -> str:
        """Return which, and why."""
        return f"the live page: {self.route} could not be answered: {self.error}"


class Api:
    """Answers the requests to one configuration's API."""

    def __init__(
        self,
        observer: Observer,
        *,
        version: str,
        emit: Emit,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._on = Sources(observer, Answers(observer))
        self._version = version
        self._emit = emit
        self._seconds = seconds
        self._frame_lock = threading.Lock()
        self._frame_at = 0.0
        self._last_frame: Frame | None = None
        self.streams = Streams(self._frame, failed=lambda error: self._log(STREAM, error))

    def close(self) -> None:
        """End the streams, and let the threads go."""
        self.streams.close()
        self._on.observer.close()

    def answer(self, request: Request) -> Answer:
        """Answer a request below `/api/`."""
        try:
            return self._answer(request)
        except Refused as refused:
            return refusal(HTTPStatus.BAD_REQUEST, refused.code, refused.message, refused.way_out)
        except NoSuchFile as unknown:
            return refusal(HTTPStatus.NOT_FOUND, unknown.code, unknown.message)
        except Busy:
            return refusal(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "being_read",
                "this is still being read",
                "ask again in a moment",
                headers={"Retry-After": "2"},
            )
        except LakeError as trouble:
            return refusal(
                HTTPStatus.SERVICE_UNAVAILABLE,
                trouble.code,
                str(trouble),
                headers={"Retry-After": "10"},
            )
        except Exception as error:  # noqa: BLE001 - a page must not end a thread of the server
            self._log(request.path, error)
            return refusal(
                HTTPStatus.INTERNAL_SERVER_ERROR,
                "internal_error",
                "a fault of the program; its log has the details",
            )

    def _answer(self, request: Request) -> Answer:
        if request.method not in METHODS:
            return refusal(
                HTTPStatus.METHOD_NOT_ALLOWED,
                "method_not_allowed",
                f"the API can only be read, with {' or '.join(METHODS)}",
                headers={"Allow": ", ".join(METHODS)},
            )
        if not request.trusted:
            return refusal(
                HTTPStatus.UNAUTHORIZED,
                "token_needed",
                "the API needs the header Authorization: Bearer, with the token",
                headers={"WWW-Authenticate": "Bearer"},
            )
        if request.path == OPENAPI:
            values_of(request.query, ())
            body = openapi.text(self._version).encode()
            return Answer(HTTPStatus.OK, JSON, body, NO_STORE)
        if request.path == STREAM:
            values_of(request.query, ())
            return self._stream(request)
        segments = segments_of(request.path)
        for route in ROUTES:
            name = route.name_in(segments)
            if name is not None:
                return self._document(route, name, request)
        return refusal(HTTPStatus.NOT_FOUND, "not_found", "there is nothing here", f"see {OPENAPI}")

    def _document(self, route: Route, name: str, request: Request) -> Answer:
        values = values_of(request.query, route.parameters)
        if route.of is not None and name not in self._on.names[route.of]:
            return refusal(
                HTTPStatus.NOT_FOUND,
                f"{route.of[:-1]}_unknown",
                f"the configuration has no {route.of[:-1]} of this name",
                "the overview has all names",
            )
        if route.kind is Overview:
            return Answer(HTTPStatus.OK, JSON, self._frame().body, NO_STORE)
        if route.max_age == 0:
            body = encoded(route.answer(self._on, name, values))
        else:
            body = self._on.observer.asked.ask(
                ("route", route.path, name, tuple(values.items())),
                lambda: encoded(route.answer(self._on, name, values)),
                max_age=route.max_age,
                wait=self._on.observer.patience.answer,
                stale_wait=self._on.observer.patience.stale,
                mark=self._on.observer.mark(name),
            )
        return Answer(HTTPStatus.OK, JSON, body, NO_STORE)

    def _stream(self, request: Request) -> Answer:
        if self.streams.full:
            return refusal(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "too_many_streams",
                "as many streams as there may be are open",
                "close another page, or ask for /api/v1/overview now and then",
                headers={"Retry-After": "30"},
            )
        pieces = None if request.method == "HEAD" else self.streams.pieces()
        return Answer(HTTPStatus.OK, "text/event-stream", b"", NO_STORE, pieces)

    def _frame(self) -> Frame:
        """Return the overview as it is, made once for everybody who asks within a second."""
        with self._frame_lock:
            if self._last_frame is None or self._seconds() - self._frame_at >= FRAME_SECS:
                found: Overview = self._on.observer.overview()
                mark = replace(
                    found, at="", pipelines=[same_but_for_time(one) for one in found.pipelines]
                )
                body = encoded(found)
                self._last_frame, self._frame_at = Frame(mark, body), self._seconds()
            return self._last_frame

    def _log(self, route: str, error: Exception) -> None:
        self._emit(ViewFailed(route=route, error=place_of(error)))


def encoded(document: object) -> bytes:
    """Return a document as JSON. Pure; by its fields, since a schema of it would cost more."""
    return to_json(document, inf_nan_mode="null")


def refusal(
    status: HTTPStatus,
    code: str,
    message: str,
    way_out: str | None = None,
    *,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Return why a request is not answered."""
    found = Refusal(error=Fault(code=code, message=message, way_out=way_out))
    body = json.dumps({"error": {name: getattr(found.error, name) for name in Fault.__slots__}})
    return Answer(status, JSON, body.encode(), {**NO_STORE, **(headers or {})})


def place_of(error: BaseException) -> str:
    """Return what an error is and where it was raised. Its text may hold anything: not told."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    if at is None:
        return type(error).__name__
    file = at.tb_frame.f_code.co_filename.replace("\\", "/").rpartition("/")[2]
    return f"{type(error).__name__} at {file}:{at.tb_lineno}"
