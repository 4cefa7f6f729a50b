"""Which names are those of source files, and why others are not. Pure."""

from blizzard.discover.skip_reason import Reason
from blizzard.model import codec
from blizzard.model.settings import SourceSettings
from blizzard.model.source_glob import is_hidden

RECORDS = (".ndjson", ".jsonl", ".json")
PACKED = ("", *(each.suffix for each in codec.COMPRESSED))
SUFFIXES = tuple(record + packed for record in RECORDS for packed in PACKED)
TEMPORARY = (
    *(".tmp", ".temp", ".part", ".partial", ".crdownload", ".inprogress", ".filepart"),
    *("_COPYING_", ".swp", ".lock", "~"),
)
"""How writers end the names of files that they have not finished."""


def why_not_ours(path: str, source: SourceSettings) -> Reason | None:
    """Return why a name is none of the source's files; None where it is one."""
    if source.pattern is not None and source.pattern.compiled().fullmatch(path) is None:
        return Reason.NOT_MATCHED
    if is_hidden(path):
        return Reason.HIDDEN
    if path.endswith(SUFFIXES) or (source.pattern is not None and source.pattern.names_file(path)):
        return None
    return Reason.TEMPORARY if path.endswith(TEMPORARY) else Reason.NOT_NDJSON


def why_not_below(folder: str, source: SourceSettings) -> Reason | None:
    """Return why no file below a folder is one of the source's; None where some may be."""
    if source.pattern is not None and not source.pattern.may_hold(folder):
        return Reason.NOT_MATCHED
    return Reason.HIDDEN if is_hidden(folder) else None
