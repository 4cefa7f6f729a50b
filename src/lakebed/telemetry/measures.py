"""What events do to metrics, as plain values, and how a program declares the metrics it has.

Nothing here knows who shows the metrics: `lakebed.telemetry.prometheus` does.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import product


@dataclass(frozen=True, slots=True)
class Count:
    """This many more have happened."""

    name: str
    amount: float
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Observe:
    """It took this many seconds this time."""

    name: str
    seconds: float
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class GaugeReading:
    """It is this much now."""

    name: str
    value: float
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Age:
    """It has been so since then; the age grows until it is read. None where it is not so."""

    name: str
    since: float | None
    """Seconds since the epoch."""
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Moment:
    """It happened now."""

    name: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Sampled:
    """It is read whenever somebody asks for it; no event says so."""

    name: str
    read: Callable[[], float]
    labels: Mapping[str, str]


Measure = Count | Observe | GaugeReading | Age | Moment | Sampled


class MetricKind(StrEnum):
    """The types of metrics."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


Series = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One metric of a program: its name, what it says, and the labels it has, no more, no less."""

    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...]
    buckets: tuple[float, ...] = ()
    """The upper bounds of a histogram, in seconds."""
    series: Series = ((),)
    """The values of its labels after the first, one set of them for each series that is shown from
    the start. Where a metric has such labels and this is not given, no series is."""


@dataclass(frozen=True, slots=True)
class Specs:
    """Declares the metrics of a program, each with the label of its pipelines or tables."""

    program: str
    label: str

    def declare(
        self,
        kind: MetricKind,
        name: str,
        text: str,
        /,
        *,
        buckets: tuple[float, ...] = (),
        series: Series | None = None,
        **known: Iterable[str],
    ) -> Spec:
        """Declare a metric, with labels beside the first and the values that are known of each.

        Every combination of them is shown from the start, unless `series` says which ones are.
        """
        if series is None:
            series = tuple(product(*(map(str, values) for values in known.values())))
        labels = (self.label, *known)
        return Spec(name=name, kind=kind, help=text, labels=labels, buckets=buckets, series=series)

    def common(self, *libraries: str) -> Iterator[Spec]:
        """Yield what every program shows: what it is, when it worked, and its disks."""
        yield Spec(
            name=f"{self.program}_build_info",
            kind=MetricKind.GAUGE,
            help="1; its labels say what is running.",
            labels=("version", "python", *libraries),
            series=(),
        )
        for name, text in (
            ("last_step_timestamp_seconds", "When a step last succeeded, or the program started."),
            ("disk_free_bytes", "Free space where a local table lies."),
            ("disk_size_bytes", "Size of the disk where a local table lies."),
        ):
            yield self.declare(MetricKind.GAUGE, f"{self.program}_{name}", text, series=())


QUICK = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""Bounds for what should take no longer than a minute."""

LONG = (0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
"""Bounds for what may take an hour."""

DELAY = (1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400)
"""Bounds for how long rows were on their way, from a second to a day."""
