"""Decode stored documents, or raise an error that names the object and the fault."""

import json
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from lakebed.errors import DocumentUnreadable

Document = TypeVar("Document")

_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {}


def parse_json(text: str | bytes) -> Any:  # noqa: ANN401 - any JSON value
    """Parse JSON; raise ValueError also if it is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def adapter_of(kind: type[Document]) -> TypeAdapter[Document]:
    """Return the adapter for documents of a kind; it is built on first use."""
    found: TypeAdapter[Document] | None = _ADAPTERS.get(kind)
    if found is None:
        found = _ADAPTERS[kind] = TypeAdapter(kind)
    return found


def encode_document(document: object) -> bytes:
    """Encode a document as a line of JSON."""
    return adapter_of(type(document)).dump_json(document) + b"\n"


def validated(
    kind: type[Document], body: bytes, path: str, *, what: str, remedy: str = ""
) -> Document:
    """Decode a document; raise DocumentUnreadable if it is invalid."""
    try:
        return adapter_of(kind).validate_json(body)
    except ValidationError as invalid:
        first = invalid.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the document"
        raise DocumentUnreadable(
            f"this {what} cannot be read: {where}: {first['msg']}{remedy}", path=path
        ) from invalid
