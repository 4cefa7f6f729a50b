"""Upkeep of a Delta log: a checkpoint when one is due, and no versions beyond their time.

Neither is part of a commit: what fails here is told, tried again later, and colours no commit.
"""

import json
from dataclasses import dataclass

from lake.clock import Clock
from lake.errors import LakeError
from lake.layout import DELTA_LOG, LAST_CHECKPOINT, log_version_number
from lake.storage import Reader, Store
from lake.telemetry.events import Emit
from penguin.events import CheckpointFailed, CheckpointWritten, LogCleanedUp, LogCleanUpFailed
from penguin.flow import TableFacts
from penguin.table import Log, Table

CLEAN_UP_SECS = 86_400.0
"""Between two clean-ups of a table: each lists the whole log."""
CLEANS_UP = "delta.enableExpiredLogCleanup"


@dataclass(slots=True, kw_only=True)
class Upkeep:
    """What a table's log needs beside its commits."""

    table: str
    checkpoint_interval: int
    emit: Emit
    clock: Clock
    _cleaned_up: float | None = None
    _not_due: int | None = None
    """The version at which no checkpoint was due: it is not asked for again."""

    def see_to(self, log: Log, store: Store, version: int) -> None:
        """Write a checkpoint of the last version if one is due, then remove what has expired."""
        if version == self._not_due:
            return
        try:
            if version - last_checkpoint(store) < self.checkpoint_interval:
                self._not_due = version
                return
            table = log.open()
            if table is None:
                return
            table.checkpoint()
        except LakeError as error:
            self.emit(CheckpointFailed(table=self.table, version=version, error=str(error)))
            return
        self._not_due = version
        self.emit(CheckpointWritten(table=self.table, version=table.version))
        if removes_expired(table.facts) and self._is_time():
            self._clean_up(table, store)

    def _is_time(self) -> bool:
        now = self.clock.seconds()
        return self._cleaned_up is None or now - self._cleaned_up >= CLEAN_UP_SECS

    def _clean_up(self, table: Table, store: Store) -> None:
        try:
            before = first_version(store)
            table.remove_expired()
            after = first_version(store)
        except LakeError as error:
            self.emit(LogCleanUpFailed(table=self.table, error=str(error)))
            return
        self._cleaned_up = self.clock.seconds()
        if before is not None and after is not None and after > before:
            self.emit(LogCleanedUp(table=self.table, first=after, removed=after - before))


def removes_expired(table: TableFacts) -> bool:
    """Say whether the table lets its writers remove old versions, as Delta does unless told."""
    return table.configuration.get(CLEANS_UP, "true").lower() != "false"


def first_version(store: Reader) -> int | None:
    """Give the oldest version that is still in the log."""
    numbers = (log_version_number(facts.path) for facts in store.in_order(DELTA_LOG))
    return next((number for number in numbers if number is not None), None)


def last_checkpoint(store: Reader) -> int:
    """Give the version of the last checkpoint, -1 where there is none or its note is torn.

    The note only helps readers to start; a new checkpoint mends it.
    """
    body = store.get(LAST_CHECKPOINT)
    try:
        return -1 if body is None else int(json.loads(body)["version"])
    except (ValueError, KeyError, TypeError):
        return -1
