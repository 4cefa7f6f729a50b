"""Where and since when a source file fails."""

from collections.abc import Mapping
from datetime import datetime

from blizzard.discover.lister import source_listers
from blizzard.discover.retry import next_try
from blizzard.inspect.why.answer import FailedAt
from blizzard.inspect.why.asked import Asked
from blizzard.model.files import UnfinishedFile
from lakebed.documents.source_record import Stage


def failure_of(asked: Asked, known: UnfinishedFile) -> FailedAt | None:
    """Return where and since when a file fails; None where it has not failed."""
    failure = known.record.failure
    if failure is None:
        return None
    last, entry = _failed_last(asked, known)
    return FailedAt(
        stage=failure.stage.value,
        code=failure.code,
        message=failure.message,
        line=failure.line,
        field=failure.field,
        attempts=failure.attempts,
        since=known.since,
        last=last,
        entry=entry,
        next_try=next_try(known, _bases(asked, known.record.source)),
    )


def _failed_last(asked: Asked, known: UnfinishedFile) -> tuple[datetime, int | None]:
    """Return when a file failed last, and the entry that says so.

    A later one may say that it is gone, was given up, or is to be read again.
    """
    number = known.entry if known.failed_in is None else known.failed_in
    is_later = number != known.entry or known.record.gone
    table = asked.table if is_later else None
    failed = None if table is None or number is None else table.journal.entry(number)
    if failed is None:
        return known.at, known.entry
    return datetime.fromisoformat(failed.created), number


def _bases(asked: Asked, source: str) -> Mapping[Stage, str]:
    return next(
        (each.bases for each in source_listers(asked.settings) if each.source.name == source), {}
    )
