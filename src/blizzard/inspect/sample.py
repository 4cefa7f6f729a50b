"""Sample the files at a location: the beginnings of evenly chosen files. Read-only.

The bytes read are limited, regardless of the number and size of the files. Unreadable files are
reported and skipped.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from blizzard.config.checks import place
from blizzard.discover.finding import TEMPORARY, Reason, why_not_ours
from blizzard.inspect.guess.forms import FileHead
from blizzard.model.settings import SourceSettings
from blizzard.model.source.form import (
    WILD,
    SourcePattern,
    codec_of,
    is_hidden,
    literally,
    unrotated,
)
from blizzard.worker.compression import decompress, recognised
from lakebed.errors import ArgumentInvalid, LakeError, ObjectMissing, Whose
from lakebed.storage.options import ObjectFacts, StorageOptions
from lakebed.storage.remote import local_path
from lakebed.storage.store import Reader
from lakebed.types import Codec

OTHER_FORMATS = frozenset([
    ".parquet", ".csv", ".tsv", ".avro", ".orc", ".xml", ".yaml", ".yml", ".md", ".html", ".pdf",
    ".zip", ".tar", ".py", ".sh", ".crc",
])  # fmt: skip
"""Suffixes of files that hold no JSON."""
MOST_SUFFIXES = 10
"""The most frequent suffixes to try."""
_SUFFIX = re.compile(r"\.[A-Za-z]\w*")


def pattern_for(names: Sequence[str]) -> SourcePattern | None:
    """Return the pattern that matches most files below a folder; None for the folder itself.

    Files that the folder alone would match are never dropped in favour of others.
    """
    names = [name for name in names if not is_hidden(name) and not name.endswith(TEMPORARY)]
    usual = set(taken(names, None))
    best, most = None, len(usual)
    for each in _candidates(names):
        found = taken(names, each)
        if len(found) > most and usual.issubset(found):
            best, most = each, len(found)
    return best


def taken(names: Iterable[str], pattern: SourcePattern | None) -> tuple[str, ...]:
    """Return the names that a source with this pattern matches."""
    meant = SourceSettings(uri="", pattern=pattern)
    return tuple(name for name in names if why_not_ours(name, meant) is None)


def _candidates(names: Sequence[str]) -> Iterator[SourcePattern]:
    """Yield patterns by frequency of the suffix, narrowest first."""
    ends = Counter(map(_end, names))
    for suffix, packed in [end for end, _count in ends.most_common() if end[0]][:MOST_SUFFIXES]:
        yield SourcePattern(f"**{suffix}{packed}")
        yield SourcePattern(f"**{suffix}*")


def _end(name: str) -> tuple[str, str]:
    """Return the suffix of a name, with that of its compression; none for another format's."""
    bare, dot, suffix = unrotated(name).rpartition(".")
    known = dot + suffix
    if not bare or not _SUFFIX.fullmatch(known) or known in OTHER_FORMATS:
        return "", ""
    packed = codec_of(name).suffix
    return known, packed if name.endswith(f"{known}{packed}") else ""


FILES = 20
"""The most files of a sample."""
BYTES = 8 << 20
"""Default limit on the decompressed bytes read of all files together."""
LISTED = 10_000
"""The most names that are listed; a landing zone may hold millions."""
FEW = 3
_KEY = re.compile(r"[A-Za-z_]\w*")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MONTH = re.compile(r"\d{4}-\d\d")


class NothingToSample(LakeError, code="nothing_to_sample", whose=Whose.USER):
    """There is no usable file at a location."""


class PlaceMissing(NothingToSample, ArgumentInvalid):
    """The location does not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The beginnings of some files at a location."""

    path: str
    """The location as a value of `source.path`."""
    files: tuple[FileHead, ...]
    names: tuple[str, ...]
    """The paths of all listed files, relative to the folder."""
    all_listed: bool = True
    others: tuple[tuple[str, Reason], ...] = ()
    """The paths of files skipped because of their names, with the reason."""
    unread: tuple[str, ...] = ()
    """A sentence for each unreadable file."""


def take(uri: str, options: StorageOptions, most: int = BYTES) -> Sample:
    """Return the beginnings of files at a folder, a pattern or a file; raise if there are none.

    A folder gets a pattern if that matches more of its files than the folder alone, such as files
    of another suffix or rotated logs.
    """
    path, folder, asked = _place(uri, options)
    try:
        reader = Reader(folder, options)
    except ObjectMissing as missing:
        raise PlaceMissing(missing.message, path=uri) from missing
    listed = list(islice(reader.in_order(after=asked.after if asked else ""), LISTED + 1))
    seen = listed[:LISTED]
    pattern = asked or pattern_for([facts.path for facts in seen if facts.size])
    if asked is None and pattern is not None:
        path = f"{literally(folder.rstrip('/')).text}/{pattern.text}"
    meant = SourceSettings(uri=folder, pattern=pattern)
    why_not = {facts.path: why_not_ours(facts.path, meant) for facts in seen}
    ours = [facts for facts in seen if why_not[facts.path] is None]
    if not any(facts.size for facts in ours):
        raise NothingToSample(_why_nothing(listed, ours), path=uri)
    files, unread = beginnings(reader, [facts for facts in ours if facts.size], most)
    return Sample(
        path=path,
        files=files,
        names=tuple(facts.path for facts in ours),
        all_listed=len(listed) <= LISTED,
        others=tuple(
            (name, reason)
            for name, reason in why_not.items()
            if reason not in (None, Reason.HIDDEN)
            if not (asked and reason is Reason.NOT_MATCHED)
        ),
        unread=unread,
    )


def beginnings(
    reader: Reader, files: Sequence[ObjectFacts], most: int
) -> tuple[tuple[FileHead, ...], tuple[str, ...]]:
    """Return the beginnings of evenly chosen files, and why others cannot be read."""
    chosen = [files[len(files) * n // FILES] for n in range(FILES)] if len(files) > FILES else files
    read: list[FileHead] = []
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


def _beginning(reader: Reader, facts: ObjectFacts, most: int) -> FileHead:
    data, whole = bytearray(), True
    chunks = reader.stream(facts.path, size=facts.size, etag=facts.etag)
    for piece in decompress(*recognised(chunks, Codec.NONE)):
        data += piece
        if len(data) > most:
            del data[most:]
            whole = False
            break
    return FileHead(file=reader.describe(facts.path), data=bytes(data), whole=whole)


def _place(uri: str, options: StorageOptions) -> tuple[str, str, SourcePattern | None]:
    """Return a location as `source.path`, its folder, and its pattern."""
    parent, slash, name = uri.rpartition("/")
    parent = parent if slash else "."
    if not WILD.search(uri):
        local = local_path(uri)
        bucket = parent.endswith(":/") or not name
        if local is None and not bucket and Reader(parent, options).head(name) is not None:
            return _one_file(parent, name)
    folder, pattern = place(uri)
    return uri, folder, pattern


def _one_file(folder: str, name: str) -> tuple[str, str, SourcePattern]:
    """Return a pattern that matches a single object, since a plain path means a folder."""
    only = f"[{name[0]}]{name[1:]}"
    return f"{folder.rstrip('/')}/{only}", folder, SourcePattern(only)


def _why_nothing(listed: Sequence[ObjectFacts], ours: Sequence[ObjectFacts]) -> str:
    if ours:
        return "all files there are empty"
    if not listed:
        return "the folder is empty"
    names = ", ".join(facts.path for facts in listed[:FEW])
    return (
        "no file name ends in .ndjson, .jsonl or .json; found "
        f"{names}{' and others' if len(listed) > FEW else ''}; select the files with a pattern, "
        "such as *.log"
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


def partition_keys(template: str | None) -> frozenset[str]:
    """Return the columns of a folder template."""
    return frozenset(part.partition("=")[0] for part in (template or "").split("/") if part)


def _code(key: str, values: Iterable[str]) -> str:
    codes = {"year": "%Y", "month": "%m", "day": "%d", "hour": "%H"}
    shapes = {"%Y-%m-%d": _DAY, "%Y-%m": _MONTH}
    if key in codes:
        shapes = {codes[key]: re.compile(r"\d{4}" if key == "year" else r"\d\d")}
    given = list(values)
    fitting = (code for code, shape in shapes.items() if all(map(shape.fullmatch, given)))
    return next(fitting, "%s")
