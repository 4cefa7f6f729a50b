"""What was read of a Delta log, cached from one look to the next.

A version of a log is written once. So while the object of the last one that was read is the very
same and none follows it, all that was read holds. A version that follows is read here, if it leaves
the table what it is. For anything else the log is read anew: another object in that place, none,
one that cannot be read, a store without e-tags.

Kept are small things: what the table is, and its transactions. Not its files.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lakebed.deltalog.table_actions import Protocol, TableActions
from lakebed.deltalog.table_facts import TableFacts
from lakebed.layout import is_stranger_transaction, log_version
from lakebed.storage.store import ObjectFacts, Reader

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
    protocol: Protocol = field(default_factory=Protocol)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """The metadata of the table as the log writes it."""
    answers: dict[str, int | None] = field(default_factory=dict)
    """The app transactions that are known; whoever asks for another adds it."""
    complete: bool = False
    """Whether these are all, but those of single files of other programs."""
    domains: Mapping[str, str] | None = None
    """The configuration of each domain of metadata; None where it was not read."""
    in_commit_timestamp: int | None = None
    """The timestamp that the version carries; None where it carries none."""
    last: ObjectFacts | None = None
    """The object of that version; None where it is not sure that it is the one that was read."""

    def answers_for(self, app_id: str) -> bool:
        """Whether it is known what the log says of an app transaction."""
        return app_id in self.answers or (self.complete and not is_stranger_transaction(app_id))

    def after(
        self, body: bytes, last: ObjectFacts, *, most_answers: int = MOST_ANSWERS
    ) -> "CachedVersion | None":
        """Advance by one version; None where the table is, or may be, another one then. Pure."""
        actions = TableActions()
        try:
            carried = actions.take_version(body)
        except ValueError:
            return None
        if actions.protocol is not None or actions.metadata is not None:
            return None
        if len(self.answers) > most_answers:
            return None
        answers = {app_id: carried.get(app_id, known) for app_id, known in self.answers.items()}
        if self.complete:
            answers.update(actions.transactions)
        return replace(
            self,
            version=self.version + 1,
            facts=replace(self.facts, version=self.version + 1),
            answers=answers,
            domains=None if self.domains is None else joined(self.domains, actions.domains),
            in_commit_timestamp=actions.in_commit_timestamp,
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

    def keep(self, read: CachedVersion) -> None:
        """Keep what was read together with the very object of its version."""
        self.known, self._likely = read, read.version

    def before(self, store: Reader) -> ObjectFacts | None:
        """Look at what is most likely the last version, before the log is read anew."""
        return None if self._likely is None else store.head(log_version(self._likely))

    def learn(self, store: Reader, read: CachedVersion, before: ObjectFacts | None) -> None:
        """Keep what was read, if the object of its version was the same before and is after."""
        sure = replace(read, last=before)
        self.known = sure if sure.still_stands(store) else None
        self._likely = read.version


def joined(before: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """Return the domains of metadata once some were set anew, or removed."""
    after = {**before, **changes}
    return {domain: said for domain, said in after.items() if said is not None}
