"""The latest version of a table without its data files: read without the library, and cached.

Of the checkpoint only the columns are read that are not about files, so that this costs the same
however many files the table has. A checkpoint of any kind keeps those in its own file or parts; the
sidecars of a V2 checkpoint hold nothing else than data files. Where anything is not as it must be,
nothing is concluded: the library reads the log then, and says what is wrong with it.

A version of a log is written once. So while the object of the last one that was read is the very
same and none follows it, all that was read holds. A version that follows is read here, if it leaves
the table what it is. For anything else the log is read anew: another object in that place, none,
one that cannot be read, a store without e-tags.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from lakebed.deltalog.actions import (
    TABLE_KINDS,
    LogActions,
    Protocol,
    read_actions,
)
from lakebed.deltalog.delta_types import TableFacts
from lakebed.deltalog.segment import LogSegment, find_segment
from lakebed.documents.reading import parse_json
from lakebed.errors import ObjectChanged, ObjectMissing, TableUnreadable
from lakebed.layout import is_stranger_transaction, log_version
from lakebed.storage.ahead import ahead
from lakebed.storage.store import ObjectFacts, Reader

MOST_VERSIONS = 10
"""Versions that are read one by one; to read the log anew costs less than more of them."""
MOST_ANSWERS = 100_000
"""Transactions that are kept; a table with as many held files asks for each of them."""
KINDS = (*TABLE_KINDS, "commitInfo")


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
    """The app transactions that are known; a question for another one adds it."""
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
        try:
            actions = read_actions(self.version + 1, body, last.path, kinds=KINDS)
        except TableUnreadable:
            return None
        if actions.protocol is not None or actions.metadata is not None:
            return None
        if len(self.answers) > most_answers:
            return None
        carried = actions.transactions
        answers = {app_id: carried.get(app_id, known) for app_id, known in self.answers.items()}
        if self.complete:
            answers.update(_without_strangers(actions))
        return replace(
            self,
            version=self.version + 1,
            facts=replace(self.facts, version=self.version + 1),
            answers=answers,
            domains=None if self.domains is None else _joined(self.domains, actions.domains),
            in_commit_timestamp=actions.info.in_commit_timestamp,
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


def read_latest(store: Reader) -> CachedVersion | None:
    """Read what the latest version of a table is; None where that is not sure, or there is none."""
    tail = find_segment(store)
    if tail is None or tail.missing is not None:
        return None
    # First the last version, and its object again in the end: what is read in between is of the
    # same log, and not of another that has taken its place.
    newest = store.fetch(log_version(tail.version))
    if newest is None or newest[1].etag is None:
        return None
    try:
        found = _folded(_parts(store, tail, newest[0]), tail.version, newest[1])
    except (ObjectChanged, ObjectMissing):
        return None  # Another penguin writes the same checkpoint at this moment, or cleans up.
    except (ValueError, KeyError, TypeError, AttributeError, TableUnreadable):
        return None
    return found if store.head(log_version(tail.version)) == newest[1] else None


def _parts(store: Reader, tail: LogSegment, newest: bytes) -> Iterator[LogActions]:
    """Yield the actions that are not about files: the checkpoint's, then each version's."""
    if tail.checkpoint is not None:
        # Only here is Arrow needed: a log without checkpoints is read without it.
        from lakebed.deltalog.checkpoint import read_checkpoint  # noqa: PLC0415

        yield from read_checkpoint(store, tail.checkpoint, TABLE_KINDS, sidecars=False)
    older = ahead(lambda each: store.get(log_version(each)), range(tail.first, tail.version))
    for number, body in chain(older, [(tail.version, newest)]):
        if body is None:
            raise TableUnreadable("a version of the Delta log is gone", table=store.uri)
        if number >= tail.first:
            yield read_actions(number, body, log_version(number), kinds=KINDS)
        else:  # The rest of it is in the checkpoint, and its timestamp in the first line.
            first = body.partition(b"\n")[0]
            yield read_actions(number, first, log_version(number), kinds=("commitInfo",))


def _folded(parts: Iterator[LogActions], version: int, last: ObjectFacts) -> CachedVersion | None:
    """Put together what was read; None where it is not a whole table."""
    whole = LogActions(version=version)
    for part in parts:
        if part.protocol is not None:
            whole.protocol = part.protocol
        if part.metadata is not None:
            whole.metadata = part.metadata
        whole.transactions |= _without_strangers(part)
        whole.domains |= part.domains
        whole.info = part.info
    protocol, metadata = whole.protocol, whole.metadata
    if protocol is None or metadata is None:
        return None
    schema: dict[str, Any] = parse_json(metadata["schemaString"])
    if schema.get("type") != "struct" or not isinstance(schema.get("fields"), list):
        return None
    few = len(whole.transactions) <= MOST_ANSWERS
    return CachedVersion(
        version=version,
        id=str(metadata["id"]),
        facts=TableFacts(
            version=version,
            schema=schema,
            partition_columns=tuple(metadata.get("partitionColumns") or ()),
            configuration=dict(metadata.get("configuration") or {}),
            features=protocol.features,
        ),
        protocol=protocol,
        metadata=metadata,
        answers=dict[str, int | None](whole.transactions) if few else {},
        complete=few,
        domains=_joined({}, whole.domains),
        in_commit_timestamp=whole.info.in_commit_timestamp,
        last=last,
    )


def _without_strangers(actions: LogActions) -> dict[str, int]:
    """Return the transactions but those of single files of other programs: they may be many."""
    found = actions.transactions.items()
    return {app_id: number for app_id, number in found if not is_stranger_transaction(app_id)}


def _joined(before: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """Return the domains of metadata once some were set anew, or removed."""
    after = {**before, **changes}
    return {domain: said for domain, said in after.items() if said is not None}
