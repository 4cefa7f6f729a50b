"""What a run sends to others: traces of its batches, and where their rows come from and go to."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version

from blizzard.model.progress import Report
from blizzard.model.settings import BlizzardSettings
from lakebed.telemetry.events import Emit
from lakebed.telemetry.export.spans import Span


@dataclass(frozen=True, slots=True)
class Exports:
    """Where events go, and what units report, if anybody wants to know that."""

    emit: Emit
    heard: Callable[[Report], None] | None = None


@contextmanager
def exporting(
    settings: BlizzardSettings, emit: Emit, environment: Mapping[str, str]
) -> Iterator[Exports]:
    """Send what is configured while the block runs; where that is nothing, nothing is loaded."""
    traces, lineage = settings.export.traces(environment), settings.export.lineage()
    if traces is None and lineage is None:
        yield Exports(emit)
        return
    from blizzard.lineage import LineageListener, Teller  # noqa: PLC0415
    from blizzard.tracing import BatchTracer  # noqa: PLC0415
    from lakebed.telemetry.export.exported import sent, traced  # noqa: PLC0415
    from penguin.tracing import CommitTracer  # noqa: PLC0415

    batches: list[BatchTracer] = []
    tellers = {
        each.name: Teller(
            settings=each,
            namespace=settings.export.openlineage_namespace,
            version=version("blizzard-penguin"),
        )
        for each in settings.pipelines
    }

    def of_batches(put: Callable[[Span], None]) -> Emit:
        batches.append(BatchTracer(put, time.time))
        return batches[0]

    service = environment.get("OTEL_SERVICE_NAME", "blizzard")
    with (
        traced(
            emit,
            traces,
            service,
            of_batches,
            # Commits that blizzard makes itself are told as penguin tells them.
            lambda put: CommitTracer(put, time.time),
        ) as told,
        sent(told, lineage, lambda put: LineageListener(put, time.time, tellers)) as told_all,
    ):
        yield Exports(told_all, batches[0].heard if batches else None)
