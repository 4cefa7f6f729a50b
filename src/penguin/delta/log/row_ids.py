"""What a log says of the ids of rows, file by file: the library does not show it."""

from lakebed.columns.row_tracking import FirstRow
from lakebed.storage.store import Reader
from penguin.delta.log.file_actions import active_files
from penguin.delta.log.latest import find_tail
from penguin.model.errors import CommitFailed, TableUnreadable


def first_rows(store: Reader, version: int) -> dict[str, FirstRow | None]:
    """Return from where on the rows of each file of a version are numbered, by the files' names.

    None where the log does not say it: the file is from before the table tracked its rows.
    """
    tail = find_tail(store)
    if tail is None or tail.missing is not None:
        raise TableUnreadable("a version of the Delta log is missing", table=store.uri)
    if tail.first > version + 1:
        # A checkpoint of a later version says nothing of what was removed before it.
        raise CommitFailed("the log has changed since it was looked at", table=store.uri)
    return {one.path: one.first_row for one in active_files(store, tail, version)}
