"""The metas of the staging hand-off: one small document per data file, written last.

The first five keys are all that another program needs to write or read. Ours come after them and
name the journal entry that the file belongs to.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from pydantic import TypeAdapter, ValidationError

from lake.errors import DocumentUnreadable


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


@dataclass(frozen=True, slots=True)
class EntryName:
    """Which entry of which journal a meta of ours rings for."""

    pipeline: str
    journal: str
    sequence: int


def entry_named_by(meta: Meta) -> EntryName | None:
    """Say which entry a meta belongs to; None for the meta of another program."""
    if meta.pipeline is None or meta.journal is None or meta.entry is None:
        return None
    return EntryName(meta.pipeline, meta.journal, meta.entry)


def encode_meta(meta: Meta) -> bytes:
    """Write a meta; the same file always gives the same bytes."""
    return json.dumps(asdict(meta), indent=2, ensure_ascii=False).encode() + b"\n"


def decode_meta(body: bytes, path: str) -> Meta:
    """Read a meta of whichever program; keys that we do not know are no fault."""
    try:
        return _META.validate_json(body)
    except ValidationError as invalid:
        first = invalid.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the document"
        raise DocumentUnreadable(
            f"this meta cannot be read: {where}: {first['msg']}", path=path
        ) from invalid


_META = TypeAdapter(Meta)
