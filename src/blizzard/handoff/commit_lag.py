"""No new work while finished files wait too long for their commit.

Until an entry is committed the Delta log does not name its files, so a VACUUM of unnamed files
takes them once they are older than the table's retention. Writing more would only make more that
are lost; the source files, in contrast, are safe where they are.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from lakebed.errors import LakeError, Whose
from lakebed.journal import JournalReader
from lakebed.storage.store import Reader

SURELY_FINE = timedelta(hours=1)
"""Below this no retention is near, and the log need not be asked."""


class CommitsBehind(LakeError):
    """Files have been waiting for penguin for so long that a VACUUM may soon delete them."""

    code = "commits_behind"
    whose = Whose.USER
    retryable = True


def check_commits(
    store: Reader,
    pipeline: str,
    *,
    last: int,
    now: datetime,
    retention: Callable[[], timedelta],
) -> None:
    """Refuse new work if the oldest uncommitted entry has been waiting too long.

    That is half of the table's retention of deleted files: there is still time to fix it.
    """
    since = waiting_since(store, pipeline, last=last)
    if since is None or now - since < SURELY_FINE:
        return
    keeps = retention()
    if now - since >= keeps / 2:
        raise CommitsBehind(
            f"files have been waiting for their commit since {since.isoformat()}, and the table "
            f"keeps files that its log does not reference for {keeps}: nothing new is read until "
            "penguin has committed them. Start penguin, or see `penguin status` for what is "
            "blocking it",
            pipeline=pipeline,
        )


def waiting_since(store: Reader, pipeline: str, *, last: int) -> datetime | None:
    """Return when the oldest entry with files was journaled that is not committed; None if all are.

    One without files (a clean-up, failures, what a new journal inherits) waits for nothing.
    """
    journal = JournalReader(store, pipeline)
    receipt = journal.receipt()
    for number in range(1 if receipt is None else receipt.sequence + 1, last + 1):
        entry = journal.entry(number)
        if entry is None:
            return None  # What the receipt says of a journal that does not fit is told elsewhere.
        if entry.files:
            return datetime.fromisoformat(entry.created)
    return None
