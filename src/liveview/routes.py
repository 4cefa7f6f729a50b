"""The routes of the API: what each takes, and the method that answers it. Pure.

`route` enters a method in `ROUTES`, the one list from which requests are dispatched, parameters are
checked, and the OpenAPI document is made.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, TypeVar, get_type_hints
from urllib.parse import parse_qsl, unquote_to_bytes

STREAM = "/api/v1/live"
OVERVIEW = "/api/v1/overview"
OPENAPI = "/api/openapi.json"
LONGEST = 4096
NUMBER = re.compile(r"[0-9]{1,18}")
TEXT = r"^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]*$"
"""Values of a text parameter, as JSON Schema writes them: no control characters."""
NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$"
"""Names in a path."""

Answering = TypeVar("Answering", bound=Callable[..., Any])


@dataclass(eq=False)
class RequestRefused(Exception):
    """A request that is not answered, with the reason."""

    code: str
    message: str
    way_out: str | None = None
    status: HTTPStatus = HTTPStatus.BAD_REQUEST
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a query: a number if it has a lowest value, else a text."""

    name: str
    what: str
    default: int | str | None = None
    least: int | None = None
    most: int | None = None
    required: bool = False

    def value(self, text: str) -> int | str:
        """Return the value of a text; raise Refused if it is not allowed."""
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
BEFORE = Parameter(
    name="before", what="only those with lower numbers than this", least=0, most=10**17
)
LIMIT = Parameter(name="limit", what="the most that are answered", default=50, least=1, most=500)
DAYS = Parameter(name="limit", what="how many days", default=31, least=1, most=366)
HOURS = Parameter(name="hours", what="how far back", default=24, least=1, most=168)
POINTS = Parameter(name="points", what="how many steps", default=96, least=1, most=1000)
SEARCH = Parameter(
    name="search", what="a part of the name; the newest files where it is empty", default=""
)
PATH = Parameter(
    name="path",
    what="the file as SOURCE:PATH; PATH is enough where there is one source",
    required=True,
)


@dataclass(frozen=True, slots=True)
class Route:
    """One route. A name in its path is that of a pipeline or a table."""

    path: str
    what: str
    parameters: tuple[Parameter, ...]
    max_age: float
    """How many seconds an answer may be old."""
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
    """Enter a method as the answer to a path: it takes the name, then the parameters by name."""

    def enter(answer: Answering) -> Answering:
        ROUTES.append(Route(f"/api/v1/{path}", what, parameters, max_age, answer))
        return answer

    return enter


def values_of(query: str, parameters: Sequence[Parameter]) -> Values:
    """Return the parameters of a query, each once; raise Refused for any other."""
    known = {one.name: one for one in parameters}
    values: dict[str, int | str | None] = {}
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=32)
    except (ValueError, UnicodeDecodeError):
        raise RequestRefused("query_invalid", "the query cannot be read") from None
    for name, text in pairs:
        if name not in known:
            there = ", ".join(known) or "none"
            raise RequestRefused(
                "parameter_unknown", f"there is no such parameter here; there are: {there}"
            )
        if name in values:
            raise RequestRefused("parameter_repeated", f"{name} is there more than once")
        values[name] = known[name].value(text)
    for one in parameters:
        if one.required and one.name not in values:
            raise RequestRefused("parameter_missing", f"{one.name} is missing: {one.what}")
        values.setdefault(one.name, one.default)
    return values


def segments_of(path: str) -> list[str]:
    """Return the parts of a path, decoded; raise Refused if one could mean more than a name."""
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
