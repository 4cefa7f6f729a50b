"""A plan that knows of each large file whether it is uncompressed: only those can be cut."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from blizzard.model.files import SourceFile, WorkUnit
from blizzard.model.locations import OpenReader, source_location
from blizzard.model.settings import PipelineSettings
from blizzard.model.source.codec import FIRST_BYTES, codec_in
from blizzard.model.source.forecast import Forecast
from blizzard.plan.units import UNKNOWN, plan, to_recognise
from lakebed.errors import LakeError
from lakebed.types import Provenance


def planned(
    settings: PipelineSettings,
    files: Sequence[SourceFile],
    open_source: OpenReader,
    *,
    parallelism: int,
    forecast: Forecast = UNKNOWN,
    hurry: bool = True,
) -> tuple[WorkUnit, ...]:
    """Plan files into units, once it is known which of the large ones are plain.

    A file is cut into byte ranges before anybody has read it, so the few that would be cut are
    asked for their first bytes. One that does not answer is left whole: whoever reads it will see.
    """
    cut_into: dict[str, Any] = {
        "parallelism": parallelism,
        "file_size": settings.sink.rolling.file_size,
        "sizing": settings.sizing,
        "forecast": forecast,
        "hurry": hurry,
    }
    if Provenance.LINE in settings.provenance:
        # Who begins in the middle of a file cannot number its lines.
        return plan(files, cuts=False, **cut_into)
    sources = {source.name: source for source in settings.sources}
    sure: dict[str, SourceFile] = {}
    for file in to_recognise(files, **cut_into):
        try:
            store = open_source(source_location(sources[file.source]))
            first = store.part(file.path, 0, min(FIRST_BYTES, file.size), etag=file.etag)
        except LakeError:
            continue
        sure[file.key] = replace(file, codec=codec_in(first, file.codec), by_content=False)
    known = [sure.get(file.key, file) for file in files] if sure else files
    return plan(known, **cut_into)
