"""What one process knows by itself, and why a request was not answered, as documents. Pure."""

from dataclasses import dataclass, field
from typing import Literal

from liveview.model import CurrentBatch, Problem, State


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a request was not answered."""

    code: str
    message: str
    way_out: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The document of every answer that is not 200."""

    error: Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelinePart:
    """What one process of blizzard knows of a pipeline that it runs."""

    state: State
    problem: Problem | None = None
    current_batch: CurrentBatch | None = None
    next_look_at: str | None = None
    waiting_files: int | None = None
    oldest_waiting_at: str | None = None
    changed_files: dict[str, int] = field(default_factory=dict)
    """Files that changed after they were ingested and are not read, by source."""
    changes: int = 0
    """Rises when something has happened that journal or log tell of."""
    batch_secs: dict[str, float] = field(default_factory=dict)
    """How long the last batches took, by their entries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePart:
    """What one process knows of a table that it commits to."""

    state: State
    problems: list[Problem] = field(default_factory=list)
    next_look_at: str | None = None
    waiting_entries: int | None = None
    changes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """What one process knows by itself; a process of the other program asks for it."""

    program: Literal["blizzard", "penguin"]
    version: str
    started_at: str
    pipelines: dict[str, PipelinePart]
    tables: dict[str, TablePart]
