"""Which listings of a table directory a scan makes: of everything, or of what may be new.

`lakebed.storage.lister` makes them. Folders that hold no data, and links to folders of a local
disk, are not gone into.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lakebed.journal import JournalReader
from lakebed.layout import OURS, is_parquet, pipelines
from lakebed.listing.incremental import ListingPlan, Range, Wanted
from lakebed.listing.sort import CONTROL, LAST, Guide, Oddity, readable
from lakebed.listing.watermark import Watermarks, Windows, plan_above
from lakebed.storage.lister import IncrementalLister
from lakebed.storage.store import ObjectFacts, Reader
from penguin.foreign.rules import is_reserved, may_be_entered, may_hold_data, unusable
from penguin.model.foreign_file import LeftOut

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

        # A link to a file is a file, whatever it leads to.
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
