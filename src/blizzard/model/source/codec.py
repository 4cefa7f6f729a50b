"""How source files are compressed: by their names, and by their first bytes. Pure."""

import re

from lakebed.types import Codec

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
    separator is plain, whatever its name says; anything else is what its name says, and may be
    corrupt.
    """
    if first.startswith(b"{"):
        return Codec.NONE
    for codec in COMPRESSED:
        if re.match(codec.first_bytes, first):
            return codec
    begin = first.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")[:1]
    return Codec.NONE if begin in (b"{", b"[", b"\x1e") else named
