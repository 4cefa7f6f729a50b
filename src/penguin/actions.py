"""What a Delta log says of files and of our transactions, as far back as it can be read.

The library shows which files are in a table, not which ones were removed from it, and it looks
one transaction up at a time. Here both are read at once: a checkpoint of the classic kind (one
file), then the versions after it. Where a table has checkpoints of another kind the versions alone
are read, together with the files that the library names; fewer removals are known then, and
`since` says from when on.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol
from urllib.parse import unquote

from lake.errors import StoreUnavailable
from lake.layout import (
    DELTA_LOG,
    SCAN_TRANSACTION,
    VERSION_NAME,
    log_version,
    stranger_transaction,
)
from lake.storage import ObjectFacts, Reader
from penguin.flow import TableFacts
from penguin.logfile import Actions, read_checkpoint, read_version
from penguin.patience import retention

CONCURRENT = 16
CHECKPOINT_NAME = re.compile(r"(\d{20})\.checkpoint\.parquet")
CLOCKS_DIFFER = timedelta(hours=1)
"""How far the clock of whoever removes files may be from the store's."""


class Snapshot(Protocol):
    """What is asked of an opened table."""

    @property
    def facts(self) -> TableFacts:
        """Say what it is."""

    @property
    def id(self) -> str:
        """Tell it from every other table, also from one that stood in its place before."""

    @property
    def version(self) -> int:
        """Give its version."""

    def paths(self) -> Iterable[str]:
        """Name the files that are in it, as the log writes them."""

    def transaction(self, app_id: str) -> int | None:
        """Give the version of an app transaction."""


@dataclass(slots=True, kw_only=True)
class Known:
    """Everything that a log says up to one version: files that are or were in the table."""

    table: str
    """The id of the table."""
    version: int
    paths: set[str]
    transactions: dict[str, int]
    """Ours alone: those of strangers' files."""
    since: datetime | None
    """A file that is older than this may have been removed without a trace; None: no file may."""
    complete: bool = True
    """False where transactions must be looked up one by one."""
    snapshot: Snapshot | None = field(default=None)
    """Where they are looked up; None where all are known, for it may hold every file."""
    deep: bool = False
    """Whether the versions from before the checkpoint have been read."""
    _named: dict[str, str] | None = None
    """The paths by their transactions, where somebody has asked."""

    @property
    def scan(self) -> int | None:
        """Say how many commits hold files of other programs; None where there is none."""
        return self.transaction(SCAN_TRANSACTION)

    def transaction(self, app_id: str) -> int | None:
        """Give the version of one of our transactions."""
        if self.complete or self.snapshot is None:
            return self.transactions.get(app_id)
        return self.snapshot.transaction(app_id)

    def namesake(self, path: str) -> str | None:
        """Give another file that the log knows, and whose transaction has the same name."""
        if path in self.paths:
            return None
        if self._named is None:
            self._named = {stranger_transaction(known): known for known in self.paths}
        return self._named.get(stranger_transaction(path))

    def take(self, actions: Actions) -> None:
        """Go on by one version."""
        self.see(actions.paths)
        self.transactions |= actions.transactions

    def see(self, paths: frozenset[str]) -> None:
        """Know of more files."""
        self.paths |= paths
        self._named = None


NOTHING = Known(table="", version=-1, paths=set(), transactions={}, since=None)
"""What is known where there is no table yet. Nobody writes to it."""


def read_log(
    store: Reader,
    table: Snapshot,
    known: Known | None = None,
) -> Known:
    """Read what a log says up to a snapshot, going on from what is known where that is possible.

    A table that was dropped and made anew may have as many versions, or more.
    """
    if known is not None and known.table == table.id and known.version <= table.version:
        bodies = _versions(store, range(known.version + 1, table.version + 1))
        if bodies is not None:
            for actions in bodies:
                known.take(actions)
            known.version = table.version
            known.snapshot = None if known.complete else table
            return known
    return _read_anew(store, table)


def _read_anew(store: Reader, table: Snapshot) -> Known:
    listed = list(store.objects(DELTA_LOG))
    versions = {
        number: facts
        for number, facts in _numbered(listed, VERSION_NAME)
        if number <= table.version
    }
    first = _unbroken(versions, table.version)
    checkpoints = {
        number: facts
        for number, facts in _numbered(listed, CHECKPOINT_NAME)
        if first - 1 <= number <= table.version
    }
    if first == 0 and not checkpoints:
        # No checkpoint is needed where every version is there; it may be one of another kind.
        return _assembled(store, table, 0, Actions(paths=frozenset(), transactions={}), since=None)
    if not checkpoints:
        # Checkpoints of another kind, or in parts: what they hold of the present is known to the
        # library, and what was removed is known since the oldest version that is left.
        active = frozenset(unquote(path) for path in table.paths())
        since = versions[first].modified + CLOCKS_DIFFER if first in versions else _NEVER
        base = Actions(paths=active, transactions={})
        return _assembled(store, table, first, base, since=since, complete=False)
    at, facts = max(checkpoints.items())
    base = read_checkpoint(store, facts)
    # Whatever was removed longer ago than the retention is no longer in a checkpoint.
    since = facts.modified - retention(table.facts.configuration) + CLOCKS_DIFFER
    return _assembled(store, table, at + 1, base, since=since)


def read_back(store: Reader, known: Known) -> None:
    """Read the versions from before the checkpoint, too, as far back as they are unbroken.

    It costs a request for each, and is worth it only for a file that is older than what is known.
    """
    if known.deep or known.since is None:
        return
    versions = dict(_numbered(store.objects(DELTA_LOG), VERSION_NAME))
    first = _unbroken(versions, known.version)
    older = _versions(store, range(first, known.version + 1))
    known.deep = True
    if not older:
        return
    for actions in older:
        known.see(actions.paths)
    reaches = versions[first].modified + CLOCKS_DIFFER
    known.since = None if first == 0 else min(known.since, reaches)


def _assembled(
    store: Reader,
    table: Snapshot,
    first: int,
    base: Actions,
    *,
    since: datetime | None,
    complete: bool = True,
) -> Known:
    tail = _versions(store, range(first, table.version + 1))
    if tail is None:
        # Cleaned up between the listing and the reading: the next look finds the new state.
        raise StoreUnavailable(
            "versions of the Delta log vanished while they were read", path=store.uri
        )
    known = Known(
        table=table.id,
        version=table.version,
        paths=set(base.paths),
        transactions=dict(base.transactions),
        since=since,
        complete=complete,
        snapshot=None if complete else table,
    )
    for actions in tail:
        known.take(actions)
    return known


def _versions(store: Reader, numbers: Iterable[int]) -> list[Actions] | None:
    """Read versions, several at a time; None where one of them is not there."""

    def read(number: int) -> Actions | None:
        body = store.get(log_version(number))
        return None if body is None else read_version(body, store.describe(log_version(number)))

    with ThreadPoolExecutor(CONCURRENT, thread_name_prefix="log") as pool:
        found = list(pool.map(read, numbers))
    there = [actions for actions in found if actions is not None]
    return there if len(there) == len(found) else None


def _numbered(
    listed: Iterable[ObjectFacts], name: re.Pattern[str]
) -> Iterator[tuple[int, ObjectFacts]]:
    for facts in listed:
        if found := name.fullmatch(facts.path.rpartition("/")[2]):
            yield int(found[1]), facts


def _unbroken(versions: Mapping[int, ObjectFacts], last: int) -> int:
    """Give the first version from which on all are there; one past the last where none is."""
    first = last + 1
    while first - 1 in versions:
        first -= 1
    return first


_NEVER = datetime.max.replace(tzinfo=UTC)
