"""Compressed streams are read to their very end, or refused; never in part."""

import bz2
import gzip
import struct
import zlib
from collections.abc import Callable, Iterable

import pytest
import zstandard

from blizzard.model.source.form import codec_in, codec_of
from blizzard.worker.compression import (
    MAX_WINDOW_BYTES,
    PIECE_BYTES,
    CorruptStream,
    decompress,
    recognised,
)
from lakebed.types import Codec

TEXT = b"".join(
    b'{"id":%d,"name":"penguin %d"}\n' % (number, number % 97) for number in range(20_000)
)
SKIPPABLE = struct.pack("<II", 0x184D2A53, 11) + b"not for you"

Compress = Callable[[bytes], bytes]


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


def zstd_of_unknown_size(data: bytes) -> bytes:
    stream = zstandard.ZstdCompressor(write_checksum=True).compressobj()
    return stream.compress(data) + stream.flush()


CODECS: list[tuple[Codec, Compress]] = [
    (Codec.GZIP, gzip.compress),
    (Codec.ZSTD, zstd),
    (Codec.ZSTD, zstd_of_unknown_size),
    (Codec.BZIP2, bz2.compress),
]
both = pytest.mark.parametrize(("codec", "compress"), CODECS)


def whole(chunks: Iterable[bytes], codec: Codec) -> bytes:
    pieces = list(decompress(chunks, codec))
    assert all(0 < len(piece) <= PIECE_BYTES for piece in pieces)
    return b"".join(pieces)


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize(
    ("path", "codec"),
    [
        ("a/b.ndjson.gz", Codec.GZIP),
        ("b.json.zst", Codec.ZSTD),
        ("b.log.bz2", Codec.BZIP2),
        ("b.jsonl", Codec.NONE),
        ("gz", Codec.NONE),
        ("b.gz/c.ndjson", Codec.NONE),
    ],
)
def test_the_suffix_tells_the_codec(path: str, codec: Codec):
    assert codec_of(path) is codec


@both
@pytest.mark.parametrize("size", [1, 2, 7, 4096, 1 << 30])
def test_all_bytes_come_back_wherever_the_stream_is_cut(
    codec: Codec, compress: Compress, size: int
):
    text = TEXT[:5000] if size < 10 else TEXT
    assert whole(cut(compress(text), size), codec) == text


@pytest.mark.parametrize("data", [b"", b"plain", TEXT * 3])
def test_plain_bytes_pass_through_in_bounded_pieces(data: bytes):
    assert whole([data], Codec.NONE) == data


@both
@pytest.mark.parametrize("size", [1, 100, 1 << 30])
def test_all_members_and_frames_are_read(codec: Codec, compress: Compress, size: int):
    """L13, L36: concatenated gzip members, zstd frames and bzip2 streams are one file."""
    stream = compress(b"one\n") + compress(b"") + compress(b"two\n") + compress(b"three")
    assert whole(cut(stream, size), codec) == b"one\ntwo\nthree"


@both
def test_an_empty_text_has_a_stream(codec: Codec, compress: Compress):
    assert whole([compress(b"")], codec) == b""


@pytest.mark.parametrize("size", [1, 5, 1 << 30])
def test_skippable_frames_are_skipped(size: int):
    stream = SKIPPABLE + zstd(b"one") + SKIPPABLE + SKIPPABLE + zstd(b"two") + SKIPPABLE
    assert whole(cut(stream, size), Codec.ZSTD) == b"onetwo"


@pytest.mark.parametrize("size", [1, 1 << 30])
def test_zeros_after_the_last_gzip_member_are_padding(size: int):
    stream = gzip.compress(b"one") + gzip.compress(b"two") + bytes(700)
    assert whole(cut(stream, size), Codec.GZIP) == b"onetwo"


@both
def test_a_bomb_comes_in_bounded_pieces(codec: Codec, compress: Compress):
    pieces = decompress([compress(bytes(1 << 26))], codec)
    sizes = [len(piece) for piece in pieces]
    assert sum(sizes) == 1 << 26
    assert max(sizes) <= PIECE_BYTES


@both
def test_a_stream_cut_anywhere_is_a_failure(codec: Codec, compress: Compress):
    """L14: a stream that breaks off is a failure, not a short success."""
    stream = compress(TEXT[:300])
    for end in range(len(stream)):
        with pytest.raises(CorruptStream) as failure:
            whole([stream[:end]], codec)
        assert failure.value.code == "decompress_failed"
        assert not failure.value.retryable


@both
def test_a_second_part_cut_anywhere_is_a_failure(codec: Codec, compress: Compress):
    first = compress(b"one")
    second = compress(b"two")
    for end in range(1, len(second)):
        with pytest.raises(CorruptStream):
            whole([first + second[:end]], codec)


def test_a_cut_skippable_frame_is_a_failure():
    for end in range(1, len(SKIPPABLE)):
        with pytest.raises(CorruptStream):
            whole([zstd(b"one") + SKIPPABLE[:end]], Codec.ZSTD)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.ZSTD, Codec.BZIP2])
@pytest.mark.parametrize("chunks", [[], [b""], [b"", b""]])
def test_an_empty_object_is_no_stream(codec: Codec, chunks: list[bytes]):
    """L14: a zero-byte .gz is an upload that failed, not an empty file."""
    with pytest.raises(CorruptStream, match="empty object"):
        whole(chunks, codec)


@both
def test_no_flipped_bit_goes_unseen(codec: Codec, compress: Compress):
    """What a header leaves open may change, what a file says may not."""
    text = TEXT[:200]
    stream = compress(text)
    for place in range(len(stream) * 8):
        flipped = bytearray(stream)
        flipped[place // 8] ^= 1 << place % 8
        try:
            found = whole([bytes(flipped)], codec)
        except CorruptStream:
            continue
        assert found == text


@pytest.mark.parametrize("place", [-1, -5])
def test_a_wrong_checksum_or_length_is_a_failure(place: int):
    stream = bytearray(gzip.compress(TEXT))
    stream[place] ^= 1
    with pytest.raises(CorruptStream, match="checksum"):
        whole([bytes(stream)], Codec.GZIP)


@both
@pytest.mark.parametrize("rest", [b"x", b"garbage", b"\0x", bytes(9) + b"x", b'{"a":1}\n'])
def test_anything_else_after_the_stream_is_a_failure(codec: Codec, compress: Compress, rest: bytes):
    stream = compress(b"one")
    for size in (1, 1 << 30):
        with pytest.raises(CorruptStream, match=r"data after the|truncated"):
            whole(cut(stream + rest, size), codec)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.ZSTD, Codec.BZIP2])
@pytest.mark.parametrize(
    "data", [b"{", b'{"a":1}\n', TEXT, bytes(100), zlib.compress(TEXT), b"\x1f", b"\x28\xb5"]
)
def test_what_is_not_compressed_so_is_refused(codec: Codec, data: bytes):
    with pytest.raises(CorruptStream, match="offset: "):
        whole([data], codec)


def test_a_failure_says_where_it_is():
    stream = gzip.compress(b"one")
    with pytest.raises(CorruptStream) as failure:
        whole([stream + b"rest"], Codec.GZIP)
    assert str(failure.value) == f"the data after the stream is not gzip (offset: {len(stream)})"


def test_a_window_beyond_the_limit_is_refused_by_name():
    parameters = zstandard.ZstdCompressionParameters(window_log=28, enable_ldm=True)
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    data = stream.compress(b"x" * 1000) + stream.flush()
    with pytest.raises(CorruptStream, match="needs a window"):
        whole([data], Codec.ZSTD)


def test_a_window_at_the_limit_is_read():
    parameters = zstandard.ZstdCompressionParameters(window_log=27)
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    data = stream.compress(TEXT) + stream.flush()
    assert MAX_WINDOW_BYTES == 1 << 27
    assert whole([data], Codec.ZSTD) == TEXT


def test_a_frame_that_needs_a_dictionary_is_a_failure():
    dictionary = zstandard.train_dictionary(
        2048, [TEXT[at : at + 300] for at in range(0, 90_000, 300)]
    )
    stream = zstandard.ZstdCompressor(dict_data=dictionary).compress(TEXT[:2000])
    with pytest.raises(CorruptStream, match="corrupt zstd data"):
        whole([stream], Codec.ZSTD)


# ------------------------------------------------------------------------------ by content


@both
@pytest.mark.parametrize("named", list(Codec))
@pytest.mark.parametrize("size", [1, 3, 1 << 30])
def test_the_first_bytes_tell_the_codec_whatever_the_name_says(
    codec: Codec, compress: Compress, named: Codec, size: int
):
    """L35: and no byte is lost by looking at them."""
    chunks, found = recognised(iter(cut(compress(TEXT[:300]), size)), named)
    assert found is codec
    assert whole(chunks, found) == TEXT[:300]


@pytest.mark.parametrize("named", list(Codec))
@pytest.mark.parametrize(
    "text",
    [
        *(b'{"a":1}\n', b'\n \t{"a":1}', b'\xef\xbb\xbf{"a":1}\n', b"{"),
        *(b'[{"a":1}]', b"[*", b'\x1e{"a":1}\n'),
    ],
)
def test_what_begins_like_json_is_plain_whatever_the_name_says(named: Codec, text: bytes):
    """L35."""
    chunks, found = recognised(iter(cut(text, 1)), named)
    assert (b"".join(chunks), found) == (text, Codec.NONE)


@pytest.mark.parametrize("named", list(Codec))
@pytest.mark.parametrize("first", [b"", b"\x1f", b"\n\n", b"1", b"\0\0", b"BZhx", b"\x28\xb5\x2f"])
def test_what_tells_nothing_is_what_its_name_says(named: Codec, first: bytes):
    """L35, L14: an empty or damaged file does not become a plain one."""
    assert codec_in(first, named) is named


def test_skippable_frames_are_zstd():
    """L35."""
    assert codec_in(SKIPPABLE + zstd(b"one"), Codec.NONE) is Codec.ZSTD
