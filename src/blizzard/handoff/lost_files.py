"""Files that landed and cannot be read any more, until somebody gives them up. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from blizzard.journal.ledger import Ledger
from blizzard.model.files import UnfinishedFile
from blizzard.model.locations import source_uris_of
from blizzard.model.settings import PipelineSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class LostFile:
    """A source file that landed, was deleted from its source, and of which nothing can be read."""

    pipeline: str
    lost: str
    """The file's full URI."""
    source: str
    path: str
    """The path below that source, as commands take it."""
    code: str | None
    """How it failed; None where the data files with its rows were given up instead."""
    size: int
    since: str
    """When a run noticed that it is gone."""


def lost_among(history: Ledger) -> dict[str, UnfinishedFile]:
    """Return the files that were gone before they were loaded and not given up since, by key."""
    return {
        key: known
        for key, known in history.unfinished.items()
        if known.record.gone and not known.record.discarded
    }


def as_told(
    settings: PipelineSettings, history: Ledger, lost: Iterable[UnfinishedFile]
) -> tuple[LostFile, ...]:
    """Return files that are lost as they are told, the newest first."""
    roots = history.source_uris | source_uris_of(settings)
    newest = sorted(lost, key=lambda known: known.at, reverse=True)
    return tuple(
        LostFile(
            pipeline=settings.name,
            lost=f"{roots.get(known.record.source, '').rstrip('/')}/{known.record.path}",
            source=known.record.source,
            path=known.record.path,
            code=None if known.record.failure is None else known.record.failure.code,
            size=known.record.size,
            since=known.at.isoformat(),
        )
        for known in newest
    )
