"""Updates of metrics as plain values, and the declarations of metrics.

`lakebed.telemetry.metrics_server` serves the metrics; nothing here depends on it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import product


@dataclass(frozen=True, slots=True)
class Count:
    """An increment of a counter."""

    name: str
    amount: float
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Observe:
    """An observation of a histogram."""

    name: str
    seconds: float
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class GaugeReading:
    """A value of a gauge."""

    name: str
    value: float
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Age:
    """The age since a time, which grows until the gauge is read; 0 if None, unknown if NaN."""

    name: str
    since: float | None
    """Seconds since the epoch."""
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Moment:
    """A gauge that is set to the current time."""

    name: str
    labels: Mapping[str, str]


Measure = Count | Observe | GaugeReading | Age | Moment


class MetricKind(StrEnum):
    """The types of metrics."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


Series = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One metric of a program, with its exact set of labels."""

    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...]
    buckets: tuple[float, ...] = ()
    """The upper bounds of a histogram, in seconds."""
    series: Series = ((),)
    """The values of the labels after the first, one tuple for each series that is shown from the
    start."""


@dataclass(frozen=True, slots=True)
class Specs:
    """Declares the metrics of a program, each with the label of its pipeline or table."""

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
        """Declare a metric, with further labels and their known values.

        Every combination of them is shown from the start, unless `series` selects some.
        """
        if series is None:
            series = tuple(product(*(map(str, values) for values in known.values())))
        labels = (self.label, *known)
        return Spec(name=name, kind=kind, help=text, labels=labels, buckets=buckets, series=series)

    def common(self, *libraries: str) -> Iterator[Spec]:
        """Yield the metrics of every program: its build and its last step."""
        yield Spec(
            name=f"{self.program}_build_info",
            kind=MetricKind.GAUGE,
            help="1; its labels say what is running.",
            labels=("version", "python", *libraries),
            series=(),
        )
        yield self.declare(
            MetricKind.GAUGE,
            f"{self.program}_last_step_timestamp_seconds",
            "When a step last succeeded, or the program started.",
            series=(),
        )


QUICK = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""Buckets for durations up to a minute."""

LONG = (0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
"""Buckets for durations up to an hour."""

DELAY = (1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400)
"""Buckets for delays of rows, from a second to a day."""
