"""Every route of the API: what it takes, what it answers, and who answers it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from liveview import model, over_time, parts
from liveview.answers import Answers, NoSuchFile
from liveview.api.parameters import Parameter, Values, leads_out
from liveview.observer import Observer

STREAM = "/api/v1/live"
OPENAPI = "/api/openapi.json"

BEFORE = Parameter(
    name="before", what="only those with lower numbers than this", least=0, most=10**17
)
LIMIT = Parameter(name="limit", what="the most that are answered", default=50, least=1, most=500)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One route. A name in its path is that of a pipeline or a table."""

    path: str
    what: str
    kind: type[Any]
    """The document that it answers with."""
    answer: Callable[["Sources", str, Values], Any]
    parameters: tuple[Parameter, ...] = ()
    max_age: float = 2.0
    """How many seconds an answer may be old."""

    @property
    def of(self) -> str | None:
        """Return what is named in its path: `pipelines` or `tables`; None where nothing is."""
        return self.path.split("/")[3] if "{name}" in self.path else None

    def name_in(self, segments: list[str]) -> str | None:
        """Return the name in a path of this route, empty without one; None for another route."""
        own = self.path.split("/")[1:]
        if len(own) != len(segments):
            return None
        name = ""
        for mine, given in zip(own, segments, strict=True):
            if mine == "{name}":
                name = given
            elif mine != given:
                return None
        return name


@dataclass(frozen=True, slots=True)
class Sources:
    """Who answers."""

    observer: Observer
    answers: Answers

    @property
    def names(self) -> Mapping[str, Mapping[str, object]]:
        """Return the names that there are."""
        return {"pipelines": self.observer.pipelines, "tables": self.observer.tables}


def _number(values: Values, name: str) -> int:
    value = values[name]
    if not isinstance(value, int):
        raise TypeError(f"{name} has a default")
    return value


def _journey(on: Sources, name: str, path: str) -> model.Journey:
    if leads_out(path):
        raise NoSuchFile("a file is named by its path below a source, without `..`")
    return on.answers.journey(name, path)


def _before(values: Values) -> int | None:
    value = values["before"]
    return value if isinstance(value, int) else None


ROUTES: tuple[Route, ...] = (
    Route(
        path="/api/v1/overview",
        what="All pipelines and tables at a glance",
        kind=model.Overview,
        answer=lambda on, _name, _values: on.observer.overview(),
        max_age=0.5,
    ),
    Route(
        path="/api/v1/process",
        what="What this process knows by itself; the other program asks for it",
        kind=parts.Process,
        answer=lambda on, _name, _values: on.observer.process(),
        max_age=0.0,
    ),
    Route(
        path="/api/v1/pipelines/{name}",
        what="One pipeline in full",
        kind=model.PipelineDetail,
        answer=lambda on, name, _values: on.answers.pipeline(name),
    ),
    Route(
        path="/api/v1/pipelines/{name}/batches",
        what="Entries of its journal with their books, the newest first",
        kind=model.Batches,
        parameters=(BEFORE, LIMIT),
        answer=lambda on, name, values: on.answers.batches(
            name, before=_before(values), limit=_number(values, "limit")
        ),
    ),
    Route(
        path="/api/v1/pipelines/{name}/files",
        what="Source files by a part of their names, the newest first",
        kind=model.Files,
        parameters=(
            Parameter(
                name="search",
                what="a part of the name; the newest files where it is empty",
                default="",
            ),
            LIMIT,
        ),
        answer=lambda on, name, values: on.answers.files(
            name, search=str(values["search"]), limit=_number(values, "limit")
        ),
    ),
    Route(
        path="/api/v1/pipelines/{name}/file",
        what="The journey of one source file: the answer of `blizzard why`",
        kind=model.Journey,
        parameters=(
            Parameter(
                name="path",
                what="the file as SOURCE:PATH; PATH is enough where there is one source",
                required=True,
            ),
        ),
        answer=lambda on, name, values: _journey(on, name, str(values["path"])),
    ),
    Route(
        path="/api/v1/pipelines/{name}/days",
        what="What landed in its sources on each day, and what of it is in the table",
        kind=over_time.Days,
        parameters=(Parameter(name="limit", what="how many days", default=31, least=1, most=366),),
        answer=lambda on, name, values: on.answers.days(name, limit=_number(values, "limit")),
        max_age=15.0,
    ),
    Route(
        path="/api/v1/pipelines/{name}/throughput",
        what="Rows, bytes and files over time",
        kind=over_time.Series,
        parameters=(
            Parameter(name="hours", what="how far back", default=24, least=1, most=168),
            Parameter(name="points", what="how many steps", default=96, least=1, most=1000),
        ),
        answer=lambda on, name, values: on.answers.throughput(
            name, hours=_number(values, "hours"), points=_number(values, "points")
        ),
        max_age=5.0,
    ),
    Route(
        path="/api/v1/pipelines/{name}/freshness",
        what="How long files took from their arrival to the Delta commit, over time",
        kind=over_time.FreshnessSeries,
        parameters=(
            Parameter(name="hours", what="how far back", default=24, least=1, most=168),
            Parameter(name="points", what="how many steps", default=96, least=1, most=1000),
        ),
        answer=lambda on, name, values: on.answers.freshness(
            name, hours=_number(values, "hours"), points=_number(values, "points")
        ),
        max_age=5.0,
    ),
    Route(
        path="/api/v1/tables/{name}",
        what="One table in full",
        kind=model.TableDetail,
        answer=lambda on, name, _values: on.answers.table(name),
    ),
    Route(
        path="/api/v1/tables/{name}/versions",
        what="Versions of a table, the newest first",
        kind=model.Versions,
        parameters=(BEFORE, LIMIT),
        answer=lambda on, name, values: on.answers.versions(
            name, before=_before(values), limit=_number(values, "limit")
        ),
    ),
)
