"""Which of blizzard's files another program rewrote into a file of its own, by the log."""

from collections.abc import Iterator

from lakebed import layout
from lakebed.deltalog.file_actions import FileAction, VersionActions, parse
from lakebed.deltalog.file_names import naming
from lakebed.storage.store import Reader


def rewritten_into(store: Reader, path: str, added: int | None, most: int) -> dict[str, bool]:
    """Return the files of blizzard's with rows in a file, and whether all of theirs must be in it.

    A version that adds files and removes others of the same partition has put the rows of these
    into those; which into which it does not say. What was rewritten several times is followed back
    over so many versions, as far as the log still has them.
    """
    if added is None or layout.file_id(path) is not None:
        return {}
    found: dict[str, bool] = {}
    sought = {path: True}
    for told in _back(store, added, most):
        new = [one for one in told.files if one.added]
        for one in new:
            if one.path not in sought:
                continue
            whole = sought.pop(one.path) and not any(
                other is not one and _may_share(one, other) for other in new
            )
            for gone in told.files:
                if not gone.added and gone.path != one.path and _may_share(one, gone):
                    into = sought if layout.file_id(gone.path) is None else found
                    into[gone.path] = whole
        if not sought:
            break
    return found


def _back(store: Reader, last: int, most: int) -> Iterator[VersionActions]:
    for number in range(last, max(last - most, -1), -1):
        body = store.get(layout.log_version(number))
        if body is None:
            return  # Older ones were cleaned up after a checkpoint.
        where = layout.log_version(number)
        yield parse(number, body, store.describe(where), naming(store))


def _may_share(one: FileAction, other: FileAction) -> bool:
    """Whether rows may have gone from one file into the other; a removal may name no partition."""
    values = one.partition_values, other.partition_values
    return not all(values) or sorted(values[0]) == sorted(values[1])
