"""The dead letter queue as it is now: what failed, and the state of each file since. Read-only."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from blizzard.answers.lifecycle import FileProgress, FileState, of_unfinished
from blizzard.answers.progress import PipelineEvidence
from blizzard.handoff.dead_letters import DeadLetter, decode, queue_at
from blizzard.journal.books import dead_letters_of
from blizzard.journal.ledger import Ledger
from blizzard.journal.source_names import KnownSources
from blizzard.model.files import UnfinishedFile
from blizzard.model.locations import OpenReader, source_uris_of
from blizzard.model.settings import PipelineSettings
from lakebed import layout
from lakebed.clock import Clock
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
class FailedLetter:
    """A letter, and the state of its file now."""

    letter: DeadLetter
    state: FileState
    deleted: bool = False
    """Whether the file has left its source and was not given up."""
    repeated: bool = False
    """Whether a later letter reports the same file."""

    @property
    def is_open(self) -> bool:
        """Whether this letter says why the file is not in the table."""
        return self.state is FileState.FAILED and not self.repeated


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterQueue:
    """What the queue of one pipeline holds."""

    pipeline: str
    failures: tuple[FailedLetter, ...] = ()
    """The newest first."""
    gone: tuple[str, ...] = ()
    """Objects that entries name and that are not there any more."""
    unsure: tuple[str, ...] = ()
    """Why the states of files are not known for sure."""
    inherited: int = 0
    """Files that failed under an earlier journal, which has their letters."""
    unread: int = 0
    """Letters in objects that were not read, because none is of a file that is failed now."""
    lost: tuple[LostFile, ...] = ()
    """Files that were not given up: their days stay open. The newest first."""

    @property
    def letters(self) -> tuple[DeadLetter, ...]:
        """Return all letters."""
        return tuple(one.letter for one in self.failures)

    @property
    def current(self) -> tuple[DeadLetter, ...]:
        """Return the letters of files that are failed now and still there, one of each file."""
        return tuple(one.letter for one in self.failures if one.is_open and not one.deleted)

    @property
    def over(self) -> int:
        """Count the letters of failures that need no action."""
        return sum(not one.is_open for one in self.failures) + self.unread


def dead_letter_queue(
    settings: PipelineSettings, open_reader: OpenReader, *, every: bool = True
) -> DeadLetterQueue:
    """Read a pipeline's dead letter queue. It is handed readers only, so it cannot write.

    Without `every` only objects with letters of files that are failed now: the newest snapshot and
    the entries after it say which entries name those. With it, every entry is read.
    """
    asked = PipelineEvidence.read(settings, Clock(), opening=open_reader)
    if asked.store is None:
        return DeadLetterQueue(pipeline=settings.name)
    journal, ledger = JournalReader(asked.store, settings.name), asked.history
    lost = lost_among(ledger)
    progress, unsure = FileProgress(committed=None), tuple[str, ...]()
    if every:
        entries = list(journal.entries())
        progress, unsure = asked.progress()
    else:
        failed_in = {
            known.failed_in
            for key, known in ledger.unfinished.items()
            if known.record.failure is not None
            and known.failed_in is not None
            and (key in lost or not known.record.gone)
        }
        entries = [journal.listed(one).entry for one in sorted(failed_in)]
    letters, gone = _read(entries, lambda uri: open_reader(queue_at(settings, uri)))
    failures = (_now(letter, entry, asked.known, progress, lost) for letter, entry in letters)
    there = sum(dead_letters_of(entry) for entry in entries)
    return DeadLetterQueue(
        pipeline=settings.name,
        failures=tuple(failures),
        gone=gone,
        unsure=unsure,
        unread=0 if every else ledger.books.sums.dead_letters - there,
        inherited=sum(_failed_before(known, ledger) for known in ledger.unfinished.values()),
        lost=described(settings, ledger, lost.values()),
    )


def _failed_before(known: UnfinishedFile, ledger: Ledger) -> bool:
    """Whether a file failed under the journal that this one has taken over, and not since."""
    entry = known.entry if known.failed_in is None else known.failed_in
    before = entry is None or entry <= ledger.awaits
    return known.record.failure is not None and not known.record.gone and before


def _now(
    letter: DeadLetter,
    entry: Entry,
    known: KnownSources,
    progress: FileProgress,
    lost: Collection[str],
) -> FailedLetter:
    """Return a letter of an entry with the state of its file."""
    root = entry.source_uris.get(letter.source, "").rstrip("/")
    key = f"{letter.source}:{letter.path.removeprefix(f'{root}/')}"
    before = known(key)
    unfinished, done = before.unfinished, before.finished
    if unfinished is None:
        state = FileState.MISSING if done is None else progress.of(done)
        return FailedLetter(letter=letter, state=state)
    state, _reason = of_unfinished(unfinished, progress)
    is_failed = state is FileState.FAILED
    return FailedLetter(
        letter=letter,
        state=state,
        deleted=is_failed and key in lost,
        repeated=is_failed and unfinished.failed_in not in (None, entry.sequence),
    )


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
