"""Whether a table is still what penguin made it, and no row was ever written to it.

Nobody chose such a schema: it is that of the first entry, whose files may all have failed.
"""

from lakebed.deltalog.actions import read_actions
from lakebed.errors import TableUnreadable
from lakebed.layout import DELTA_LOG, log_version
from lakebed.storage.store import Reader

MOST_READ = 1_000
"""Versions after which the answer is no: a table in use says so with its second version."""


def is_unused(store: Reader, version: int) -> bool:
    """Whether no version up to this one names a file, and only penguin has defined the table.

    Every version is read, from the first. One that is gone may have named files.
    """
    if version > MOST_READ:
        return False
    for number in range(version + 1):
        body = store.get(log_version(number))
        if body is None or not _leaves_it_unused(body):
            return False
    return True


def _leaves_it_unused(body: bytes) -> bool:
    """Whether a version names no file, and any change of the table in it is penguin's."""
    try:
        actions = read_actions(0, body, DELTA_LOG)
    except TableUnreadable:
        return False
    defines = actions.metadata is not None or actions.protocol is not None
    return not actions.paths and (actions.info.is_ours or not defines)
