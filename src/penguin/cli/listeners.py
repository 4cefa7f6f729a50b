"""Who is told what a run of penguin does: metrics, health, the live page, a collector of traces.

Each is loaded only where the configuration asks for it: a cold start costs what it needs.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lakebed.telemetry.events import Emit
from lakebed.telemetry.health import Part, PartKind
from penguin.model.settings import PenguinSettings

if TYPE_CHECKING:
    from lakebed.telemetry.measures import Measure


@contextmanager
def telling(
    settings: PenguinSettings,
    log: Emit,
    files: Sequence[Path] | None,
    folders: Sequence[Path] | None,
) -> Iterator[Emit]:
    """Yield the emitter that feeds the log and everybody else who wants to know."""
    with _watched(settings, log, files, folders) as watched, tracing(settings, watched) as told:
        yield told


@contextmanager
def tracing(settings: PenguinSettings, emit: Emit) -> Iterator[Emit]:
    """Send traces where they are asked for; yield the emitter that feeds them too."""
    target = settings.export.traces(os.environ)
    if target is None:
        yield emit
        return
    from lakebed.telemetry.export.courier import delivered  # noqa: PLC0415
    from lakebed.telemetry.export.spans import encoder  # noqa: PLC0415
    from penguin.tracing import CommitTracer  # noqa: PLC0415

    service = os.environ.get("OTEL_SERVICE_NAME", "penguin")
    commits = partial(CommitTracer, seconds=time.time)
    with delivered(emit, target, encoder(service), commits) as listened:
        yield listened


@contextmanager
def _watched(
    settings: PenguinSettings,
    log: Emit,
    files: Sequence[Path] | None,
    folders: Sequence[Path] | None,
) -> Iterator[Emit]:
    if settings.metrics_address is None:
        yield log
        return
    from lakebed.telemetry.observed import live_page, observed  # noqa: PLC0415
    from penguin.metrics import METRICS  # noqa: PLC0415

    parts = {Part(PartKind.TABLE, table.name): table.poll_interval for table in settings.tables}
    with observed(
        log,
        address=settings.metrics_address,
        key=settings.metrics_key,
        guard=settings.metrics_guard,
        specs=METRICS,
        parts=parts,
        known=lambda: _known(settings),
        seconds=time.time,
        page=live_page("penguin", settings, files, folders, tuple(parts)),
    ) as watched:
        yield watched


def _known(settings: PenguinSettings) -> "Iterator[Measure]":
    """Yield what metrics show from the start: what is running, and the room for its tables."""
    from lakebed.storage.opening import local_path  # noqa: PLC0415
    from lakebed.telemetry.observed import build_info, disk_room  # noqa: PLC0415

    yield build_info(PartKind.TABLE)
    yield from disk_room(
        (Part(PartKind.TABLE, table.name), local_path(table.table_uri)) for table in settings.tables
    )
