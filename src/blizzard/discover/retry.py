"""When a source file that is not done is read again. Pure."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from blizzard.model.files import UnfinishedFile
from blizzard.model.source.part_way import lacks_its_object
from lakebed.documents.source_record import FailureStage
from lakebed.retry import Backoff

RETRY = Backoff(first_secs=30, limit_secs=3600)
"""How long a file rests that failed in a way that trying again can help."""


def is_due(
    known: UnfinishedFile, now: datetime, bases: Mapping[FailureStage, str] | None = None
) -> bool:
    """Whether a file may be tried again: its rest is unread, or it failed and has rested.

    One that failed in the future did so by a clock that was ahead: it need not wait for that. Nor
    need one whose retry was requested.
    """
    at = next_try(known, bases)
    return at is not None and (now >= at or now < known.at or is_asked_for(known, bases))


def is_asked_for(known: UnfinishedFile, bases: Mapping[FailureStage, str] | None = None) -> bool:
    """Whether a file is to be read again at once: by order, or since the settings are others."""
    failure = known.record.failure
    if known.record.gone or failure is None:
        return False
    present = (bases or {}).get(failure.stage)
    changed = not failure.retryable and present is not None and present != failure.basis
    # No setting brings an object back.
    changed = changed and not lacks_its_object(known.record)
    return known.record.retry or changed


def next_try(
    known: UnfinishedFile, bases: Mapping[FailureStage, str] | None = None
) -> datetime | None:
    """Return when a file is read again as it is; None where something has to change first. Pure.

    That is the file, or the settings that bore on its failure. Under which a record of an older
    version failed is not known: it is tried once.
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
        return known.at  # It was not tried and failed, but is to be read again.
    return known.at + timedelta(seconds=RETRY.wait(failure.attempts, lambda: 1.0))
