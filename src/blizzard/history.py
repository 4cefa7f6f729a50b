"""What the entries of a journal say: read from the first to the last, each checked on the way."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from blizzard.flow import Known
from lake import layout
from lake.entry import Entry, Receipt, decode_entry, decode_receipt, digest
from lake.errors import DocumentUnreadable, StoreUnavailable
from lake.storage import Reader


@dataclass(slots=True)
class History:
    """What the entries up to now say: who we are, where we are, which files are known."""

    receipt: Receipt | None = None
    """What penguin has committed last, read before the entries."""
    journal: str | None = None
    sequence: int = -1
    digests: list[str] = field(default_factory=list)
    """The digest of every entry."""
    source_names: dict[str, str] = field(default_factory=dict)
    """Under which name each source has been read, by its URI."""
    last: Entry | None = None
    known: dict[str, Known] = field(default_factory=dict)
    awaits: int = 0
    """The last entry that a journal with inherited knowledge needs before it may go on."""
    heir: str | None = None
    """The pipeline that has taken this journal over."""

    @property
    def digest(self) -> str | None:
        """Give the digest of the last entry, which the next one repeats."""
        return self.digests[-1] if self.digests else None

    def learn(self, entry: Entry, body: bytes) -> None:
        """Move on by one entry; one that does not follow the last is an error."""
        path = layout.journal_entry(entry.pipeline, entry.sequence)
        if entry.sequence != self.sequence + 1 or entry.previous != self.digest:
            raise DocumentUnreadable(
                "this entry does not follow the one before it: the journal was changed by hand "
                "or rolled back; put it back from a backup, or begin a new journal with "
                "blizzard journal new",
                path=path,
            )
        if self.journal not in (None, entry.journal):
            raise DocumentUnreadable("this entry belongs to another journal", path=path)
        self.journal = entry.journal
        self.sequence = entry.sequence
        self.digests.append(digest(body))
        self.source_names |= {uri: name for name, uri in entry.source_uris.items()}
        if entry.inherits is not None:
            self.awaits = entry.inherits.entries
        self.heir = entry.heir or self.heir
        if entry.files or self.last is None:
            self.last = entry
        at = datetime.fromisoformat(entry.created)
        for record in entry.sources:
            self.known[record.key] = Known(record=record, at=at)


def read_history(store: Reader, pipeline: str) -> History:
    """Read every entry of a journal; a gap or an entry that cannot be read stops the run."""
    # The receipt first: the journal only grows, so what is in the receipt must be in it.
    history = History(receipt=read_receipt(store, pipeline))
    for entry, body in read_entries(store, pipeline):
        history.learn(entry, body)
    return history


def read_entries(store: Reader, pipeline: str) -> Iterator[tuple[Entry, bytes]]:
    """Give the entries of a journal in their order, each with its bytes."""
    return entries_after(store, pipeline, -1)


def entry_numbers(store: Reader, pipeline: str, *, after: int = -1) -> list[int]:
    """List which entries a journal has past a number."""
    start = layout.journal_entry(pipeline, after) if after >= 0 else None
    return sorted(
        number
        for facts in store.objects(layout.journal_folder(pipeline), after=start)
        if (number := layout.entry_sequence(facts.path)) is not None and number > after
    )


def entries_after(store: Reader, pipeline: str, after: int) -> Iterator[tuple[Entry, bytes]]:
    """Give the entries of a journal past a number in their order, each with its bytes."""
    for number in entry_numbers(store, pipeline, after=after):
        path = layout.journal_entry(pipeline, number)
        body = store.get(path)
        if body is None:
            raise StoreUnavailable("an entry that was listed cannot be read", path=path)
        yield decode_entry(body, path), body


def read_receipt(store: Reader, pipeline: str) -> Receipt | None:
    """Read what penguin has committed last; None before the first commit."""
    path = layout.receipt(pipeline)
    body = store.get(path)
    return None if body is None else decode_receipt(body, path)
