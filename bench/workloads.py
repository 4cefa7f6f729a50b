"""The data that is raced over: generated, seeded, the same for everybody.

Sizes are those of the full benchmark times `scale`. What was generated is kept and used again.
"""

import json
import random
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import zstandard
from isal import igzip

from blizzard.model.source.form import codec_of
from blizzard.worker.compression import decompress
from lakebed.columns.schema import ELEMENT, Field, Schema
from lakebed.types import FieldType

FIRST = datetime(2024, 1, 1, tzinfo=UTC)
HOURS = 50
ACTIONS = ("view", "search", "basket", "buy", "return")
WORDS = (
    "accepted", "retry", "upstream", "timeout", "connection reset by peer", "while reading",
    "response header from server", '"primary"', "path=\\var\\log\\app", "café", "naïve", "日本語",
    "request completed in", "cache miss for key", "worker exited unexpectedly\nCaused by:",
    "java.lang.IllegalStateException", "at line 42",
)  # fmt: skip

MAKE = 2
"""Changes with what is generated: files of an earlier make are not taken for those of this one."""

Lines = Callable[[random.Random, int, int], Iterator[str]]
"""Returns so many lines, numbered from a first one on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is to be read and what is to come of it."""

    key: str
    title: str
    schema: Schema
    files: int
    records: int
    """In each file."""
    lines: Lines
    suffix: str = ".gz"
    by_hour: bool = False
    """Whether the rows go into a partition for each hour of their own time."""
    hard: bool = False
    """Whether it has values and lines that do not fit, which are to be kept all the same."""
    data: str = ""
    """The workload whose files are read, where it is not this one."""

    def at(self, scale: float) -> "Workload":
        """Return the workload with part of its records: fewer files if many, else shorter ones."""
        if self.files > 100:
            return replace(self, files=max(1, round(self.files * scale)))
        return replace(self, records=max(1, round(self.records * scale)))

    @property
    def rows(self) -> int:
        """Return how many rows there must be in the end."""
        return self.files * self.records


def _fields(**types: str) -> Schema:
    return Schema(tuple(Field(name=name, type=FieldType(kind)) for name, kind in types.items()))


SHOP = _fields(
    id="int64", user="string", action="string", amount="float64", member="boolean", at="timestamp"
)


def shop(chance: random.Random, first: int, count: int) -> Iterator[str]:
    """Six fields, as a shop would log them."""
    below = chance.random
    for number in range(first, first + count):
        at = FIRST + timedelta(microseconds=int(below() * HOURS * 3600 * 10**6))
        action = ACTIONS[int(below() * 5)]
        amount = f"{below() * 200:.2f}" if action in ("buy", "return") else "null"
        member = "true" if below() < 0.3 else "false"
        yield (
            f'{{"id": {number}, "user": "user-{int(below() * 5000):04d}", "action": "{action}", '
            f'"amount": {amount}, "member": {member}, "at": "{at:%Y-%m-%dT%H:%M:%S.%fZ}"}}'
        )


TEXTS = tuple(f"text_{n}" for n in range(20))
INTEGERS = tuple(f"count_{n}" for n in range(14))
FLOATS = tuple(f"value_{n}" for n in range(8))
FLAGS = tuple(f"flag_{n}" for n in range(6))
TIMES = ("created_at", "updated_at", "received_at")


def _struct(name: str, /, **inner: "str | Field") -> Field:
    fields = tuple(
        replace(kind, name=each) if isinstance(kind, Field) else _leaf(each, kind)
        for each, kind in inner.items()
    )
    return Field(name=name, type=FieldType.STRUCT, fields=fields)


def _list(name: str, items: "str | Field") -> Field:
    element = replace(items, name=ELEMENT) if isinstance(items, Field) else _leaf(ELEMENT, items)
    return Field(name=name, type=FieldType.LIST, items=element)


def _leaf(name: str, kind: str) -> Field:
    return Field(name=name, type=FieldType(kind))


EVENTS = Schema(
    (
        *_fields(
            event_id="string",
            **dict.fromkeys(TEXTS, "string"),
            **dict.fromkeys(INTEGERS, "int64"),
            **dict.fromkeys(FLOATS, "float64"),
            **dict.fromkeys(FLAGS, "boolean"),
            **dict.fromkeys(TIMES, "timestamp"),
        ).fields,
        _struct("device", os="string", version="string", screen=_list("", "int64")),
        _struct("geo", country="string", lat="float64", lon="float64"),
        _struct("context", page=_struct("", path="string", title="string"), depth="int64"),
        _struct("utm", source="string", campaign="string"),
        _list("tags", "string"),
        _list("items", _struct("", sku="string", price="float64")),
        _list("scores", "float64"),
        _struct("experiments", e0="boolean", e1="boolean", e2="boolean"),
        _struct("user", id="int64", name="string", roles=_list("", "string")),
        _struct("consent", ads="boolean", stats="boolean"),
        _list("history", _list("", "int64")),
    )
)


def events(chance: random.Random, first: int, count: int) -> Iterator[str]:
    """63 fields, eleven of them objects and lists, as a web tracker would send them."""
    for number in range(first, first + count):
        at = FIRST + timedelta(seconds=chance.randrange(HOURS * 3600))
        record: dict[str, object] = {"event_id": f"{chance.getrandbits(128):032x}"}
        record |= {name: f"value-{chance.randrange(40)}" for name in TEXTS}
        record |= {name: chance.randrange(100_000) for name in INTEGERS}
        record |= {name: round(chance.random() * 1000, 3) for name in FLOATS}
        record |= {name: chance.random() < 0.5 for name in FLAGS}
        record |= {name: at.isoformat().replace("+00:00", "Z") for name in TIMES}
        record |= {
            "device": {"os": "linux", "version": f"{number % 7}.1", "screen": [1920, 1080]},
            "geo": {"country": "NZ", "lat": -41.2 + chance.random(), "lon": 174.7},
            "context": {"page": {"path": f"/item/{number}", "title": 'A "best" thing'}, "depth": 3},
            "utm": None if number % 3 else {"source": "mail", "campaign": f"c{number % 50}"},
            "tags": [f"tag{chance.randrange(30)}" for _ in range(chance.randrange(5))],
            "items": [
                {"sku": f"s{chance.randrange(1000)}", "price": round(chance.random() * 99, 2)}
                for _ in range(chance.randrange(4))
            ],
            "scores": [round(chance.random(), 4) for _ in range(4)],
            "experiments": {f"e{n}": chance.random() < 0.5 for n in range(3)},
            "user": {"id": number, "name": f"Person {number % 999}", "roles": ["reader"]},
            "consent": {"ads": False, "stats": True},
            "history": [[1, 2], [3, number % 11, 5]],
        }  # fmt: skip
        yield json.dumps(record)


LOG = _fields(
    at="timestamp",
    level="string",
    host="string",
    service="string",
    trace="string",
    message="string",
)


def logs(chance: random.Random, first: int, count: int) -> Iterator[str]:
    """Long lines of text, with quotes, backslashes, line ends and letters of many languages."""
    for number in range(first, first + count):
        at = FIRST + timedelta(milliseconds=number)
        words = chance.choices(WORDS, k=chance.randrange(30, 220))
        yield json.dumps(
            {
                "at": f"{at:%Y-%m-%dT%H:%M:%S.%f}Z",
                "level": chance.choice(("INFO", "INFO", "INFO", "WARN", "ERROR")),
                "host": f"host-{chance.randrange(200)}",
                "service": f"service-{chance.randrange(20)}",
                "trace": f"{chance.getrandbits(64):016x}",
                "message": " ".join(words),
            },
            ensure_ascii=False,
        )


A = Workload(key="a", title="16 files of 250,000 six-field records, gzip", schema=SHOP,
             files=16, records=250_000, lines=shop)  # fmt: skip
WORKLOADS = {
    each.key: each
    for each in (
        A,
        Workload(key="b", title="typed nested events of 63 fields, gzip", schema=EVENTS,
                 files=8, records=20_000, lines=events),
        Workload(key="c", title="log lines with long strings, gzip", schema=LOG,
                 files=8, records=50_000, lines=logs),
        Workload(key="d", title="10,000 files of 2 KB, plain", schema=SHOP,
                 files=10_000, records=16, lines=shop, suffix=""),
        Workload(key="e", title="one gzip file of 2 GB decompressed", schema=SHOP,
                 files=1, records=16_000_000, lines=shop),
        Workload(key="f-zstd", title="(a) in zstd", schema=SHOP,
                 files=16, records=250_000, lines=shop, suffix=".zst"),
        Workload(key="f-plain", title="(a) not compressed", schema=SHOP,
                 files=16, records=250_000, lines=shop, suffix=""),
        Workload(key="g", title="(a) into 50 partitions by the time of the row", schema=SHOP,
                 files=16, records=250_000, lines=shop, by_hour=True, data="a"),
    )
}  # fmt: skip


HARD = Workload(key="h", title="hard values", schema=SHOP, files=1, records=0, lines=shop,
                suffix="", hard=True)  # fmt: skip
"""Its files are those of `bench.hard`, and nobody's time is taken over them."""


def generated(workload: Workload, scale: float, under: Path) -> Path:
    """Return the folder with a workload's files, which are made if they are not there."""
    folder = under / f"{workload.data or workload.key}-{scale:g}-{MAKE}"
    if folder.exists():
        return folder
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    scaled = workload.at(scale)
    with ProcessPoolExecutor() as pool:
        list(pool.map(partial(_write, workload.key, scale, part), range(scaled.files), chunksize=8))
    return part.rename(folder)


def plain_bytes(workload: Workload, scale: float, under: Path) -> int:
    """Return how much NDJSON there is, decompressed."""
    folder = generated(workload, scale, under)
    total = 0
    for path in folder.iterdir():
        with path.open("rb") as file:
            pieces = iter(partial(file.read, 1 << 20), b"")
            total += sum(map(len, decompress(pieces, codec_of(path.name))))
    return total


def _write(key: str, scale: float, folder: Path, number: int) -> None:
    workload = WORKLOADS[key].at(scale)
    chance = random.Random(number)
    lines = workload.lines(chance, number * workload.records, workload.records)
    path = folder / f"part-{number:05d}.ndjson{workload.suffix}"
    with path.open("wb") as file, _compressed(file, workload.suffix) as out:
        while block := list(islice(lines, 5_000)):
            out.write("".join(line + "\n" for line in block).encode())


def _compressed(file: IO[bytes], suffix: str) -> AbstractContextManager[Any]:
    match suffix:
        case ".gz":
            packed = igzip.IGzipFile(fileobj=file, mode="wb", compresslevel=3, mtime=0)  # type: ignore[no-untyped-call]
            return cast("AbstractContextManager[Any]", packed)
        case ".zst":
            return zstandard.ZstdCompressor().stream_writer(file, closefd=False)
    return nullcontext(file)
