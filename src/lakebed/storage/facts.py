"""What a store says of an object: a plain value, which asks no store anything."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectFacts:
    """What a listing or a HEAD says of an object."""

    path: str
    size: int
    etag: str | None
    modified: datetime
