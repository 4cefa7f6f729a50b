"""Listings that find foreign files, and verdicts on their footers and metas.

`lakebed.storage.lister` carries the listings out. Folders without data, and links to folders of a
local disk, are not entered. Where the hand-off is by journal or by metas, folders are not searched.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakebed.documents.pending_meta import Meta
from lakebed.errors import ObjectChanged, ObjectMissing, StoreDenied
from lakebed.layout import is_parquet
from lakebed.listing.sort import CONTROL, LAST, ListingRules, NameFault, readable
from lakebed.listing.watermark import ListingPlan, Range, Wanted, Watermarks, Windows, plan_above
from lakebed.storage.lister import IncrementalLister
from lakebed.storage.objects import ahead
from lakebed.storage.options import ObjectFacts
from lakebed.storage.store import Reader
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
from penguin.model.backlog import Candidate, ForeignFile, LeftOut
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
