"""The dead letter queue as it is now: what failed, and the state of each file since. Read-only."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from blizzard.answers.lifecycle import FileProgress, FileState, of_unfinished
from blizzard.answers.progress import PipelineEvidence
from blizzard.handoff.dead_letters import DeadLetter, decode, queue_at
from blizzard.journal.ledger import Ledger
from blizzard.model.files import UnfinishedFile
from blizzard.model.locations import source_uris_of
from blizzard.model.settings import PipelineSettings
from lakebed import layout
from lakebed.documents.entry import Entry
from lakebed.errors import DocumentUnreadable, ObjectMissing
from lakebed.journal import JournalReader
from lakebed.storage.store import Reader


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


def described(
    settings: PipelineSettings, history: Ledger, lost: Iterable[UnfinishedFile]
) -> tuple[LostFile, ...]:
    """Return lost files in the form that is printed, the newest first."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterQueue:
    """What the queue of one pipeline holds."""

    pipeline: str
    letters: tuple[DeadLetter, ...] = ()
    """Those of files that are failed now and still there, one of each file; the newest first."""
    gone: tuple[str, ...] = ()
    """Objects that entries name and that are not there any more."""
    inherited: int = 0
    """Files that failed under an earlier journal, which has their letters."""
    over: int = 0
    """Letters of failures that need no action."""
    lost: tuple[LostFile, ...] = ()
    """Files that were not given up: their days stay open. The newest first."""


def dead_letter_queue(asked: PipelineEvidence) -> DeadLetterQueue:
    """Read a pipeline's dead letter queue. It is handed readers only, so it cannot write.

    Only objects with letters of files that are failed now are read: the newest snapshot and the
    entries after it say which entries name those.
    """
    settings, ledger = asked.settings, asked.history
    if asked.store is None:
        return DeadLetterQueue(pipeline=settings.name)
    journal = JournalReader(asked.store, settings.name)
    lost = lost_among(ledger)
    failed_in = {
        key: known.failed_in
        for key, known in ledger.unfinished.items()
        if known.failed_in is not None
        and not _failed_before(known, ledger)
        and of_unfinished(known, FileProgress(committed=None))[0] is FileState.FAILED
    }
    there = {key: entry for key, entry in failed_in.items() if key not in lost}
    entries = [journal.listed(one).entry for one in sorted(set(there.values()))]
    found, gone = _read(entries, lambda uri: asked.open_reader(queue_at(settings, uri)))
    current = (one for one, entry in found if there.get(_key(one, entry)) == entry.sequence)
    return DeadLetterQueue(
        pipeline=settings.name,
        letters=tuple(current),
        gone=gone,
        inherited=sum(_failed_before(known, ledger) for known in ledger.unfinished.values()),
        over=ledger.books.sums.dead_letters - len(failed_in),
        lost=described(settings, ledger, lost.values()),
    )


def _key(letter: DeadLetter, entry: Entry) -> str:
    root = entry.source_uris.get(letter.source, "").rstrip("/")
    return f"{letter.source}:{letter.path.removeprefix(f'{root}/')}"


def _failed_before(known: UnfinishedFile, ledger: Ledger) -> bool:
    """Whether a file failed under the journal that this one has taken over, and not since."""
    entry = known.entry if known.failed_in is None else known.failed_in
    before = entry is None or entry <= ledger.awaits
    return known.record.failure is not None and not known.record.gone and before


def _read(
    entries: Sequence[Entry], open_folder: Callable[[str], Reader]
) -> tuple[list[tuple[DeadLetter, Entry]], tuple[str, ...]]:
    """Read the objects that entries name, and return those that are not there any more.

    No other object belongs to the queue. They may be in several places, since `dlq_path` may have
    been another one before.
    """
    found: list[tuple[DeadLetter, Entry]] = []
    gone: list[str] = []
    named = [(uri, entry) for entry in entries for uri in entry.dlq]
    for uri, entry in reversed(named):
        folder, _slash, name = uri.rpartition("/")
        if not layout.is_dead_letters(name):
            raise DocumentUnreadable(
                "a journal entry lists this as dead letters, but it does not have the name of "
                "such an object",
                path=uri,
            )
        try:
            body = open_folder(folder).get(name)
        except ObjectMissing:
            body = None  # The whole folder was cleared away.
        if body is None:
            gone.append(uri)
        else:
            found += ((letter, entry) for letter in decode(body, uri))
    return found, tuple(gone)
