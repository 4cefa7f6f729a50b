"""Serve metrics, health and the live page of a run over HTTP: the only door to prometheus_client.

The metrics of a program are a closed set. A measure outside of it is a bug and raises; tests check
all events, so that none reaches a running program.
"""

import errno
import json
import os
import platform
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from http import HTTPStatus
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, assert_never

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import choose_encoder

from lakebed.errors import ConfigInvalid
from lakebed.telemetry.events import PROGRAM, Emit, Event, MetricsServed, shared, step_taken
from lakebed.telemetry.health import Health, HealthPart, PartKind
from lakebed.telemetry.http import (
    HttpAnswer,
    HttpPage,
    PageServer,
    Site,
    secret_of,
    tls_of,
)
from lakebed.telemetry.measures import (
    Age,
    Count,
    GaugeReading,
    Measure,
    MetricKind,
    Moment,
    Observe,
    Spec,
)
from lakebed.telemetry.settings import Guard

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
        """Show every known series of these labels at zero, so that its first rise is seen.

        `increase()` and `rate()` see changes only after the first sample of a series. One that
        begins at 1, with the first failure, hides that failure.
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
            case Count() | Observe() | GaugeReading() | Age() | Moment():
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
        return lambda: max(self._seconds() - since, 0.0)  # In this order NaN stays NaN.


@contextmanager
def observed(
    log: Emit,
    *,
    address: str | None,
    key: str = "metrics.address",
    specs: Iterable[Spec],
    parts: Mapping[HealthPart, float],
    beside: Iterable[HealthPart] = (),
    known: Callable[[], Iterable[Measure]] = tuple,
    seconds: Callable[[], float],
    guard: Guard | None = None,
    page: Any = None,  # noqa: ANN401 - a LiveSite, which is a package above
) -> Iterator[Emit]:
    """Serve metrics and health during the block; yield the emitter for them and the log.

    `parts` are watched, each with its poll interval in seconds. Those `beside` them have metrics
    and no health. `known` measures are shown from the start. Without an address nothing is served;
    one that is not available is a fault of the configuration, at `key`. The live page is served
    there, too, if there is one.
    """
    if address is None:
        yield log
        return
    metrics, health = MetricsRegistry(specs, seconds=seconds), Health(seconds)
    for part, interval in parts.items():
        health.expect(part, interval=interval)
    for part in (*parts, *beside):
        metrics.begin(**{part.kind: part.name})
    for measure in (*map(step_taken, parts), *known()):
        metrics.record(measure)

    def measured(event: Event) -> None:
        for measure in event.measures():
            metrics.record(measure)

    def heeded(event: Event) -> None:
        for sign in event.health_changes():
            health.note(sign)

    listeners: tuple[Emit, ...] = (log, measured, heeded)
    with (
        serve(address, metrics, health, key=key, guard=guard, site=page) as url,
        nullcontext() if page is None else closing(page),
    ):
        if page is not None:
            page.log_to(log)
            listeners = (*listeners, page.emit)
        emit = shared(*listeners)
        emit(MetricsServed(url=url, page=page is not None))
        yield emit


@contextmanager
def serve(
    address: str,
    metrics: MetricsRegistry,
    health: Health,
    *,
    key: str = "metrics.address",
    guard: Guard | None = None,
    site: Site | None = None,
) -> Iterator[str]:
    """Serve on an address during the block, and yield the URL; port 0 takes a free one."""
    host, _colon, port = address.rpartition(":")
    guard = guard or Guard()
    secret, tls = secret_of(guard), tls_of(guard)
    try:
        server = PageServer(
            host.strip("[]"),
            int(port),
            pages_of(metrics, health),
            secret=secret,
            tls=tls,
            site=site,
        )
    except OSError as cause:
        raise ConfigInvalid([_cannot_listen(key, address, cause)]) from cause
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        scheme = "http" if tls is None else "https"
        yield f"{scheme}://{host}:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _cannot_listen(key: str, address: str, cause: OSError) -> str:
    way_out = ""
    if cause.errno == errno.EADDRINUSE:
        way_out = (
            "; another process is listening there, perhaps a run of this configuration that has "
            "not ended; if it is another program, set this key to a different address"
        )
    return f"{key}: cannot listen on {address}: {cause.strerror or cause}{way_out}"


def pages_of(metrics: MetricsRegistry, health: Health) -> dict[str, HttpPage]:
    """Return every page by its path. Without the token /health shows only the status."""

    def metrics_page(accept: str) -> HttpAnswer:
        return HttpAnswer(HTTPStatus.OK, *metrics.page(accept))

    def whole(_accept: str) -> HttpAnswer:
        return _health_page(health.report())

    def status_alone() -> HttpAnswer:
        return _health_page({"status": health.report()["status"]})

    return {
        "/metrics": HttpPage(metrics_page),
        "/health": HttpPage(whole, to_strangers=status_alone),
    }


def _health_page(document: Mapping[str, object]) -> HttpAnswer:
    well = document["status"] == "ok"
    status = HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE
    body = json.dumps(document, ensure_ascii=False, indent=2) + "\n"
    return HttpAnswer(status, "application/json; charset=utf-8", body.encode())


def live_page(
    program: Literal["blizzard", "penguin"],
    settings: Any,  # noqa: ANN401 - those of either program
    files: Sequence[Path] | None,
    folders: Sequence[Path] | None,
    parts: Sequence[HealthPart],
) -> Any:  # noqa: ANN401 - a LiveSite, or None
    """Return the live page of a run; None if it is not served."""
    if settings.metrics_address is None or not settings.metrics_page:
        return None
    return import_module("liveview.site").LiveSite(
        program,
        settings,
        files=files or (),
        folders=folders or (),
        environment=os.environ,
        parts=parts,
    )


def build_info(kind: PartKind, *libraries: str) -> GaugeReading:
    """Return the gauge with the versions of the program and its libraries."""
    labels = {"version": version("blizzard-penguin"), "python": platform.python_version()}
    labels |= {library: version(library) for library in libraries}
    return GaugeReading(f"{PROGRAM[kind]}_build_info", 1, labels)
