"""Parquet files of other programs in a table whose folders are not searched. Read-only.

Where a table is handed off by its journal or by metas, files that other programs put into its
folders are not committed. Here they are counted, to explain why they are not in the table.
The search is bounded: a person is waiting for it.
"""

from itertools import islice

from lakebed.deltalog.files import NOTHING, LogContents, read_log
from lakebed.deltalog.snapshot import LogReader, Snapshot
from lakebed.errors import LakeError
from lakebed.layout import file_id, is_parquet
from lakebed.listing.sort import Oddity
from lakebed.storage.ahead import ahead
from lakebed.storage.lister import objects
from lakebed.storage.store import ObjectFacts, Reader
from lakebed.types import Handoff
from penguin.foreign.rules import is_reserved, may_be_entered, may_hold_data
from penguin.model.errors import FileUnfit
from penguin.model.foreign_file import PassedOver

MOST_LISTED = 100_000
"""Objects after which the look ends."""
MOST_READ = 1_000
"""Files that may be blizzard's own, and whose footers are read."""

BY_JOURNAL = (
    "this table is handed off by its journal, and only what blizzard journals is committed; "
    "`blizzard handoff set direct` lets such files in, or give them a table of their own"
)
BY_METAS = (
    "this table is handed off by metas, and a file of another program needs one in "
    "_staging/pending; `blizzard handoff set direct` lets such files in without one"
)
NOT_SEARCHED = "the discovery setting does not look for them; auto or watermark does"


def why_ignored(handoff: Handoff, *, declared: bool) -> str:
    """Return why files of other programs are passed over, and how they get in."""
    if not declared:
        return NOT_SEARCHED
    return BY_METAS if handoff is Handoff.STAGING else BY_JOURNAL


def ignored_files(
    store: Reader,
    named: frozenset[str],
    reason: str,
    *,
    most_listed: int = MOST_LISTED,
    most_read: int = MOST_READ,
) -> PassedOver:
    """Count the Parquet files that the log does not know, nothing names and blizzard did not write.

    Files of a batch that is running, or of an attempt that died, carry blizzard's mark.
    """
    log, odd = LogReader(store), set[str]()

    def skip(name: str, _oddity: Oddity) -> None:
        odd.update([name] if may_hold_data(name) else [])

    known = _log_of(store, log.look())
    listed = objects(store, odd=skip, enters=may_be_entered, into_links=False)
    unknown = {
        facts.path: facts
        for facts in islice(listed, most_listed)
        if is_parquet(facts.path)
        and not is_reserved(facts.path)
        and facts.path not in known.paths
        and facts.path not in named
    }
    complete = next(listed, None) is None
    if unknown:
        # Files that were committed while the folders were listed are not ignored.
        known = _log_of(store, log.look(), known)
        unknown = {path: facts for path, facts in unknown.items() if path not in known.paths}
    maybe_ours = [facts for facts in unknown.values() if file_id(facts.path) is not None]
    ours = {facts.path for facts in maybe_ours[most_read:]}
    asked = ahead(lambda facts: _is_ours(store, facts), maybe_ours[:most_read])
    ours |= {facts.path for facts, is_ours in asked if is_ours}
    complete = complete and len(maybe_ours) <= most_read
    return PassedOver.of(odd | (unknown.keys() - ours), reason, complete=complete)


def _log_of(store: Reader, table: Snapshot | None, known: LogContents = NOTHING) -> LogContents:
    return NOTHING if table is None else read_log(store, table, known)


def _is_ours(store: Reader, facts: ObjectFacts) -> bool:
    """Whether blizzard wrote a file; one that cannot be read is not taken for its."""
    try:
        from penguin.foreign.footer import read_footer  # noqa: PLC0415 - it loads Arrow

        return read_footer(store, facts.path, size=facts.size, etag=facts.etag).ours
    except FileUnfit:
        return False
    except LakeError:
        return True  # It changed or went while it was looked at, or is not ours to read.
