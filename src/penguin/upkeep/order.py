"""The order to vacuum a table: its guards, the files, and what the table's history says of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from lakebed.clock import Clock
from lakebed.deltalog.retention import DELTA_DEFAULT, RETENTION_PROPERTY, parse_interval
from lakebed.deltalog.snapshot import LogReader, Snapshot
from lakebed.errors import CommitFailed, LakeError, TableUnsupported, Whose
from lakebed.storage.store import Reader, Store
from penguin.delta.table import Log
from penguin.delta.version import NextVersion
from penguin.model.settings import TableSettings
from penguin.upkeep.log_needs import refuse_unknown
from penguin.upkeep.vacuum import Deleted, Found, Kept, Vacuum, store_time

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
START, END = "VACUUM START", "VACUUM END"


class VacuumRefused(LakeError):
    """Files would be deleted that the table promises to keep."""

    code = "vacuum_refused"
    whose = Whose.USER


@dataclass(frozen=True, slots=True, kw_only=True)
class Vacuumed:
    """What a vacuum did, or would do."""

    version: int
    """The version of the table whose files, and those of versions before it, were looked at."""
    versions: int
    """How many versions can be read afterwards, by what the retention keeps."""
    cutoff: datetime
    retention: timedelta
    """What the table says."""
    found: Found
    """What may go; of a vacuum that deletes, what is gone."""
    kept: Mapping[Kept, int]
    deleted: Deleted | None = None
    """None where nothing was to be deleted."""
    recorded: bool = False
    """Whether the table's history has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumOrder:
    """An order to vacuum one table."""

    settings: TableSettings
    clock: Clock = field(default_factory=Clock)
    older_than: timedelta | None = None
    """How old files must be; None for what the table says."""
    ignore_retention: bool = False
    """Whether that may be less than what the table says."""

    def look(self, store: Reader) -> Vacuumed | None:
        """Return what would be deleted; None where there is no table. Nothing is written."""
        return self._look(store, self.clock.now())

    def carry_out(self, store: Store) -> Vacuumed | None:
        """Delete what may go, and return what was deleted; None where there is no table.

        Killed at any moment, it is finished by the next one.
        """
        table = LogReader(store).look()
        if table is None:
            return None
        keeps, older_than = self._age(table)  # A refused order writes nothing.
        now = store_time(store, self.clock.now())
        seen = self._look(store, now)
        if seen is None or not seen.found.files:
            return seen
        started = self._record(store, START, _parameters(keeps, older_than), _to_do(seen.found))
        # Read again: what was looked at may have changed while the folders were listed.
        vacuum = Vacuum.of(self.settings, store, before(now, older_than))
        done = vacuum.delete(store)
        if started:
            status = "COMPLETED" if not done.failed else "FAILED"
            self._record(store, END, {"status": status}, _done(done))
        return Vacuumed(
            version=seen.version,
            versions=seen.versions,
            cutoff=seen.cutoff,
            retention=keeps,
            found=done.found,
            kept=dict(vacuum.kept),
            deleted=done,
            recorded=started,
        )

    def _look(self, store: Reader, now: datetime) -> Vacuumed | None:
        table = LogReader(store).look()
        if table is None:
            return None
        refuse_unknown(table)
        keeps, older_than = self._age(table)
        vacuum = Vacuum.of(self.settings, store, before(now, older_than))
        found = vacuum.look()
        return Vacuumed(
            version=vacuum.needs.version,
            versions=vacuum.needs.versions,
            cutoff=vacuum.cutoff,
            retention=keeps,
            found=found,
            kept=dict(vacuum.kept),
        )

    def _age(self, table: Snapshot) -> tuple[timedelta, timedelta]:
        """Return how long the table keeps files, and how old they must be for this order."""
        keeps = retention(table.facts.configuration, table.store.uri)
        older_than = keeps if self.older_than is None else self.older_than
        if older_than < keeps and not self.ignore_retention:
            raise VacuumRefused(
                f"the table keeps files for {_days(keeps)} ({RETENTION_PROPERTY}), and files that "
                f"are {_days(older_than)} old may still be read by a running query, by time "
                "travel, or be committed by a writer; add --ignore-retention if you know that "
                "nobody does",
                table=table.store.uri,
            )
        return keeps, older_than

    def _record(
        self, store: Store, operation: str, parameters: dict[str, str], metrics: dict[str, str]
    ) -> bool:
        """Write into the table's history what is done; return whether that was possible.

        It is for people. A table that penguin does not write is vacuumed without it.
        """
        try:
            table = Log(store).open()
            if table is None:
                return False
            table.append(
                NextVersion(
                    operation=operation,
                    metadata={"step": "vacuum"},
                    at=self.clock.now(),
                    parameters=parameters,
                    metrics=metrics,
                    blind=True,
                )
            )
        except (TableUnsupported, CommitFailed):
            return False
        return True


def retention(configuration: Mapping[str, str], table: str) -> timedelta:
    """Return how long a table keeps removed files, by what it says to the letter."""
    text = configuration.get(RETENTION_PROPERTY)
    keeps = DELTA_DEFAULT if text is None else parse_interval(text)
    if keeps is None:
        raise VacuumRefused(
            f"{RETENTION_PROPERTY} is {text!r}, which Delta cannot read; write it as "
            "`interval 7 days`",
            table=table,
        )
    return keeps


def before(now: datetime, span: timedelta) -> datetime:
    """Return the time so long ago; no file is older than the epoch, however long that is."""
    return EPOCH if span > now - EPOCH else now - span


def _days(span: timedelta) -> str:
    hours = span.total_seconds() / 3600
    if hours == 1:
        return "1 hour"
    return f"{hours:g} hours" if hours < 48 else f"{hours / 24:g} days"


def _parameters(keeps: timedelta, older_than: timedelta) -> dict[str, str]:
    """Return what Spark says of a vacuum."""
    return {
        "retentionCheckEnabled": "true" if older_than >= keeps else "false",
        "defaultRetentionMillis": str(keeps // timedelta(milliseconds=1)),
        "specifiedRetentionMillis": str(older_than // timedelta(milliseconds=1)),
    }


def _to_do(found: Found) -> dict[str, str]:
    return {"numFilesToDelete": str(found.files), "sizeOfDataToDelete": str(found.bytes)}


def _done(done: Deleted) -> dict[str, str]:
    return {"numDeletedFiles": str(done.found.files), "numVacuumedDirectories": "0"}
