"""Files of a folder to adopt, and what they have in common.

A folder that already belongs to a table of any format is refused: it also holds files that the
table has removed or replaced. A survey aggregates, so a million files take no more memory than ten.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache

from lakebed.deltalog.delta_types import DeltaSchema
from lakebed.layout import DELTA_LOG, NULL_FOLDER, OURS, STAGING, is_hidden, is_parquet
from lakebed.listing.sort import CONTROL, ListingRules, NameFault, readable
from lakebed.listing.watermark import ListingPlan, Range
from lakebed.storage.lister import IncrementalLister
from lakebed.storage.store import Reader
from penguin.foreign.rules import is_reserved, path_values, unusable
from penguin.model.backlog import Candidate, ForeignFile, LeftOut
from penguin.model.settings import FolderUnfit


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptOptions:
    """The options of the command that adopts a folder."""

    partition_columns: tuple[str, ...] | None = None
    """In this order; None to take them from the folder names."""
    partition_types: Mapping[str, str] = field(default_factory=dict)
    """Delta types, by partition column."""
    skip_unreadable: bool = False
    """Whether to leave out files that cannot be read as Parquet."""


@dataclass(slots=True, kw_only=True)
class SchemaUse:
    """A schema, and how many files have it."""

    key: str
    schema: DeltaSchema
    example: str
    """One of these files."""
    files: int = 0


@dataclass(slots=True)
class Survey:
    """Aggregated facts of all files, taken in the order of their names."""

    files: int = 0
    schemas: dict[str, SchemaUse] = field(default_factory=dict)
    keys: Counter[tuple[str, ...]] = field(default_factory=Counter)
    """Number of files by the partition columns of their folders."""
    _digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    def take(self, found: Candidate, file: ForeignFile | LeftOut) -> None:
        """Add one file, and the verdict on its footer."""
        self.note(found)
        if isinstance(file, LeftOut):
            return
        first = SchemaUse(key=file.schema_key, schema=file.schema, example=found.path)
        self.schemas.setdefault(file.schema_key, first).files += 1
        with suppress(ValueError):  # Its add action reports it.
            self.keys[tuple(values_of(found.path.rpartition("/")[0]))] += 1

    def note(self, found: Candidate) -> None:
        """Count a file, and add it to the digest."""
        self.files += 1
        facts = found.facts
        text = f"{facts.path}\0{facts.size}\0{facts.etag}\0{facts.modified.isoformat()}\0"
        self._digest.update(text.encode("utf-8", "surrogateescape"))

    def digest(self) -> str:
        """Return a digest of all files, by their names and contents."""
        return self._digest.hexdigest()


@lru_cache(maxsize=4096)
def values_of(folder: str) -> dict[str, str | None]:
    """Return the partition values of a folder; a ValueError says what is wrong with it.

    A folder without a value is null to some readers and an empty string to others, so it is
    refused: nothing here tells which its author meant.
    """
    for segment in folder.split("/"):
        if segment.partition("=")[1:] == ("=", ""):
            raise ValueError(
                f"its folder {segment} has no value, which some programs read as null and others "
                f"as an empty text; for null, name it {segment}{NULL_FOLDER}"
            )
    return path_values(f"{folder}/")


NOT_PARQUET = "not_parquet"
HUDI = ".hoodie"
ICEBERG = re.compile(r"(?:^|/)metadata/[^/]+\.metadata\.json")
WHY_NOT_PARQUET = (
    "its name does not end in .parquet, so it is not taken for data; rename or move it, or leave "
    "such files out with --skip-unreadable"
)

WHOLE = ListingPlan(ranges=lambda folder: [Range(prefix=folder)])


@dataclass(slots=True)
class AdoptedFolder:
    """Lists the data files of a folder; `hidden` and `troubles` describe the last listing."""

    store: Reader
    lister: IncrementalLister
    hidden: dict[str, None] = field(default_factory=dict)
    """Files and folders that begin with `_` or `.`, and empty objects of other names."""
    troubles: dict[str, LeftOut] = field(default_factory=dict)
    """Names that are not Parquet files or cannot be used."""

    def files(self) -> Iterator[Candidate]:
        """Yield the data files in the order of their paths; raise if the listing fails."""
        self.hidden, self.troubles = {}, {}
        guide = ListingRules(skip=self._passes, enters=self._enters, lists=_may_be_data)
        for facts in self.lister.files(self.store, WHOLE, guide):
            if CONTROL.search(facts.path):
                self._passes(readable(facts.path), NameFault.NAME)
            elif self._is_data(facts.path, empty=facts.size == 0):
                yield Candidate(facts=facts)

    def _is_data(self, path: str, *, empty: bool) -> bool:
        """Whether a path names a data file; record it in `hidden` or `troubles` if not."""
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
            self.hidden[path] = None  # In a bucket, such an object marks a folder.
            return False
        self.troubles[path] = LeftOut(
            path=path, code=NOT_PARQUET, reason=WHY_NOT_PARQUET, skippable=True
        )
        return False

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
        if name not in (f"{STAGING}/", f"{DELTA_LOG}/"):
            self.hidden[name] = None

    def _passes(self, name: str, fault: NameFault) -> None:
        parts = [part for part in name.split("/") if part not in ("", ".", "..")]
        if fault is not NameFault.MARKER and not any(map(is_hidden, parts)):
            self.troubles[name] = unusable(name, fault)


def _may_be_data(path: str) -> bool:
    return is_parquet(path) and not is_reserved(path)


def _another_table(store: Reader, folder: str, kind: str) -> FolderUnfit:
    return FolderUnfit(
        f"this folder holds {kind}, which may have removed some of its files; adopt a folder "
        "with only the wanted files",
        folder=store.describe(folder) if folder else store.uri,
    )
