"""Rows of source files replaced by what a source file holds now: in one commit, or not at all.

All rows of the source files that are in the table go, those of earlier content of the new one
included, and the new rows come with the same entry. So readers see the old or the new, and whoever
does it again, after penguin could not apply the entry, ends where once would have.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from blizzard.execute.runner import Rewriter
from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.source_names import KnownSources
from blizzard.model.files import SourceFile
from blizzard.model.locations import OpenReader
from blizzard.model.settings import PipelineSettings
from blizzard.renewal import Renewed
from blizzard.rewrite.content import (
    ContentNotRead,
    Reading,
    find_object,
    read_content,
)
from blizzard.rewrite.retract import (
    Found,
    Retracted,
    RowsNotToldApart,
    SourceNotRetractable,
    look,
    retract,
)
from blizzard.rewrite.retracted_sources import Named, has_rows
from blizzard.rewrite.transaction import NothingCommitted, PromotionWaits, TableLog
from lakebed.documents.source_record import Failure, SourceRecord, Stage
from lakebed.errors import JournalConflict, LakeError
from lakebed.storage.store import Reader, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """The source files whose rows go, and the one that takes their place."""

    keys: tuple[str, ...]
    new: SourceFile


def exchange_of(
    store: Reader,
    settings: PipelineSettings,
    keys: Sequence[str],
    other: str,
    open_source: OpenReader,
    *,
    now: datetime,
) -> Exchange:
    """Return what is exchanged, by keys: earlier rows of the new file go, too."""
    new = find_object(settings, other, open_source, now=now)
    known = KnownSources(read_ledger(store, settings.name))
    others = [key for key in keys if key != new.key]
    # The file itself may be named only because its new content is meant; it need not be known.
    is_source = len(others) < len(keys)
    own = [new.key] if is_source or has_rows(known(new.key)) else []
    return Exchange(keys=(*others, *own), new=new)


def replace_rows(
    store: Store,
    settings: PipelineSettings,
    exchange: Exchange,
    log: TableLog,
    rewriter: Rewriter,
    reading: Reading,
) -> Retracted:
    """Read the new content, and append the entry that puts it in the place of the old rows."""
    found = look(store, settings, exchange.keys, log)
    content = read_content(
        settings,
        (exchange.new,),
        _before(found, (exchange.new,)),
        reading,
        history=found.history,
        journal=found.last.journal,
        mapping=found.table.mapping,
    )
    for record in content.failed:
        if record.failure is not None:
            raise ContentNotRead(
                f"{record.key} cannot take the place of these rows: {record.failure.message} "
                f"[{record.failure.code}]; nothing was changed",
                file=record.key,
            )
    if not content.records:
        raise ContentNotRead(
            f"{exchange.new.key} was not read, since a stop was asked for; nothing was changed",
            file=exchange.new.key,
        )
    return retract(
        store, settings, exchange.keys, log, rewriter, clock=reading.clock, content=content
    )


def renew(
    store: Store,
    settings: PipelineSettings,
    files: Sequence[SourceFile],
    log: TableLog,
    rewriter: Rewriter,
    reading: Reading,
) -> Renewed:
    """Put what source files hold now in the place of their rows, as far as that can be done now.

    All of them with one entry; where something is in the way of one of them, each by itself.
    """

    def together(some: Sequence[SourceFile]) -> Renewed:
        keys = tuple(file.key for file in some)
        found = look(store, settings, keys, log)
        content = read_content(
            settings,
            some,
            _before(found, some),
            reading,
            history=found.history,
            journal=found.last.journal,
            mapping=found.table.mapping,
        )
        if not content.records:
            return Renewed(failed=content.failed)
        read = tuple(record.key for record in content.records)
        done = retract(store, settings, read, log, rewriter, clock=reading.clock, content=content)
        return Renewed(
            entries=() if done.entry is None else (done.entry,),
            keys=frozenset(read),
            rows=sum(record.rows for record in content.records),
            removed=sum(done.rows.values()),
            failed=content.failed,
        )

    return _as_far_as_possible(files, together)


def _as_far_as_possible(
    files: Sequence[SourceFile], together: Callable[[Sequence[SourceFile]], Renewed]
) -> Renewed:
    try:
        return together(files)
    except (PromotionWaits, JournalConflict, NothingCommitted) as trouble:
        return Renewed(waits=trouble.message)
    except (SourceNotRetractable, RowsNotToldApart) as trouble:
        if len(files) == 1:
            return _alone(files[0], trouble)
    found = [_as_far_as_possible([file], together) for file in files]
    return Renewed(
        entries=tuple(entry for one in found for entry in one.entries),
        keys=frozenset(key for one in found for key in one.keys),
        rows=sum(one.rows for one in found),
        removed=sum(one.removed for one in found),
        failed=tuple(record for one in found for record in one.failed),
        waits=next((one.waits for one in found if one.waits is not None), None),
    )


def _alone(file: SourceFile, trouble: LakeError) -> Renewed:
    """Return what becomes of one file whose rows cannot be taken out now, or ever."""
    if isinstance(trouble, SourceNotRetractable):
        return Renewed(waits=trouble.message)
    failure = Failure(stage=Stage.DISCOVER, code=trouble.code, message=trouble.message)
    record = SourceRecord(
        source=file.source,
        path=file.path,
        size=file.size,
        etag=file.etag,
        form=file.form.counted_as,
        failure=failure,
    )
    return Renewed(failed=(record,))


def _before(found: Found, files: Sequence[SourceFile]) -> dict[str, Named | None]:
    known = KnownSources(found.history)
    return {file.key: Named.of(file.key, known(file.key)) for file in files}
