"""A Delta log from the oldest version that can be read to its newest, a version at a time.

Where the log begins with version 0 that is all of its history. Otherwise it begins with the oldest
checkpoint from which every later version is there; what came before is known only by what that
checkpoint holds. No more than a few versions are in memory at once.
"""

from collections.abc import Iterable, Iterator

from lakebed.deltalog.actions import LogActions, LogHistory
from lakebed.deltalog.checkpoint import read_checkpoint
from lakebed.deltalog.segment import Checkpoint, checkpoints, read_versions, unbroken, versions_in
from lakebed.layout import DELTA_LOG
from lakebed.storage.store import Reader

COLUMNS = (
    "add.path",
    "add.size",
    "add.partitionValues",
    "add.stats",
    "add.stats_parsed.numRecords",
    "add.deletionVector",
    "remove.path",
    "txn.appId",
    "txn.version",
    "metaData.schemaString",
    "metaData.partitionColumns",
    "metaData.configuration",
)


def read_whole_log(store: Reader) -> LogHistory | None:
    """Return the history of a log as far as it is there; None where there is no log."""
    _, listed = store.level(DELTA_LOG)
    known, bases = versions_in(listed), checkpoints(listed)
    if not known and not bases:
        return None
    last = max((*known, *(one.version for one in bases)))
    first = unbroken(known, last)
    base = min(
        (one for one in bases if one.version >= first - 1),
        key=lambda one: one.version,
        default=None,
    )
    if first > 0 and base is None:
        after = max((one.version for one in bases if one.version < first), default=-1)
        gone = tuple(number for number in range(after + 1, last) if number not in known)
        return LogHistory(first=first, last=last, gone=gone, versions=iter(()))
    if first == 0:
        base = None
    begins = 0 if base is None else base.version + 1
    versions = _read(store, base, range(begins, last + 1))
    return LogHistory(first=begins, last=last, gone=(), versions=versions)


def _read(store: Reader, base: Checkpoint | None, numbers: Iterable[int]) -> Iterator[LogActions]:
    if base is not None:
        yield from read_checkpoint(store, base, COLUMNS)
    yield from read_versions(store, numbers)
