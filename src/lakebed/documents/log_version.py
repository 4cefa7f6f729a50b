"""What one version of a Delta log says, or a part of one of its checkpoints. Values only."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

PartitionValues = tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedFile:
    """A data file that is added."""

    name: str
    """Its name in the store, relative to the table."""
    written: str
    """Its name as the log writes it, without escapes: another spelling is another file."""
    size: int
    rows: int | None
    """By its statistics, deleted ones included; None where there are none."""
    deleted: int = 0
    """Rows that a deletion vector hides."""
    partition_values: PartitionValues = ()
    """Sorted by column."""
    data_change: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedFile:
    """A data file that is removed."""

    name: str
    data_change: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledEntries:
    """The entries of one journal that a commit of penguin's settles."""

    pipeline: str
    journal: str
    first: int
    last: int
    forgotten: tuple[int, int] | None = None
    """Those of them whose files are left out because an operator ordered it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableShape:
    """What a table is from a version on."""

    schema: Mapping[str, Any]
    partition_columns: tuple[str, ...]
    hidden: frozenset[str] = frozenset()
    """Columns that are not in the schema any more, or not all of them, and are in its files."""
    names: Mapping[str, str] = field(default_factory=dict)
    """What the log calls partition columns, where the table maps its columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogVersion:
    """One version of a log, or a part of the checkpoint that stands for all up to it."""

    version: int
    is_checkpoint: bool = False
    operation: str | None = None
    writer: str | None = None
    is_ours: bool = False
    """Whether penguin made it."""
    overwrites: bool = False
    """Whether it says that it replaces what was in the table."""
    settles: tuple[SettledEntries, ...] = ()
    adopts: bool = False
    """Whether it made a table of files that were there already."""
    replays: int | None = None
    """The RESTORE whose removals it puts back."""
    rows_deleted: int | None = None
    """The rows that a MERGE says it deleted: it may have inserted as many."""
    adds: tuple[LoggedFile, ...] = ()
    removes: tuple[RemovedFile, ...] = ()
    transactions: Mapping[str, int] = field(default_factory=dict)
    shape: TableShape | None = None
    """What the table is from now on; None where that stays as it was."""

    @property
    def changes_data(self) -> bool:
        """Whether it says that it changes rows, and does not only move them."""
        added = any(one.data_change for one in self.adds)
        return added or any(one.data_change for one in self.removes)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogHistory:
    """A log, as far back as it can be read."""

    first: int
    """The first version that is read by itself."""
    last: int
    gone: tuple[int, ...]
    """Versions that are missing though nothing stands for them: the table cannot be read."""
    versions: Iterator[LogVersion]
    """What a checkpoint holds, in parts, and then each version; nothing where some are gone."""
