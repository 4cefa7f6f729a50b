"""What is in a folder that is to become a table: data files, ordered by name, and the rest.

A folder that belongs to a table already, of whatever format, is refused: files that the table has
removed or replaced lie there as well, and would be taken for data.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from lakebed.errors import ListingUnordered
from lakebed.layout import ADOPTION, DELTA_LOG, OURS, STAGING, is_hidden, is_parquet
from lakebed.listing.sort import CONTROL, Guide, Oddity, readable
from lakebed.storage.store import ObjectFacts, Reader
from penguin.foreign.inspect import candidate
from penguin.foreign.rules import is_reserved, unusable
from penguin.model.adoption import Names, Trouble
from penguin.model.errors import FolderUnfit
from penguin.model.foreign_file import Candidate

NOT_PARQUET = "not_parquet"
SAME_FILE = "same_file"
HUDI = ".hoodie"
ICEBERG = re.compile(r"(?:^|/)metadata/[^/]+\.metadata\.json")
WHY_NOT_PARQUET = (
    "its name does not end in .parquet, so it is not taken for data; rename or move it, or leave "
    "such files out with --skip-unreadable"
)


@dataclass(slots=True)
class Folder:
    """One listing of a folder after the other; what a listing leaves out is known after it."""

    store: Reader
    _sorts: bool = False
    """Whether the store does not list names in their order, so that they are sorted here."""
    _hidden: dict[str, None] = field(default_factory=dict)
    _troubles: dict[str, Trouble] = field(default_factory=dict)

    def files(self) -> Iterator[Candidate]:
        """Yield the data files, in the order of their paths; raise where the listing breaks off."""
        self._hidden, self._troubles = {}, {}
        linked: dict[tuple[int, int], str] = {}
        guide = Guide(passes=self._passes, enters=self._enters, lists=_may_be_data)
        for facts in self._in_order(guide):
            if CONTROL.search(facts.path):
                self._passes(readable(facts.path), Oddity.NAME)
            elif self._is_data(facts.path, empty=facts.size == 0) and not self._is_link(
                facts.path, linked
            ):
                yield candidate(facts, late=False)

    def names(self) -> Names:
        """Return what the last listing found besides data files."""
        return Names(hidden=tuple(self._hidden), troubles=tuple(self._troubles.values()))

    def _in_order(self, guide: Guide) -> Iterator[ObjectFacts]:
        if not self._sorts:
            last = ""
            try:
                for facts in self.store.in_order(guide=guide):
                    last = facts.path
                    yield facts
            except ListingUnordered:
                self._sorts = True
                if last:
                    raise  # Some were given already; the next listing is sorted.
            else:
                return
        yield from sorted(self.store.objects(), key=lambda facts: facts.path)

    def _is_data(self, path: str, *, empty: bool) -> bool:
        """Whether a path is that of a data file; what else it is, is noted."""
        if ICEBERG.search(path):
            folder = path.rpartition("metadata/")[0]
            raise _another_table(self.store, folder, "an Iceberg table")
        parts = path.split("/")
        for place, part in enumerate(parts):
            if is_hidden(part):
                whole = "/".join(parts[: place + 1])
                self._hide(whole if place == len(parts) - 1 else f"{whole}/")
                return False
        if is_parquet(path):
            return True
        if empty:
            self._hidden[path] = None  # In a bucket, such an object marks a folder.
            return False
        self._troubles[path] = Trouble(
            file=path, code=NOT_PARQUET, reason=WHY_NOT_PARQUET, skippable=True
        )
        return False

    def _is_link(self, path: str, linked: dict[tuple[int, int], str]) -> bool:
        """Whether a name is a hard link to an earlier file, whose rows would be in twice."""
        if self.store.local_root is None:
            return False
        try:
            found = (self.store.local_root / path).stat()
        except OSError:
            return False  # Reading it says what is wrong.
        if found.st_nlink == 1:
            return False
        first = linked.setdefault((found.st_dev, found.st_ino), path)
        if first != path:
            reason = (
                f"it is a hard link to {first}, whose rows would be in the table twice; remove one "
                "of the two names, or leave the second one out with --skip-unreadable"
            )
            self._troubles[path] = Trouble(file=path, code=SAME_FILE, reason=reason, skippable=True)
        return first != path

    def _enters(self, folder: str) -> bool:
        if not is_hidden(folder.rpartition("/")[2]):
            return True
        self._hide(f"{folder}/")
        return False

    def _hide(self, name: str) -> None:
        above, _, last = name.rstrip("/").rpartition("/")
        if name == f"{OURS}/":
            raise FolderUnfit(
                "blizzard writes to this folder, and only its journal says which files count; run "
                "penguin with the table in its configuration",
                folder=self.store.uri,
            )
        if last == HUDI:
            raise _another_table(self.store, above, "a Hudi table")
        if last == DELTA_LOG and above:
            raise _another_table(self.store, above, "a Delta table")
        if name not in (f"{STAGING}/", ADOPTION, f"{DELTA_LOG}/"):
            self._hidden[name] = None

    def _passes(self, name: str, oddity: Oddity) -> None:
        parts = [part for part in name.split("/") if part not in ("", ".", "..")]
        if oddity is Oddity.MARKER or any(map(is_hidden, parts)):
            return
        left_out = unusable(name, oddity)
        self._troubles[name] = Trouble(
            file=name,
            code=left_out.code,
            reason=left_out.reason,
            skippable=oddity is not Oddity.UNREADABLE,
        )


def _may_be_data(path: str) -> bool:
    return is_parquet(path) and not is_reserved(path)


def _another_table(store: Reader, folder: str, kind: str) -> FolderUnfit:
    return FolderUnfit(
        f"this folder holds {kind}, which may have removed some of its files; adopt a folder "
        "that holds nothing but the files that are wanted",
        folder=store.describe(folder) if folder else store.uri,
    )
