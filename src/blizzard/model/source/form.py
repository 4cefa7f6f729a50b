"""Forms of source files (compression, records, skipped records) and of source paths. Pure.

A path is a folder, or a pattern with `*`, `?` and `[…]` below one. The name of a file is relative
to the last folder without wildcards, so it stays the same if the pattern gets wider or narrower.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

from lakebed.listing import lookback
from lakebed.listing.sort import LAST
from lakebed.types import Codec, SourceFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class SkipRule:
    """Skip a record to which at least one condition applies."""

    only_key: tuple[str, ...] = ()
    """Its only top-level key is one of these."""
    with_key: tuple[str, ...] = ()
    """It has one of these top-level keys."""
    without_key: tuple[str, ...] = ()
    """It lacks one of these top-level keys."""

    def holds(self, line: bytes) -> bool:
        """Whether to skip a line.

        A line that is not a JSON object or repeats a key is kept: the decoder reports its error.
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
    """The format of a source's files."""

    format: SourceFormat = SourceFormat.NDJSON
    records: tuple[str, ...] = ()
    """The keys that lead from a document to its records."""
    skip: SkipRule | None = None
    """The rule of which records to skip; None to skip none."""

    @property
    def is_documents(self) -> bool:
        """Whether records need not be lines, and are found only by reading from the start."""
        return self.format is SourceFormat.JSON

    @property
    def counted_as(self) -> str:
        """Return a name for the counted unit; record counts are comparable if it is equal.

        Empty for lines, the default in a source record.
        """
        return " ".join((self.format.value, *self.records)) if self.is_documents else ""


class _MemberList(list[tuple[str, object]]):
    """The members of an object, including repeated ones."""


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


_PARSER = json.JSONDecoder(
    object_pairs_hook=_MemberList, parse_constant=_refuse_constant, parse_int=len, parse_float=len
)


FIRST_BYTES = 16
"""The bytes of a file that suffice to detect its compression."""

COMPRESSED = tuple(codec for codec in Codec if codec.suffix)
_SUFFIXES = tuple(codec.suffix for codec in COMPRESSED)


def codec_of(path: str) -> Codec:
    """Return the compression by the suffix of a name: `.gz`, `.zst`, `.bz2`; else none."""
    if not path.endswith(_SUFFIXES):
        return Codec.NONE
    return next(codec for codec in COMPRESSED if path.endswith(codec.suffix))


def codec_in(first: bytes, named: Codec) -> Codec:
    """Return the compression by the first bytes of a file, or by its name if they are ambiguous.

    No JSON begins like a compressed stream. A file that begins with an object, an array or a
    record separator is plain, regardless of its name; any other has the compression of its
    name, and may be corrupt.
    """
    if first.startswith(b"{"):
        return Codec.NONE
    for codec in COMPRESSED:
        if re.match(codec.first_bytes, first):
            return codec
    begin = first.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")[:1]
    return Codec.NONE if begin in (b"{", b"[", b"\x1e") else named


WILD = re.compile(r"[*?\[]")
SOME_LETTER = re.compile(r"\?|\[!?\]?[^\]]*\]")
LOST_AND_FOUND = "lost+found"
"""A folder of the file system itself; only its administrator may read it."""
HIDDEN = re.compile(rf"(?:^|/)(?:[_.]|{re.escape(LOST_AND_FOUND)}(?:/|\Z))")


@dataclass(frozen=True, slots=True)
class SourcePattern:
    """The names below a folder that a source reads; `**` matches slashes, `*` and `?` do not."""

    text: str

    def __post_init__(self) -> None:
        self.compiled()

    def compiled(self) -> re.Pattern[str]:
        """Return the expression that a whole name must match; raise ValueError if it is invalid."""
        return lookback.compiled(self.text)

    @property
    def start(self) -> str:
        """Return the text that every matching name starts with."""
        return WILD.split(self.text, maxsplit=1)[0]

    @property
    def after(self) -> str:
        """Return a name that sorts before all matching names."""
        start = self.start
        return f"{start[:-1]}{chr(ord(start[-1]) - 1)}{LAST}" if start else ""

    @property
    def until(self) -> str | None:
        """Return a name that sorts after all matching names; None if there is none."""
        return f"{self.start}{LAST}" if self.start else None

    @property
    def _between_stars(self) -> list[str]:
        """Return the literal pieces of the last part, with a letter for each `?` and `[…]`."""
        return SOME_LETTER.sub("x", self.text.rpartition("/")[2]).split("*")

    def names_file(self, path: str) -> bool:
        """Whether the pattern covers the suffix of a matching file explicitly.

        `*.log` covers all files with that suffix, `part-*` also files without any; a bare `*`
        covers none. `*.log*` also covers rotated files, such as `a.log.1` and `a.log-20240511.gz`,
        but not `a.log.bak`.
        """
        if "." in self._between_stars[-1]:
            return True
        name, dot, suffix = unrotated(path).rpartition(".")
        if not dot or not name:
            return any(self._between_stars)
        spelled = re.compile(rf"{re.escape(dot + suffix)}(?!\w)")
        return any(map(spelled.search, self._between_stars))

    def may_hold(self, folder: str) -> bool:
        """Whether matching names may be below a folder; False only if there can be none."""
        parts, wanted = folder.split("/"), self.text.split("/")
        for depth, part in enumerate(parts):
            if depth >= len(wanted) - 1 and "**" not in wanted[min(depth, len(wanted) - 1)]:
                return False
            if "**" in wanted[depth]:
                return True
            if lookback.compiled(wanted[depth]).fullmatch(part) is None:
                return False
        return True


def literally(name: str) -> SourcePattern:
    """Return a pattern that matches only this name."""
    return SourcePattern(WILD.sub(lambda wild: f"[{wild.group()}]", name))


def split(path: str) -> tuple[str, SourcePattern | None]:
    """Split a path into the folder without wildcards and the pattern below it."""
    wild = WILD.search(path)
    if wild is None:
        return path, None
    slash = path.rfind("/", 0, wild.start())
    if slash < 0:
        return ".", SourcePattern(path)
    folder = path[:slash]
    if folder.endswith((":/", "//")) or folder == "":
        folder = path[: slash + 1]
    return folder, SourcePattern(path[slash + 1 :])


def is_hidden(path: str) -> bool:
    """Whether a name, or one of its folders, is hidden: internal to some program."""
    return HIDDEN.search(path) is not None


_ROTATION = re.compile(r"(?:[-._]\d+(?:T\d+)?Z?)+\Z")
"""A number or a date at the end of a name."""
_NUMBER = re.compile(r"\.\d{1,4}\Z")
"""A number that the next rotation increments."""


def unrotated(path: str) -> str:
    """Return a file's name without folders, number or date, and compression suffix.

    `logs/access.log.2.gz`, `access.log-20240511` and `access.log.2024-05-11_13` are `access.log`.
    """
    return _parts(path)[0]


def renamed(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the files that the next rotation renames.

    They are those with a number, and the current one. Dated names stay.
    """
    names = [(path, *_parts(path)) for path in paths]
    logs = {_log(path, name) for path, name, suffix in names if suffix}
    return tuple(
        path
        for path, name, suffix in names
        if (_NUMBER.fullmatch(suffix) if suffix else _log(path, name) in logs)
    )


def _parts(path: str) -> tuple[str, str]:
    """Return the name of a log, and the number or date of the file."""
    name, suffix = _without_codec(path.rpartition("/")[2]), ""
    if (found := _ROTATION.search(name)) is not None and found.start():
        name, suffix = name[: found.start()], found[0]
    return _without_codec(name), suffix


def _without_codec(name: str) -> str:
    return name.removesuffix(codec_of(name).suffix)


def _log(path: str, name: str) -> str:
    return f"{path.rpartition('/')[0]}/{name}"
