"""Listing around names that the store's library cannot handle. Pure but for its store.

The library refuses a whole page of a listing for one such name: with an empty part (`a//b`), one
that is `.` or `..`, or a control character. It can list a folder, and begin after any good name. So
what comes before the odd name on its page is listed folder by folder, on the way down to the folder
that holds it; the good names in that folder come from whoever can read them; and after it the
listing goes on as usual.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakebed.errors import NameUnusable
from lakebed.listing.sort import CONTROL, end_of, readable

if TYPE_CHECKING:
    from lakebed.storage.store import ObjectFacts, Reader

_ODD_PARTS = ("", ".", "..")
_PATH = re.compile(r'\bpath: "((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\u\{([0-9a-f]+)\}|\\(.)")
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "0": "\0"}


Names = Callable[[str], tuple[Sequence[str], Sequence[str]]]
"""Names the folders and the files right in a folder, the good ones, by their paths."""


def name_in(text: str) -> str | None:
    """Return the name that an error of the library is about, as it is in the store."""
    found = _PATH.search(text)
    return None if found is None else _ESCAPE.sub(_plain, found[1])


def _plain(escape: re.Match[str]) -> str:
    code, letter = escape.groups()
    return chr(int(code, 16)) if code else _ESCAPES.get(letter, letter)


@dataclass(frozen=True, slots=True, kw_only=True)
class OddName:
    """A name that cannot be used, what is shown of it, and how to get past it."""

    path: str
    shown: str
    """Its readable form; of an odd folder, no more than that folder."""
    next: str
    """The first good name that can come after it, and after all that are odd by the same place."""


def odd_name(path: str) -> OddName:
    """Find the first place by which a name is odd."""
    parts = path.split("/")
    at = 0
    for number, part in enumerate(parts):
        is_last = number == len(parts) - 1
        control = CONTROL.search(part)
        if control is not None:
            # No good name has a control character in this place, and a space is the next one.
            after = " " if control[0] < " " else "\x80"
            start = path[: at + control.start()]
            return OddName(path=path, shown=readable(path), next=f"{start}{after}")
        if part in _ODD_PARTS:
            here = path[: at + len(part)]
            if is_last:
                return OddName(path=path, shown=path, next=f"{here} ")
            # All that is in the folder comes before what has a `0` where the slash is.
            return OddName(path=path, shown=f"{here}/", next=f"{here}0")
        at += len(part) + 1
    raise ValueError(f"there is nothing odd about {path!r}")


@dataclass(slots=True, kw_only=True)
class Detour:
    """Lists what comes before an odd name; folders that were listed once are not listed again."""

    store: "Reader"
    names: Names
    _levels: dict[str, list[tuple[str, "ObjectFacts | None"]]] = field(default_factory=dict)

    def before(self, folder: str, *, low: str, high: str) -> Iterator["ObjectFacts"]:
        """Yield the objects below a folder whose names lie between two, in their order.

        There must be no odd name between them; `high` is one.
        """
        for name, facts in self._level(folder):
            if name >= high:
                return
            if name.endswith("/"):
                yield from self._folder(name[:-1], low, high)
            elif low < name < high:
                found = facts or self.store.head(name)
                if found is not None:
                    yield found

    def _folder(self, folder: str, low: str, high: str) -> Iterator["ObjectFacts"]:
        if end_of(folder) <= low:
            return
        if high.startswith(f"{folder}/"):
            yield from self.before(folder, low=low, high=high)
            return
        after = low if low.startswith(f"{folder}/") else None
        yield from self.store.objects(folder, after=after)

    def _level(self, folder: str) -> list[tuple[str, "ObjectFacts | None"]]:
        """Return what is right in a folder, in its order; folders end with a slash."""
        if folder not in self._levels:
            folders: Sequence[str]
            try:
                folders, objects = self.store.level(folder)
                files: Iterable[tuple[str, ObjectFacts | None]] = [
                    (one.path, one) for one in objects
                ]
            except NameUnusable:
                folders, paths = self.names(folder)
                files = [(path, None) for path in paths]
            inside: list[tuple[str, ObjectFacts | None]] = [(f"{each}/", None) for each in folders]
            # The marker of the folder itself is none of the objects in it.
            inside += [(path, facts) for path, facts in files if path not in (folder, "")]
            self._levels[folder] = sorted(inside, key=lambda each: each[0])
        return self._levels[folder]
