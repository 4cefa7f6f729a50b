"""The only door to prometheus_client: measures become Prometheus metrics.

The metrics of a program are a closed set. A measure outside of it is a bug and raises; tests check
all events, so that none reaches a running program.
"""

import time
from collections.abc import Callable, Iterable
from typing import assert_never

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import choose_encoder

from lakebed.telemetry.measures import (
    Age,
    Count,
    GaugeReading,
    Measure,
    MetricKind,
    Moment,
    Observe,
    Sampled,
    Spec,
)

Metric = Counter | Gauge | Histogram


class MetricsRegistry:
    """The metrics of one process, in a registry of its own."""

    def __init__(self, specs: Iterable[Spec], *, seconds: Callable[[], float] = time.time) -> None:
        # The creation time of each counter would double every page.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._seconds = seconds
        self._registry = CollectorRegistry()
        self._specs = {spec.name: spec for spec in specs}
        self._metrics = {spec.name: self._make(spec) for spec in self._specs.values()}
        # Memory, CPU time and open files, under the standard names.
        ProcessCollector(registry=self._registry)

    def begin(self, **labels: str) -> None:
        """Show every known series of these labels at zero: a rise from nothing is no rise.

        `increase()` and `rate()` see changes only after the first sample of a series. One that
        begins at 1, at the first failure, hides just that failure.
        """
        for name, spec in self._specs.items():
            if not labels.keys() <= set(spec.labels):
                continue
            further = [label for label in spec.labels if label not in labels]
            for values in spec.series:
                if len(values) == len(further):
                    known = dict(zip(further, values, strict=True))
                    self._metrics[name].labels(**labels, **known)

    def record(self, measure: Measure) -> None:
        """Apply a measure to its metric."""
        metric = self._metrics[measure.name].labels(**measure.labels)
        match measure:
            case Count() if isinstance(metric, Counter):
                metric.inc(measure.amount)
            case Observe() if isinstance(metric, Histogram):
                metric.observe(measure.seconds)
            case GaugeReading() if isinstance(metric, Gauge):
                metric.set(measure.value)
            case Age() if isinstance(metric, Gauge):
                metric.set_function(self._age(measure.since))
            case Moment() if isinstance(metric, Gauge):
                metric.set(self._seconds())
            case Sampled() if isinstance(metric, Gauge):
                metric.set_function(measure.read)
            case Count() | Observe() | GaugeReading() | Age() | Moment() | Sampled():
                raise TypeError(f"{measure.name} is not a metric for a {type(measure).__name__}")
            case _:
                assert_never(measure)

    def page(self, accept: str) -> tuple[str, bytes]:
        """Return the content type and the text of all metrics, in the accepted format."""
        encode, content_type = choose_encoder(accept)
        return content_type, encode(self._registry)

    def _make(self, spec: Spec) -> Metric:
        given = (spec.name, spec.help, spec.labels)
        if spec.kind is MetricKind.HISTOGRAM:
            return Histogram(*given, registry=self._registry, buckets=spec.buckets)
        kind = Counter if spec.kind is MetricKind.COUNTER else Gauge
        return kind(*given, registry=self._registry)

    def _age(self, since: float | None) -> Callable[[], float]:
        if since is None:
            return lambda: 0.0
        return lambda: max(0.0, self._seconds() - since)
