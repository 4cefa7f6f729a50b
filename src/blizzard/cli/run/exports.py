"""What a run sends to others: traces of its batches, and where their rows come from and go to."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from blizzard.model.settings import BlizzardSettings
from lakebed.telemetry.events import Emit


@contextmanager
def exporting(
    settings: BlizzardSettings, emit: Emit, environment: Mapping[str, str]
) -> Iterator[Emit]:
    """Send what is configured while the block runs; where that is nothing, nothing is loaded."""
    traces, lineage = settings.export.traces(environment), settings.export.lineage()
    if traces is None and lineage is None:
        yield emit
        return
    from blizzard.lineage import LineageListener, tellers_of  # noqa: PLC0415
    from blizzard.tracing import BatchTracer  # noqa: PLC0415
    from lakebed.telemetry.export.courier import CourierLimits, delivered  # noqa: PLC0415
    from lakebed.telemetry.export.spans import encoder  # noqa: PLC0415
    from penguin.tracing import CommitTracer  # noqa: PLC0415

    spans = encoder(environment.get("OTEL_SERVICE_NAME", "blizzard"))
    batches = partial(BatchTracer, seconds=time.time)
    # Commits that blizzard makes itself are traced as penguin traces them.
    commits = partial(CommitTracer, seconds=time.time)
    runs = partial(LineageListener, seconds=time.time, pipelines=tellers_of(settings))
    alone = CourierLimits(together=1, pause_secs=0.1)
    with (
        delivered(emit, traces, spans, batches, commits) as traced,
        delivered(traced, lineage, b"".join, runs, limits=alone) as listened,
    ):
        yield listened
