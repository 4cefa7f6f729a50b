"""Run one work unit: download, decompress, parse, write Parquet files and upload them.

This module does not depend on Spark. A source file is read completely or not at all: its rows are
kept, in memory or on the local disk, until its last line is parsed, and only then written to a
shared output file. A large source file gets output files of its own, which are dropped if it fails.
Dropped files may be in the store, but no journal entry names them.
"""

import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from blizzard.model.source.file import SourceFile, lines_of, without_first_lines
from blizzard.model.source.forecast import Forecast
from blizzard.model.source.partly_read import record_with
from blizzard.model.work import Effort, UnitOutcome, Work, WorkUnit
from blizzard.worker.compression import decompress, recognised
from blizzard.worker.download import Downloads, Stores, in_advance
from blizzard.worker.ndjson.decoder import Decoder
from blizzard.worker.ndjson.lines import CombinedFiles, Decoded
from blizzard.worker.output.groups import OutputGroup, OutputGroups
from blizzard.worker.output.origins import ON_DISK, KeptRows
from blizzard.worker.output.partitioner import refused_rows
from blizzard.worker.output.upload import Uploads
from blizzard.worker.position import Opened, ReadPosition, is_plain
from blizzard.worker.position import lines_of as lines_in
from blizzard.worker.progress import ProgressChannel
from blizzard.worker.quarantine.writer import BadOfFile
from blizzard.worker.record import LineTally, failure_of, record_of
from lakebed.columns.schema import Schema
from lakebed.documents.records import SourceRecord, Unread
from lakebed.errors import machine_trouble
from lakebed.types import Codec, OnBadRecord, UnknownFields

MakeDecoder = Callable[..., Decoder]


def run_unit(
    unit: WorkUnit,
    work: Work,
    stores: Stores,
    channel: ProgressChannel | None = None,
    make_decoder: MakeDecoder = Decoder,
) -> UnitOutcome:
    """Turn a unit's source files into data files; failures of files are part of the outcome."""
    channel = channel or ProgressChannel()
    if channel.stop_soon or channel.hand_in:
        return UnitOutcome(unit=unit.name, sources=(), files=(), handed_in=not channel.stop_soon)

    def open_at(file: SourceFile, position: int) -> Iterator[bytes]:
        begin = file.part.read_from if file.part is not None else 0
        return stores.source(file.source).stream(
            file.path, size=file.size, etag=file.etag, start=begin + position
        )

    def at_once(file: SourceFile) -> bytes | None:
        # An error recurs when the pieces of the file are fetched.
        with suppress(Exception):
            return stores.source(file.source).at_once(file.path, size=file.size, etag=file.etag)
        return None

    try:
        with (
            tempfile.TemporaryDirectory(prefix="blizzard-", ignore_cleanup_errors=True) as folder,
            Uploads(
                stores.sink(),
                work.upload,
                channel.progress,
                outbox=work.outbox,
                pause=work.clock.sleep,
            ) as uploads,
            Downloads(
                unit.files,
                open_at,
                ahead={name: limits.max_concurrent_files for name, limits in work.limits.items()},
                at_once=at_once if work.infer_share is None else None,
                pause=work.clock.sleep,
            ) as downloads,
        ):
            decoder = decoder_of(work, make_decoder)
            running = _UnitRun(
                unit, work, Path(folder), downloads, uploads, stores, channel, decoder
            )
            return running.run() if work.infer_share is None else running.infer(work.infer_share)
    except Exception as error:
        if machine_trouble(error) is None:
            raise
        # A lack of disk, threads or memory is not the files' fault: they are retried.
        failed = [(file, failure_of(error, file=file)) for file in unit.files]
        return UnitOutcome(
            unit=unit.name,
            sources=tuple(record_of(file, LineTally(), failure=why) for file, why in failed),
            files=(),
        )


def decoder_of(
    work: Work, make_decoder: MakeDecoder = Decoder, *, quarantines: bool | None = None
) -> Decoder:
    """Return the decoder of a unit's files; `quarantines` overrides the work's setting."""
    by = work.row_partitions
    quarantining = work.quarantine is not None if quarantines is None else quarantines
    return make_decoder(
        Schema(work.file_schema.fields + (by.read if by else ())),
        unknown=work.unknown_fields,
        on_mismatch=work.on_mismatch,
        limits=work.sizing.decoding,
        on_bad_record=OnBadRecord.QUARANTINE if quarantining else OnBadRecord.FAIL,
        refuse_rows=partial(refused_rows, by=by) if by is not None else None,
    )


@dataclass(eq=False)
class _UnitRun:
    """The state of one unit while it runs."""

    unit: WorkUnit
    work: Work
    folder: Path
    downloads: Downloads
    uploads: Uploads
    stores: Stores
    channel: ProgressChannel
    decoder: Decoder

    def __post_init__(self) -> None:
        work = self.work
        self.decoded_budget = work.sizing.decoded_budget
        self.outputs = OutputGroups(self.unit, work, self.folder, self.uploads)
        self.failed: list[SourceRecord] = []
        self.began = work.clock.seconds()
        self.handed_in = False
        # Importing numba takes a second, so only code that reads rows does.
        from blizzard.worker.ndjson.sampling import ColumnSampler  # noqa: PLC0415

        self.sampler = ColumnSampler(adds=work.unknown_fields is UnknownFields.ADD)

    def run(self) -> UnitOutcome:
        shared = self.outputs.new()
        opened = self.decoder.decode_files(
            self._opened(),
            from_start=lambda one: one.file.from_start,
            skip=lambda one: one.file.form.skip,
        )
        with closing(opened):
            for found in opened:
                if isinstance(found, CombinedFiles) and self._take_combined(found, shared):
                    continue
                for one, decoded in found.each() if isinstance(found, CombinedFiles) else (found,):
                    self._read(one.file, self._position(one), decoded, shared)
        self.outputs.close(shared)
        settled = self.outputs.settle()
        records = [*settled.read, *settled.failed, *self.failed]
        order = {file.key: index for index, file in enumerate(self.unit.files)}
        return UnitOutcome(
            unit=self.unit.name,
            sources=tuple(sorted(records, key=lambda record: order[record.key])),
            files=settled.files,
            quarantine=settled.quarantine,
            handed_in=self.handed_in,
            sink_full=settled.sink_full,
            seen=self.sampler.seen,
            effort=Effort(
                write_seconds=settled.write_seconds,
                download_retries=self.downloads.retries,
                upload_retries=self.uploads.retries,
            ),
        )

    def infer(self, share: float) -> UnitOutcome:
        """Sample the first part of each file to infer columns; write nothing."""
        for file in self.unit.files:
            pieces = partial(self._pieces, file, ReadPosition(opened=self.work.clock.seconds()))
            self.sampler.sample_file(file, pieces, self.decoder, share, self.channel)
            if self.channel.stop_soon:
                break
        return UnitOutcome(unit=self.unit.name, sources=(), files=(), seen=self.sampler.seen)

    def _take_combined(self, found: CombinedFiles[Opened], shared: OutputGroup) -> bool:
        """Write and record the rows of combined small files; False if each must be read alone.

        Each line is a row, so a file is consistent if its rows equal the lines counted in its text
        by code that the parser does not share.
        """
        if any(one.position is not None for one in found.keys):
            return False
        counted = [lines_in(one.text) for one in found.keys]
        rows = found.read.batch.num_rows
        if counted != found.read.lines or sum(counted) != rows:
            return False
        if not self.outputs.write_combined(shared, found, self.decoded_budget):
            return False
        records = [
            record_with(one.file, lines=lines, rows=lines, unit=shared.name)
            for one, lines in zip(found.keys, counted, strict=True)
        ]
        shared.records += records
        self.channel.progress.records += rows
        self.channel.progress.files_read += len(records)
        return True

    def _opened(self) -> Iterator[tuple[Opened, Generator[bytes] | bytes]]:
        for number, file in enumerate(self.unit.files):
            # Always read the first file, so that every batch makes progress.
            if number and self._is_to_end():
                return
            text = self.downloads.at_once(file)
            if text is not None and is_plain(file, text):
                self.channel.progress.bytes_read += len(text)
                yield Opened(file, text=text), text
                continue
            position = ReadPosition(opened=self.work.clock.seconds())
            yield Opened(file, position), self._pieces(file, position, text)

    def _position(self, one: Opened) -> ReadPosition:
        """Return the read position of a file; for one read at once, that is its end."""
        if one.position is not None:
            return one.position
        position = ReadPosition(opened=self.work.clock.seconds())
        for _piece in position.after_mark(position.counted(iter((one.text,)), one.file)):
            pass
        return position

    def _is_to_end(self, position: ReadPosition | None = None) -> bool:
        """Whether to finish early: a stop was requested, or the batch is old enough.

        Without contact to the driver, the unit's own age counts.
        """
        if self.channel.stop_soon:
            return True
        now, most = self.work.clock.seconds(), self.work.max_seconds
        is_old = self.channel.hand_in or (most is not None and now - self.began > most)
        if not is_old or (position is not None and not position.is_worth_it(now)):
            return False
        self.handed_in = True
        return True

    def _read(
        self,
        file: SourceFile,
        position: ReadPosition,
        batches: Iterator[Decoded],
        shared: OutputGroup,
    ) -> None:
        """Read one source file into the shared group, or a large one into its own group."""
        tally = LineTally()
        kept = KeptRows(self.folder, self.decoded_budget)
        bad = BadOfFile(file, self.work.quarantine)
        decoded_bytes = bad_bytes = 0
        own: OutputGroup | None = None
        unread: tuple[Unread, ...] | None = ()
        self.sampler.begin_file()
        try:
            for decoded in batches:
                if position.reached is None:
                    position.reached = self.work.clock.seconds()
                self.channel.progress.records += decoded.batch.num_rows
                tally.add(decoded)
                self.sampler.sample_rescued(decoded)
                bad_bytes += bad.take(decoded.bad, position, tally)
                position.took(decoded.taken, file.skip + tally.lines)
                kept.add(self.outputs.slices(decoded, file, tally.lines - decoded.lines))
                decoded_bytes += decoded.size
                held = decoded_bytes + bad_bytes
                # An old batch does not wait for the rest of a large file.
                ends = held > self.decoded_budget and self._is_to_end(position)
                is_much = held > self.decoded_budget and held > self._on_disk(file)
                if own is None and (ends or is_much or bad_bytes > self.decoded_budget):
                    own = self.outputs.new()
                if own is not None:
                    self.outputs.write(own, kept.take(), file)
                    self.outputs.quarantine(own, bad.hand_over())
                    if ends:
                        self._require_unchanged(file)
                        position.require_counted(file, tally.lines)
                        unread = position.rest_of(file, tally.lines)
                        break
            else:
                position.require_all_counted(file, tally.lines)
            bad.end(tally)
        except Exception as error:  # noqa: BLE001 - any error of one file is its outcome
            if own is not None:
                self.outputs.forget(own)
            kept.forget()
            self.sampler.discard_file()
            failure = failure_of(
                error, file=file, place_of=position.place_of, show_values=self.work.show_values
            )
            self.failed.append(record_of(file, tally, failure=failure))
            self.channel.progress.files_failed += 1
            return
        group = own or shared
        self.outputs.write(group, kept.take(), file)
        self.outputs.quarantine(group, bad.hand_over())
        if own is not None:
            self.outputs.close(own)
        record = record_of(file, tally, unit=group.name, unread=unread)
        group.records.append(record)
        self.channel.progress.bad_lines += record.quarantined
        self.channel.progress.files_read += 1

    def _on_disk(self, file: SourceFile) -> int:
        """Return the budget for keeping a source file's rows until all of it is read.

        It is smaller if the file is expected to fill a data file on its own.
        """
        fills_one = Forecast().filled([file], self.work.rolling.file_size) > 1
        return self.decoded_budget * (1 if fills_one else ON_DISK)

    def _pieces(
        self, file: SourceFile, position: ReadPosition, whole: bytes | None = None
    ) -> Generator[bytes]:
        """Yield the plain bytes of the lines to read; `whole` is the file if already in memory."""
        # Always close the download at once: the next one waits for that.
        with ExitStack() as stack:
            if whole is None:
                received: Iterator[bytes] = stack.enter_context(
                    closing(self.downloads.pieces(file))
                )
            else:
                received = iter((whole,) if whole else ())
            pieces = self._counted(received)
            if file.part is not None:
                pieces = lines_of(pieces, file.part, position.begin)
            codec = file.codec
            if file.by_content:
                pieces, codec = recognised(pieces, codec)
            position.is_plain = codec is Codec.NONE
            pieces = decompress(pieces, codec)
            if self._is_worth_a_thread(file, codec):
                pieces = stack.enter_context(closing(in_advance(pieces)))
            if file.form.is_documents:
                pieces = position.framed(pieces, file)
            pieces = position.counted(pieces, file)
            if file.part is None and file.skip:
                pieces = without_first_lines(pieces, file.skip)
            elif position.is_plain and (file.part is None or not file.part.start):
                pieces = position.after_mark(pieces)
            yield from pieces
        if file.part is not None:
            # A part may end before its download; the download checks whole files.
            self._require_unchanged(file)

    def _is_worth_a_thread(self, file: SourceFile, codec: Codec) -> bool:
        """Whether to decompress a file in a separate thread, on an otherwise idle core."""
        if codec is Codec.NONE or not self.work.decompress_ahead:
            return False
        return file.size >= self.work.sizing.worth_a_thread

    def _require_unchanged(self, file: SourceFile) -> None:
        """Raise if the object was replaced meanwhile: the data read may mix both versions."""
        self.stores.source(file.source).require_unchanged(file.path, file.etag)

    def _counted(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            self.channel.progress.bytes_read += len(piece)
            yield piece
