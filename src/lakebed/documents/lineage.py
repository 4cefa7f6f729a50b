"""Where a journal that takes the place of another has its knowledge of source files from."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """The journal that a new one takes its knowledge of source files from."""

    pipeline: str
    journal: str
    sequence: int
    """Its last entry whose knowledge is taken over."""
    digest: str
    entries: int
    """How many `inherited` entries follow entry 0; without them all the journal is not begun."""
    since: Mapping[str, str] = field(default_factory=dict)
    """When each source was first read, by its name: a lookback counts from there."""
