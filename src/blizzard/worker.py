"""One work unit, start to end: download, decompress, parse, roll Parquet, upload.

Plain Python that knows nothing of Spark. A source file is all in or all out: a small one is kept
decoded until its last line has parsed and only then shares an output file with others; one that
outgrows the budget gets output files of its own, which are forgotten if it fails. A forgotten file
may be in the store, but nobody will ever name it.
"""

import tempfile
from collections import Counter
from collections.abc import Generator, Iterator
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from blizzard.compression import CorruptStream, decompress
from blizzard.download import Downloads
from blizzard.flow import ClosedFile, Effort, SourceFile, UnitOutcome, Work, WorkUnit
from blizzard.grouping import NoPartition, require_partitions
from blizzard.line import Line, Silence
from blizzard.ndjson.decoder import BadLine, Decoded, Decoder
from blizzard.ranges import lines_of, without_first_lines
from blizzard.spread import SpreadWriter
from blizzard.upload import Uploads
from blizzard.writer import Repeating, RollingWriter
from lake.datafile import FinishedFile
from lake.entry import Failure, SourceRecord, Stage
from lake.errors import LakeError, machine_trouble
from lake.partition import PartitionValues
from lake.retry import may_mend
from lake.schema import Schema
from lake.storage import Reader, Store

DECODED_BUDGET = 64 * 1024 * 1024
"""Arrow bytes of one source file that are kept until its last line has parsed."""


_Slice = tuple[pa.RecordBatch, int]
"""Rows, and the memory that they take."""


class Stores(Protocol):
    """Where a worker gets its stores from."""

    def source(self, name: str) -> Reader:
        """Open a source of the pipeline."""

    def sink(self) -> Store:
        """Open the table's directory."""


@dataclass(slots=True)
class OpenedStores:
    """The stores of a batch, opened where they are used, once."""

    work: Work
    _sources: dict[str, Reader] = field(default_factory=dict)
    _sink: Store | None = None

    def source(self, name: str) -> Reader:
        """Open a source of the pipeline."""
        if name not in self._sources:
            location = self.work.sources[name]
            self._sources[name] = Reader(location.uri, location.options)
        return self._sources[name]

    def sink(self) -> Store:
        """Open the table's directory."""
        if self._sink is None:
            self._sink = Store(self.work.sink.uri, self.work.sink.options, make_folder=True)
        return self._sink


def run_unit(unit: WorkUnit, work: Work, stores: Stores, line: Line | None = None) -> UnitOutcome:
    """Turn a unit's source files into data files; every failure is part of the answer."""
    line = line or Silence()
    if line.stop_soon:
        return UnitOutcome(unit=unit.name, sources=(), files=())

    def open_at(file: SourceFile, place: int) -> Iterator[bytes]:
        begin = file.part.read_from if file.part is not None else 0
        return stores.source(file.source).stream(
            file.path, size=file.size, etag=file.etag, start=begin + place
        )

    try:
        with (
            tempfile.TemporaryDirectory(prefix="blizzard-", ignore_cleanup_errors=True) as folder,
            Uploads(
                stores.sink(), work.upload, line.progress, line.done, outbox=work.outbox
            ) as uploads,
            Downloads(
                unit.files,
                open_at,
                ahead={name: limits.max_concurrent_files for name, limits in work.limits.items()},
            ) as downloads,
        ):
            return _Unit(unit, work, Path(folder), downloads, uploads, stores, line).run()
    except Exception as error:
        if machine_trouble(error) is None:
            raise
        # No folder, no thread, no memory: it says nothing of the files, which are read again.
        return UnitOutcome(
            unit=unit.name,
            sources=tuple(
                record_of(file, _Tally(), failure=failure_of(error, file=file))
                for file in unit.files
            ),
            files=(),
            effort=Effort(attempts=((line.attempt, replace(line.done)),)),
        )


@dataclass(slots=True)
class _Group:
    """Source files that share output files, and so stand or fall together."""

    name: str
    writer: RollingWriter | SpreadWriter
    records: list[SourceRecord] = field(default_factory=list)
    uploads: list[Future[FinishedFile]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    """How long each of them took to be written."""
    broken: Exception | None = None
    """Why nothing more can be written to it, once something could not."""


@dataclass(slots=True)
class _Tally:
    """What has been counted of one source file."""

    lines: int = 0
    blank: int = 0
    rows: int = 0
    dropped: Counter[str] = field(default_factory=Counter)

    def add(self, decoded: Decoded) -> None:
        self.lines += decoded.lines
        self.blank += decoded.blank
        self.rows += decoded.batch.num_rows
        self.dropped.update(decoded.dropped)


class _Unit:
    """The state of one unit while it runs."""

    def __init__(
        self,
        unit: WorkUnit,
        work: Work,
        folder: Path,
        downloads: Downloads,
        uploads: Uploads,
        stores: Stores,
        line: Line,
    ) -> None:
        self.unit = unit
        self.stores = stores
        self.line = line
        self.work = work
        self.folder = folder
        self.downloads = downloads
        self.uploads = uploads
        by = work.row_partitions
        self.decoder = Decoder(Schema(work.file_schema.fields + (by.read if by else ())))
        self.uris = {
            file.key: f"{work.sources[file.source].uri.rstrip('/')}/{file.path}"
            for file in unit.files
        }
        self.batch_sizes = {file.key: work.limits[file.source].batch_size for file in unit.files}
        self.most_rows = 0
        """The most rows in a batch of the file that is being read."""
        self.groups: list[_Group] = []
        self.failed: list[SourceRecord] = []
        self.write_seconds: dict[str, float] = {}

    def run(self) -> UnitOutcome:
        shared = self._new_group()
        opened = self._opened()
        for file, decoded in self.decoder.decode_all(opened, from_start=lambda one: one.from_start):
            self.most_rows = self.batch_sizes[file.key]
            self._read(file, decoded, shared)
            self._count_finished(file, shared)
        self._write_all(shared, shared.writer.close())
        files = [file for group in self.groups for file in self._settle(group)]
        records = [record for group in self.groups for record in group.records]
        order = {file.key: index for index, file in enumerate(self.unit.files)}
        return UnitOutcome(
            unit=self.unit.name,
            sources=tuple(sorted(records + self.failed, key=lambda record: order[record.key])),
            files=tuple(files),
            effort=Effort(
                write_seconds=self.write_seconds,
                download_retries=self.downloads.retries,
                upload_retries=self.uploads.retries,
                attempts=((self.line.attempt, replace(self.line.done)),),
            ),
        )

    def _count_finished(self, file: SourceFile, shared: _Group) -> None:
        """Count a source file that was read; one that has failed is in no group."""
        for group in (shared, self.groups[-1]):
            if group.records and group.records[-1].key == file.key:
                record = group.records[-1]
                whole = record.complete and file.part is None
                self.line.done.blank += record.blank
                self.line.done.source_files += whole
                self.line.done.source_bytes += record.size if whole else 0
                return

    def _new_group(self) -> _Group:
        group = _Group(f"{self.unit.name}.{len(self.groups)}", self._new_writer())
        self.groups.append(group)
        return group

    def _new_writer(self) -> RollingWriter | SpreadWriter:
        work = self.work
        schema = work.file_schema.arrow()

        def for_partition(
            values: PartitionValues, repeating: Repeating | None = None
        ) -> RollingWriter:
            return RollingWriter(
                schema=schema,
                policy=work.rolling,
                marks=work.marks,
                folder=self.folder,
                clock=work.clock,
                partition_values=values,
                repeating=repeating,
            )

        if work.row_partitions is None:
            return for_partition(self.unit.partition_values)
        return SpreadWriter(
            by=work.row_partitions,
            from_path=self.unit.partition_values,
            schema=schema,
            policy=work.rolling,
            batch_size_of=lambda key: self.batch_sizes[key],
            clock=work.clock,
            for_partition=for_partition,
        )

    def _opened(self) -> Iterator[tuple[SourceFile, Generator[bytes]]]:
        for file in self.unit.files:
            if self.line.stop_soon:
                return
            yield file, self._pieces(file)

    def _read(self, file: SourceFile, batches: Iterator[Decoded], shared: _Group) -> None:
        """Read one source file into the shared group or, if it is large, into one of its own."""
        tally = _Tally()
        kept: list[_Slice] = []
        decoded_bytes = 0
        own: _Group | None = None
        stopped = False
        try:
            for decoded in batches:
                self.line.progress.records += decoded.batch.num_rows
                if self.work.row_partitions is not None:
                    lines_before = None if decoded.blank else tally.lines
                    require_partitions(decoded.batch, self.work.row_partitions, lines_before)
                tally.add(decoded)
                kept += self._slices(decoded)
                decoded_bytes += decoded.size
                if own is None and decoded_bytes > DECODED_BUDGET:
                    own = self._new_group()
                if own is not None:
                    self._write(own, kept, file)
                    kept = []
                    if self.line.stop_soon:
                        stopped = True
                        break
        except Exception as error:  # noqa: BLE001 - one file's trouble, of whatever kind, is its outcome
            if own is not None:
                self._forget(own)
            self.failed.append(record_of(file, tally, failure=failure_of(error, file=file)))
            return
        if own is not None and stopped and file.part is not None:
            # The other parts may have stopped elsewhere: this file was not read.
            self._forget(own)
            return
        group = own or shared
        self._write(group, kept, file)
        if own is not None:
            self._write_all(own, own.writer.close())
        group.records.append(record_of(file, tally, unit=group.name, complete=not stopped))
        self.line.progress.files_read += 1

    def _pieces(self, file: SourceFile) -> Generator[bytes]:
        """Give the plain bytes of the lines that are to be read."""
        # Closed however the reading ends, and at once: the next download waits for it.
        with closing(self.downloads.pieces(file)) as downloaded:
            pieces = self._counted(downloaded)
            if file.part is not None:
                pieces = lines_of(pieces, file.part)
            pieces = decompress(pieces, file.codec)
            if file.skip:
                pieces = without_first_lines(pieces, file.skip)
            yield from pieces
        if file.part is not None:
            # A part ends before its download does; a whole file is checked by the download.
            self.stores.source(file.source).require_unchanged(file.path, file.etag)

    def _counted(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            self.line.progress.bytes_read += len(piece)
            yield piece

    def _slices(self, decoded: Decoded) -> list[_Slice]:
        batch, most = decoded.batch, self.most_rows
        if batch.num_rows <= most:
            return [(batch, decoded.size)]
        slices = [batch.slice(start, most) for start in range(0, batch.num_rows, most)]
        return [(each, decoded.size * each.num_rows // batch.num_rows) for each in slices]

    def _write(self, group: _Group, slices: list[_Slice], file: SourceFile) -> None:
        for batch, size in slices:
            self._write_all(group, group.writer.write(batch, file.key, size))
            self.line.done.rows += batch.num_rows

    def _write_all(self, group: _Group, closed: Iterator[ClosedFile]) -> None:
        """Write and hand in what was closed; trouble breaks the group, and only the group."""
        if group.broken is not None:
            return
        try:
            for file in closed:
                group.uploads.append(
                    self.uploads.hand_in(
                        file,
                        partition_values=file.partition_values,
                        unit=group.name,
                        source_file=self._only_source(file),
                    )
                )
                group.seconds.append(file.seconds)
        except Exception as error:  # noqa: BLE001 - reported as the outcome of every file in the group
            group.broken = error
            group.writer.abandon()

    def _only_source(self, closed: ClosedFile) -> str | None:
        """Give the URI of the one source file in an output file, if there is but one."""
        if len(closed.sources) != 1:
            return None
        return self.uris[closed.sources[0]]

    def _forget(self, group: _Group) -> None:
        group.writer.abandon()
        self.groups.remove(group)

    def _settle(self, group: _Group) -> list[FinishedFile]:
        """Wait for the group's uploads; if one failed, all of its source files have failed."""
        files = []
        for upload in group.uploads:
            try:
                files.append(upload.result())
            except Exception as error:  # noqa: BLE001 - reported as the outcome of every file in the group
                group.broken = group.broken or error
        if group.broken is None:
            names = (file.filename for file in files)
            self.write_seconds.update(zip(names, group.seconds, strict=True))
            return files
        failure = failure_of(group.broken, stage=Stage.UPLOAD)
        self.failed.extend(
            replace(
                record,
                rows=0,
                lines=0,
                blank=0,
                dropped={},
                unit=None,
                complete=True,
                failure=failure,
            )
            for record in group.records
        )
        group.records.clear()
        return []


def record_of(
    file: SourceFile,
    tally: _Tally,
    *,
    unit: str | None = None,
    failure: Failure | None = None,
    complete: bool = True,
) -> SourceRecord:
    """Enter one source file into the books; one that failed has no rows in the table."""
    counted = tally if failure is None else _Tally()
    return SourceRecord(
        source=file.source,
        path=file.path,
        size=file.size,
        etag=file.etag,
        lines=counted.lines,
        blank=counted.blank,
        rows=counted.rows,
        skipped=file.skip,
        complete=complete,
        dropped=dict(counted.dropped),
        unit=unit,
        failure=failure,
    )


def failure_of(
    error: Exception, stage: Stage = Stage.DOWNLOAD, file: SourceFile | None = None
) -> Failure:
    """Say in the journal's words what went wrong, where, and whether trying again can help."""
    skip = file.skip if file is not None else 0
    failure = _failure(error, stage)
    if not skip:
        return failure
    return replace(
        failure,
        line=None if failure.line is None else failure.line + skip,
        message=f"{failure.message}; its lines 1 to {skip} are in the table",
    )


def _failure(error: Exception, stage: Stage) -> Failure:
    match machine_trouble(error) or error:
        case BadLine() | NoPartition() as bad:
            return Failure(
                stage=Stage.PARSE,
                code=bad.code,
                message=bad.message,
                line=bad.line,
                field=bad.field,
            )
        case CorruptStream() as corrupt:
            return Failure(stage=Stage.DECOMPRESS, code=corrupt.code, message=corrupt.message)
        case LakeError() as ours:
            return Failure(
                stage=stage, code=ours.code, message=ours.message, retryable=may_mend(ours)
            )
        case _:
            # What a download raises is ours by now: what is not comes from reading the lines.
            return Failure(
                stage=Stage.PARSE if stage is Stage.DOWNLOAD else stage,
                code="internal_error",
                message=f"{type(error).__name__}: {error}",
            )
