"""What a Delta log says of files and of our transactions, as far back as it can be read.

A checkpoint is read, then the versions after it: the files that are in the table, those that were
removed from it, and the transactions.

Which removed files a checkpoint still names is no evidence by itself: that depends on how its
writer read the table's retention, on what the retention was at that time, and on whether each
removal has a time. So what is sure is what the versions say that are there, and `since` says how
far back that is. `lakebed.deltalog.removals` says where a checkpoint proves more.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

from lakebed import layout
from lakebed.deltalog.actions import LogActions, read_actions
from lakebed.deltalog.file_names import naming
from lakebed.deltalog.log_contents import LogContents
from lakebed.deltalog.removals import (
    CLOCKS_DIFFER,
    LONG_AGO,
    NEVER,
    kept_by_all,
)
from lakebed.deltalog.segment import checkpoints, newest, unbroken, versions_in
from lakebed.deltalog.snapshot import Snapshot
from lakebed.errors import StoreUnavailable
from lakebed.storage.ahead import ahead
from lakebed.storage.store import ObjectFacts, Reader

AT_A_TIME = 100
"""Versions that are read back before it is asked whether that is far enough."""


def read_log(
    store: Reader,
    table: Snapshot,
    known: LogContents | None = None,
) -> LogContents:
    """Read what a log says up to a snapshot, continuing from what is known where possible.

    A table that was dropped and made anew, or a log from a backup, may have as many versions, or
    more. So what is known is bound to the object of its version: where that is another, or may be,
    the log is read anew.
    """
    if known is not None and _goes_on(store, table, known):
        return known
    return _read_anew(store, table)


def _goes_on(store: Reader, table: Snapshot, known: LogContents) -> bool:
    """Take the versions since, if they follow those that are known, and say whether they do."""
    last = known.last
    if known.table != table.id or known.version > table.version:
        return False
    if last is None or last.etag is None:
        return False
    following = _versions(store, range(known.version + 1, table.version + 1))
    # In this order: what was there before the very same object was seen again follows it.
    if following is None or store.head(layout.log_version(known.version)) != last:
        return False
    for actions, facts in following:
        known.take(actions.paths, actions.transactions)
        known.weigh(actions, facts.modified)
        known.last = facts
    known.version = table.version
    known.removals.keeps = kept_by_all(table.facts.configuration)
    return True


def _read_anew(store: Reader, table: Snapshot) -> LogContents:
    before = store.head(layout.log_version(table.version))
    _, listed = store.level(layout.DELTA_LOG)
    versions = versions_in(listed, table.version)
    first = unbroken(versions, table.version)
    usable = (one for one in checkpoints(listed) if one.version >= first - 1)
    base = newest(usable, table.version)
    known = LogContents(
        table=table.id,
        version=table.version,
        paths=set(),
        transactions={},
        since=NEVER,
        told_since=NEVER,
        first=table.version + 1,
    )
    if base is not None:
        from lakebed.deltalog.checkpoint import checkpointed_names  # noqa: PLC0415 - it loads Arrow

        for paths, transactions in checkpointed_names(store, base):
            known.take(paths, transactions)
        known.removals.checkpointed = max(part.modified for part in base.parts)
        known.removals.keeps = kept_by_all(table.facts.configuration)
        first = base.version + 1
    if not _take_back(store, known, versions, first, transactions=True):
        # Cleaned up between the listing and the reading: the next look finds the new state.
        raise StoreUnavailable(
            "versions of the Delta log vanished while they were read", path=store.uri
        )
    after = store.head(layout.log_version(table.version))
    known.last = before if before == after else None
    return known


def read_back(store: Reader, known: LogContents, to: datetime) -> None:
    """Read older versions, too, until they reach back to a time, or as far as they are unbroken.

    It costs a request for each, and is worth it only for a file that is older than what is known.
    """
    _, listed = store.level(layout.DELTA_LOG)
    versions = versions_in(listed, known.first - 1)
    end = unbroken(versions, known.first - 1)
    there = True
    far = max(to, LONG_AGO + CLOCKS_DIFFER) - CLOCKS_DIFFER
    while there and known.since is not None and known.since >= far and known.first > end:
        # False where they are being removed at this moment.
        there = _take_back(store, known, versions, max(end, known.first - AT_A_TIME))
    known.deep = known.deep or not there or known.first == end


def _take_back(
    store: Reader,
    known: LogContents,
    versions: Mapping[int, ObjectFacts],
    first: int,
    *,
    transactions: bool = False,
) -> bool:
    """Read the versions from one on up to those that are known; False where one is not there."""
    read = _versions(store, range(first, known.first))
    if read is None:
        return False
    for actions, facts in read:
        if transactions:
            known.take(actions.paths, actions.transactions)
        known.reach_back(actions, versions.get(actions.version, facts).modified)
    return True


def touched_since(store: Reader, version: int, last: int) -> frozenset[str] | None:
    """Name the files that versions after one added or removed; None where one is gone."""
    found = _versions(store, range(version + 1, last + 1))
    if found is None:
        return None
    return frozenset(path for actions, _ in found for path in actions.paths)


def _versions(store: Reader, numbers: Iterable[int]) -> list[tuple[LogActions, ObjectFacts]] | None:
    """Read versions, several at a time; None where one of them is not there."""
    named = naming(store)
    read: list[tuple[LogActions, ObjectFacts]] = []
    for number, found in ahead(lambda each: store.fetch(layout.log_version(each)), numbers):
        if found is None:
            return None
        body, facts = found
        where = store.describe(layout.log_version(number))
        read.append((read_actions(number, body, where, named), facts))
    return read
