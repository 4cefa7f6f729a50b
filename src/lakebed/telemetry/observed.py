"""What a run does, as metrics and health; neither is loaded where nobody asked for them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakebed.telemetry.events import Emit, Event, MetricsServed, shared, step_taken
from lakebed.telemetry.guard import Guard
from lakebed.telemetry.health import Part
from lakebed.telemetry.measures import Measure, Spec

if TYPE_CHECKING:
    from lakebed.telemetry.health import Health
    from lakebed.telemetry.http import HttpLimits
    from lakebed.telemetry.live_page import LivePage


@contextmanager
def observed(
    log: Emit,
    *,
    address: str | None,
    key: str = "metrics.address",
    specs: Iterable[Spec],
    parts: Mapping[Part, float],
    beside: Iterable[Part] = (),
    known: Callable[[], Iterable[Measure]] = tuple,
    seconds: Callable[[], float],
    guard: Guard | None = None,
    limits: "HttpLimits | None" = None,
    page: "LivePage | None" = None,
) -> Iterator[Emit]:
    """Serve metrics and health while the block runs; yield the emitter that feeds them and the log.

    `parts` are watched, each with the seconds between two looks for work. Those `beside` them have
    metrics and no health of their own. What is `known` of the program and its machine is shown from
    the start. Without an address nothing is served. An address that cannot be listened on is a
    fault of the configuration, at the key that it came from. The live page is served there, too,
    where there is one.
    """
    if address is None:
        yield log
        return
    from lakebed.telemetry.health import Health  # noqa: PLC0415
    from lakebed.telemetry.prometheus import Metrics  # noqa: PLC0415
    from lakebed.telemetry.server import serve  # noqa: PLC0415

    metrics, health = Metrics(specs, seconds=seconds), Health(seconds)
    _expect(health, parts)
    for part in (*parts, *beside):
        metrics.begin(**{part.kind: part.name})
    for measure in (*map(step_taken, parts), *known()):
        metrics.record(measure)

    def measured(event: Event) -> None:
        for measure in event.measures():
            metrics.record(measure)

    def heeded(event: Event) -> None:
        for sign in event.signs():
            health.note(sign)

    with serve(address, metrics, health, key=key, guard=guard, limits=limits, site=page) as url:
        if page is None:
            emit = shared(log, measured, heeded)
        else:
            page.log_to(log)
            emit = shared(log, measured, heeded, page.emit)
        emit(MetricsServed(url=url, page=page is not None))
        try:
            yield emit
        finally:
            if page is not None:
                page.close()


def _expect(health: "Health", parts: Mapping[Part, float]) -> None:
    for part, interval in parts.items():
        health.expect(part, interval=interval)
