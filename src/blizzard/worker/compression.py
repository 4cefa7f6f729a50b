"""Streaming decompression of all members and frames, in bounded pieces.

A truncated stream is an error, never a short file. So is an empty `.gz`, `.zst` or `.bz2` object:
even empty content has a header when compressed.
"""

import bz2
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, cast

import pyarrow as pa
from isal import igzip_lib

from blizzard.model.source.form import FIRST_BYTES, codec_in
from lakebed.errors import LakeError, Whose
from lakebed.types import Codec

PIECE_BYTES = 1 << 20
MAX_WINDOW_BYTES = 1 << 27
"""The default limit of zstd; frames that need a larger window are refused."""


class CorruptStream(LakeError, code="decompress_failed", whose=Whose.USER):
    """Compressed data is corrupt or truncated."""


def recognised(chunks: Iterator[bytes], named: Codec) -> tuple[Iterator[bytes], Codec]:
    """Detect the compression of a file from its first bytes; return all chunks and the codec."""
    first = b""
    while len(first) < FIRST_BYTES and (chunk := next(chunks, None)) is not None:
        first += chunk
    return chain((first,) if first else (), chunks), codec_in(first[:FIRST_BYTES], named)


def decompress(chunks: Iterable[bytes], codec: Codec) -> Iterator[bytes]:
    """Yield the bytes of a stream in pieces of at most 1 MiB, or raise `CorruptStream`."""
    return _plain(chunks) if codec is Codec.NONE else _DECOMPRESS[codec](_CompressedBytes(chunks))


class _CompressedBytes:
    """A pushback reader over compressed chunks that tracks its offset; also a file for Arrow."""

    closed = False

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._held = b""
        self._at = 0
        self.offset = 0

    def some(self, most: int) -> bytes:
        """Return between one and `most` bytes; none at the end."""
        while self._at == len(self._held):
            chunk = next(self._chunks, None)
            if chunk is None:
                return b""
            self._held, self._at = chunk, 0
        taken = self._held[self._at : self._at + most]
        self._at += len(taken)
        self.offset += len(taken)
        return taken

    def read(self, most: int) -> bytes:
        """Return some bytes, like a file."""
        return self.some(most)

    def close(self) -> None:
        """Do nothing: the chunks are closed by their owner."""

    def upto(self, count: int) -> bytes:
        """Return exactly this many bytes; fewer at the end."""
        taken = self.some(count)
        while len(taken) < count and (more := self.some(count - len(taken))):
            taken += more
        return taken

    def give_back(self, rest: bytes) -> None:
        """Push excess bytes back."""
        self._held, self._at = rest + self._held[self._at :], 0
        self.offset -= len(rest)


def _plain(chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        for start in range(0, len(chunk), PIECE_BYTES):
            yield chunk[start : start + PIECE_BYTES]


# ------------------------------------------------------------------------------ gzip and bzip2

_STEP = 128 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class _Members:
    """A format whose files are concatenated streams."""

    name: str
    magic: bytes
    begin: Callable[[], Any]
    """Creates the decompressor of one stream."""
    errors: tuple[type[Exception], ...]
    padded: bool = False
    """Whether zeros may follow the last stream."""

    def pieces(self, source: _CompressedBytes) -> Iterator[bytes]:
        head = source.upto(len(self.magic))
        if not head:
            raise _corrupt(f"an empty object is not a {self.name} stream", 0)
        while head:
            start = source.offset - len(head)
            if start and self.padded and head[:1] == b"\0":
                source.give_back(head)
                return _require_zeros(source)
            if head != self.magic[: len(head)]:
                what = "the data after the stream is not" if start else "the stream is not"
                raise _corrupt(f"{what} {self.name}", start)
            yield from self._member(source, head)
            head = source.upto(len(self.magic))
        return None

    def _member(self, source: _CompressedBytes, data: bytes) -> Iterator[bytes]:
        member = self.begin()
        while not member.eof:
            try:
                piece = member.decompress(data, PIECE_BYTES)
            except self.errors as cause:
                raise _corrupt(f"corrupt {self.name} data: {cause}", source.offset) from cause
            if piece:
                yield piece
            data = b""
            # After a full piece the decompressor may hold more output.
            if member.needs_input and len(piece) < PIECE_BYTES and not member.eof:
                data = source.some(_STEP)
                if not data:
                    raise _corrupt(f"the {self.name} stream is truncated", source.offset)
        source.give_back(member.unused_data)


def _require_zeros(source: _CompressedBytes) -> None:
    while padding := source.some(_STEP):
        if padding.strip(b"\0"):
            raise _corrupt("there is data after the zero padding of the gzip stream", source.offset)


# ---------------------------------------------------------------------------------------- zstd


def _zstd(source: _CompressedBytes) -> Iterator[bytes]:
    """Read every frame with Arrow, which detects truncation and bounds the window."""
    head = source.upto(FIRST_BYTES)
    if not head:
        raise _corrupt("an empty object is not a zstd stream", 0)
    source.give_back(head)
    stream = pa.CompressedInputStream(pa.PythonFile(cast("Any", source), "r"), "zstd")
    try:
        while piece := stream.read(PIECE_BYTES):
            yield piece
    except OSError as cause:
        text = str(cause)
        if "not enough memory" in text:
            raise MemoryError(text) from cause
        begins = codec_in(head, Codec.NONE) is Codec.ZSTD
        raise _corrupt(_wrong_with_zstd(text, begins=begins), source.offset) from cause


def _wrong_with_zstd(text: str, *, begins: bool) -> str:
    """Translate Arrow's error; `begins` says whether the file begins like zstd."""
    if "Truncated" in text:
        return "the zstd stream is truncated"
    if "Unknown frame descriptor" in text:
        return "the data after the frame is not zstd" if begins else "the stream is not zstd"
    if "too much memory" in text:
        most = f"{MAX_WINDOW_BYTES:,}"
        return f"the zstd frame needs a window of more than the {most} bytes that are allowed"
    return f"corrupt zstd data: {text}"


_GZIP = _Members(
    name="gzip",
    magic=b"\x1f\x8b",
    # `isal_zlib` grows its buffer from 16 KiB by doubling, with a copy each time. This decompressor
    # allocates a whole piece at once.
    begin=lambda: igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP),
    errors=(cast("type[Exception]", igzip_lib.error),),
    padded=True,
)
_BZIP2 = _Members(
    name="bzip2", magic=b"BZh", begin=bz2.BZ2Decompressor, errors=(OSError, ValueError)
)
_DECOMPRESS: Mapping[Codec, Callable[[_CompressedBytes], Iterator[bytes]]] = {
    Codec.GZIP: _GZIP.pieces,
    Codec.ZSTD: _zstd,
    Codec.BZIP2: _BZIP2.pieces,
}


def _corrupt(message: str, offset: int) -> CorruptStream:
    return CorruptStream(message, offset=offset)
