"""Decide which source files to read now or retry, and why others are skipped. Pure.

A failure is recorded with a digest of the settings that affect it, so that a changed configuration
causes a retry.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from blizzard.discover.finding import (
    Finding,
    PartitionUnknown,
    Reason,
    SkipTally,
    codec_for,
    partition_of,
    why_not_ours,
)
from blizzard.model.settings import MAX_DEPTH, MAX_LINE_BYTES, PipelineSettings, SourceSettings
from blizzard.model.source.file import IngestedFile, Recorded, SourceFile, UnfinishedFile
from blizzard.model.source.form import Form
from blizzard.model.source.partly_read import (
    PartialFileChanged,
    failed,
    is_partly_read,
    is_traced,
    lacks_its_object,
    partial_file_changed,
    recounted,
)
from lakebed.columns.schema import AS_WRITTEN, Field, walk
from lakebed.documents.records import Failure, FailureStage, SourceRecord
from lakebed.errors import LakeError
from lakebed.listing.lookback import Window
from lakebed.partition import Template, table_schema
from lakebed.retry import Backoff
from lakebed.storage.options import ObjectFacts
from lakebed.types import Codec, Compression, OnChange, OnMismatch, UnknownFields


def bases_of(settings: PipelineSettings, source: SourceSettings) -> Mapping[FailureStage, str]:
    """Return, by stage, a digest of the settings that affect failures there.

    Failures of other stages do not depend on the configuration.
    """
    sink = settings.sink
    template = [(part.key, part.pattern) for part in sink.template.parts] if sink.template else []
    fields = table_schema(settings.schema, sink.template).fields
    columns = [(field.name, field.type.value, field.nullable) for field in fields]
    keys = set(sink.template.keys) if sink.template else set()
    partition = [template, [column for column in columns if column[0] in keys]]
    compression = source.compression.value
    limits = [MAX_LINE_BYTES, MAX_DEPTH]
    form = [asdict(source.form)] if source.form != Form() else []
    return {
        FailureStage.DISCOVER: _digest([partition, sink.timestamp_field]),
        FailureStage.DECOMPRESS: _digest([compression]),
        # A compressed file mistaken for a plain one also fails here.
        FailureStage.PARSE: _digest(
            [
                *(columns, template, sink.timestamp_field, compression, limits),
                *form,
                *_more(settings, fields),
            ]
        ),
    }


def _more(settings: PipelineSettings, fields: tuple[Field, ...]) -> list[object]:
    """Return the other settings that affect parsing; empty if all are defaults."""
    more: dict[str, object] = {
        field.name: _written(field)
        for field in fields
        if field.is_nested or field.precision or field.reading != AS_WRITTEN
    }
    # Unless they fail a file, it does not matter how undeclared fields are treated.
    unknown = settings.unknown_fields is UnknownFields.FAIL
    rescued = settings.on_mismatch is OnMismatch.RESCUE
    found = [more, unknown, rescued] if more or unknown or rescued else []
    return found if settings.quarantine is None else [*found, asdict(settings.quarantine)]


def _written(field: Field) -> list[object]:
    inner = (each for _path, each in walk((field,)))
    return [field.shown, *(_reading(one) | {"nullable": one.nullable} for one in inner)]


def _reading(field: Field) -> dict[str, object]:
    """Return the declared reading of a field, without `exact`, which is derived."""
    return {key: value for key, value in asdict(field.reading).items() if key != "exact"}


def with_basis(record: SourceRecord, bases: Mapping[FailureStage, str]) -> SourceRecord:
    """Add the digest of the relevant settings to the record of a failed file."""
    if record.failure is None or record.gone:
        return record
    basis = bases.get(record.failure.stage)
    return replace(record, failure=replace(record.failure, basis=basis))


def _digest(settings: list[object]) -> str:
    return hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:16]


RETRY = Backoff(first_secs=30, limit_secs=3600)
"""The delays between retries of a retryable failure."""


def is_due(
    known: UnfinishedFile, now: datetime, bases: Mapping[FailureStage, str] | None = None
) -> bool:
    """Whether a file may be read again: it is partly unread, or its retry delay has passed.

    A failure in the future comes from a clock that was ahead and delays no retry; a requested retry
    never waits.
    """
    at = next_try(known, bases)
    return at is not None and (now >= at or now < known.at or is_asked_for(known, bases))


def is_asked_for(known: UnfinishedFile, bases: Mapping[FailureStage, str] | None = None) -> bool:
    """Whether to retry a file at once: on request, or because relevant settings changed."""
    failure = known.record.failure
    if known.record.gone or failure is None:
        return False
    present = (bases or {}).get(failure.stage)
    changed = not failure.retryable and present is not None and present != failure.basis
    # Settings do not bring a missing object back.
    changed = changed and not lacks_its_object(known.record)
    return known.record.retry or changed


def next_try(
    known: UnfinishedFile, bases: Mapping[FailureStage, str] | None = None
) -> datetime | None:
    """Return when to read an unchanged file again; None if it or the settings must change first.

    A failure without a digest of its settings is retried once.
    """
    failure = known.record.failure
    if known.record.gone:
        return None
    if is_asked_for(known, bases):
        return known.at
    if failure is None:
        return None if known.record.complete else known.at
    if not failure.retryable:
        return None
    if failure.attempts == 0:
        return known.at  # No attempt failed, but it must be read again.
    return known.at + timedelta(seconds=RETRY.wait(failure.attempts, lambda: 1.0))


MOST_CHANGED = 1000
"""At most this many changed files are reported one by one per listing."""


class Decision(StrEnum):
    """The decision on a listed file."""

    DONE = "done"
    """There is nothing to do."""
    TAKE = "take"
    FAIL = "fail"
    """It fails without being read."""
    WAIT = "wait"
    """It must be checked again."""
    FULL = "full"
    """The batch has no room for it."""
    NO_FILE = "no_file"
    """It is a folder marker."""


@dataclass(slots=True, kw_only=True)
class FileFilter:
    """Decides file by file, and holds at most one batch."""

    source: SourceSettings
    template: Template | None
    partition_fields: Mapping[str, Field]
    tried: frozenset[str] = frozenset()
    """Keys that have failed in this run and must not be tried again (with `--once`)."""
    first_seen: Mapping[str, tuple[ObjectFacts, datetime]] = field(default_factory=dict)
    """When each file that was too young was first seen unchanged."""
    bases: Mapping[FailureStage, str] = field(default_factory=dict)
    """By stage, a digest of the relevant settings: a failure under others is retried."""
    since: Window | None = None
    """The folders that are recent enough, relative to when the source was first read."""
    now: datetime
    ahead: timedelta = timedelta(0)
    """By how much our clock is known to be ahead of the store's."""
    exists: Callable[[str], bool] = lambda _path: True
    """Whether an object of this name exists: folder markers are listed without their slash."""
    young: dict[str, tuple[ObjectFacts, datetime]] = field(default_factory=dict)
    tally: SkipTally = field(default_factory=SkipTally)
    """Counts the skipped files since the listing began."""
    left_over: int = 0
    """Files left to a later batch."""
    _take: dict[str, SourceFile] = field(default_factory=dict)
    _bytes: int = 0
    _again: set[str] = field(default_factory=set)
    _misplaced: list[SourceRecord] = field(default_factory=list)
    _changed: list[ObjectFacts] = field(default_factory=list)

    def is_ours(self, facts: ObjectFacts) -> bool:
        """Whether a listed file belongs to the source; count it as skipped if not."""
        reason = why_not_ours(facts.path, self.source)
        if reason is None and self.since is not None and not self.since.holds(facts.path, self.now):
            reason = Reason.TOO_OLD
        if reason is not None:
            self.leave(reason, facts)
        return reason is None

    def consider(self, facts: ObjectFacts, before: Recorded) -> Decision:
        """Decide on a source file, and add it to the batch if it is taken."""
        key = f"{self.source.name}:{facts.path}"
        if key in self._take:
            return Decision.TAKE
        if before.unfinished is None and before.finished is None:
            return self._enter(key, facts, None, is_other=False)  # A new one, as most are.
        return self._consider_known(key, facts, before)

    def _consider_known(self, key: str, facts: ObjectFacts, before: Recorded) -> Decision:
        known = before.unfinished
        on_change = self.source.on_change
        is_cut = known is not None and self._is_cut(known, facts)
        if known is not None and self.loses_rest(facts, known):
            return self._lose_rest(facts, known.record)
        if before.finished is not None and is_same(before.finished, facts):
            return self.done(facts)
        if before.is_rejected:
            return self._skip(facts)  # It would duplicate the rows that it should replace.
        # A file without rows has none in the table: its new content is read like a new file.
        is_other = is_cut or (before.finished is not None and not before.finished.empty)
        # The rest of an object whose first lines are in the table is always read.
        is_begun = known is not None and bool(self._read_before(known, facts))
        is_read = on_change in (OnChange.REINGEST, OnChange.REPLACE)
        if is_other and not is_begun and not is_read:
            return self._skip(facts)
        if known is not None and (
            key in self.tried
            or (same_object(known.record, facts) and not self._may_be_tried(known))
        ):
            self._rest(key, facts, known)
            return Decision.DONE  # No range waits for it: it is checked individually when due.
        return self._enter(key, facts, known, is_other=is_other)

    def begin_with(self, taken: Collection[SourceFile]) -> None:
        """Begin with the files that an earlier listing has found."""
        self._take = {file.key: file for file in taken}
        self._bytes = sum(file.to_read for file in taken)

    def loses_rest(self, facts: ObjectFacts, known: UnfinishedFile) -> bool:
        """Whether a file was read in part and its current content is not read."""
        return self._is_cut(known, facts) and self.source.on_change is not OnChange.REINGEST

    def _may_be_tried(self, known: UnfinishedFile) -> bool:
        """Whether an unchanged file may be read again: it is due, or has reappeared."""
        back = known.record.gone or lacks_its_object(known.record)
        return back or is_due(known, self.now, self.bases)

    def _lose_rest(self, facts: ObjectFacts, record: SourceRecord) -> Decision:
        """Record once that the rest of a partly read object is gone."""
        is_new = not is_traced(record, PartialFileChanged)
        if is_new and self.is_full:
            return self._leave_over(facts)
        told = (recounted if same_object(record, facts) else partial_file_changed)(record)
        self.leave(
            Reason.PARTIAL_FILE_CHANGED, facts, told.failure.message if told.failure else None
        )
        self._misplaced += [told] if is_new else []
        return Decision.FAIL if is_new else Decision.DONE

    def _skip(self, facts: ObjectFacts) -> Decision:
        """Skip a file whose object changed, and report it unless changes are ignored."""
        if self.source.on_change is OnChange.IGNORE:
            return self.done(facts)
        self.leave(Reason.CHANGED, facts)
        self._changed += [facts] if len(self._changed) < MOST_CHANGED else []
        return Decision.DONE

    def done(self, facts: ObjectFacts) -> Decision:
        """Count a finished file."""
        self.leave(Reason.INGESTED, facts)
        return Decision.DONE

    def leave(
        self,
        reason: Reason,
        facts: ObjectFacts,
        detail: str | None = None,
        until: datetime | None = None,
    ) -> None:
        """Count a skipped file."""
        self.tally.add(facts.path, facts.size, reason, detail, until)

    def skip(self, path: str, reason: Reason) -> None:
        """Count a skipped name or folder of unknown size."""
        self.tally.add(path, 0, reason)

    def _rest(self, key: str, facts: ObjectFacts, known: UnfinishedFile) -> None:
        until = None if key in self.tried else next_try(known, self.bases)
        failure = known.record.failure
        self.leave(
            Reason.FAILED if until is None else Reason.RESTING,
            facts,
            failure.message if failure else None,
            until,
        )

    def finding(self) -> Finding:
        """Return the files to take, and the skipped ones by reason."""
        return Finding(
            take=tuple(self._take.values()),
            misplaced=tuple(self._misplaced),
            not_taken=self.tally.summed_up(),
            passed=self.tally.named(),
            left_over=self.left_over,
            again=frozenset(self._again),
            changed=tuple(self._changed),
        )

    def _is_young(self, key: str, facts: ObjectFacts) -> bool:
        """Whether a file is younger than `min_age`, by the store's clock or by our observation.

        If the store's clock is ahead of ours, a file counts as old enough once we have seen it
        unchanged for `min_age`. If ours is known to be ahead, the difference is subtracted.
        """
        enough = timedelta(seconds=self.source.min_age)
        now = self.now - self.ahead
        if not enough or now - facts.modified >= enough:
            return False
        seen, at = self.first_seen.get(key, (facts, now))
        if seen != facts or now < at:
            at = now
        if len(self.young) < self.source.max_files_per_batch:
            self.young[key] = (facts, at)
        return now - at < enough

    @property
    def is_full(self) -> bool:
        """Whether the batch is full."""
        return len(self._take) + len(self._misplaced) >= self.source.max_files_per_batch

    def _leave_over(self, facts: ObjectFacts) -> Decision:
        self.left_over += 1
        self.leave(Reason.BEYOND_BATCH, facts)
        return Decision.FULL

    def _enter(
        self, key: str, facts: ObjectFacts, known: UnfinishedFile | None, *, is_other: bool
    ) -> Decision:
        """Take a file if it is old enough and the batch has room."""
        if self._is_young(key, facts):
            self.leave(Reason.TOO_YOUNG, facts)
            return Decision.WAIT
        source = self.source
        if self.is_full or (self._take and self._bytes + facts.size > source.max_bytes_per_batch):
            return self._leave_over(facts)
        if not facts.size and not self.exists(facts.path):
            self.skip(f"{facts.path}/", Reason.FOLDER_MARKER)
            return Decision.NO_FILE
        try:
            values = partition_of(facts.path, self.template, self.partition_fields)
        except PartitionUnknown as unknown:
            self.leave(Reason.MISPLACED, facts, unknown.message)
            self._misplaced.append(self._failed(facts, unknown, known))
            return Decision.FAIL
        if is_other:
            self._again.add(key)
        left = known.record.unread if known is not None and self._goes_on(known, facts) else ()
        taken = SourceFile(
            source=source.name,
            path=facts.path,
            size=facts.size,
            etag=facts.etag,
            # Only plain files have unread byte ranges, even with a compressed suffix.
            codec=Codec.NONE if left else codec_for(facts.path, source.compression),
            by_content=source.compression is Compression.AUTO and not left,
            partition_values=values,
            form=source.form,
            modified=facts.modified,
            skip=self._read_before(known, facts),
            unread=left,
        )
        self._bytes += taken.to_read
        self._take[key] = taken
        return Decision.TAKE

    def _failed(
        self, facts: ObjectFacts, error: LakeError, known: UnfinishedFile | None
    ) -> SourceRecord:
        """Return the failure of a file with a wrong path, keeping what earlier batches read."""
        before = SourceRecord(
            source=self.source.name,
            path=facts.path,
            size=facts.size,
            etag=facts.etag,
            skipped=self._read_before(known, facts),
            unread=known.record.unread if known is not None and self._goes_on(known, facts) else (),
            redo=known is not None and known.record.redo,
            reingested=known is not None and known.record.reingested,
            form=self.source.form.counted_as,
        )
        failure = Failure(stage=FailureStage.DISCOVER, code=error.code, message=error.message)
        return failed(before, failure)

    def _goes_on(self, known: UnfinishedFile, facts: ObjectFacts) -> bool:
        """Whether a known file is this very object, with records counted the same way."""
        record = known.record
        return same_object(record, facts) and record.form == self.source.form.counted_as

    def _is_cut(self, known: UnfinishedFile, facts: ObjectFacts) -> bool:
        """Whether a file was read in part and its rest can no longer be identified."""
        return is_partly_read(known.record) and not self._goes_on(known, facts)

    def _read_before(self, known: UnfinishedFile | None, facts: ObjectFacts) -> int:
        """Return the lines of this very object that were read already."""
        if known is None or not self._goes_on(known, facts):
            return 0
        return known.record.records_read


def same_object(record: SourceRecord, facts: ObjectFacts) -> bool:
    """Whether a listed object is the recorded one, by size and e-tag."""
    return (record.size, record.etag) == (facts.size, facts.etag)


def is_same(name: IngestedFile, facts: ObjectFacts) -> bool:
    """Whether a listed object is the ingested one, by size and e-tag."""
    return name.size == facts.size and name.etag == facts.etag
