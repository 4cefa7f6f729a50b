"""Lines of a quarantine file that go on waiting, written into another file in its place."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from blizzard.model.settings import RollingPolicy
from blizzard.worker.output.parquet import RollingWriter
from blizzard.worker.output.upload import Uploads
from blizzard.worker.quarantine.reader import SCHEMA, QuarantinedLine
from lakebed import layout
from lakebed.clock import Clock
from lakebed.documents.source_record import BadLines, QuarantineFile


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftBehind:
    """How the lines of a quarantine file that go on waiting are written."""

    rolling: RollingPolicy
    clock: Clock
    marks: dict[str, str]


def leave(
    table: pa.Table,
    lines: Sequence[QuarantinedLine],
    file: QuarantineFile,
    keep: Sequence[bool],
    rest: LeftBehind,
    uploads: Uploads,
) -> QuarantineFile | None:
    """Write the lines that go on waiting into a file of their own; None where none does."""
    if not any(keep):
        return None
    kept = table.filter(pa.array(keep, pa.bool_())).cast(SCHEMA)
    with tempfile.TemporaryDirectory(prefix="blizzard-", ignore_cleanup_errors=True) as folder:
        writer = RollingWriter(
            schema=SCHEMA,
            # It is no larger than the one it supersedes.
            policy=replace(rest.rolling, file_size=1 << 62, rollover=float("inf")),
            marks=rest.marks,
            folder=Path(folder),
            clock=rest.clock,
        )
        for batch in kept.to_batches():
            for _none in writer.write(batch, file.filename):
                raise AssertionError("a file that is never full was closed")
        (closed,) = writer.close()
        name = layout.quarantine_file(rest.marks["pipeline"], closed.name)
        said = _said(line for line, stays in zip(lines, keep, strict=True) if stays)
        written = uploads.set_aside(closed, name, unit=file.unit, of=said).result()
    return replace(written, lines_before=file.lines_before)


def _said(lines: Iterator[QuarantinedLine]) -> tuple[BadLines, ...]:
    found: dict[str, BadLines] = {}
    for line in lines:
        before = found.get(line.key)
        if before is not None:
            found[line.key] = replace(before, lines=before.lines + 1)
            continue
        found[line.key] = BadLines(
            source=line.key,
            lines=1,
            first=line.line,
            code=line.code,
            message=line.message,
            field=line.field,
        )
    return tuple(found.values())
