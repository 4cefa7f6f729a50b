"""Requests in, documents out. Errors are documents too, never tracebacks."""

from http import HTTPStatus
from typing import Protocol

from lakebed.errors import LakeError
from lakebed.telemetry.events import Emit, Event, Level
from lakebed.telemetry.http import METHODS, HttpAnswer, Request
from liveview import routes
from liveview.answer_cache import Busy
from liveview.model import Fault, Refusal
from liveview.routes import (
    OPENAPI,
    ROUTES,
    RequestRefused,
    Route,
    Values,
    encoded,
    segments_of,
    values_of,
)

JSON = "application/json"
NO_STORE = {"Cache-Control": "no-store"}


class ViewFailed(Event, level=Level.ERROR):
    """A request to the live page failed because of a bug."""

    route: str
    error: str

    def sentence(self) -> str:
        """Name the route and the error."""
        return f"the live page: {self.route} could not be answered: {self.error}"


class Documents(Protocol):
    """The documents of one configuration."""

    def document(self, route: Route, name: str, values: Values) -> bytes:
        """Return the document of a route as JSON, at most as old as the route allows."""

    def close(self) -> None:
        """Release the threads."""


class Api:
    """The API of one configuration."""

    def __init__(self, documents: Documents, *, version: str, emit: Emit) -> None:
        self._documents = documents
        self._version = version
        self._emit = emit

    def close(self) -> None:
        """Release the threads."""
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
            self._emit(ViewFailed(route=request.path, error=place_of(error)))
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
        if request.path == OPENAPI:
            values_of(request.query, ())
            return _found(routes.text(self._version).encode())
        segments = segments_of(request.path)
        for route in ROUTES:
            name = route.name_in(segments)
            if name is not None:
                values = values_of(request.query, route.parameters)
                return _found(self._documents.document(route, name, values))
        status = HTTPStatus.NOT_FOUND
        raise RequestRefused("not_found", "there is no such route", f"see {OPENAPI}", status)


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
