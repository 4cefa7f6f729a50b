"""Replace the rows of source files with the present content of a source file, atomically.

One entry removes all rows of the source files, including those of earlier content of the new one,
and adds the new rows. So readers see either the old or the new rows, and a repetition after penguin
rejected the entry gives the same result.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from blizzard.discover.filter import Decision, FileFilter
from blizzard.discover.lister import source_listers
from blizzard.events import ContentReplaced, ReplacementPending
from blizzard.ingest import Ingest
from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.source_names import KnownSources
from blizzard.model.settings import PipelineSettings
from blizzard.model.source.file import UNKNOWN, SourceFile
from blizzard.model.stores import OpenReader, source_location
from blizzard.plan.planner import planned
from blizzard.rewrite.retract import (
    Content,
    RetractPlan,
    RowOriginsUnknown,
    SourceNotRetractable,
    plan_retraction,
    refuse_rows_out,
    retract,
)
from blizzard.rewrite.source_rows import has_rows
from blizzard.rewrite.transaction import NothingCommitted, PromotionPending, RewriteDone
from lakebed.documents.records import Failure, FailureStage, SourceRecord
from lakebed.errors import JournalConflict, LakeError, ObjectMissing, Whose
from lakebed.storage.store import Reader, Store


class ContentNotRead(LakeError, code="content_not_read", whose=Whose.USER):
    """The replacement content could not be read, so nothing was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewed:
    """The outcome for changed source files."""

    entries: tuple[int, ...] = ()
    """The entries that supersede their old rows."""
    keys: frozenset[str] = frozenset()
    """The files whose rows those entries supersede."""
    rows: int = 0
    """Their number of new rows."""
    removed: int = 0
    """Their number of old rows."""
    failed: tuple[SourceRecord, ...] = ()
    """Files that cannot be read, whose old rows stay in the table."""
    waits: str | None = None
    """Why other files have to wait; None if none does."""


def exchange_of(
    store: Reader,
    settings: PipelineSettings,
    keys: Sequence[str],
    other: str,
    open_source: OpenReader,
    *,
    now: datetime,
) -> tuple[tuple[str, ...], SourceFile]:
    """Return the keys of the files to replace, including the new file's, and the new file."""
    new = find_object(settings, other, open_source, now=now)
    known = KnownSources(read_ledger(store, settings.name))
    others = [key for key in keys if key != new.key]
    # The new file may be named among the old ones without being known.
    is_source = len(others) < len(keys)
    own = [new.key] if is_source or has_rows(known(new.key)) else []
    return (*others, *own), new


def find_object(
    settings: PipelineSettings, key: str, open_source: OpenReader, *, now: datetime
) -> SourceFile:
    """Return a source file as it is now; raise if it cannot be read."""
    name, _, path = key.partition(":")
    lister = next((one for one in source_listers(settings) if one.source.name == name), None)
    facts = None
    if lister is not None:
        facts = open_source(source_location(lister.source)).head(path)
    if lister is None or facts is None:
        raise ObjectMissing(f"no source has a file {key}; nothing was changed", path=key)
    chosen = FileFilter(
        source=lister.source,
        template=lister.template,
        partition_fields=lister.partition_fields,
        now=now,
    )
    taken = chosen.is_ours(facts) and chosen.consider(facts, UNKNOWN) is Decision.TAKE
    finding = chosen.finding()
    if not taken:
        why = ", ".join(one.reason.value for one in finding.not_taken)
        raise ContentNotRead(f"blizzard would not read {key}: {why}; nothing was changed", file=key)
    return finding.take[0]


def replace_rows(
    store: Store,
    keys: tuple[str, ...],
    new: SourceFile,
    ingest: Ingest,
    open_source: OpenReader,
    *,
    rows_deleted: bool = False,
) -> RewriteDone[RetractPlan]:
    """Read the new content, and append the entry that supersedes the old rows with it."""
    content = read_content(store, keys, (new,), ingest, open_source, rows_deleted=rows_deleted)
    for record in content.failed:
        if record.failure is not None:
            raise ContentNotRead(
                f"{record.key} cannot replace these rows: {record.failure.message} "
                f"[{record.failure.code}]; nothing was changed",
                file=record.key,
            )
    if not content.records:
        raise ContentNotRead(
            f"{new.key} was not read, since a stop was requested; nothing was changed",
            file=new.key,
        )
    return retract(
        store,
        ingest.settings,
        keys,
        ingest.runner,
        clock=ingest.clock,
        content=content,
        rows_deleted=rows_deleted,
    )


def renew(
    store: Store,
    files: Sequence[SourceFile],
    ingest: Ingest,
    open_source: OpenReader,
) -> Renewed:
    """Supersede the rows of source objects with their new content, as far as possible now.

    Uses one entry for all objects; if one of them is blocked, one entry each.
    """
    settings = ingest.settings

    def together(some: Sequence[SourceFile]) -> Renewed:
        content = read_content(store, [file.key for file in some], some, ingest, open_source)
        if not content.records:
            return Renewed(failed=content.failed)
        read = tuple(record.key for record in content.records)
        done = retract(store, settings, read, ingest.runner, clock=ingest.clock, content=content)
        return Renewed(
            entries=() if done.entry is None else (done.entry,),
            keys=frozenset(read),
            rows=sum(record.rows for record in content.records),
            removed=sum(done.rows.values()),
            failed=content.failed,
        )

    return _as_far_as_possible(files, together)


def renewal(store: Reader, settings: PipelineSettings, files: Sequence[SourceFile]) -> Renewed:
    """Return what `renew` would do, as far as that is known before the content is read."""

    def together(some: Sequence[SourceFile]) -> Renewed:
        plan = _replaceable(store, settings, [file.key for file in some])
        entries = (plan.state.history.sequence + 1,)
        return Renewed(entries=entries, keys=frozenset(file.key for file in some))

    return _as_far_as_possible(files, together)


def _replaceable(
    store: Reader, settings: PipelineSettings, keys: Sequence[str], *, rows_deleted: bool = False
) -> RetractPlan:
    """Find the old rows of source objects; raise if they cannot be taken out of the table."""
    plan = plan_retraction(store, settings, keys, rows_deleted=rows_deleted)
    refuse_rows_out(store, plan)
    return plan


def read_content(
    store: Reader,
    keys: Sequence[str],
    files: Sequence[SourceFile],
    ingest: Ingest,
    open_source: OpenReader,
    *,
    rows_deleted: bool = False,
) -> Content:
    """Read the new content of source objects as a batch would.

    Raise before anything is read if the old rows cannot be taken out of the table.
    """
    settings = ingest.settings
    state = _replaceable(store, settings, keys, rows_deleted=rows_deleted).state
    known = KnownSources(state.history)
    before = {file.key: known(file.key).object_of(file.key) for file in files}
    ingested = ingest(
        planned(settings, files, open_source, parallelism=ingest.runner.parallelism),
        known=state.history.columns,
        journal=state.last.journal,
        entry=state.history.sequence + 1,
        mapping=state.snapshot.mapping,
    )
    settled = ingested.settled
    settled.require_room()
    failed = tuple(record for record in settled.sources if not _can_replace(record))
    # Content that shares data files with failed content waits for the next attempt.
    spoilt = {record.unit for record in failed if record.rows or record.quarantined}
    good = tuple(
        record for record in settled.sources if _can_replace(record) and record.unit not in spoilt
    )
    names = {record.unit for record in good}
    written = tuple(file for file in settled.files if file.unit in names)
    return Content(
        records=good,
        files=written,
        quarantine=tuple(file for file in settled.quarantine if file.unit in names),
        columns=ingested.columns.entry(written),
        known=state.history.columns,
        before={record.key: before[record.key] for record in good},
        failed=tuple(map(_failed, failed)),
    )


def _can_replace(record: SourceRecord) -> bool:
    """Whether a file may replace rows: without any content they stay."""
    return record.failure is None and record.complete and record.rows > 0


def _failed(record: SourceRecord) -> SourceRecord:
    """Return the record of a file whose content is not used, with the reason."""
    if record.failure is not None:
        return record
    why = "it has no row" if record.complete else "it was not read to its end"
    failure = Failure(
        stage=FailureStage.PARSE,
        code=ContentNotRead.code,
        message=f"{why}, so the rows in the table stay",
        retryable=not record.complete,
    )
    return _record(record, record.form, failure)


def _record(one: SourceRecord | SourceFile, form: str, failure: Failure) -> SourceRecord:
    return SourceRecord(
        source=one.source,
        path=one.path,
        size=one.size,
        etag=one.etag,
        form=form,
        failure=failure,
    )


def _as_far_as_possible(
    files: Sequence[SourceFile], together: Callable[[Sequence[SourceFile]], Renewed]
) -> Renewed:
    try:
        return together(files)
    except (PromotionPending, JournalConflict, NothingCommitted) as trouble:
        return Renewed(waits=trouble.message)
    except (SourceNotRetractable, RowOriginsUnknown) as trouble:
        if len(files) == 1:
            return _blocked(files[0], trouble)
    found = [_as_far_as_possible([file], together) for file in files]
    return Renewed(
        entries=tuple(entry for one in found for entry in one.entries),
        keys=frozenset(key for one in found for key in one.keys),
        rows=sum(one.rows for one in found),
        removed=sum(one.removed for one in found),
        failed=tuple(record for one in found for record in one.failed),
        waits=next((one.waits for one in found if one.waits is not None), None),
    )


def _blocked(file: SourceFile, trouble: LakeError) -> Renewed:
    """Return the outcome for a file whose rows cannot be taken out, now or ever."""
    if isinstance(trouble, SourceNotRetractable):
        return Renewed(waits=trouble.message)
    failure = Failure(stage=FailureStage.DISCOVER, code=trouble.code, message=trouble.message)
    return Renewed(failed=(_record(file, file.form.counted_as, failure),))


REST_SECS = 30.0
"""Time between two attempts to replace the rows of changed files."""


@dataclass(slots=True)
class Replacer:
    """Replaces the rows of changed files between the batches of a run (`on_change: replace`)."""

    _waiting_since: float = -REST_SECS

    def renew(
        self, store: Store, files: Sequence[SourceFile], ingest: Ingest, open_source: OpenReader
    ) -> Renewed:
        """Supersede the rows of changed files with their new content, and report the outcome.

        While an attempt waits for penguin, pause REST_SECS before reading the journals again.
        """
        now, name, emit = ingest.clock.seconds(), ingest.settings.name, ingest.emit
        if self._waiting_since <= now < self._waiting_since + REST_SECS:
            return Renewed()
        renewed = renew(store, files, ingest, open_source)
        self._waiting_since = now if renewed.waits is not None else -REST_SECS
        if renewed.entries:
            emit(
                ContentReplaced(
                    pipeline=name,
                    entry=renewed.entries[0],
                    files=len(renewed.keys),
                    rows=renewed.rows,
                    removed=renewed.removed,
                )
            )
        if renewed.waits is not None:
            emit(ReplacementPending(pipeline=name, reason=renewed.waits))
        return renewed
