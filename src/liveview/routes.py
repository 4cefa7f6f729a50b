"""Routes of the API, their handlers, and the OpenAPI document. Pure.

`route` registers a method in `ROUTES`, which drives dispatch, parameter validation and the OpenAPI
document.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, TypeVar, get_type_hints
from urllib.parse import parse_qsl, unquote_to_bytes

from pydantic import TypeAdapter
from pydantic_core import to_json

from liveview.model import Refusal

OPENAPI = "/api/openapi.json"
LONGEST = 4096
NUMBER = re.compile(r"[0-9]{1,18}")
TEXT = r"^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]*$"
"""JSON Schema pattern of text parameters: no control characters."""
NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$"
"""Pattern of names in a path."""

Answering = TypeVar("Answering", bound=Callable[..., Any])


@dataclass(eq=False)
class RequestRefused(Exception):
    """A rejected request, with the reason."""

    code: str
    message: str
    way_out: str | None = None
    status: HTTPStatus = HTTPStatus.BAD_REQUEST
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A query parameter: a number if `least` is set, else text."""

    name: str
    what: str
    default: int | str | None = None
    least: int | None = None
    most: int | None = None
    required: bool = False

    def value(self, text: str) -> int | str:
        """Parse a value; raise RequestRefused if it is not allowed."""
        if self.least is not None:
            number = int(text) if NUMBER.fullmatch(text) else None
            if number is None or not self.least <= number <= (self.most or number):
                raise RequestRefused(
                    "parameter_invalid",
                    f"{self.name} must be a number from {self.least:,} to {self.most:,}",
                )
            return number
        if self.required and not text:
            raise RequestRefused("parameter_invalid", f"{self.name} is empty")
        if len(text) > LONGEST or not re.fullmatch(TEXT, text):
            raise RequestRefused(
                "parameter_invalid", f"{self.name} is too long, or has control characters"
            )
        return text


Values = Mapping[str, int | str | None]
BEFORE = Parameter(name="before", what="only numbers below this one", least=0, most=10**17)
LIMIT = Parameter(name="limit", what="the maximum number of items", default=50, least=1, most=500)
DAYS = Parameter(name="limit", what="the number of days", default=31, least=1, most=366)
HOURS = Parameter(name="hours", what="the number of hours back", default=24, least=1, most=168)
POINTS = Parameter(name="points", what="the number of time steps", default=96, least=1, most=1000)
SEARCH = Parameter(name="search", what="part of the name; if empty, the newest files", default="")
PATH = Parameter(
    name="path",
    what="the file as SOURCE:PATH; PATH is enough if there is only one source",
    required=True,
)


def encoded(document: object) -> bytes:
    """Serialize a document as JSON by its fields, which is cheaper than by schema."""
    return to_json(document, inf_nan_mode="null")


@dataclass(frozen=True, slots=True)
class Route:
    """A route; `{name}` in its path is a pipeline or table."""

    path: str
    what: str
    parameters: tuple[Parameter, ...]
    max_age: float
    """Maximum age of an answer in seconds."""
    answer: Callable[..., Any]

    @property
    def document(self) -> type[Any]:
        """Return the type of the answer."""
        return get_type_hints(self.answer)["return"]  # type: ignore[no-any-return]

    @property
    def of(self) -> str | None:
        """Return what the path names: `pipelines` or `tables`; None without a name."""
        return self.path.split("/")[3] if "{name}" in self.path else None

    def name_in(self, segments: Sequence[str]) -> str | None:
        """Return the name in a path of this route, empty without one; None for another route."""
        own = self.path.split("/")[1:]
        names = [given for mine, given in zip(own, segments, strict=False) if mine == "{name}"]
        name = names[0] if names else ""
        return name if [name if each == "{name}" else each for each in own] == segments else None


ROUTES: list[Route] = []


def route(
    path: str, what: str, *parameters: Parameter, max_age: float = 2.0
) -> Callable[[Answering], Answering]:
    """Register a method as the handler of a path: it takes the name, then parameters by name."""

    def enter(answer: Answering) -> Answering:
        ROUTES.append(Route(f"/api/v1/{path}", what, parameters, max_age, answer))
        return answer

    return enter


def values_of(query: str, parameters: Sequence[Parameter]) -> Values:
    """Parse a query; raise RequestRefused for unknown, repeated or missing parameters."""
    known = {one.name: one for one in parameters}
    values: dict[str, int | str | None] = {}
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=32)
    except (ValueError, UnicodeDecodeError):
        raise RequestRefused("query_invalid", "the query cannot be parsed") from None
    for name, text in pairs:
        if name not in known:
            there = ", ".join(known) or "none"
            raise RequestRefused("parameter_unknown", f"unknown parameter; known ones are: {there}")
        if name in values:
            raise RequestRefused("parameter_repeated", f"{name} is given more than once")
        values[name] = known[name].value(text)
    for one in parameters:
        if one.required and one.name not in values:
            raise RequestRefused("parameter_missing", f"{one.name} is missing: {one.what}")
        values.setdefault(one.name, one.default)
    return values


def segments_of(path: str) -> list[str]:
    """Return the decoded segments of a path; raise RequestRefused if one is not a plain name."""
    return [_segment(part) for part in path.split("/")[1:]]


def _segment(part: str) -> str:
    try:
        text = unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        raise RequestRefused("name_invalid", "a name in the path is not UTF-8") from None
    if not re.fullmatch(NAME, text):
        raise RequestRefused(
            "name_invalid",
            "a name in the path must start with a letter or digit and consist of at most 100 "
            "letters, digits, _, . or -",
        )
    return text


REFERENCE = "#/components/schemas/{model}"
REFUSED = (
    "400: a parameter or a name in the path is invalid; 401: the token is missing or wrong; 404: "
    "there is no pipeline, table or file of this name; 405: the API is read-only; 500: an internal "
    "error; 503: the answer is still being read, or a store does not answer."
)
INFO = {
    "title": "blizzard and penguin, live",
    "description": "What both programs are doing, and what they have done. Read-only: "
    "every route takes GET and HEAD. Times are RFC 3339 in UTC, durations are in seconds, "
    "sizes in bytes. No answer contains rows, lines or values.",
}
TOKEN = {
    "type": "http",
    "scheme": "bearer",
    "description": "Required if metrics.token or metrics.token_file is set.",
}


def document(version: str) -> dict[str, Any]:
    """Return the OpenAPI document."""
    schemas: dict[str, Any] = {}
    for kind in (*dict.fromkeys(route.document for route in ROUTES), Refusal):
        schema = TypeAdapter(kind).json_schema(ref_template=REFERENCE, mode="serialization")
        schemas.update(schema.pop("$defs", {}))
        schemas.setdefault(kind.__name__, schema)
    paths = {route.path: _operation(route) for route in ROUTES}
    itself = {"application/json": {"schema": {"type": "object"}}}
    paths[OPENAPI] = _get("openapi", "This document", "An OpenAPI document.", itself)
    return {
        "openapi": "3.1.0",
        "info": {**INFO, "version": version},
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": {name: _closed(schemas[name]) for name in sorted(schemas)},
            "securitySchemes": {"token": TOKEN},
        },
        "security": [{}, {"token": []}],
    }


def text(version: str) -> str:
    """Return the OpenAPI document as JSON text."""
    return json.dumps(document(version), indent=2, ensure_ascii=False) + "\n"


def _operation(route: Route) -> dict[str, Any]:
    name = route.path.removeprefix("/api/v1/").replace("/{name}", "").replace("/", "_")
    parameters = [_parameter(one) for one in route.parameters]
    if route.of is not None:
        described = f"The name of the {route.of[:-1]}, as in the overview."
        named = {"name": "name", "in": "path", "required": True, "description": described}
        parameters.insert(0, {**named, "schema": {"type": "string", "pattern": NAME}})
        name = f"{name}_one" if route.path.endswith("{name}") else name
    content = _json(route.document.__name__)
    return _get(name, route.what, f"{route.what}.", content, parameters=parameters)


def _get(
    name: str,
    summary: str,
    answer: str,
    content: dict[str, Any],
    **more: object,
) -> dict[str, Any]:
    responses = {
        "200": {"description": answer, "content": content},
        "default": {"description": REFUSED, "content": _json("Refusal")},
    }
    return {"get": {"operationId": name, "summary": summary, **more, "responses": responses}}


def _json(kind: str) -> dict[str, Any]:
    return {"application/json": {"schema": _reference(kind)}}


def _reference(kind: str) -> dict[str, str]:
    return {"$ref": REFERENCE.format(model=kind)}


def _parameter(one: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "maxLength": LONGEST, "pattern": TEXT}
    if one.least is not None:
        schema = {"type": "integer", "minimum": one.least, "maximum": one.most}
    elif one.required:
        schema["minLength"] = 1
    if one.default is not None:
        schema["default"] = one.default
    return {
        "name": one.name,
        "in": "query",
        "required": one.required,
        "description": f"{one.what[0].upper()}{one.what[1:]}.",
        "schema": schema,
    }


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """Mark every property of a schema required, and allow no others."""
    if schema.get("type") != "object" or "properties" not in schema:
        return schema
    return {**schema, "required": list(schema["properties"]), "additionalProperties": False}
