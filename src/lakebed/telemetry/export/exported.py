"""What a run sends to others, for as long as it goes on; nothing is loaded where nobody asked."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from lakebed.telemetry.events import Emit, shared
from lakebed.telemetry.export.spans import Span, Value, encode
from lakebed.telemetry.export.targets import Target

if TYPE_CHECKING:
    from lakebed.telemetry.export.courier import CourierLimits

Traced = Callable[[Callable[[Span], None]], Emit]
"""Makes the listener that turns events into spans, from where these go."""


@contextmanager
def traced(
    emit: Emit,
    target: Target | None,
    service: str,
    *listeners: Traced,
    limits: "CourierLimits | None" = None,
) -> Iterator[Emit]:
    """Send traces while the block runs; yield the emitter that feeds them too.

    Without a target it is the emitter that was given.
    """
    if target is None:
        yield emit
        return
    from importlib.metadata import version  # noqa: PLC0415

    from lakebed.telemetry.export.courier import Courier  # noqa: PLC0415

    resource: Mapping[str, Value] = {
        "service.name": service,
        "service.version": version("blizzard-penguin"),
        "telemetry.sdk.language": "python",
    }
    courier = Courier[Span](target, partial(encode, resource=resource), emit, limits=limits)
    try:
        yield shared(emit, *(made(courier.put) for made in listeners))
    finally:
        courier.close()


@contextmanager
def sent(
    emit: Emit,
    target: Target | None,
    listener: Callable[[Callable[[bytes], None]], Emit],
    *,
    limits: "CourierLimits | None" = None,
) -> Iterator[Emit]:
    """Send documents, one in each request, while the block runs, as `traced` does with spans."""
    if target is None:
        yield emit
        return
    from lakebed.telemetry.export.courier import Courier, CourierLimits  # noqa: PLC0415

    alone = limits or CourierLimits(together=1, pause_secs=0.1)
    courier = Courier[bytes](target, _only, emit, limits=alone)
    try:
        yield shared(emit, listener(courier.put))
    finally:
        courier.close()


def _only(documents: Sequence[bytes]) -> bytes:
    (document,) = documents
    return document
