"""Files of other programs: which listings find them, and what their footers and metas say.

`lakebed.storage.lister` makes the listings. Folders that hold no data, and links to folders of a
local disk, are not entered.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakebed.documents.pending_meta import Meta
from lakebed.errors import ObjectChanged, ObjectMissing, StoreDenied
from lakebed.storage.ahead import ahead
from lakebed.storage.store import ObjectFacts, Reader
from penguin.foreign.rules import DENIED, MISSING, OF_BLIZZARD, REFUSED, UNFIT, leave_out
from penguin.model.errors import FileUnfit
from penguin.model.foreign_file import Candidate, ForeignFile, LeftOut

if TYPE_CHECKING:
    from penguin.foreign.footer import Footer
from collections.abc import Callable, Iterable

from lakebed.journal import JournalReader
from lakebed.layout import OURS, TablePath, is_parquet, pipelines
from lakebed.listing.incremental import ListingPlan, Range, Wanted
from lakebed.listing.sort import CONTROL, LAST, Guide, Oddity, readable
from lakebed.listing.watermark import Watermarks, Windows, plan_above
from lakebed.storage.lister import IncrementalLister
from penguin.foreign.rules import is_reserved, may_be_entered, may_hold_data, unusable

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


def candidate(
    facts: ObjectFacts,
    *,
    late: bool = False,
    claim: Meta | None = None,
    asked_by: str | None = None,
) -> Candidate:
    """Return an object as a file that may be new."""
    return Candidate(
        path=TablePath(facts.path),
        size=facts.size,
        etag=facts.etag,
        modified=facts.modified,
        late=late,
        claim=claim,
        asked_by=asked_by,
    )


def look_at(store: Reader, asked: Mapping[str, Meta]) -> tuple[dict[str, Candidate], list[LeftOut]]:
    """Look at the files that metas ask for; one that is not there may still come."""
    there: dict[str, Candidate] = {}
    missing: list[LeftOut] = []
    for (path, meta), facts in ahead(lambda one: store.head(one[1].filename), asked.items()):
        if facts is None:
            why = "its meta is here, but the file is not"
            missing.append(LeftOut(path=meta.filename, code=MISSING, reason=why, asked_by=path))
            continue
        there[meta.filename] = candidate(facts, claim=meta, asked_by=path)
    return there, missing


def verdict_on(store: Reader, one: Candidate) -> Verdict | None:
    """Read a file's footer and say what it is; None where it changes while it is looked at."""
    # Only here is Arrow needed: blizzard's own files are committed without it.
    from penguin.foreign.footer import read_footer  # noqa: PLC0415

    if one.claim is not None and one.claim.size != one.size:
        return leave_out(one, UNFIT, f"it has {one.size} bytes, but its meta says {one.claim.size}")
    try:
        footer = read_footer(store, one.path, size=one.size, etag=one.etag)
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
