"""What was read of a Delta log, cached from one look to the next.

A version of a log is written once. So while the object of the last one that was read is the very
same and none follows it, all that was read holds. A version that follows is read here, if it leaves
the table what it is. Anything else is left to the library, which reads the log anew: another object
in that place, none, one that cannot be read, a store without e-tags.

Kept are small things: what the table is, and the transactions that were asked for. Not its files.
"""

from dataclasses import dataclass, field, replace

from lakebed.documents.reading import parse_json
from lakebed.layout import log_version
from lakebed.storage.store import ObjectFacts, Reader
from penguin.model.table import TableFacts

MOST_VERSIONS = 10
"""Versions that are read one by one; to read the log anew costs less than more of them."""
MOST_ANSWERS = 100_000
"""Transactions that are kept; a table with as many held files asks for each of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedVersion:
    """What was read of one version of a log."""

    version: int
    id: str
    facts: TableFacts
    answers: dict[str, int | None] = field(default_factory=dict)
    """The app transactions that were asked for; whoever asks for another adds it."""
    last: ObjectFacts | None = None
    """The object of that version; None where it is not sure that it is the one that was read."""

    def after(
        self, body: bytes, last: ObjectFacts, *, most_answers: int = MOST_ANSWERS
    ) -> "CachedVersion | None":
        """Advance by one version; None where the table is, or may be, another one then. Pure."""
        transactions: dict[str, int] = {}
        try:
            for line in filter(bytes.strip, body.splitlines()):
                match parse_json(line):
                    case {"metaData": _} | {"protocol": _}:
                        return None
                    case {"txn": {"appId": str(app_id), "version": int(number)}}:
                        transactions[app_id] = number
                    case {"txn": _}:
                        return None
        except ValueError:
            return None
        if not body.strip() or len(self.answers) > most_answers:
            return None
        return replace(
            self,
            version=self.version + 1,
            facts=replace(self.facts, version=self.version + 1),
            answers={
                app_id: transactions.get(app_id, known) for app_id, known in self.answers.items()
            },
            last=last,
        )

    def still_stands(self, store: Reader) -> bool:
        """Whether the object of the version is the one that was read."""
        return (
            self.last is not None
            and self.last.etag is not None
            and store.head(log_version(self.version)) == self.last
        )


@dataclass(slots=True)
class LogCache:
    """What is known of one table's log. It makes the next look cheaper, and nothing else."""

    known: CachedVersion | None = None
    _likely: int | None = None
    """The version that is most likely the last."""

    def catch_up(self, store: Reader) -> CachedVersion | None:
        """Bring what is known up to the log's last version; None where it must be read anew."""
        self.known = self._caught_up(store)
        return self.known

    def _caught_up(self, store: Reader) -> CachedVersion | None:
        known = self.known
        for _ in range(MOST_VERSIONS):
            if known is None:
                return None
            following = store.fetch(log_version(known.version + 1))
            # In this order: what was there before the very same object was seen again follows it,
            # and is not of another table that has taken the place of this one.
            if not known.still_stands(store):
                return None
            if following is None:
                return known
            self._likely = known.version + 1
            known = known.after(*following)
        return None

    def before(self, store: Reader) -> ObjectFacts | None:
        """Look at what is most likely the last version, before the log is read anew."""
        return None if self._likely is None else store.head(log_version(self._likely))

    def learn(self, store: Reader, read: CachedVersion, before: ObjectFacts | None) -> None:
        """Keep what was read, if the object of its version was the same before and is after."""
        sure = replace(read, last=before)
        self.known = sure if sure.still_stands(store) else None
        self._likely = read.version
