"""A stored document becomes a value, or an error that names the object and what is wrong in it."""

import json
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from lakebed.errors import DocumentUnreadable

Document = TypeVar("Document")

_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {}


def parse_json(text: str | bytes) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value of a JSON text; a ValueError says that it has none."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def adapter_of(kind: type[Document]) -> TypeAdapter[Document]:
    """Return what reads and writes documents of a kind; it is built when it is first asked for."""
    found: TypeAdapter[Document] | None = _ADAPTERS.get(kind)
    if found is None:
        found = _ADAPTERS[kind] = TypeAdapter(kind)
    return found


def encode_document(document: object) -> bytes:
    """Write a document, a line of JSON that ends in a newline."""
    return adapter_of(type(document)).dump_json(document) + b"\n"


def validated(
    kind: type[Document], body: bytes, path: str, *, what: str, remedy: str = ""
) -> Document:
    """Return the value of a document; raise a DocumentUnreadable where it has none."""
    try:
        return adapter_of(kind).validate_json(body)
    except ValidationError as invalid:
        first = invalid.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the document"
        raise DocumentUnreadable(
            f"this {what} cannot be read: {where}: {first['msg']}{remedy}", path=path
        ) from invalid
