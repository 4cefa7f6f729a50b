"""Metrics and health over HTTP: `GET /metrics` and `GET /health`, while a program runs.

What else is served on the same address, the live page, is handed in as a site.
"""

import errno
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus

from lakebed.errors import ConfigInvalid
from lakebed.telemetry.credentials import secret_of, tls_of
from lakebed.telemetry.guard import Guard
from lakebed.telemetry.health import Health
from lakebed.telemetry.http import Answer, HttpLimits, Page, PageServer, Site
from lakebed.telemetry.prometheus import Metrics


@contextmanager
def serve(
    address: str,
    metrics: Metrics,
    health: Health,
    *,
    key: str = "metrics.address",
    guard: Guard | None = None,
    limits: HttpLimits | None = None,
    site: Site | None = None,
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
