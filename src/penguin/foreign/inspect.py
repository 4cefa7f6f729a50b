"""Files of other programs: which listings find them, and what their footers and metas say.

`lakebed.storage.lister` makes the listings. Folders that hold no data, and links to folders of a
local disk, are not entered. Where a table is handed off by its journal or by metas, its folders are
not searched: files that other programs put there are counted for `penguin status`, by a listing
that is bounded because a person waits for it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from lakebed.deltalog.files import read_log
from lakebed.deltalog.log_contents import NOTHING, LogContents
from lakebed.deltalog.snapshot import LogReader, Snapshot
from lakebed.documents.pending_meta import Meta
from lakebed.errors import LakeError, ObjectChanged, ObjectMissing, StoreDenied
from lakebed.journal import JournalReader
from lakebed.layout import OURS, file_id, is_parquet, pipelines
from lakebed.listing.sort import CONTROL, LAST, Guide, Oddity, readable
from lakebed.listing.watermark import ListingPlan, Range, Wanted, Watermarks, Windows, plan_above
from lakebed.storage.ahead import ahead
from lakebed.storage.lister import IncrementalLister, objects
from lakebed.storage.options import ObjectFacts
from lakebed.storage.store import Reader
from lakebed.types import Handoff
from penguin.foreign.rules import (
    DENIED,
    MISSING,
    OF_BLIZZARD,
    REFUSED,
    UNFIT,
    is_reserved,
    leave_out,
    may_be_entered,
    may_hold_data,
    unusable,
)
from penguin.model.backlog import Candidate, ForeignFile, LeftOut, PassedOver
from penguin.model.settings import FileUnfit

if TYPE_CHECKING:
    from penguin.foreign.footer import Footer

LAST_DIGIT = "9"
"""What the names of our time begin with at most; folders that begin with `_` come after them."""


def everything(wanted: Wanted, *, depth: int) -> ListingPlan:
    """Return the listing of every file; unwanted folders down to the depth are not looked into."""
    return ListingPlan(ranges=lambda folder: [Range(prefix=folder)], depth=depth, wanted=wanted)


def what_may_be_new(
    store: Reader, wanted: Wanted, watermarks: Watermarks, windows: Windows
) -> ListingPlan:
    """Return the listing of folders from their watermarks on, and of those that have none yet."""
    # What begins with `_` or a letter, such as `_delta_log`, is behind the names of our time.
    root_until = f"{LAST_DIGIT}{LAST}" if store.local_root is None else None
    return plan_above(watermarks, windows, wanted=wanted, root_until=root_until)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """What one listing showed, by what the names are."""

    files: dict[str, ObjectFacts]
    """Those that may be data files of other programs."""
    passed_over: set[str]
    """Other Parquet files."""
    unusable: dict[str, LeftOut]
    """Names that cannot be used, as they can be shown."""


def list_files(
    lister: IncrementalLister, store: Reader, plan: ListingPlan, *, is_data: Callable[[str], bool]
) -> Listed:
    """List what a plan names, and sort it by the names; raise where the listing breaks off."""

    def look() -> Listed:
        listed = Listed(files={}, passed_over=set(), unusable={})

        def leave_out(name: str, oddity: Oddity) -> None:
            if may_hold_data(name) and oddity is not Oddity.MARKER:
                listed.unusable[name] = unusable(name, oddity)

        # A link to a file is a file, with any target.
        guide = Guide(passes=leave_out, enters=may_be_entered, lists=lambda _path: False)
        for facts in lister.files(store, plan, guide):
            if CONTROL.search(facts.path):
                leave_out(readable(facts.path), Oddity.NAME)  # A local disk lists it all the same.
            elif is_reserved(facts.path):
                continue
            elif is_data(facts.path):
                listed.files[facts.path] = facts
            elif is_parquet(facts.path):
                listed.passed_over.add(facts.path)
        return listed

    return lister.attempt(look)


def unnamed(store: Reader, paths: Iterable[str]) -> set[str]:
    """Return those of some files of blizzard's that no entry of any pipeline names."""
    left = set(paths)
    for pipeline in pipelines(store.folders(OURS)):
        entries = JournalReader(store, pipeline).until_missing(after=0)
        # No more entries are read than it takes.
        while left and (entry := next(entries, None)) is not None:
            left -= {file.filename for file in entry.data_files}
    return left


Verdict = ForeignFile | LeftOut


def look_at(store: Reader, asked: Mapping[str, Meta]) -> tuple[dict[str, Candidate], list[LeftOut]]:
    """Look at the files that metas ask for; one that is not there may still come."""
    there: dict[str, Candidate] = {}
    missing: list[LeftOut] = []
    for (path, meta), facts in ahead(lambda one: store.head(one[1].filename), asked.items()):
        if facts is None:
            why = "its meta is here, but the file is not"
            missing.append(LeftOut(path=meta.filename, code=MISSING, reason=why, asked_by=path))
            continue
        there[meta.filename] = Candidate(facts=facts, claim=meta, asked_by=path)
    return there, missing


def verdict_on(store: Reader, one: Candidate) -> Verdict | None:
    """Read a file's footer and say what it is; None where it changes while it is looked at."""
    # Only here is Arrow needed: blizzard's own files are committed without it.
    from penguin.foreign.footer import read_footer  # noqa: PLC0415

    facts, claim = one.facts, one.claim
    if claim is not None and claim.size != facts.size:
        return leave_out(one, UNFIT, f"it has {facts.size} bytes, but its meta says {claim.size}")
    try:
        footer = read_footer(store, facts)
    except FileUnfit as unfit:
        return leave_out(one, UNFIT, unfit.message)
    except (ObjectChanged, ObjectMissing):
        return None
    except StoreDenied as denied:
        return leave_out(one, DENIED, denied.message)
    return _held_against(one, footer)


def _held_against(one: Candidate, footer: "Footer") -> Verdict:
    """Compare what a footer says with what a meta says."""
    claim = one.claim
    if footer.ours:
        return leave_out(one, OF_BLIZZARD, "blizzard wrote it, and only its journal can commit it")
    if claim is not None and claim.record_count != footer.rows:
        return leave_out(
            one, UNFIT, f"it has {footer.rows} rows, but its meta says {claim.record_count}"
        )
    if not footer.schema["fields"] and not footer.reasons:
        return leave_out(one, UNFIT, "it has no columns")
    if footer.reasons:
        return leave_out(one, REFUSED, "; ".join(footer.reasons))
    return ForeignFile(
        found=one, rows=footer.rows, schema=footer.schema, statistics=footer.statistics
    )


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
        # Files committed while the folders were listed do not count.
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
        from penguin.foreign.footer import read_footer  # noqa: PLC0415

        return read_footer(store, facts).ours
    except FileUnfit:
        return False
    except LakeError:
        return True  # It changed or went while it was looked at, or is not ours to read.
