"""A short look at the files of a place: the beginnings of some of them, evenly chosen. Read-only.

It reads no more bytes than it is told to, whatever the number and the size of the files. A file
that cannot be read is reported, and the others are looked at.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath

from blizzard.config.load import place
from blizzard.discover.names import PACKED, why_not_ours
from blizzard.discover.skip_reason import Reason
from blizzard.inspect.form_guess import Beginning
from blizzard.model.settings import SourceSettings
from blizzard.model.source.glob import WILD, Pattern
from blizzard.worker.compression import decompress, recognised
from lakebed.errors import LakeError, Whose
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import ObjectFacts, Reader, local_path
from lakebed.types import Codec

FILES = 20
"""So many files are looked at."""
BYTES = 8 << 20
"""So much is read of all of them together, once they are decompressed, unless told otherwise."""
LISTED = 10_000
"""Names that are looked at to find files; a landing zone may hold millions of others."""
FEW = 3
OTHER_FORMATS = frozenset(
    [
        "",
        ".parquet",
        ".csv",
        ".tsv",
        ".avro",
        ".orc",
        ".xml",
        ".yaml",
        ".yml",
        ".md",
        ".html",
        ".pdf",
        ".zip",
        ".tar",
        ".py",
        ".sh",
        ".crc",
    ]
)
"""Suffixes of files that hold no JSON, or none at all."""
_KEY = re.compile(r"[A-Za-z_]\w*")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MONTH = re.compile(r"\d{4}-\d\d")

OpenReader = Callable[[str, StorageOptions], Reader]


class NothingToLookAt(LakeError):
    """There is no file at a place from which anything could be learned."""

    code = "nothing_to_look_at"
    whose = Whose.USER


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The beginnings of some files of a place."""

    path: str
    """The place as `source.path` would name it."""
    files: tuple[Beginning, ...]
    names: tuple[str, ...]
    """The paths of all files that were listed, below the folder of the place."""
    all_listed: bool = True
    others: tuple[str, ...] = ()
    """The paths of files that are left out for their suffix alone."""
    unread: tuple[str, ...] = ()
    """What kept files from being read, a sentence for each."""


def take(
    uri: str,
    options: StorageOptions,
    most: int = BYTES,
    *,
    open_reader: OpenReader = Reader,
) -> Sample:
    """Return the beginnings of files at a folder, a pattern or a file; raise where there is none.

    A folder without any file of a known suffix is looked at for the suffix that most files have.
    """
    path, folder, pattern = _place(uri, options, open_reader)
    reader = open_reader(folder, options)
    meant = SourceSettings(uri=folder, pattern=pattern)
    after = pattern.after if pattern else ""
    listed = list(islice(reader.in_order(after=after), LISTED + 1))
    ours = [facts for facts in listed[:LISTED] if why_not_ours(facts.path, meant) is None]
    others = [
        facts
        for facts in listed[:LISTED]
        if facts.size and why_not_ours(facts.path, meant) is Reason.NOT_NDJSON
    ]
    if not ours and pattern is None and (suffix := _common_suffix(others)):
        path = f"{folder.rstrip('/')}/**{suffix}"
        ours = [facts for facts in others if facts.path.endswith(suffix)]
    if not any(facts.size for facts in ours):
        raise NothingToLookAt(_why_nothing(listed, ours), path=uri)
    files, unread = beginnings(reader, [facts for facts in ours if facts.size], most)
    return Sample(
        path=path,
        files=files,
        names=tuple(facts.path for facts in ours),
        all_listed=len(listed) <= LISTED,
        others=tuple(
            facts.path
            for facts in others
            if facts not in ours and _suffix(facts.path)[0] not in OTHER_FORMATS
        ),
        unread=unread,
    )


def beginnings(
    reader: Reader, files: Sequence[ObjectFacts], most: int
) -> tuple[tuple[Beginning, ...], tuple[str, ...]]:
    """Return the beginnings of evenly chosen files, and why others cannot be read."""
    chosen = [files[len(files) * n // FILES] for n in range(FILES)] if len(files) > FILES else files
    read: list[Beginning] = []
    unread = []
    left = most
    for number, facts in enumerate(chosen):
        share = left // (len(chosen) - number)
        try:
            begin = _beginning(reader, facts, max(share, 1))
        except LakeError as error:
            unread.append(f"{reader.describe(facts.path)}: {error}")
            continue
        read.append(begin)
        left -= len(begin.data)
    return tuple(read), tuple(unread)


def _beginning(reader: Reader, facts: ObjectFacts, most: int) -> Beginning:
    data, whole = bytearray(), True
    for piece in _plain(reader.stream(facts.path, size=facts.size, etag=facts.etag)):
        data += piece
        if len(data) > most:
            del data[most:]
            whole = False
            break
    return Beginning(file=reader.describe(facts.path), data=bytes(data), whole=whole)


def _plain(chunks: Iterator[bytes]) -> Iterator[bytes]:
    return decompress(*recognised(chunks, Codec.NONE))


def _place(
    uri: str, options: StorageOptions, open_reader: OpenReader
) -> tuple[str, str, Pattern | None]:
    """Return a place as `source.path` would name it, its folder, and what is meant below it."""
    parent, slash, name = uri.rpartition("/")
    parent = parent if slash else "."
    if not WILD.search(uri):
        local = local_path(uri)
        bucket = parent.endswith(":/") or not name
        if local is None and not bucket and open_reader(parent, options).head(name) is not None:
            return _one_file(parent, name)
    folder, pattern = place(uri)
    return uri, folder, pattern


def _one_file(folder: str, name: str) -> tuple[str, str, Pattern]:
    """Name an object by a pattern that matches no other: the path of an object means a folder."""
    only = f"[{name[0]}]{name[1:]}"
    return f"{folder.rstrip('/')}/{only}", folder, Pattern(only)


def _common_suffix(others: Iterable[ObjectFacts]) -> str | None:
    """Return how most names end, apart from files of other formats; None if none has a suffix."""
    found = Counter(_suffix(facts.path) for facts in others)
    known = [pair for pair, _count in found.most_common() if pair[0] not in OTHER_FORMATS]
    return "".join(known[0]) if known else None


def _suffix(path: str) -> tuple[str, str]:
    """Return the suffix of a name, and that of its compression behind it."""
    packed = next((end for end in PACKED if end and path.endswith(end)), "")
    return PurePosixPath(path.removesuffix(packed)).suffix, packed


def _why_nothing(listed: Sequence[ObjectFacts], ours: Sequence[ObjectFacts]) -> str:
    if ours:
        return "all files here are empty"
    if not listed:
        return "there is no file here"
    names = ", ".join(facts.path for facts in listed[:FEW])
    return (
        f"no file here has a name that ends like one of JSON records; there are {names}"
        f"{' and others' if len(listed) > FEW else ''}; name the ones that are meant with a "
        "pattern, such as *.log"
    )


def partition_template(names: Sequence[str]) -> str | None:
    """Return the template of the folders `key=value` that all files lie in; None without any."""
    found = {
        tuple(part.partition("=")[::2] for part in name.split("/")[:-1] if "=" in part)
        for name in names
    }
    keys = {tuple(key for key, _value in one) for one in found}
    if len(keys) != 1 or not (only := keys.pop()) or not all(map(_KEY.fullmatch, only)):
        return None
    values = zip(*([value for _key, value in one] for one in found), strict=True)
    return "/".join(f"{key}={_code(key, given)}" for key, given in zip(only, values, strict=True))


def _code(key: str, values: Iterable[str]) -> str:
    codes = {"year": "%Y", "month": "%m", "day": "%d", "hour": "%H"}
    shapes = {"%Y-%m-%d": _DAY, "%Y-%m": _MONTH}
    if key in codes:
        shapes = {codes[key]: re.compile(r"\d{4}" if key == "year" else r"\d\d")}
    given = list(values)
    fitting = (code for code, shape in shapes.items() if all(map(shape.fullmatch, given)))
    return next(fitting, "%s")
