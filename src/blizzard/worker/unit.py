"""One work unit, start to end: download, decompress, parse, roll Parquet, upload.

Plain Python that knows nothing of Spark. A source file is all in or all out: a small one is kept
decoded until its last line has parsed and only then shares an output file with others; one that
outgrows the budget gets output files of its own, which are forgotten if it fails. A forgotten file
may be in the store, but nobody will ever name it.
"""

import tempfile
from collections.abc import Generator, Iterator
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pyarrow as pa

from blizzard.model.byte_range import lines_of, without_first_lines
from blizzard.model.files import ClosedFile, Effort, SourceFile, UnitOutcome, Work, WorkUnit
from blizzard.model.unread import failed, untouched
from blizzard.worker.compression import decompress, recognised
from blizzard.worker.download import Downloads
from blizzard.worker.fan_out import PartitionedWriter
from blizzard.worker.ndjson.decoder import Decoded, Decoder
from blizzard.worker.parquet import Repeating, RollingWriter
from blizzard.worker.partitioner import require_partitions
from blizzard.worker.position import ReadPosition
from blizzard.worker.progress import NoProgressChannel, ProgressChannel
from blizzard.worker.record import Tally, failure_of, record_of
from blizzard.worker.stores import Stores
from blizzard.worker.unit_look import UnitLook
from blizzard.worker.upload import Uploads
from lakebed.documents.data_file import FinishedFile
from lakebed.documents.entry import SourceRecord, Stage, Unread
from lakebed.errors import ObjectChanged, machine_trouble
from lakebed.partition import PartitionValues
from lakebed.schema import Schema
from lakebed.types import Codec

DECODED_BUDGET = 64 * 1024 * 1024
"""Arrow bytes of one source file that are kept until its last line has parsed."""


_Slice = tuple[pa.RecordBatch, int]
"""Rows, and the memory that they take."""


def run_unit(
    unit: WorkUnit, work: Work, stores: Stores, channel: ProgressChannel | None = None
) -> UnitOutcome:
    """Turn a unit's source files into data files; every failure is part of the answer."""
    channel = channel or NoProgressChannel()
    if channel.stop_soon or channel.hand_in:
        return UnitOutcome(unit=unit.name, sources=(), files=(), handed_in=not channel.stop_soon)

    def open_at(file: SourceFile, position: int) -> Iterator[bytes]:
        begin = file.part.read_from if file.part is not None else 0
        return stores.source(file.source).stream(
            file.path, size=file.size, etag=file.etag, start=begin + position
        )

    try:
        with (
            tempfile.TemporaryDirectory(prefix="blizzard-", ignore_cleanup_errors=True) as folder,
            Uploads(
                stores.sink(),
                work.upload,
                channel.progress,
                channel.done,
                outbox=work.outbox,
                pause=work.clock.sleep,
            ) as uploads,
            Downloads(
                unit.files,
                open_at,
                ahead={name: limits.max_concurrent_files for name, limits in work.limits.items()},
                pause=work.clock.sleep,
            ) as downloads,
        ):
            running = _Unit(unit, work, Path(folder), downloads, uploads, stores, channel)
            return running.run() if work.look is None else running.look(work.look)
    except Exception as error:
        if machine_trouble(error) is None:
            raise
        # No folder, no thread, no memory: it says nothing of the files, which are read again.
        return UnitOutcome(
            unit=unit.name,
            sources=tuple(
                record_of(file, Tally(), failure=failure_of(error, file=file))
                for file in unit.files
            ),
            files=(),
            effort=Effort(attempts=((channel.attempt, replace(channel.done)),)),
        )


@dataclass(slots=True)
class _Group:
    """Source files that share output files, and so stand or fall together."""

    name: str
    writer: RollingWriter | PartitionedWriter
    records: list[SourceRecord] = field(default_factory=list)
    uploads: list[Future[FinishedFile]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    """How long each of them took to be written."""
    broken: Exception | None = None
    """Why nothing more can be written to it, once something could not."""


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
        channel: ProgressChannel,
    ) -> None:
        self.unit = unit
        self.stores = stores
        self.channel = channel
        self.work = work
        self.folder = folder
        self.downloads = downloads
        self.uploads = uploads
        by = work.row_partitions
        self.decoder = Decoder(
            Schema(work.file_schema.fields + (by.read if by else ())),
            unknown=work.unknown_fields,
            on_mismatch=work.on_mismatch,
        )
        self.uris = {
            file.key: f"{work.sources[file.source].uri.rstrip('/')}/{file.path}"
            for file in unit.files
        }
        self.batch_sizes = {file.key: work.limits[file.source].batch_size for file in unit.files}
        budget = work.sizing.decoded_budget
        self.decoded_budget = DECODED_BUDGET if budget is None else budget
        self.most_rows = 0
        """The most rows in a batch of the file that is being read."""
        self.groups: list[_Group] = []
        self.failed: list[SourceRecord] = []
        self.write_seconds: dict[str, float] = {}
        self.began = work.clock.seconds()
        self.handed_in = False
        self.may_fail = True
        self.look_around = UnitLook(work.unknown_fields)

    def run(self) -> UnitOutcome:
        shared = self._new_group()
        opened = self.decoder.decode_all(
            self._opened(),
            from_start=lambda one: one[0].from_start,
            skip=lambda one: one[0].form.skip,
        )
        with closing(opened):
            for (file, position), decoded in opened:
                self.most_rows = self.batch_sizes[file.key]
                self._read(file, position, decoded, shared)
                self._count_finished(file, shared)
                if not self.may_fail:
                    break
        self._write_all(shared, shared.writer.close())
        files = [file for group in self.groups for file in self._settle(group)]
        records = [record for group in self.groups for record in group.records]
        order = {file.key: index for index, file in enumerate(self.unit.files)}
        return UnitOutcome(
            unit=self.unit.name,
            sources=tuple(sorted(records + self.failed, key=lambda record: order[record.key])),
            files=tuple(files),
            handed_in=self.handed_in,
            seen=self.look_around.seen,
            effort=Effort(
                write_seconds=self.write_seconds,
                download_retries=self.downloads.retries,
                upload_retries=self.uploads.retries,
                attempts=((self.channel.attempt, replace(self.channel.done)),),
            ),
        )

    def look(self, share: float) -> UnitOutcome:
        """Look at the first part of each file, to find columns; nothing is written."""
        for file in self.unit.files:
            pieces = partial(self._pieces, file, ReadPosition(opened=self.work.clock.seconds()))
            self.look_around.at_file(file, pieces, self.decoder, share, self.channel)
            if self.channel.stop_soon:
                break
        return UnitOutcome(unit=self.unit.name, sources=(), files=(), seen=self.look_around.seen)

    def _count_finished(self, file: SourceFile, shared: _Group) -> None:
        """Count a source file that was read; one that has failed is in no group."""
        for group in (shared, self.groups[-1]):
            if group.records and group.records[-1].key == file.key:
                record = group.records[-1]
                whole = record.complete and file.part is None
                self.channel.done.blank += record.blank
                self.channel.done.filtered += record.filtered
                self.channel.done.source_files += whole
                self.channel.done.source_bytes += record.size if whole else 0
                return

    def _new_group(self) -> _Group:
        group = _Group(f"{self.unit.name}.{len(self.groups)}", self._new_writer())
        self.groups.append(group)
        return group

    def _new_writer(self) -> RollingWriter | PartitionedWriter:
        work = self.work
        schema = work.written.stored().arrow()

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
        return PartitionedWriter(
            by=work.row_partitions,
            from_path=self.unit.partition_values,
            schema=schema,
            policy=work.rolling,
            batch_size_of=lambda key: self.batch_sizes[key],
            clock=work.clock,
            for_partition=for_partition,
            staged_bytes=work.sizing.staged_bytes,
        )

    def _opened(self) -> Iterator[tuple[tuple[SourceFile, ReadPosition], Generator[bytes]]]:
        for number, file in enumerate(self.unit.files):
            # The first one is begun in any case: a batch must get further.
            if number and self._is_to_end():
                return
            position = ReadPosition(opened=self.work.clock.seconds())
            yield (file, position), self._pieces(file, position)

    def _is_to_end(self, position: ReadPosition | None = None) -> bool:
        """Whether to finish cleanly: a stop was requested, or the batch is old enough.

        A unit that the driver does not reach goes by its own age.
        """
        if self.channel.stop_soon:
            return True
        now, most = self.work.clock.seconds(), self.work.bounds.seconds
        is_old = self.channel.hand_in or (most is not None and now - self.began > most)
        if not is_old or (position is not None and not position.is_worth_it(now)):
            return False
        self.handed_in = True
        return True

    def _fail(self, record: SourceRecord) -> None:
        """Record a failed file, and ask whether others may still fail."""
        self.failed.append(record)
        bounds = self.work.bounds
        changed = record.failure is not None and record.failure.code == ObjectChanged.code
        if bounds.failures is None or changed or record.key in bounds.forgiven:
            return
        self.channel.progress.files_failed += 1
        self.channel.report()
        # Small files that are decoded already do not count as begun here: each of them may fail.
        self.may_fail = (
            self.channel.progress.files_failed < bounds.failures and not self.channel.stop_soon
        )

    def _read(
        self, file: SourceFile, position: ReadPosition, batches: Iterator[Decoded], shared: _Group
    ) -> None:
        """Read one source file into the shared group or, if it is large, into one of its own."""
        tally = Tally()
        kept: list[_Slice] = []
        decoded_bytes = 0
        own: _Group | None = None
        unread: tuple[Unread, ...] | None = ()
        try:
            for decoded in batches:
                if position.reached is None:
                    position.reached = self.work.clock.seconds()
                self.channel.progress.records += decoded.batch.num_rows
                if self.work.row_partitions is not None:
                    lines_before = None if decoded.blank or decoded.filtered else tally.lines
                    require_partitions(decoded.batch, self.work.row_partitions, lines_before)
                tally.add(decoded)
                self.look_around.at_rescued(decoded)
                position.took(decoded.taken, file.skip + tally.lines)
                kept += self._slices(decoded)
                decoded_bytes += decoded.size
                if own is None and decoded_bytes > self.decoded_budget:
                    own = self._new_group()
                if own is not None:
                    self._write(own, kept, file)
                    kept = []
                    if self._is_to_end(position):
                        self._require_unchanged(file)
                        unread = position.rest_of(file, tally.lines)
                        break
        except Exception as error:  # noqa: BLE001 - one file's trouble, of whatever kind, is its outcome
            if own is not None:
                self._forget(own)
            failure = failure_of(
                error, file=file, place_of=position.place_of, show_values=self.work.show_values
            )
            self._fail(record_of(file, tally, failure=failure))
            return
        group = own or shared
        self._write(group, kept, file)
        if own is not None:
            self._write_all(own, own.writer.close())
        group.records.append(record_of(file, tally, unit=group.name, unread=unread))
        self.channel.progress.files_read += 1

    def _pieces(self, file: SourceFile, position: ReadPosition) -> Generator[bytes]:
        """Yield the plain bytes of the lines that are to be read."""
        # Closed however the reading ends, and at once: the next download waits for it.
        with closing(self.downloads.pieces(file)) as downloaded:
            pieces = self._counted(downloaded)
            if file.part is not None:
                pieces = lines_of(pieces, file.part, position.begin)
            codec = file.codec
            if file.by_content:
                pieces, codec = recognised(pieces, codec)
            position.is_plain = codec is Codec.NONE
            pieces = decompress(pieces, codec)
            if file.form.is_documents:
                pieces = position.framed(pieces, file)
            if file.part is None and file.skip:
                pieces = without_first_lines(pieces, file.skip)
            elif position.is_plain and (file.part is None or not file.part.start):
                pieces = position.noticed(pieces)
            yield from pieces
        if file.part is not None:
            # A part ends before its download does; a whole file is checked by the download.
            self._require_unchanged(file)

    def _require_unchanged(self, file: SourceFile) -> None:
        """Raise where the file is another object by now: what was read of it may be of both."""
        self.stores.source(file.source).require_unchanged(file.path, file.etag)

    def _counted(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            self.channel.progress.bytes_read += len(piece)
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
            self.channel.done.rows += batch.num_rows

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
        """Return the URI of the one source file in an output file, if there is but one."""
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
        failure = failure_of(group.broken, stage=Stage.UPLOAD, show_values=self.work.show_values)
        read = {file.key: file for file in self.unit.files}
        self.failed.extend(failed(untouched(read[record.key]), failure) for record in group.records)
        group.records.clear()
        return []
