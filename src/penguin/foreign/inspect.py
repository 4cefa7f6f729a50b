"""Listings that find foreign files, and verdicts on their footers and metas.

`lakebed.storage.lister` carries the listings out. Folders without data, and links to folders of a
local disk, are not entered. Where the hand-off is by journal or by metas, folders are not searched:
foreign files there are only counted for `penguin status`, by a bounded listing because a person
waits for it.
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
from lakebed.listing.sort import CONTROL, LAST, ListingRules, NameFault, readable
from lakebed.listing.watermark import ListingPlan, Range, Wanted, Watermarks, Windows, plan_above
from lakebed.storage.lister import IncrementalLister, objects
from lakebed.storage.objects import ahead
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
from penguin.model.backlog import Candidate, ForeignFile, IgnoredFiles, LeftOut
from penguin.model.settings import FileUnfit

if TYPE_CHECKING:
    from penguin.foreign.footer import Footer

LAST_DIGIT = "9"
"""The highest first digit of names of our time; folders that begin with `_` sort after them."""


def everything(wanted: Wanted, *, depth: int) -> ListingPlan:
    """Return a plan that lists every file; unwanted folders down to the depth are not entered."""
    return ListingPlan(ranges=lambda folder: [Range(prefix=folder)], depth=depth, wanted=wanted)


def what_may_be_new(
    store: Reader, wanted: Wanted, watermarks: Watermarks, windows: Windows
) -> ListingPlan:
    """Return a plan that lists folders from their watermarks on, and folders without one."""
    # Names that begin with `_` or a letter, such as `_delta_log`, sort after names of our time.
    root_until = f"{LAST_DIGIT}{LAST}" if store.local_root is None else None
    return plan_above(watermarks, windows, wanted=wanted, root_until=root_until)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The names of one listing, classified."""

    files: dict[str, ObjectFacts]
    """Possible data files of other programs."""
    ignored: set[str]
    """Other Parquet files."""
    unusable: dict[str, LeftOut]
    """Names that cannot be used, in printable form."""


def list_files(
    lister: IncrementalLister, store: Reader, plan: ListingPlan, *, is_data: Callable[[str], bool]
) -> Listed:
    """Carry out a listing plan and classify the names; raise if the listing fails."""

    def listing() -> Listed:
        listed = Listed(files={}, ignored=set(), unusable={})

        def leave_out(name: str, fault: NameFault) -> None:
            if may_hold_data(name) and fault is not NameFault.MARKER:
                listed.unusable[name] = unusable(name, fault)

        # A link to a file counts as a file, with any target.
        guide = ListingRules(skip=leave_out, enters=may_be_entered, lists=lambda _path: False)
        for facts in lister.files(store, plan, guide):
            if CONTROL.search(facts.path):
                leave_out(readable(facts.path), NameFault.NAME)  # A local disk lists it anyway.
            elif is_reserved(facts.path):
                continue
            elif is_data(facts.path):
                listed.files[facts.path] = facts
            elif is_parquet(facts.path):
                listed.ignored.add(facts.path)
        return listed

    return lister.attempt(listing)


def unnamed(store: Reader, paths: Iterable[str]) -> set[str]:
    """Return those of some files of blizzard's that no entry of any pipeline names."""
    left = set(paths)
    for pipeline in pipelines(store.folders(OURS)):
        entries = JournalReader(store, pipeline).until_missing(after=0)
        # Entries are read only until all files are found.
        while left and (entry := next(entries, None)) is not None:
            left -= {file.filename for file in entry.data_files}
    return left


Verdict = ForeignFile | LeftOut


def find_claimed(
    store: Reader, asked: Mapping[str, Meta]
) -> tuple[dict[str, Candidate], list[LeftOut]]:
    """Find the files that metas request; a missing one may still come."""
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
    """Read a file's footer and judge it; None if the file changes meanwhile."""
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
    return _compared(one, footer)


def _compared(one: Candidate, footer: "Footer") -> Verdict:
    """Compare a footer with the file's meta, if it has one."""
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
"""The most objects that are listed."""
MOST_READ = 1_000
"""The most footers read, of files that may be blizzard's."""

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
    """Return why foreign files are ignored, and how they get committed."""
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
) -> IgnoredFiles:
    """Count Parquet files that are neither in the log, nor named, nor written by blizzard.

    Files of a running batch, or of a dead attempt, carry blizzard's mark.
    """
    log, odd = LogReader(store), set[str]()

    def skip(name: str, _fault: NameFault) -> None:
        odd.update([name] if may_hold_data(name) else [])

    known = _log_of(store, log.newest())
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
        known = _log_of(store, log.newest(), known)
        unknown = {path: facts for path, facts in unknown.items() if path not in known.paths}
    maybe_ours = [facts for facts in unknown.values() if file_id(facts.path) is not None]
    ours = {facts.path for facts in maybe_ours[most_read:]}
    asked = ahead(lambda facts: _is_ours(store, facts), maybe_ours[:most_read])
    ours |= {facts.path for facts, is_ours in asked if is_ours}
    complete = complete and len(maybe_ours) <= most_read
    return IgnoredFiles.of(odd | (unknown.keys() - ours), reason, complete=complete)


def _log_of(store: Reader, table: Snapshot | None, known: LogContents = NOTHING) -> LogContents:
    return NOTHING if table is None else read_log(store, table, known)


def _is_ours(store: Reader, facts: ObjectFacts) -> bool:
    """Whether blizzard wrote a file; one that is not valid Parquet counts as foreign."""
    try:
        from penguin.foreign.footer import read_footer  # noqa: PLC0415

        return read_footer(store, facts).ours
    except FileUnfit:
        return False
    except LakeError:
        return True  # It changed, disappeared, or may not be read.
