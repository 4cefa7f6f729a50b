"""The incremental lister: carries out what a plan says is to be listed. Thin.

Sources of blizzard and table directories that penguin scans are listed by it. A listing that breaks
off is an error: it is never taken for a short one, and the caller keeps the positions it had.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from lakebed.errors import ListingUnordered, NameUnusable
from lakebed.listing.sort import CONTROL, Guide, Oddity, end_of, readable
from lakebed.listing.watermark import ListingPlan, Range, widest_unwanted
from lakebed.storage.options import ObjectFacts
from lakebed.storage.store import Reader

Result = TypeVar("Result")


@dataclass(slots=True)
class IncrementalLister:
    """Lists one place; all that it remembers is whether the store lists names in their order."""

    sorts: bool = False
    """Whether the names of a range are held and sorted: slower and larger, and as exact."""

    def attempt(self, look: Callable[[], Result]) -> Result:
        """Return what a look finds; one that meets a store without order is made once more."""
        try:
            return look()
        except ListingUnordered:
            if self.sorts:
                raise
            self.sorts = True
            return look()

    def files(
        self,
        store: Reader,
        plan: ListingPlan,
        guide: Guide,
        *,
        left_out: Callable[[ObjectFacts], None] = lambda _facts: None,
    ) -> Iterator[ObjectFacts]:
        """Yield the wanted files of a plan, those of each range in the order of their names.

        Unwanted files that are listed all the same are given to `left_out`.
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
        guide: Guide,
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
        # To begin again behind a folder saves nothing where each listing is held as a whole.
        return plan.skip_after is not None and unwanted % plan.skip_after == 0 and not self.sorts

    def _in_order(
        self, store: Reader, prefix: str, after: str, guide: Guide
    ) -> Iterator[ObjectFacts]:
        if self.sorts:
            # Where a listing begins is a matter of order, too: such a store may leave out names
            # that sort later. So it is asked for all of them.
            found = (facts for facts in store.objects(prefix) if facts.path > after)
            return iter(sorted(found, key=lambda facts: facts.path))
        return store.in_order(prefix, after=after, guide=guide)


def _levels(
    store: Reader, plan: ListingPlan, guide: Guide
) -> Iterator[tuple[str, list[ObjectFacts] | None]]:
    """Walk the folders: those of the depth are given alone, what lies above them with its files."""
    above = [""]
    for _ in range(plan.depth):
        below: list[str] = []
        for prefix in above:
            folders, files = level(store, prefix, odd=guide.passes)
            yield prefix, files
            names = (folder.rstrip("/") for folder in folders)
            below += (name for name in names if guide.enters(name) and plan.wanted(name))
        above = below
    yield from ((folder, None) for folder in above)


Odd = Callable[[str, Oddity], None]
"""Called with each name that is left out, as it can be shown; a folder's ends with a slash."""
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
    """List every object below a folder whose name can be used; perhaps some of them twice.

    Only where the store's library gives up is the slower way taken, which goes around such names,
    or where links to folders of a local disk are not to be gone into.
    """
    if not into_links and store.local_root is not None:
        yield from _around(store, folder, after, _guide(odd, enters))
        return
    try:
        yield from store.objects(folder, after=after)
    except NameUnusable:
        yield from _around(store, folder, after, _guide(odd, enters))


def level(store: Reader, folder: str, *, odd: Odd) -> tuple[list[str], list[ObjectFacts]]:
    """List the folders and the objects right below a folder, those whose names can be used.

    Where a bucket has others, the objects are those of all folders below, and no folder is named.
    Links to folders of a local disk are reported, and are not folders.
    """
    if store.local_root is None:
        try:
            return store.level(folder)
        except NameUnusable:
            pass
    folders: list[str] = []

    def enters(path: str) -> bool:
        if CONTROL.search(path):
            odd(f"{readable(path)}/", Oddity.NAME)
        else:
            folders.append(path)
        return False

    files = list(_around(store, folder, None, _guide(odd, enters)))
    return folders, files


def _guide(odd: Odd, enters: Enters) -> Guide:
    """Return a guide around odd names; a link to a file is a file, with any target."""
    return Guide(passes=odd, enters=enters, lists=lambda _path: False)


def _around(store: Reader, folder: str, after: str | None, guide: Guide) -> Iterator[ObjectFacts]:
    for facts in store.in_order(folder, after=after or "", guide=guide):
        if CONTROL.search(facts.path):
            guide.passes(readable(facts.path), Oddity.NAME)  # A local disk lists it all the same.
        else:
            yield facts
