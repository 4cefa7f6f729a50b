"""A loss of rows that an operator has accepted: one document for a version of the Delta log."""

from dataclasses import dataclass
from typing import Literal

from lakebed.documents.reading import adapter_of, validated


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The rows that one version of another writer took away, and why that is right."""

    format: Literal[1] = 1
    version: int
    operation: str | None
    writer: str | None
    """Who committed the version, as the log has it."""
    rows: int
    files: tuple[str, ...]
    """The files whose rows they were, below the table, sorted."""
    reason: str
    created: str


def encode_accepted(document: Accepted) -> bytes:
    """Write a document, a line of JSON that ends in a newline."""
    return adapter_of(Accepted).dump_json(document) + b"\n"


def decode_accepted(body: bytes, path: str) -> Accepted:
    """Read a document; one that cannot be read is an error, never nothing that was accepted."""
    remedy = "; restore it from a backup, or delete it and accept the version again"
    return validated(Accepted, body, path, what="document", remedy=remedy)
