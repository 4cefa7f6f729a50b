"""What all units of a batch share, from the settings of their pipeline. Pure."""

from dataclasses import replace

from blizzard.model.bounds import Bounds
from blizzard.model.event_time import row_partitions_of
from blizzard.model.files import Limits, Stamp, Work
from blizzard.model.locations import sink_location, source_location
from blizzard.model.settings import PipelineSettings, share_of
from lakebed.clock import Clock
from lakebed.columns.schema import Schema
from lakebed.types import Handoff


def work_of(
    settings: PipelineSettings,
    *,
    schema: Schema | None = None,
    journal: str,
    batch: int,
    bounds: Bounds,
    clock: Clock,
    parallelism: int,
    total_concurrency: int | None,
    units: int | None = None,
) -> Work:
    """Return what the units of a batch share; of `total_concurrency`, a task has its share.

    Where there are so few `units` that each has two cores, decompression gets one of them.

    `batch` is the number of the entry that the journal is to get next.
    `schema` has the columns where more of them are known than are declared.
    """
    schema = settings.schema if schema is None else schema

    def share(limit: int) -> int:
        return share_of(total_concurrency, limit=limit, tasks=parallelism)

    sink = settings.sink
    template = sink.template
    return Work(
        sources={source.name: source_location(source) for source in settings.sources},
        sink=sink_location(settings),
        file_schema=schema.without(frozenset(template.keys if template else ())),
        unknown_fields=settings.unknown_fields,
        on_mismatch=settings.on_mismatch,
        stamp=_stamp(settings, f"{settings.name}/{journal}/{batch}", clock),
        quarantine=settings.quarantine,
        row_partitions=row_partitions_of(settings),
        rolling=sink.rolling,
        upload=replace(
            sink.upload, max_concurrent_uploads=share(sink.upload.max_concurrent_uploads)
        ),
        limits={
            source.name: Limits(
                max_concurrent_files=share(source.max_concurrent_files),
                batch_size=source.batch_size,
            )
            for source in settings.sources
        },
        marks={"pipeline": settings.name, "journal": journal},
        clock=clock,
        batch=batch,
        outbox=settings.name if sink.handoff is Handoff.DIRECT else None,
        show_values=settings.show_values,
        bounds=bounds,
        sizing=settings.sizing,
        decompress_ahead=units is not None and 2 * units <= parallelism,
    )


def _stamp(settings: PipelineSettings, batch: str, clock: Clock) -> Stamp | None:
    if not settings.provenance:
        return None
    return Stamp(columns=settings.provenance, batch=batch, ingested_at=clock.now())
