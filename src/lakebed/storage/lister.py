"""The incremental lister: carries out listing plans for sources and scanned tables.

A listing that fails raises: it never counts as a short one, and the caller keeps its positions.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from lakebed.errors import ListingUnordered, NameUnusable
from lakebed.listing.sort import CONTROL, ListingRules, NameFault, end_of, readable
from lakebed.listing.watermark import ListingPlan, Range, widest_unwanted
from lakebed.storage.options import ObjectFacts
from lakebed.storage.store import Reader

Result = TypeVar("Result")


@dataclass(slots=True)
class IncrementalLister:
    """Lists one location; it remembers only whether the store lists names in order."""

    sorts: bool = False
    """Whether to sort the names of a range in memory: slower, with the same result."""

    def attempt(self, listing: Callable[[], Result]) -> Result:
        """Return the result of a listing; repeat it once with sorting if the store is unordered."""
        try:
            return listing()
        except ListingUnordered:
            if self.sorts:
                raise
            self.sorts = True
            return listing()

    def files(
        self,
        store: Reader,
        plan: ListingPlan,
        guide: ListingRules,
        *,
        left_out: Callable[[ObjectFacts], None] = lambda _facts: None,
    ) -> Iterator[ObjectFacts]:
        """Yield the wanted files of a plan, each range in the order of names.

        Unwanted files that are listed are passed to `left_out`.
        """
        for folder, files in _levels(store, plan, guide):
            if files is None:
                for each in plan.ranges(folder):
                    yield from self._range(store, each, plan, guide, left_out)
                continue
            for facts in files:
                if plan.wanted(facts.path):
                    yield facts
                else:
                    left_out(facts)

    def _range(
        self,
        store: Reader,
        each: Range,
        plan: ListingPlan,
        guide: ListingRules,
        left_out: Callable[[ObjectFacts], None],
    ) -> Iterator[ObjectFacts]:
        after: str | None = each.after
        while after is not None:
            listing, after = self._in_order(store, each.prefix, after, guide), None
            unwanted = 0
            for facts in listing:
                if each.until is not None and facts.path > each.until:
                    return
                if plan.wanted(facts.path):
                    if each.covers(facts.path):
                        yield facts
                    continue
                left_out(facts)
                unwanted += 1
                if self._may_skip(plan, unwanted):
                    folder = widest_unwanted(facts.path, plan.wanted)
                    if folder is not None:
                        after = end_of(folder)
                        break

    def _may_skip(self, plan: ListingPlan, unwanted: int) -> bool:
        # Restarting behind a folder saves nothing if each listing is sorted in memory.
        return plan.skip_after is not None and unwanted % plan.skip_after == 0 and not self.sorts

    def _in_order(
        self, store: Reader, prefix: str, after: str, guide: ListingRules
    ) -> Iterator[ObjectFacts]:
        if self.sorts:
            # The start of a listing depends on the order, too: such a store may omit names
            # that sort later. So all names are listed.
            found = (facts for facts in store.objects(prefix) if facts.path > after)
            return iter(sorted(found, key=lambda facts: facts.path))
        return store.in_order(prefix, after=after, guide=guide)


def _levels(
    store: Reader, plan: ListingPlan, guide: ListingRules
) -> Iterator[tuple[str, list[ObjectFacts] | None]]:
    """Walk the folders: those at the depth come alone, those above with their direct files."""
    above = [""]
    for _ in range(plan.depth):
        below: list[str] = []
        for prefix in above:
            folders, files = level(store, prefix, odd=guide.skip)
            yield prefix, files
            names = (folder.rstrip("/") for folder in folders)
            below += (name for name in names if guide.enters(name) and plan.wanted(name))
        above = below
    yield from ((folder, None) for folder in above)


Odd = Callable[[str, NameFault], None]
"""Called with each skipped name in printable form; a folder's ends with a slash."""
Enters = Callable[[str], bool]


def objects(
    store: Reader,
    folder: str = "",
    *,
    after: str | None = None,
    odd: Odd,
    enters: Enters = lambda _folder: True,
    into_links: bool = True,
) -> Iterator[ObjectFacts]:
    """List every object with a usable name below a folder, possibly some of them twice.

    Only if the library fails, or links to folders of a local disk are to be skipped, the slower way
    around odd names is taken.
    """
    if not into_links and store.local_root is not None:
        yield from _around(store, folder, after, _guide(odd, enters))
        return
    try:
        yield from store.objects(folder, after=after)
    except NameUnusable:
        yield from _around(store, folder, after, _guide(odd, enters))


def level(store: Reader, folder: str, *, odd: Odd) -> tuple[list[str], list[ObjectFacts]]:
    """List the direct folders and objects of a folder with usable names.

    If a bucket has other names, all objects below are returned, and no folders. Links to folders of
    a local disk are reported, and are not folders.
    """
    if store.local_root is None:
        try:
            return store.level(folder)
        except NameUnusable:
            pass
    folders: list[str] = []

    def enters(path: str) -> bool:
        if CONTROL.search(path):
            odd(f"{readable(path)}/", NameFault.NAME)
        else:
            folders.append(path)
        return False

    files = list(_around(store, folder, None, _guide(odd, enters)))
    return folders, files


def _guide(odd: Odd, enters: Enters) -> ListingRules:
    """Return a guide around odd names; a link to a file counts as a file, with any target."""
    return ListingRules(skip=odd, enters=enters, lists=lambda _path: False)


def _around(
    store: Reader, folder: str, after: str | None, guide: ListingRules
) -> Iterator[ObjectFacts]:
    for facts in store.in_order(folder, after=after or "", guide=guide):
        if CONTROL.search(facts.path):
            guide.skip(readable(facts.path), NameFault.NAME)  # A local disk lists it all the same.
        else:
            yield facts
