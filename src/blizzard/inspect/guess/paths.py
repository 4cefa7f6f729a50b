"""Which files of a folder are meant, to judge by their names alone: a pattern for them. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from blizzard.discover.names import TEMPORARY, why_not_ours
from blizzard.model.settings import SourceSettings
from blizzard.model.source.codec import codec_of
from blizzard.model.source.glob import Pattern, is_hidden, literally
from blizzard.model.source.rotation import unrotated

OTHER_FORMATS = frozenset(
    [
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
"""Suffixes of files that hold no JSON."""
MOST_SUFFIXES = 10
"""Those that most files have are tried."""
_SUFFIX = re.compile(r"\.[A-Za-z]\w*")


def pattern_for(names: Sequence[str]) -> Pattern | None:
    """Return the pattern that takes most of the files below a folder; None for the folder itself.

    What a folder without a pattern takes is never left out in favour of other files.
    """
    names = [name for name in names if not is_hidden(name) and not name.endswith(TEMPORARY)]
    usual = set(taken(names, None))
    best, most = None, len(usual)
    for each in _candidates(names):
        found = taken(names, each)
        if len(found) > most and usual.issubset(found):
            best, most = each, len(found)
    return best


def taken(names: Iterable[str], pattern: Pattern | None) -> tuple[str, ...]:
    """Return the names that a source with this pattern takes."""
    meant = SourceSettings(uri="", pattern=pattern)
    return tuple(name for name in names if why_not_ours(name, meant) is None)


def _candidates(names: Sequence[str]) -> Iterator[Pattern]:
    """Yield patterns, those of the most frequent suffix first, and of these the narrowest."""
    ends = Counter(map(_end, names))
    for suffix, packed in [end for end, _count in ends.most_common() if end[0]][:MOST_SUFFIXES]:
        yield Pattern(f"**{suffix}{packed}")
        yield Pattern(f"**{suffix}*")
    if not ends.keys() - {("", "")}:
        # Names without any suffix: only if a number or a date shows that they belong together.
        bare = Counter(
            one for name in names if "." not in (one := unrotated(name)) and one != _base(name)
        )
        yield from (
            Pattern(f"**/{literally(one).text}*") for one, _count in bare.most_common(MOST_SUFFIXES)
        )


def _end(name: str) -> tuple[str, str]:
    """Return the suffix of a name, with that of its compression; none for another format's."""
    bare, dot, suffix = unrotated(name).rpartition(".")
    known = dot + suffix
    if not bare or not _SUFFIX.fullmatch(known) or known in OTHER_FORMATS:
        return "", ""
    packed = codec_of(name).suffix
    return known, packed if name.endswith(f"{known}{packed}") else ""


def _base(name: str) -> str:
    return name.rpartition("/")[2]
