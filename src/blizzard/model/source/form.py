"""Forms of source files (compression, records, skipped records) and of source paths. Pure.

A path is a folder, or names with `*`, `?` and `[…]` below one. Files are known by their names below
the last folder that is written out, so that a pattern may become wider or narrower and the same
file keeps its name.
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
    """Which records are no rows: those of which one of these holds."""

    only_key: tuple[str, ...] = ()
    """It has one top-level key, and that is one of these."""
    with_key: tuple[str, ...] = ()
    """It has one of these top-level keys."""
    without_key: tuple[str, ...] = ()
    """It lacks one of these top-level keys."""

    def holds(self, line: bytes) -> bool:
        """Whether a line is to be passed over; never one that is no JSON object.

        Nor one with a key twice: the decoder of the line says what is wrong with it.
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
    """What the files of a source are made of."""

    format: SourceFormat = SourceFormat.NDJSON
    records: tuple[str, ...] = ()
    """The keys that lead from a document to its records."""
    skip: SkipRule | None = None
    """The records that are passed over; None where all are rows."""

    @property
    def is_documents(self) -> bool:
        """Whether records need not be lines, so that only who reads from the start finds them."""
        return self.format is SourceFormat.JSON

    @property
    def counted_as(self) -> str:
        """Return a name for what is counted in a file, the same where the same is counted.

        Empty for lines, which is what a file's books count unless they say otherwise.
        """
        return " ".join((self.format.value, *self.records)) if self.is_documents else ""


class _MemberList(list[tuple[str, object]]):
    """An object, with every member that it has."""


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


_PARSER = json.JSONDecoder(
    object_pairs_hook=_MemberList, parse_constant=_refuse_constant, parse_int=len, parse_float=len
)


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
    separator is plain under any name; anything else is what its name says, and may be
    corrupt.
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
"""What a file system keeps for itself; only its administrator may read it."""
HIDDEN = re.compile(rf"(?:^|/)(?:[_.]|{re.escape(LOST_AND_FOUND)}(?:/|\Z))")


@dataclass(frozen=True, slots=True)
class SourcePattern:
    """Which names below a folder belong to a source. `*` and `?` stop at a slash, `**` does not."""

    text: str

    def __post_init__(self) -> None:
        self.compiled()

    def compiled(self) -> re.Pattern[str]:
        """Return the expression that a whole name must match; a ValueError says what is wrong."""
        return lookback.compiled(self.text)

    @property
    def start(self) -> str:
        """Return the text that every matching name starts with."""
        return WILD.split(self.text, maxsplit=1)[0]

    @property
    def after(self) -> str:
        """Return a name after which all matching names come."""
        start = self.start
        return f"{start[:-1]}{chr(ord(start[-1]) - 1)}{LAST}" if start else ""

    @property
    def until(self) -> str | None:
        """Return a name that all matching names come before; None where there is no such name."""
        return f"{self.start}{LAST}" if self.start else None

    @property
    def names_suffix(self) -> bool:
        """Whether it says how the names end, as `*.log` does."""
        return "." in self._between_stars[-1]

    @property
    def _between_stars(self) -> list[str]:
        """Return the pieces of the last part, with a letter in place of any one character."""
        return SOME_LETTER.sub("x", self.text.rpartition("/")[2]).split("*")

    def names_file(self, path: str) -> bool:
        """Whether the pattern spells the suffix of a matching file, so that it is meant.

        `*.log` means all that ends so, and `part-*` also what has no suffix at all; but a bare `*`
        says nothing of the kind. `*.log*` also means the names under which such files are put
        aside, such as `a.log.1` and `a.log-20240511.gz`, but not `a.log.bak`.
        """
        if self.names_suffix:
            return True
        name, dot, suffix = unrotated(path).rpartition(".")
        if not dot or not name:
            return any(self._between_stars)
        spelled = re.compile(rf"{re.escape(dot + suffix)}(?!\w)")
        return any(map(spelled.search, self._between_stars))

    def may_hold(self, folder: str) -> bool:
        """Whether matching names may be below a folder; only where it is certain, none are."""
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
    """Return the pattern that only this name matches."""
    return SourcePattern(WILD.sub(lambda wild: f"[{wild.group()}]", name))


def split(path: str) -> tuple[str, SourcePattern | None]:
    """Divide a path into the folder that is written out and the pattern below it."""
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
    """Whether a name, or one of its folders, is hidden: a program's bookkeeping."""
    return HIDDEN.search(path) is not None


_TURN = re.compile(r"(?:[-._]\d+(?:T\d+)?Z?)+\Z")
"""A number or a date at the end of a name."""
_COUNT = re.compile(r"\.\d{1,4}\Z")
"""A number that the next rotation raises."""


def unrotated(path: str) -> str:
    """Return a file's name without its folders, its number or date, and its compression.

    `logs/access.log.2.gz`, `access.log-20240511` and `access.log.2024-05-11_13` are `access.log`.
    """
    return _parts(path)[0]


def renamed(paths: Iterable[str]) -> tuple[str, ...]:
    """Return those files, of all that are there, which get another name at the next rotation.

    They are the ones with a number, and the one that is still written. Dated names stay.
    """
    names = [(path, *_parts(path)) for path in paths]
    logs = {_log(path, name) for path, name, turn in names if turn}
    return tuple(
        path
        for path, name, turn in names
        if (_COUNT.fullmatch(turn) if turn else _log(path, name) in logs)
    )


def _parts(path: str) -> tuple[str, str]:
    """Return the name of a log, and the number or date of the file."""
    name, turn = _unpacked(path.rpartition("/")[2]), ""
    if (found := _TURN.search(name)) is not None and found.start():
        name, turn = name[: found.start()], found[0]
    return _unpacked(name), turn


def _unpacked(name: str) -> str:
    return name.removesuffix(codec_of(name).suffix)


def _log(path: str, name: str) -> str:
    return f"{path.rpartition('/')[0]}/{name}"
