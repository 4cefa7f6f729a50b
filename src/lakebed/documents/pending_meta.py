"""The metas in `_staging/`: one small document per data file.

Those in `pending/` are the staging hand-off, written last. The first five keys are all that another
program needs to write or read. Ours come after them and name the journal entry that the file
belongs to. Those in `held/` are penguin's: of files that it set aside, with the reasons; those in
`discarded/` are of files that an operator gave up.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import IntEnum

from lakebed.documents.reading import validated
from lakebed.layout import file_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """One data file that is complete and may be committed."""

    filename: str
    """The data file, relative to the table."""
    size: int
    record_count: int
    partition_values: Mapping[str, str | None]
    source_file: str | None
    """The source file's URI, or None where several small ones share the data file."""
    source_files: tuple[str, ...] = ()
    """The URIs of all source files with rows in it."""
    pipeline: str | None = None
    journal: str | None = None
    entry: int | None = None


class HeldState(IntEnum):
    """What the log says of a quarantined file, or of an entry that was rejected."""

    HELD = 0
    RELEASED = 1
    GONE = 2
    """Discarded, or replaced by files that were written anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldMeta(Meta):
    """One data file that is not in the table, and why.

    Its `source_files` are those of the entry: keys, and not URIs.
    """

    code: str
    reasons: tuple[str, ...]
    unit: str | None = None
    """The work unit that wrote it; its files stand or fall together."""
    held_at: str
    """When it was set aside, as ISO 8601 writes it."""

    @property
    def name(self) -> str:
        """Name the file among all that are held."""
        return file_name(self.filename)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesAside:
    """Files that are not in the table, those with the same reasons together."""

    code: str
    reasons: tuple[str, ...]
    files: int
    rows: int


def by_reason(metas: Iterable[HeldMeta]) -> tuple[FilesAside, ...]:
    """Put the files with the same reasons together."""
    rows: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for meta in metas:
        rows.setdefault((meta.code, meta.reasons), []).append(meta.record_count)
    return tuple(
        FilesAside(code=code, reasons=reasons, files=len(counts), rows=sum(counts))
        for (code, reasons), counts in rows.items()
    )


@dataclass(frozen=True, slots=True)
class EntryName:
    """The entry and the journal that a meta of ours announces."""

    pipeline: str
    journal: str
    sequence: int


def entry_named_by(meta: Meta) -> EntryName | None:
    """Return which entry a meta belongs to; None for the meta of another program."""
    if meta.pipeline is None or meta.journal is None or meta.entry is None:
        return None
    return EntryName(meta.pipeline, meta.journal, meta.entry)


def encode_meta(meta: Meta) -> bytes:
    """Write a meta; the same file always gives the same bytes."""
    return json.dumps(asdict(meta), indent=2, ensure_ascii=False).encode() + b"\n"


def decode_meta(body: bytes, path: str) -> Meta:
    """Read a meta of whichever program; keys that we do not know are no fault."""
    return validated(Meta, body, path, what="meta")


def decode_held(body: bytes, path: str) -> HeldMeta:
    """Read the meta of a file that was set aside."""
    return validated(HeldMeta, body, path, what="meta")
