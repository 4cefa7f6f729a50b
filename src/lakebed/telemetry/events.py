"""Events as values. An event owns its log line, its metrics and its health changes.

Code that emits one knows no logger, no metric and no page.
"""

import contextlib
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, dataclass_transform

from lakebed.errors import LakeError, machine_trouble
from lakebed.telemetry.health import UNFORESEEN, HealthChange, HealthPart, Mark, PartKind
from lakebed.telemetry.measures import Count, GaugeReading, Measure, Moment, Observe
from lakebed.types import Level as Level  # noqa: PLC0414 - every event has one
from lakebed.units import in_words, plural, span, took


class _SentenceFormatter(string.Formatter):
    """Formats facts for a sentence."""

    def format_field(self, value: Any, format_spec: str) -> str:  # noqa: ANN401 - any fact
        """Return a fact in words.

        `#file` or `#entry|entries` counts, `size`, `took` and `span` measure, `list`, `why` and
        `some` join texts, the last one only the first few. `?, line *` replaces the star with a
        fact; it is empty without the fact.
        """
        if format_spec.startswith("#"):
            count = len(value) if isinstance(value, tuple) else value
            return plural(count, *format_spec[1:].split("|"))
        if format_spec.startswith("?"):
            return "" if value is None else format_spec[1:].replace("*", str(value))
        shown = FORMATS.get(format_spec)
        return shown(value) if shown else format(value, format_spec)


FEW = 10
"""The number of items of a long list that are named."""


def first_of(texts: Sequence[str]) -> str:
    """Return the first texts, and how many more there are."""
    more = f" and {len(texts) - FEW} more" if len(texts) > FEW else ""
    return f"{', '.join(texts[:FEW])}{more}"


FORMATS: Mapping[str, Callable[[Any], str]] = {
    "size": in_words,
    "took": took,
    "span": span,
    "list": ", ".join,
    "why": "; ".join,
    "some": first_of,
}
WORDS = _SentenceFormatter()


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Event:
    """Something that happened. Its fields are facts; `sentence` puts them in words.

    Every subclass is a dataclass with keyword-only fields, and names its level. `says` is a
    template for its fields, unless it overrides `sentence`. Fields never change; comparing and
    printing are written once, since generated methods slow every start down.
    """

    level: ClassVar[Level] = Level.INFO
    says: ClassVar[str] = ""

    def __init_subclass__(cls, *, level: Level | None = None, says: str = "") -> None:
        super().__init_subclass__()
        cls.level, cls.says = level or cls.level, says or cls.says
        dataclass(kw_only=True, eq=False, repr=False)(cls)

    def __eq__(self, other: object) -> bool:
        """Whether both have the same type and facts."""
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        """Hash the facts."""
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        """Return the type and the facts."""
        facts = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({facts})"

    def sentence(self) -> str:
        """Return the event as one line of text."""
        return WORDS.vformat(self.says, (), vars(self))

    def facts(self) -> dict[str, object]:
        """Return the fields by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def measures(self) -> Iterable[Measure]:
        """Return its updates of metrics."""
        return ()

    def health_changes(self) -> Iterable[HealthChange]:
        """Return its changes of a pipeline's or table's health."""
        return ()


class PartEvent(Event):
    """Something that happened to a pipeline or table, whose name starts the sentence.

    A subclass may name a counter to increment (`counts`), the field with the amount (`amount`: a
    number, or a list to count) and the fields that are labels (`labels`). Without an amount it
    counts as one.
    """

    part_kind: ClassVar[PartKind]
    _counts: ClassVar[str] = ""
    _amount: ClassVar[str] = ""
    _counted_by: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(
        cls,
        *,
        level: Level | None = None,
        says: str = "",
        counts: str = "",
        amount: str = "",
        labels: tuple[str, ...] = (),
    ) -> None:
        cls._counts, cls._amount, cls._counted_by = counts, amount, labels
        super().__init_subclass__(level=level, says=says)

    @property
    def part(self) -> HealthPart:
        """Return the pipeline or table."""
        return HealthPart(self.part_kind, getattr(self, self.part_kind.value))

    def sentence(self) -> str:
        """Return the name and the message."""
        return f"{self.part.name}: {self.message()}"

    def message(self) -> str:
        """Return what happened, without the name."""
        return super().sentence()

    def measures(self) -> Iterable[Measure]:
        """Increment the counter that the class names."""
        if self._counts:
            amount = getattr(self, self._amount) if self._amount else 1
            labels = {name: str(getattr(self, name)) for name in self._counted_by}
            yield self.count(
                self._counts, len(amount) if isinstance(amount, tuple) else amount, **labels
            )

    def count(self, metric: str, amount: float = 1, **labels: str) -> Count:
        """Return an increment of a counter."""
        return Count(metric, amount, self._labels(labels))

    def observe(self, metric: str, seconds: float, **labels: str) -> Observe:
        """Return an observation of a histogram."""
        return Observe(metric, seconds, self._labels(labels))

    def reading(self, metric: str, value: float, **labels: str) -> GaugeReading:
        """Return the value of a gauge."""
        return GaugeReading(metric, value, self._labels(labels))

    def _labels(self, more: dict[str, str]) -> dict[str, str]:
        return {self.part_kind.value: self.part.name, **more}


Emit = Callable[[Event], None]
"""Receives events. It never raises and never blocks for long."""


def shared(*listeners: Emit) -> Emit:
    """Return an emitter that calls every listener; an error of one does not affect others."""

    def emit(event: Event) -> None:
        for listener in listeners:
            # Reporting on a batch must never fail the batch.
            with contextlib.suppress(Exception):
                listener(event)

    return emit


PROGRAM = {PartKind.PIPELINE: "blizzard", PartKind.TABLE: "penguin"}
"""The prefix of metric names, by the kind of part."""


def step_taken(part: HealthPart) -> Moment:
    """Return the measure of a step that succeeded now."""
    name = f"{PROGRAM[part.kind]}_last_step_timestamp_seconds"
    return Moment(name, {part.kind.value: part.name})


class StepFailed(Event, level=Level.ERROR):
    """A step of a pipeline or table failed; it is retried, or the part stops."""

    who: str
    code: str
    error: str
    next_try_secs: float | None
    kind: PartKind = PartKind.PIPELINE

    @property
    def shown(self) -> str:
        """Return the error for use outside of the log; only the code of an unforeseen one."""
        return f"{'see the log' if self.code == UNFORESEEN else self.error} [{self.code}]"

    def sentence(self) -> str:
        """Return the error and what happens next."""
        then = (
            f"{self.kind.value} stopped"
            if self.next_try_secs is None
            else f"trying again in {took(self.next_try_secs)}"
        )
        return f"{self.who}: {self.error} [{self.code}]; {then}"

    def measures(self) -> Iterable[Measure]:
        """Count it, by its code."""
        labels = {self.kind.value: self.who, "code": self.code}
        yield Count(f"{PROGRAM[self.kind]}_step_failures_total", 1, labels)

    def health_changes(self) -> Iterable[HealthChange]:
        """Yield the health change: the pipeline or table is failing."""
        ended = self.next_try_secs is None
        part = HealthPart(self.kind, self.who)
        yield HealthChange(Mark.AILING, part, code=self.code, reason=self.error, ended=ended)


class StepFinished(Event, level=Level.TRACE):
    """A step of a pipeline or table ended."""

    who: str
    found: bool
    kind: PartKind = PartKind.PIPELINE

    def sentence(self) -> str:
        """Return whether there was anything to do, in words."""
        return f"{self.who}: a step {'did its work' if self.found else 'found nothing to do'}"

    def measures(self) -> Iterable[Measure]:
        """Record its time."""
        yield step_taken(HealthPart(self.kind, self.who))

    def health_changes(self) -> Iterable[HealthChange]:
        """Yield the health change: the pipeline or table is healthy."""
        yield HealthChange(Mark.WELL, HealthPart(self.kind, self.who))


class NextStepDue(Event, level=Level.TRACE):
    """A pipeline or table has nothing to do until its next step."""

    who: str
    seconds: float
    kind: PartKind = PartKind.PIPELINE

    says = "{who}: the next poll is in {seconds:took}"


class LastStepTaken(Event, level=Level.TRACE):
    """A pipeline or table takes no more steps, as requested."""

    who: str
    kind: PartKind = PartKind.PIPELINE

    says = "{who}: no more steps follow"

    def health_changes(self) -> Iterable[HealthChange]:
        """Yield the health change: nothing more is expected."""
        yield HealthChange(Mark.OVER, HealthPart(self.kind, self.who))


class MetricsServed(Event):
    """Metrics and health are served."""

    url: str
    page: bool = False
    """Whether the live page is served, too."""

    def sentence(self) -> str:
        """Return the addresses."""
        page = f", the live page is at {self.url}/" if self.page else ""
        return f"metrics are at {self.url}/metrics, health is at {self.url}/health{page}"


class ExportFailed(Event, level=Level.WARN):
    """Traces or lineage could not be delivered; nothing else is affected."""

    what: str
    reason: str

    says = (
        "{what} cannot be delivered: {reason}; they are dropped until delivery works again, and "
        "nothing else is affected"
    )


class ExportResumed(Event):
    """Traces or lineage are delivered again."""

    what: str
    lost: int

    says = "{what} are delivered again; {lost:,} of them were dropped"


class FaultFound(Event, level=Level.ERROR):
    """A fault that prevents the program from doing its work."""

    code: str
    error: str

    def sentence(self) -> str:
        """Return the error."""
        return self.error


class StopRequested(Event):
    """A signal requested an orderly stop."""

    signal: str

    says = "{signal} received: stopping as soon as that is safe; send it again to exit at once"


def code_of(error: BaseException) -> str:
    """Return the stable code of any error."""
    ours = error if isinstance(error, LakeError) else machine_trouble(error)
    return "internal_error" if ours is None else ours.code
