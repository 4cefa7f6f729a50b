"""Deletion vectors: the rows of a data file that are deleted but still in the file. Pure.

A vector is stored in the log, in a file of the table with a UUID name, or under an absolute path. A
file may contain the vectors of many data files.
"""

import re
from base64 import b85decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote
from uuid import UUID

Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
BASE85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
"""The digits of Z85, and those that Python uses instead."""
TO_BASE85 = str.maketrans(Z85, BASE85)
DIGITS = frozenset(Z85)
ENCODED_UUID = 20
FILE_NAME = re.compile(r"deletion_vector_[0-9a-f-]{36}\.bin")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionVector:
    """The location of a data file's deletion vector, and the number of rows that it deletes."""

    key: str
    """With the data file's path, the key of a file in a log."""
    rows: int
    """The number of deleted rows."""
    size: int
    """The bytes of the bitmap."""
    file: str | None = None
    """The file in the store that contains it; None if the log does."""
    offset: int = 0
    """Its offset in that file."""
    text: str | None = None
    """The bitmap in Z85, if the log contains it."""

    @classmethod
    def of(
        cls, written: Mapping[str, Any] | None, resolve: Callable[[str], str] = str
    ) -> "DeletionVector | None":
        """Parse the vector of an action; `resolve` maps a path of the log to one of the store."""
        key, file = vector_key(written), vector_file(written)
        if written is None or key is None:
            return None
        return cls(
            key=key,
            rows=int(written.get("cardinality") or 0),
            size=int(written.get("sizeInBytes") or 0),
            file=None if file is None else resolve(unquote(file)),
            offset=int(written.get("offset") or 0),
            text=str(written["pathOrInlineDv"]) if file is None else None,
        )


def vector_key(vector: Mapping[str, Any] | None) -> str | None:
    """Return the id of a vector; with the data file's path, it is the key of a file in a log."""
    if vector is None or vector.get("storageType") is None:
        return None
    offset = vector.get("offset")
    at = "" if offset is None else f"@{offset}"
    return f"{vector['storageType']}{vector['pathOrInlineDv']}{at}"


def vector_file(vector: Mapping[str, Any] | None) -> str | None:
    """Return the file of a vector, as the log spells paths; None if the log contains the vector.

    Raise ValueError for a storage type that the protocol does not know.
    """
    kind = None if vector is None else vector.get("storageType")
    if vector is None or kind is None or kind == "i":
        return None
    where = str(vector["pathOrInlineDv"])
    if kind == "p":
        return where
    if kind != "u":
        raise ValueError(f"a deletion vector has the unknown storage type {kind!r}")
    folder, name = where[:-ENCODED_UUID], where[-ENCODED_UUID:]
    if len(name) != ENCODED_UUID:
        raise ValueError("the name of a deletion vector's file cannot be read")
    file = f"deletion_vector_{UUID(bytes=from_z85(name))}.bin"
    return f"{folder}/{file}" if folder else file


def is_vector_file(path: str) -> bool:
    """Whether a path has the name of a file of deletion vectors."""
    return FILE_NAME.fullmatch(path.rpartition("/")[2]) is not None


def from_z85(text: str) -> bytes:
    """Decode Z85, four bytes from five letters; raise ValueError for other text."""
    if len(text) % 5 or not DIGITS.issuperset(text):
        raise ValueError("text of a deletion vector is not Z85")
    return b85decode(text.translate(TO_BASE85))
