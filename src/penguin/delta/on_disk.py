"""What of a log survives a power cut.

On a local disk nothing is sure to be there after one unless it was synced, and other writers do not
sync. So before anything is deleted because the log stands for it, the log is put on disk: the last
checkpoint, the note of it, and every version since.
"""

from dataclasses import dataclass

from lakebed.deltalog.segment import checkpoints, newest, versions_in
from lakebed.layout import DELTA_LOG, LAST_CHECKPOINT, log_version
from lakebed.storage.store import ObjectFacts, Store


@dataclass(slots=True)
class OnDisk:
    """How far one table's log is known to be on disk. It saves syncs, and nothing else."""

    _version: int = -1
    _last: ObjectFacts | None = None
    """The object of that version."""

    def up_to(self, store: Store, version: int) -> None:
        """Put all on disk that the table is read from, up to a version; elsewhere it is already."""
        if store.local_root is None:
            return
        if self._last is not None and store.head(log_version(self._version)) == self._last:
            numbers = range(self._version + 1, version + 1)
            wanted: list[str] = [log_version(number) for number in numbers]
        else:
            wanted = [*_read_from(store, version), LAST_CHECKPOINT]
        for path in wanted:
            if store.head(path) is not None:
                store.sync(path)
        self._version, self._last = version, store.head(log_version(version))


def _read_from(store: Store, version: int) -> list[str]:
    """Name the files of a log that a version is read from: a checkpoint, and versions since."""
    _, listed = store.level(DELTA_LOG)
    base = newest((one for one in checkpoints(listed) if one.is_classic), version)
    first = 0 if base is None else base.version
    versions = versions_in(listed, version)
    return [
        *(part.path for part in (base.parts if base is not None else ())),
        *(versions[number].path for number in sorted(versions) if number >= first),
    ]
