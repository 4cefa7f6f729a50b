"""Files that are far larger than they look, met by a process of its own that says what it took.

`python -m tests.support.bombs FOLDER NAME…` prints what was told of each and the peak memory.
"""

import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path

from blizzard.model.settings import PipelineSettings
from lakebed.errors import LakeError
from lakebed.layout import journal_entry
from tests.support.builders import Bench, ndjson, pipeline_settings, put, rows
from tests.support.foreign import Directory

GIB = 1 << 30
DEEP = 100_000


def thrift_list(elements: int) -> bytes:
    """Return a Parquet file whose footer is a few bytes and announces so many columns."""
    size, left = b"", elements
    while left > 0x7F:
        size, left = size + bytes([left & 0x7F | 0x80]), left >> 7
    body = b"\x15\x02\x19\xfc" + size + bytes([left])
    return b"PAR1" + body + len(body).to_bytes(4, "little") + b"PAR1"


def zstd_zeros(blocks: int) -> bytes:
    """Return one frame, without a size, of blocks that are 128 KiB of one letter in four bytes."""
    block = ((128 << 10) << 3 | 1 << 1).to_bytes(3, "little") + b"a"
    last = (1 << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"a"
    return b"\x28\xb5\x2f\xfd\x00\x88" + block * blocks + last


def sparse(path: Path, size: int) -> None:
    """Make a file of so many bytes that takes no room."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size)


SOURCES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "gzip": ("a.ndjson.gz", lambda: gzip.compress(b"a" * (16 << 20)) * 64),
    "gzip array": ("a.ndjson.gz", lambda: gzip.compress(b"[" * (16 << 20)) * 64),
    "zstd": ("a.ndjson.zst", lambda: zstd_zeros(8192)),
    "zstd window": ("a.ndjson.zst", lambda: b"\x28\xb5\x2f\xfd\x00\xa8" + bytes(100)),
    "deep array": ("a.ndjson", lambda: b'{"id":1,"x":' + b"[" * DEEP + b"]" * DEEP + b"}\n"),
    "deep object": ("a.ndjson", lambda: b'{"id":' * DEEP + b"1" + b"}" * DEEP + b"\n"),
    "deep known": ("a.ndjson", lambda: b'{"name":' + b'{"a":' * DEEP + b"}" * DEEP + b"}\n"),
}
PARQUET: dict[str, Callable[[Path], None]] = {
    "footer of 4 GB": lambda path: put(
        path.parent, path.name, b"PAR1" + b"\0" * 99 + b"\xff\xff\xff\xffPAR1"
    ),
    "footer of a million": lambda path: put(path.parent, path.name, thrift_list(999_999)),
    "footer of two billion": lambda path: put(path.parent, path.name, thrift_list(2_000_000_000)),
    "file of zeros": lambda path: sparse(path, GIB),
}


def settings_in(folder: Path) -> PipelineSettings:
    return pipeline_settings(folder / "in", folder / "table")


def source_told(name: str, folder: Path) -> list[str]:
    file, body = SOURCES[name]
    put(folder / "in", file, body())
    put(folder / "in", "good.ndjson", ndjson(rows(3)))
    bench = Bench(settings_in(folder))
    bench.pipeline().step()
    failures = [each.failure for each in bench.entries()[1].sources if each.failure]
    return [f"{one.code}: {one.message}" for one in failures]


def parquet_told(name: str, folder: Path) -> list[str]:
    table = Directory(folder / "table")
    for _ in range(16):
        PARQUET[name](table.root / table.path())
    table.file(1)
    visitor = table.penguin().drain()
    assert table.ids() == [1]
    return [event.sentence() for event in visitor.events]


def meta_told(folder: Path) -> list[str]:
    table = Directory(folder / "table")
    table.meta(table.file(1))
    sparse(table.root / "_staging/pending/huge.meta.json", GIB)
    visitor = table.penguin().drain()
    assert table.ids() == [1]
    return [event.sentence() for event in visitor.events]


def entry_told(folder: Path) -> list[str]:
    put(folder / "in", "good.ndjson", ndjson(rows(3)))
    bench = Bench(settings_in(folder))
    bench.pipeline().step()
    sparse(folder / "table" / journal_entry("default", 1), GIB)
    put(folder / "in", "next.ndjson", ndjson(rows(3, 3)))
    told: list[str] = []
    try:
        bench.again().pipeline().step()
    except LakeError as error:
        told.append(f"{error.code}: {error}")
    visitor = Directory(folder / "table").penguin()
    visitor.run.step()
    return told + [event.sentence() for event in visitor.events]


def told_of(name: str, folder: Path) -> list[str]:
    if name in SOURCES:
        return source_told(name, folder)
    if name in PARQUET:
        return parquet_told(name, folder)
    return {"meta": meta_told, "entry": entry_told}[name](folder)


def main(folder: Path, *names: str) -> None:
    told = {name: told_of(name, folder / name) for name in names}
    # Not by getrusage: that also counts what the process was forked from.
    status = Path("/proc/self/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0]) >> 10
    sys.stdout.write(json.dumps({"told": told, "peak_mb": peak}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
