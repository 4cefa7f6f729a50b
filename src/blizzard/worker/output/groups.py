"""The output files of one unit, in groups whose source files succeed or fail together.

Files of a failed group may be in the store, but no journal entry names them. If the store is full,
they are deleted again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from blizzard.model.source.file import SourceFile
from blizzard.model.source.partly_read import failed, untouched
from blizzard.model.work import ClosedFile, Work, WorkUnit
from blizzard.worker.ndjson.lines import CombinedFiles, Decoded
from blizzard.worker.output.encoding import ChooseEncoding
from blizzard.worker.output.origins import (
    Cutter,
    ProvenanceWriter,
    Slice,
    record_numbers,
    runs_at,
    runs_of,
    with_lines,
)
from blizzard.worker.output.parquet import RollingWriter
from blizzard.worker.output.partitioner import PartitionedWriter
from blizzard.worker.output.upload import Uploads
from blizzard.worker.position import Opened
from blizzard.worker.quarantine.reader import SCHEMA as QUARANTINE_SCHEMA
from blizzard.worker.quarantine.writer import QuarantineRows, QuarantineWriter
from blizzard.worker.record import failure_of
from lakebed import layout
from lakebed.documents.records import (
    BadLines,
    FailureStage,
    FinishedFile,
    QuarantineFile,
    Run,
    SourceRecord,
)
from lakebed.errors import StoreFull
from lakebed.layout import PartitionValues
from lakebed.types import Provenance

LINE_BYTES = 8
"""The memory of a record number."""

Uploaded = TypeVar("Uploaded", FinishedFile, QuarantineFile)


def _slices(batch: pa.RecordBatch, size: int, most: int, known: Sequence[Run]) -> list[Slice]:
    if batch.num_rows <= most:
        return [Slice(batch, size, tuple(known))]
    slices = [batch.slice(start, most) for start in range(0, batch.num_rows, most)]
    cutter = Cutter(known)
    return [
        Slice(each, size * each.num_rows // batch.num_rows, cutter.next(each.num_rows))
        for each in slices
    ]


@dataclass(slots=True)
class OutputGroup:
    """Source files that share output files, and so succeed or fail together."""

    name: str
    writer: RollingWriter | PartitionedWriter
    records: list[SourceRecord] = field(default_factory=list)
    uploads: list[Future[FinishedFile]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    """The write time of each upload."""
    quarantine: QuarantineWriter | None = None
    """The writer of its bad lines; None without any."""
    quarantine_uploads: list[Future[QuarantineFile]] = field(default_factory=list)
    broken: Exception | None = None
    """The first error; nothing more is written after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledGroups:
    """The outcome of all groups of a unit, after every upload has ended."""

    read: Sequence[SourceRecord]
    failed: Sequence[SourceRecord]
    files: tuple[FinishedFile, ...]
    quarantine: tuple[QuarantineFile, ...]
    write_seconds: Mapping[str, float]
    sink_full: str | None = None
    """The store's error if the sink is full."""


class OutputGroups:
    """The groups of one running unit: writes their rows and uploads their files."""

    def __init__(self, unit: WorkUnit, work: Work, folder: Path, uploads: Uploads) -> None:
        self._unit = unit
        self._work = work
        self._uploads = uploads
        self._files = {file.key: file for file in unit.files}
        self._groups: list[OutputGroup] = []
        self._stamp = work.stamp
        self._policy = work.rolling
        if unit.file_size is not None:
            self._policy = replace(work.rolling, file_size=unit.file_size)
        self._new_rolling = partial(
            RollingWriter,
            policy=self._policy,
            marks=work.marks,
            folder=folder,
            clock=work.clock,
        )

    def new(self) -> OutputGroup:
        """Add a group."""
        group = OutputGroup(f"{self._unit.name}.{len(self._groups)}", self._new_writer())
        self._groups.append(group)
        return group

    def slices(self, decoded: Decoded, file: SourceFile, lines: int) -> list[Slice]:
        """Cut decoded rows into batches within the source's limit, with their origins.

        `lines` counts the lines of the file, or of its part, that were read before.
        """
        before, most = file.records_before, self._work.limits[file.source].batch_size
        first = (before or 0) + lines + 1
        given = None if file.numbers is None else file.numbers[lines : lines + decoded.lines]
        batch, size = decoded.batch, decoded.size
        if self._stamp is not None and Provenance.LINE in self._stamp.columns:
            counted = None if before is None else record_numbers(decoded, first)
            batch = with_lines(batch, counted if given is None else given)
            size += batch.num_rows * LINE_BYTES
        known = runs_of(decoded, first) if given is None else runs_at(given)
        return _slices(batch, size, most, known)

    def write(self, group: OutputGroup, slices: Iterable[Slice], file: SourceFile) -> None:
        """Write rows of a source file; an error breaks only the group."""
        for batch, size, runs in slices:
            self._write_all(group, group.writer.write(batch, file.key, size, runs))

    def write_combined(self, group: OutputGroup, found: CombinedFiles[Opened], budget: int) -> bool:
        """Write the rows of whole files; return False if each file must be written separately.

        That is the case if rows are partitioned or carry their record number, or if they exceed a
        batch or the decode budget. An error breaks only the group.
        """
        writer, policy = group.writer, self._policy
        by_line = self._stamp is not None and Provenance.LINE in self._stamp.columns
        if by_line or not isinstance(writer, RollingWriter):
            return False
        sources = {one.file.source for one in found.keys}
        most_rows = min(self._work.limits[source].batch_size for source in sources)
        most_bytes = min(budget, policy.row_group_size, policy.file_size)
        read = found.read
        if read.batch.num_rows > most_rows or read.size > most_bytes:
            return False
        files = [(one.file.key, rows) for one, rows in zip(found.keys, read.rows, strict=True)]
        self._write_all(group, writer.write_files(read.batch, files, read.size))
        return True

    def quarantine(self, group: OutputGroup, bad: list[QuarantineRows]) -> None:
        """Write bad lines of a source file; an error breaks only the group."""
        for one in bad:
            if group.quarantine is None:
                group.quarantine = QuarantineWriter(self._new_rolling(schema=QUARANTINE_SCHEMA))
            self._write_quarantine(group, group.quarantine.write(one))

    def close(self, group: OutputGroup) -> None:
        """Write the remaining rows and close the group."""
        self._write_all(group, group.writer.close())
        if group.quarantine is not None:
            self._write_quarantine(group, group.quarantine.close())

    def forget(self, group: OutputGroup) -> None:
        """Drop the group of a single source file that has failed."""
        _abandon(group)
        self._groups.remove(group)

    def settle(self) -> SettledGroups:
        """Wait for all uploads; a failed one fails all source files of its group."""
        read: list[SourceRecord] = []
        lost: list[SourceRecord] = []
        files: list[FinishedFile] = []
        quarantine: list[QuarantineFile] = []
        seconds: dict[str, float] = {}
        full: str | None = None
        for group in self._groups:
            uploaded = _uploaded(group, group.uploads)
            bad_files = _uploaded(group, group.quarantine_uploads)
            if group.broken is not None:
                lost += self._failed(group, group.broken)
                # Only a store raises this; a full local disk is an OSError.
                if isinstance(group.broken, StoreFull):
                    full = full or str(group.broken)
                    self._delete_uploaded(uploaded, bad_files)
                continue
            read += group.records
            files += uploaded
            quarantine += bad_files
            seconds.update(zip((file.filename for file in uploaded), group.seconds, strict=True))
        return SettledGroups(
            read=read,
            failed=lost,
            files=tuple(files),
            quarantine=tuple(quarantine),
            write_seconds=seconds,
            sink_full=full,
        )

    def _delete_uploaded(self, files: list[FinishedFile], bad_files: list[QuarantineFile]) -> None:
        self._uploads.delete_unnamed(self._uploads.stored_as(file.filename) for file in files)
        self._uploads.delete_unnamed(file.filename for file in bad_files)

    def _failed(self, group: OutputGroup, error: Exception) -> list[SourceRecord]:
        failure = failure_of(error, stage=FailureStage.UPLOAD, show_values=self._work.show_values)
        return [failed(untouched(self._files[record.key]), failure) for record in group.records]

    def _new_writer(self) -> RollingWriter | PartitionedWriter:
        work = self._work
        columns, stamp = work.written, work.stamp
        if stamp is not None and Provenance.LINE in stamp.columns:
            columns = columns.with_provenance([Provenance.LINE])
        schema = columns.stored().arrow()
        stamps = None if stamp is None else ProvenanceWriter(stamp, self._uri_of)

        def for_partition(
            values: PartitionValues, choose: ChooseEncoding | None = None
        ) -> RollingWriter:
            return self._new_rolling(
                schema=schema,
                partition_values=values,
                choose=choose,
                stamps=stamps,
                mapping=work.mapping,
            )

        if work.row_partitions is None:
            return for_partition(self._unit.partition_values)
        return PartitionedWriter(
            by=work.row_partitions,
            from_path=self._unit.partition_values,
            schema=schema,
            policy=self._policy,
            batch_size_of=lambda key: work.limits[self._files[key].source].batch_size,
            for_partition=for_partition,
            staged_bytes=work.sizing.staged_bytes,
        )

    def _write_all(self, group: OutputGroup, closed: Iterator[ClosedFile]) -> None:
        """Upload the closed files; an error breaks only the group."""
        if group.broken is not None:
            return
        try:
            for file in closed:
                group.uploads.append(
                    self._uploads.hand_in(
                        file,
                        unit=group.name,
                        source_file=self._only_source(file),
                        runs=self._placed(file),
                    )
                )
                group.seconds.append(file.seconds)
        except Exception as error:  # noqa: BLE001 - reported as the outcome of every file in the group
            group.broken = error
            _abandon(group)

    def _write_quarantine(
        self, group: OutputGroup, closed: Iterator[tuple[ClosedFile, tuple[BadLines, ...]]]
    ) -> None:
        if group.broken is not None:
            return
        try:
            for file, summaries in closed:
                name = layout.quarantine_file(self._work.marks["pipeline"], file.name)
                group.quarantine_uploads.append(
                    self._uploads.hand_in_quarantine(file, name, unit=group.name, of=summaries)
                )
        except Exception as error:  # noqa: BLE001 - reported as the outcome of every file in the group
            group.broken = error
            _abandon(group)

    def _placed(self, closed: ClosedFile) -> tuple[Run, ...]:
        """Return the runs of an output file; in a file part, records count from its first byte."""
        file = self._files[closed.sources[0]]
        if file.part is None or file.records_before is not None:
            return closed.runs
        byte = file.part.start
        return tuple(run._replace(first=None, byte=byte, nth=run.first) for run in closed.runs)

    def _only_source(self, closed: ClosedFile) -> str | None:
        """Return the URI of the source file of an output file; None if there are several."""
        return self._uri_of(closed.sources[0]) if len(closed.sources) == 1 else None

    def _uri_of(self, key: str) -> str:
        file = self._files[key]
        return f"{self._work.sources[file.source].uri.rstrip('/')}/{file.path}"


def _abandon(group: OutputGroup) -> None:
    group.writer.abandon()
    if group.quarantine is not None:
        group.quarantine.abandon()


def _uploaded(group: OutputGroup, uploads: Sequence[Future[Uploaded]]) -> list[Uploaded]:
    """Wait for the group's uploads; the first error breaks it."""
    files = []
    for upload in uploads:
        try:
            files.append(upload.result())
        except Exception as error:  # noqa: BLE001 - reported as the outcome of every file in the group
            group.broken = group.broken or error
    return files
