"""Which quarantine files of a journal have lines that wait: named, and not resolved since."""

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field

from blizzard.model.bad_lines import Meant
from lakebed.documents.entry import Entry
from lakebed.documents.quarantine_file import QuarantineFile
from lakebed.layout import file_name


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingFile:
    """A quarantine file with lines that wait, and the entry that set them aside."""

    file: QuarantineFile
    entry: int
    source_uris: Mapping[str, str] = field(default_factory=dict)
    """Where the sources were then, by their names."""
    place: tuple[int, int] = (0, 0)
    """The entry that names the file, and which of its quarantine files it is: their order."""


def with_entry(waiting: MutableMapping[str, WaitingFile], entry: Entry) -> None:
    """Learn what an entry says of quarantine files."""
    number = entry.sequence
    for place, file in enumerate(entry.quarantine):
        waiting[file.filename] = WaitingFile(
            file=file, entry=number, source_uris=entry.source_uris, place=(number, place)
        )
    for place, one in enumerate(entry.resolved, start=len(entry.quarantine)):
        before = waiting.pop(one.old, None)
        if one.left is not None and before is not None:
            waiting[one.left.filename] = WaitingFile(
                file=one.left,
                entry=before.entry,
                source_uris=before.source_uris,
                place=(number, place),
            )


def may_have(waiting: WaitingFile, meant: Meant) -> bool:
    """Whether a quarantine file may have lines that are meant. Pure."""
    named = any(one.source in meant.sources for one in waiting.file.sources)
    return meant.everything or bool(meant.groups) or named


def meant_by(names: list[str] | None, files: tuple[WaitingFile, ...]) -> Meant:
    """Return the lines that an operator names by groups or by source files; without names, all.

    A source file is named by its key; a quarantine file, by its path or its name, means all of its
    source files. Any other name is taken for a group.
    """
    if names is None:
        return Meant(everything=True)
    by_name: dict[str, set[str]] = {}
    for waiting in files:
        aside = (waiting.file.filename, file_name(waiting.file.filename))
        for one in waiting.file.sources:
            for name in (*aside, one.source):
                by_name.setdefault(name, set()).add(one.source)
    return Meant(
        groups=frozenset(name for name in names if name not in by_name),
        sources=frozenset(key for name in names for key in by_name.get(name, ())),
    )
