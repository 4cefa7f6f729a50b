"""Read from a Delta log which files are or were in the table, and penguin's transactions.

The checkpoint is read first, then the versions after it.

A checkpoint alone does not prove that a file was never removed: which removals it keeps depends on
how its writer read the table's retention, on the retention at that time, and on whether each
removal has a time. Only the versions that exist are certain, and `since` is how far back they go.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

from lakebed import layout
from lakebed.deltalog.actions import LogActions, read_actions
from lakebed.deltalog.file_names import path_resolver
from lakebed.deltalog.log_contents import CLOCKS_DIFFER, LONG_AGO, NEVER, LogContents
from lakebed.deltalog.segment import unbroken, versions_in, whole_segment
from lakebed.deltalog.snapshot import LogReader, Snapshot
from lakebed.errors import StoreUnavailable
from lakebed.storage.objects import ahead
from lakebed.storage.options import ObjectFacts, StorageOptions
from lakebed.storage.remote import is_there
from lakebed.storage.store import Reader

AT_A_TIME = 100
"""Older versions that are read between two checks of whether they reach back far enough."""


def named_files(uri: str, options: StorageOptions) -> frozenset[str]:
    """Return every file that a table's log adds or removes; empty without a log."""
    table = LogReader(Reader(uri, options)).newest() if is_there(uri) else None
    return frozenset() if table is None else frozenset(read_log(table.store, table).paths)


def read_log(
    store: Reader,
    table: Snapshot,
    known: LogContents | None = None,
) -> LogContents:
    """Read a log up to a snapshot, continuing from known contents if possible.

    A table that was recreated, or a log restored from a backup, may have as many versions or more.
    So known contents are bound to the object of their version: if it differs, or may differ, the
    whole log is read.
    """
    if known is not None and _extend(store, table, known):
        return known
    return _read_whole(store, table)


def _extend(store: Reader, table: Snapshot, known: LogContents) -> bool:
    """Add the versions since to known contents; return False if they are of another log."""
    last = known.last
    if known.table != table.id or known.version > table.version:
        return False
    if last is None or last.etag is None:
        return False
    following = _versions(store, range(known.version + 1, table.version + 1))
    # The order matters: versions read before the same object is seen again do follow it.
    if following is None or store.head(layout.log_version(known.version)) != last:
        return False
    for actions, facts in following:
        known.take(actions.paths, actions.transactions)
        known.last = facts
    known.version = table.version
    return True


def _read_whole(store: Reader, table: Snapshot) -> LogContents:
    before = store.head(layout.log_version(table.version))
    segment = whole_segment(store, table.version)
    base = segment.checkpoint
    known = LogContents(
        table=table.id,
        version=table.version,
        paths=set(),
        transactions={},
        since=NEVER,
        stated_since=NEVER,
        first=table.version + 1,
    )
    if base is not None:
        from lakebed.deltalog.checkpoint import checkpointed_names  # noqa: PLC0415 - it loads Arrow

        for paths, transactions in checkpointed_names(store, base):
            known.take(paths, transactions)
    if not _read_older(store, known, segment.objects, segment.first, transactions=True):
        # A clean-up removed them after the listing: the next attempt sees the new state.
        raise StoreUnavailable(
            "versions of the Delta log vanished while they were read", path=store.uri
        )
    after = store.head(layout.log_version(table.version))
    known.last = before if before == after else None
    return known


def read_back(store: Reader, known: LogContents, to: datetime) -> None:
    """Read older versions until they reach back to a time, or as far as none is missing.

    Each costs a request, which is worth it only for a file that is older than the known contents.
    """
    _, listed = store.level(layout.DELTA_LOG)
    versions = versions_in(listed, known.first - 1)
    end = unbroken(versions, known.first - 1)
    exist = True
    target = max(to, LONG_AGO + CLOCKS_DIFFER) - CLOCKS_DIFFER
    while exist and known.since is not None and known.since >= target and known.first > end:
        # False if a clean-up is removing them.
        exist = _read_older(store, known, versions, max(end, known.first - AT_A_TIME))
    known.is_exhausted = known.is_exhausted or not exist or known.first == end


def _read_older(
    store: Reader,
    known: LogContents,
    versions: Mapping[int, ObjectFacts],
    first: int,
    *,
    transactions: bool = False,
) -> bool:
    """Add the versions from `first` up to the known ones; return False if one is missing."""
    read = _versions(store, range(first, known.first))
    if read is None:
        return False
    for actions, facts in read:
        if transactions:
            known.take(actions.paths, actions.transactions)
        known.reach_back(actions, versions.get(actions.version, facts).modified)
    return True


def touched_since(store: Reader, version: int, last: int) -> frozenset[str] | None:
    """Return the files that later versions added or removed; None if a version is missing."""
    found = _versions(store, range(version + 1, last + 1))
    if found is None:
        return None
    return frozenset(path for actions, _ in found for path in actions.paths)


def _versions(store: Reader, numbers: Iterable[int]) -> list[tuple[LogActions, ObjectFacts]] | None:
    """Read versions, several at a time; None if one is missing."""
    resolve = path_resolver(store)
    read: list[tuple[LogActions, ObjectFacts]] = []
    for number, found in ahead(lambda each: store.fetch(layout.log_version(each)), numbers):
        if found is None:
            return None
        body, facts = found
        where = store.describe(layout.log_version(number))
        read.append((read_actions(number, body, where, resolve), facts))
    return read
