"""How source files are compressed: by their names, and by their first bytes. Pure."""

from collections.abc import Mapping
from enum import StrEnum

FIRST_BYTES = 16
"""How many bytes of a file tell how it is compressed."""


_ZSTD_MAGIC = 0xFD2FB528


_SKIPPABLE_MAGIC = 0x184D2A50


class Codec(StrEnum):
    """How an object is compressed."""

    NONE = "none"
    GZIP = "gzip"
    ZSTD = "zstd"
    BZIP2 = "bzip2"


SUFFIXES: Mapping[str, Codec] = {".gz": Codec.GZIP, ".zst": Codec.ZSTD, ".bz2": Codec.BZIP2}


def codec_of(path: str) -> Codec:
    """Return the compression that a name tells: `.gz`, `.zst`, `.bz2`, anything else is none."""
    return next((codec for end, codec in SUFFIXES.items() if path.endswith(end)), Codec.NONE)


def codec_in(first: bytes, named: Codec) -> Codec:
    """Return the compression that the first bytes of a file tell, and its name where they do not.

    No line of NDJSON begins like a compressed stream. What begins with an object is plain, whatever
    its name says; anything else is what its name says, and may be corrupt.
    """
    if first.startswith(b"\x1f\x8b"):
        return Codec.GZIP
    if first.startswith(b"BZh") and first[3:4] in b"123456789":
        return Codec.BZIP2
    number = int.from_bytes(first[:4], "little")
    if number == _ZSTD_MAGIC or number & 0xFFFFFFF0 == _SKIPPABLE_MAGIC:
        return Codec.ZSTD
    is_object = first.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n").startswith(b"{")
    return Codec.NONE if is_object else named
