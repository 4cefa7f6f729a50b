"""The forms of source files: compression, records, and which records are no rows. Pure."""

import json
import re
from dataclasses import dataclass
from typing import NoReturn

from lakebed.types import Codec, SourceFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class SkipRule:
    """Which records are no rows: those of which one of these holds."""

    only_key: tuple[str, ...] = ()
    """It has one top-level key, and that is one of these."""
    with_key: tuple[str, ...] = ()
    """It has one of these top-level keys."""
    without_key: tuple[str, ...] = ()
    """It lacks one of these top-level keys."""

    def holds(self, line: bytes) -> bool:
        """Whether a line is to be passed over; never one that is no JSON object.

        Nor one with a key twice: the decoder of the line says what is wrong with it.
        """
        try:
            members = _PARSER.decode(line.decode())
        except (ValueError, RecursionError):
            return False
        if not isinstance(members, _MemberList):
            return False
        keys = [key for key, _value in members]
        if len(set(keys)) < len(keys):
            return False
        return (
            (len(keys) == 1 and keys[0] in self.only_key)
            or any(key in keys for key in self.with_key)
            or any(key not in keys for key in self.without_key)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What the files of a source are made of."""

    format: SourceFormat = SourceFormat.NDJSON
    records: tuple[str, ...] = ()
    """The keys that lead from a document to its records."""
    skip: SkipRule | None = None
    """The records that are passed over; None where all are rows."""

    @property
    def is_documents(self) -> bool:
        """Whether records need not be lines, so that only who reads from the start finds them."""
        return self.format is SourceFormat.JSON

    @property
    def counted_as(self) -> str:
        """Return a name for what is counted in a file, the same where the same is counted.

        Empty for lines, which is what a file's books count unless they say otherwise.
        """
        return " ".join((self.format.value, *self.records)) if self.is_documents else ""


class _MemberList(list[tuple[str, object]]):
    """An object, with every member that it has."""


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


_PARSER = json.JSONDecoder(
    object_pairs_hook=_MemberList, parse_constant=_refuse_constant, parse_int=len, parse_float=len
)


FIRST_BYTES = 16
"""How many bytes of a file tell how it is compressed."""

COMPRESSED = tuple(codec for codec in Codec if codec.suffix)
_SUFFIXES = tuple(codec.suffix for codec in COMPRESSED)


def codec_of(path: str) -> Codec:
    """Return the compression that a name tells: `.gz`, `.zst`, `.bz2`, anything else is none."""
    if not path.endswith(_SUFFIXES):
        return Codec.NONE
    return next(codec for codec in COMPRESSED if path.endswith(codec.suffix))


def codec_in(first: bytes, named: Codec) -> Codec:
    """Return the compression that the first bytes of a file tell, and its name where they do not.

    No JSON begins like a compressed stream. What begins with an object, an array or a record
    separator is plain under any name; anything else is what its name says, and may be
    corrupt.
    """
    if first.startswith(b"{"):
        return Codec.NONE
    for codec in COMPRESSED:
        if re.match(codec.first_bytes, first):
            return codec
    begin = first.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")[:1]
    return Codec.NONE if begin in (b"{", b"[", b"\x1e") else named
