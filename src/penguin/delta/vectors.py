"""Where deletion vectors are: files that a log refers to without naming them as data. Pure.

A vector is in the log itself, in a file of the table that is named by a UUID, or in a file that is
named by its whole path. One file may hold vectors of many data files.
"""

import re
from collections.abc import Mapping
from typing import Any
from uuid import UUID

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
"""Z85, as the protocol says."""
ENCODED_UUID = 20
FILE_NAME = re.compile(r"deletion_vector_[0-9a-f-]{36}\.bin")


def vector_key(vector: Mapping[str, Any] | None) -> str | None:
    """Return what tells a vector from others: with its path, it is the key of a file in a log."""
    if vector is None or vector.get("storageType") is None:
        return None
    offset = vector.get("offset")
    at = "" if offset is None else f"@{offset}"
    return f"{vector['storageType']}{vector['pathOrInlineDv']}{at}"


def vector_file(vector: Mapping[str, Any] | None) -> str | None:
    """Return the file that holds a vector, as a log writes paths; None where the log holds it.

    Raise a ValueError for one that is stored in a way that the protocol does not know.
    """
    kind = None if vector is None else vector.get("storageType")
    if vector is None or kind is None or kind == "i":
        return None
    where = str(vector["pathOrInlineDv"])
    if kind == "p":
        return where
    if kind != "u":
        raise ValueError(f"a deletion vector is stored as {kind!r}, which no protocol knows")
    folder, name = where[:-ENCODED_UUID], _decoded(where[-ENCODED_UUID:])
    return f"{folder}/deletion_vector_{name}.bin" if folder else f"deletion_vector_{name}.bin"


def is_vector_file(path: str) -> bool:
    """Whether a file has the name of one that holds deletion vectors."""
    return FILE_NAME.fullmatch(path.rpartition("/")[2]) is not None


def _decoded(text: str) -> UUID:
    if len(text) != ENCODED_UUID or any(letter not in DIGITS for letter in text):
        raise ValueError("the name of a deletion vector's file cannot be read")
    whole = b""
    for at in range(0, ENCODED_UUID, 5):
        number = 0
        for letter in text[at : at + 5]:
            number = number * 85 + DIGITS.index(letter)
        whole += number.to_bytes(4, "big")
    return UUID(bytes=whole)
