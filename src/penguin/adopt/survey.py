"""What all files of a folder have in common: their schemas, and the folders that they are in. Pure.

It keeps nothing of single files, so that a million of them cost no more memory than ten.
"""

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache

from lakebed.partition import INTEGER, NULL_FOLDER, is_date
from penguin.foreign.rules import path_values
from penguin.model.adoption import FileRecord, SchemaUse
from penguin.model.foreign_file import Candidate

LONG_DIGITS = 18
"""Integers of so many digits are sure to be 64 bits long."""


@dataclass(slots=True)
class Survey:
    """One look at every file, in the order of their names."""

    files: int = 0
    schemas: dict[str, SchemaUse] = field(default_factory=dict)
    keys: Counter[tuple[str, ...]] = field(default_factory=Counter)
    """How many files are in folders with which partition columns."""
    not_dates: set[str] = field(default_factory=set)
    """Partition columns with a value that is no date."""
    not_integers: set[str] = field(default_factory=set)
    valued: set[str] = field(default_factory=set)
    """Partition columns with any value at all."""
    _digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    def take(self, record: FileRecord) -> None:
        """Take one more file into account."""
        self.files += 1
        note(self._digest, record.found)
        if record.file is None:
            return
        use = self.schemas.get(record.schema_key)
        self.schemas[record.schema_key] = SchemaUse(
            key=record.schema_key,
            schema=record.file.schema,
            files=1 if use is None else use.files + 1,
            example=record.found.path if use is None else use.example,
        )
        try:
            values = values_of(record.found.path.rpartition("/")[0])
        except ValueError:
            return  # It is named when the files are put together.
        self.keys[tuple(values)] += 1
        for name, value in values.items():
            if value is None:
                continue
            self.valued.add(name)
            if not is_date(value):
                self.not_dates.add(name)
            if not (INTEGER.fullmatch(value) and len(value) <= LONG_DIGITS):
                self.not_integers.add(name)

    def digest(self) -> str:
        """Return what stands for all files, by their names and contents."""
        return self._digest.hexdigest()

    def inferred(self, name: str) -> str | None:
        """Return the Delta type of which all values of a partition column are; None for text."""
        if name not in self.valued:
            return None
        if name not in self.not_dates:
            return "date"
        return "long" if name not in self.not_integers else None


def note(digest: "hashlib._Hash", found: Candidate) -> None:
    """Count a file into a digest of all files."""
    facts = f"{found.path}\0{found.size}\0{found.etag}\0{found.modified.isoformat()}\0"
    digest.update(facts.encode("utf-8", "surrogateescape"))


@lru_cache(maxsize=4096)
def values_of(folder: str) -> dict[str, str | None]:
    """Read the partition values of a folder; a ValueError says what cannot be read.

    A folder without a value is null to some programs and an empty text to others: where nothing
    but the folders says what is meant, that is for whoever wrote them to decide.
    """
    for segment in folder.split("/"):
        if segment.partition("=")[1:] == ("=", ""):
            raise ValueError(
                f"its folder {segment} has no value, which some programs read as null and others "
                f"as an empty text; for null, name it {segment}{NULL_FOLDER}"
            )
    return path_values(f"{folder}/")
