"""Metrics and health over HTTP: `GET /metrics` and `GET /health`, while a program runs."""

import errno
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus

from lakebed.errors import ConfigInvalid
from lakebed.telemetry.credentials import secret_of, tls_of
from lakebed.telemetry.events import Emit, Event, MetricsServed, shared
from lakebed.telemetry.guard import Guard
from lakebed.telemetry.health import Health, Part
from lakebed.telemetry.http import Answer, HttpLimits, Page, PageServer
from lakebed.telemetry.measures import Spec
from lakebed.telemetry.prometheus import Metrics

SHUTDOWN_SECS = 0.2


@contextmanager
def observed(
    log: Emit,
    *,
    address: str | None,
    key: str = "metrics.address",
    specs: Iterable[Spec],
    parts: Mapping[Part, float],
    beside: Iterable[Part] = (),
    seconds: Callable[[], float],
    guard: Guard | None = None,
    limits: HttpLimits | None = None,
) -> Iterator[Emit]:
    """Serve metrics and health while the block runs; yield the emitter that feeds them and the log.

    `parts` are watched, each with the seconds between two looks for work. Those `beside` them have
    metrics and no health of their own. Without an address
    nothing is served. An address that cannot be listened on is a fault of the configuration, at the
    key that it came from.
    """
    if address is None:
        yield log
        return
    metrics, health = Metrics(specs, seconds=seconds), Health(seconds)
    for part, interval in parts.items():
        health.expect(part, interval=interval)
    for part in (*parts, *beside):
        metrics.begin(**{part.kind: part.name})

    def measured(event: Event) -> None:
        for measure in event.measures():
            metrics.record(measure)

    def heeded(event: Event) -> None:
        for sign in event.signs():
            health.note(sign)

    with serve(address, metrics, health, key=key, guard=guard, limits=limits) as url:
        emit = shared(log, measured, heeded)
        emit(MetricsServed(url=url))
        yield emit


@contextmanager
def serve(
    address: str,
    metrics: Metrics,
    health: Health,
    *,
    key: str = "metrics.address",
    guard: Guard | None = None,
    limits: HttpLimits | None = None,
) -> Iterator[str]:
    """Serve on an address until the block ends, and yield the URL; port 0 takes a free one."""
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
            limits=limits,
        )
    except OSError as cause:
        raise ConfigInvalid([_cannot_listen(key, address, cause)]) from cause
    thread = threading.Thread(
        target=server.serve_forever, args=(SHUTDOWN_SECS,), name="metrics", daemon=True
    )
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
        way_out = "; another process is listening there, so set this key to a different address"
    return f"{key}: cannot listen on {address}: {cause.strerror or cause}{way_out}"


def pages_of(metrics: Metrics, health: Health) -> dict[str, Page]:
    """Return every page by its path. A probe needs no token; names and reasons are not for it."""

    def metrics_page(accept: str) -> Answer:
        return Answer(HTTPStatus.OK, *metrics.page(accept))

    def whole(_accept: str) -> Answer:
        report = health.report()
        return _health_page(report.document, well=report.well)

    def status_alone() -> Answer:
        report = health.report()
        return _health_page({"status": report.document["status"]}, well=report.well)

    return {"/metrics": Page(metrics_page), "/health": Page(whole, to_strangers=status_alone)}


def _health_page(document: Mapping[str, object], *, well: bool) -> Answer:
    status = HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE
    body = json.dumps(document, ensure_ascii=False, indent=2) + "\n"
    return Answer(status, "application/json; charset=utf-8", body.encode())
