"""The metas in `_staging/`: one small document per data file.

Those in `pending/` are the staging hand-off, written last. Other programs need only the first five
keys. Ours follow and name the journal entry of the file. Those in `held/` are penguin's, of held
files with the reasons; those in `discarded/` are of files that an operator gave up.
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
    """The source file's URI; None if several share the data file."""
    source_files: tuple[str, ...] = ()
    """The URIs of all source files with rows in it."""
    pipeline: str | None = None
    journal: str | None = None
    entry: int | None = None


class HeldState(IntEnum):
    """The mark in the log of a held file, or of a rejected entry."""

    HELD = 0
    RELEASED = 1
    GONE = 2
    """Discarded, or superseded by new files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldMeta(Meta):
    """One held data file, with the reasons.

    Its `source_files` are those of the entry: keys, not URIs.
    """

    code: str
    reasons: tuple[str, ...]
    unit: str | None = None
    """The work unit that wrote it; its files stand or fall together."""
    held_at: str
    """When it was held, in ISO 8601."""

    @property
    def name(self) -> str:
        """Return the name by which the file is held."""
        return file_name(self.filename)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldFileCounts:
    """The counts of held files with the same reasons."""

    code: str
    reasons: tuple[str, ...]
    files: int
    rows: int


def by_reason(metas: Iterable[HeldMeta]) -> tuple[HeldFileCounts, ...]:
    """Group held files by reasons."""
    rows: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for meta in metas:
        rows.setdefault((meta.code, meta.reasons), []).append(meta.record_count)
    return tuple(
        HeldFileCounts(code=code, reasons=reasons, files=len(counts), rows=sum(counts))
        for (code, reasons), counts in rows.items()
    )


@dataclass(frozen=True, slots=True)
class EntryName:
    """The name of a journal entry, as a meta of ours has it."""

    pipeline: str
    journal: str
    sequence: int


def entry_named_by(meta: Meta) -> EntryName | None:
    """Return the entry of a meta; None for the meta of another program."""
    if meta.pipeline is None or meta.journal is None or meta.entry is None:
        return None
    return EntryName(meta.pipeline, meta.journal, meta.entry)


def encode_meta(meta: Meta) -> bytes:
    """Encode a meta; the same file always gives the same bytes."""
    return json.dumps(asdict(meta), indent=2, ensure_ascii=False).encode() + b"\n"


def decode_meta(body: bytes, path: str) -> Meta:
    """Decode a meta of any program; ignore unknown keys."""
    return validated(Meta, body, path, what="meta")


def decode_held(body: bytes, path: str) -> HeldMeta:
    """Decode the meta of a held file."""
    return validated(HeldMeta, body, path, what="meta")
