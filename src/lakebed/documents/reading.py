"""A stored document becomes a value, or an error that names the object and what is wrong in it."""

import json
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from lakebed.errors import DocumentUnreadable

Document = TypeVar("Document")


def parse_json(text: str | bytes) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Return the value of a JSON text; a ValueError says that it has none."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def validated(
    adapter: TypeAdapter[Document], body: bytes, path: str, *, what: str, remedy: str = ""
) -> Document:
    """Return the value of a document; raise a DocumentUnreadable where it has none."""
    try:
        return adapter.validate_json(body)
    except ValidationError as invalid:
        first = invalid.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the document"
        raise DocumentUnreadable(
            f"this {what} cannot be read: {where}: {first['msg']}{remedy}", path=path
        ) from invalid
