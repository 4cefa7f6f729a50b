"""Decompression as a stream: every member and frame, bounded pieces, and no silent truncation.

A truncated stream is a failure, never a short file. So is an empty `.gz`, `.zst` or `.bz2` object:
even nothing, compressed, has a header.
"""

import bz2
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import cast

import zstandard
from isal import igzip_lib

from blizzard.model.source.codec import FIRST_BYTES, codec_in
from lakebed.errors import LakeError, Whose
from lakebed.types import Codec

PIECE_BYTES = 1 << 20


# What the zstd command itself allows without --long=31. A frame that needs more is refused.
MAX_WINDOW_BYTES = 1 << 27


class CorruptStream(LakeError):
    """Compressed bytes that cannot be read to their end."""

    code = "decompress_failed"
    whose = Whose.USER


def recognised(chunks: Iterator[bytes], named: Codec) -> tuple[Iterator[bytes], Codec]:
    """Return the chunks of a file from its start, and the compression that they tell."""
    first = b""
    while len(first) < FIRST_BYTES and (chunk := next(chunks, None)) is not None:
        first += chunk
    return chain((first,) if first else (), chunks), codec_in(first[:FIRST_BYTES], named)


def decompress(chunks: Iterable[bytes], codec: Codec) -> Iterator[bytes]:
    """Return all the bytes of a stream in pieces of at most 1 MiB, or raise `CorruptStream`."""
    return _plain(chunks) if codec is Codec.NONE else _DECOMPRESS[codec](_Source(chunks))


class _Source:
    """Compressed bytes to be taken in order; knows how far it has come."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._held = b""
        self._at = 0
        self.offset = 0

    def some(self, most: int) -> bytes:
        """Take up to this many bytes, at least one; none at the end."""
        while self._at == len(self._held):
            chunk = next(self._chunks, None)
            if chunk is None:
                return b""
            self._held, self._at = chunk, 0
        taken = self._held[self._at : self._at + most]
        self._at += len(taken)
        self.offset += len(taken)
        return taken

    def upto(self, count: int) -> bytes:
        """Take this many bytes; fewer at the end."""
        taken = self.some(count)
        while len(taken) < count and (more := self.some(count - len(taken))):
            taken += more
        return taken

    def give_back(self, rest: bytes) -> None:
        """Put back bytes that were taken in excess."""
        self._held, self._at = rest + self._held[self._at :], 0
        self.offset -= len(rest)


def _plain(chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        for start in range(0, len(chunk), PIECE_BYTES):
            yield chunk[start : start + PIECE_BYTES]


# ---------------------------------------------------------------------------------------- gzip

_GZIP_STEP = 128 << 10
_IsalError = cast("type[Exception]", igzip_lib.error)


def _gzip(source: _Source) -> Iterator[bytes]:
    head = source.upto(1)
    if not head:
        raise _corrupt("an empty object is not a gzip stream", 0)
    while head:
        yield from _gzip_member(source, head)
        head = source.upto(1)
        if head == b"\0":
            _require_zeros(source)
            return


def _gzip_member(source: _Source, head: bytes) -> Iterator[bytes]:
    start = source.offset - len(head)
    head += source.upto(2 - len(head))
    if head != b"\x1f\x8b"[: len(head)]:
        what = "the stream is not gzip" if start == 0 else "the data after the stream is not gzip"
        raise _corrupt(what, start)
    # `isal_zlib` begins each piece with 16 KiB and doubles them, a copy each time. This one makes
    # room for a whole piece at once.
    member = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    data = head
    while not member.eof:
        try:
            piece = member.decompress(data, PIECE_BYTES)
        except _IsalError as cause:
            raise _corrupt(f"corrupt gzip data: {cause}", source.offset) from cause
        if piece:
            yield piece
        data = b""
        # A full piece may have more behind it, of bytes that are all taken in.
        if member.needs_input and len(piece) < PIECE_BYTES and not member.eof:
            data = source.some(_GZIP_STEP)
            if not data:
                raise _corrupt("the gzip stream is truncated", source.offset)
    source.give_back(member.unused_data)


def _require_zeros(source: _Source) -> None:
    while padding := source.some(_GZIP_STEP):
        if padding.strip(b"\0"):
            raise _corrupt("there is data after the zero padding of the gzip stream", source.offset)


# ---------------------------------------------------------------------------------------- zstd


_ZSTD_MAGIC = 0xFD2FB528
_SKIPPABLE_MAGIC = 0x184D2A50
_RAW, _RLE, _COMPRESSED, _RESERVED = range(4)
_MAX_BLOCK = 128 << 10


def _zstd(source: _Source) -> Iterator[bytes]:
    """Walk the frames block by block: a block gives at most 128 KiB, and a missing one is seen."""
    magic = source.upto(4)
    if not magic:
        raise _corrupt("an empty object is not a zstd stream", 0)
    while magic:
        number = int.from_bytes(magic, "little")
        if len(magic) == 4 and number & 0xFFFFFFF0 == _SKIPPABLE_MAGIC:
            _skip_frame(source)
        elif number == _ZSTD_MAGIC:
            yield from _zstd_frame(source, magic)
        else:
            start = source.offset - len(magic)
            what = (
                "the stream is not zstd" if start == 0 else "the data after the frame is not zstd"
            )
            raise _corrupt(what, start)
        magic = source.upto(4)


def _skip_frame(source: _Source) -> None:
    left = int.from_bytes(_exactly(source, 4), "little")
    while left:
        skipped = source.some(left)
        if not skipped:
            raise _corrupt("the zstd stream is truncated", source.offset)
        left -= len(skipped)


def _zstd_frame(source: _Source, magic: bytes) -> Iterator[bytes]:
    header, has_checksum = _frame_header(source, magic)
    frame = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES).decompressobj()
    data = header
    last = False
    while not last:
        head = _exactly(source, 3)
        number = int.from_bytes(head, "little")
        last, kind, size = number & 1 == 1, number >> 1 & 3, number >> 3
        if kind == _RESERVED or size > _MAX_BLOCK:
            raise _corrupt("corrupt zstd data: invalid block", source.offset - 3)
        data += head + _exactly(source, 1 if kind == _RLE else size)
        if last and has_checksum:
            data += _exactly(source, 4)
        try:
            piece = frame.decompress(data)
        except zstandard.ZstdError as cause:
            if "memory" in str(cause):  # The library has one error for all.
                raise MemoryError(str(cause)) from cause
            raise _corrupt(f"corrupt zstd data: {cause}", source.offset) from cause
        if piece:
            yield piece
        data = b""
    if not frame.eof:
        raise _corrupt(
            "corrupt zstd data: the frame does not end where its header says", source.offset
        )


def _frame_header(source: _Source, magic: bytes) -> tuple[bytes, bool]:
    """Take a frame's header; return it, and whether a checksum follows its last block."""
    start = source.offset - len(magic)
    descriptor = _exactly(source, 1)
    flags = descriptor[0]
    single_segment = flags >> 5 & 1
    dictionary_bytes = (0, 1, 2, 4)[flags & 3]
    size_bytes = (single_segment, 2, 4, 8)[flags >> 6]
    window = _exactly(source, 0 if single_segment else 1)
    dictionary = _exactly(source, dictionary_bytes)
    content_size = _exactly(source, size_bytes)
    if single_segment:
        needed = int.from_bytes(content_size, "little") + (256 if size_bytes == 2 else 0)
    else:
        base = 1 << (10 + (window[0] >> 3))
        needed = base + base // 8 * (window[0] & 7)
    if needed > MAX_WINDOW_BYTES:
        raise _corrupt(
            f"the zstd frame needs a window of {needed:,} bytes, more than the "
            f"{MAX_WINDOW_BYTES:,} that are allowed",
            start,
        )
    return magic + descriptor + window + dictionary + content_size, flags >> 2 & 1 == 1


def _exactly(source: _Source, count: int) -> bytes:
    taken = source.upto(count)
    if len(taken) < count:
        raise _corrupt("the zstd stream is truncated", source.offset)
    return taken


# --------------------------------------------------------------------------------------- bzip2

_BZIP2_STEP = 128 << 10


def _bzip2(source: _Source) -> Iterator[bytes]:
    head = source.upto(3)
    if not head:
        raise _corrupt("an empty object is not a bzip2 stream", 0)
    while head:
        start = source.offset - len(head)
        if head != b"BZh":
            what = (
                "the stream is not bzip2"
                if start == 0
                else "the data after the stream is not bzip2"
            )
            raise _corrupt(what, start)
        yield from _bzip2_stream(source, head)
        head = source.upto(3)


def _bzip2_stream(source: _Source, head: bytes) -> Iterator[bytes]:
    stream = bz2.BZ2Decompressor()
    data = head
    while not stream.eof:
        try:
            piece = stream.decompress(data, PIECE_BYTES)
        except (OSError, ValueError) as cause:
            raise _corrupt(f"corrupt bzip2 data: {cause}", source.offset) from cause
        if piece:
            yield piece
        data = b""
        if stream.needs_input and not stream.eof:
            data = source.some(_BZIP2_STEP)
            if not data:
                raise _corrupt("the bzip2 stream is truncated", source.offset)
    source.give_back(stream.unused_data)


_DECOMPRESS: Mapping[Codec, Callable[[_Source], Iterator[bytes]]] = {
    Codec.GZIP: _gzip,
    Codec.ZSTD: _zstd,
    Codec.BZIP2: _bzip2,
}


def _corrupt(message: str, offset: int) -> CorruptStream:
    return CorruptStream(message, offset=offset)
