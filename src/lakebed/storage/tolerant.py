"""Listings that continue past names that cannot be used, and report them.

A store's library refuses a whole listing for one name with a control character, an empty part, or
bytes that are no UTF-8. Such a name is reported and left out; the others are found.
"""

from collections.abc import Callable, Iterator

from lakebed.errors import NameUnusable
from lakebed.listing.sort import CONTROL, Guide, Oddity, readable
from lakebed.storage.store import ObjectFacts, Reader

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
    """Return what goes around odd names; a link to a file is a file, whatever it leads to."""
    return Guide(passes=odd, enters=enters, lists=lambda _path: False)


def _around(store: Reader, folder: str, after: str | None, guide: Guide) -> Iterator[ObjectFacts]:
    for facts in store.in_order(folder, after=after or "", guide=guide):
        if CONTROL.search(facts.path):
            guide.passes(readable(facts.path), Oddity.NAME)  # A local disk lists it all the same.
        else:
            yield facts
