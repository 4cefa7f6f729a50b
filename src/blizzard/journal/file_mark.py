"""What a data file says of itself: who wrote it, by its footer, and when, by its name."""

from datetime import UTC, datetime
from uuid import UUID

from lakebed.storage.parquet_tail import footer_of
from lakebed.storage.store import ObjectFacts, Reader


def mark_of(store: Reader, facts: ObjectFacts) -> tuple[str, str] | None:
    """Read which pipeline and journal a data file's footer names; None where it names none."""
    footer = footer_of(store, facts)
    marks = {} if footer is None else footer.metadata or {}
    pipeline, journal = marks.get(b"blizzard.pipeline"), marks.get(b"blizzard.journal")
    return None if pipeline is None or journal is None else (pipeline.decode(), journal.decode())


def born(facts: ObjectFacts) -> datetime:
    """Return when an object was made: by its name or by the store, whichever is later. Pure."""
    stem = facts.path.rpartition("/")[2].partition(".")[0]
    try:
        named = datetime.fromtimestamp((UUID(stem[-36:]).int >> 80) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return facts.modified
    return max(named, facts.modified)
