"""The catalog interface, and the one step that registers a table."""

import re
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from random import random
from typing import Any, Protocol

from lakebed.clock import Clock
from lakebed.deltalog.delta_types import TableFacts
from lakebed.errors import LakeError, Whose
from lakebed.retry import Backoff
from lakebed.telemetry.events import Emit
from lakebed.types import CatalogType
from penguin.events.commits import TableNotRegistered, TableRegistered
from penguin.model.settings import CatalogSettings


class CatalogUnavailable(
    LakeError, code="catalog_unavailable", whose=Whose.EXTERNAL, retryable=True
):
    """The catalog does not answer, or cannot at present."""


class CatalogDenied(LakeError, code="catalog_denied", whose=Whose.EXTERNAL):
    """The catalog denied access: credentials or permissions."""


class CatalogMissing(LakeError, code="catalog_missing", whose=Whose.USER):
    """The catalog has no such database."""


class CatalogConflict(LakeError, code="catalog_conflict", whose=Whose.USER):
    """The catalog has another table of that name."""


@dataclass(frozen=True, slots=True)
class CatalogColumn:
    """A column in the types of catalogs."""

    name: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEntry:
    """A catalog's description of a table, wanted or found."""

    location: str
    columns: tuple[CatalogColumn, ...]
    parameters: Mapping[str, str] = field(default_factory=dict)


PARAMETERS = {
    "EXTERNAL": "TRUE",
    "spark.sql.sources.provider": "delta",
    "table_type": "DELTA",
}
"""The parameters by which Spark, Athena and Trino recognise a Delta table."""
PLAIN = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "timestamp_ntz": "timestamp",
    **dict.fromkeys(("float", "double", "string", "boolean", "binary", "date", "timestamp")),
}
INPUT = "org.apache.hadoop.mapred.SequenceFileInputFormat"
OUTPUT = "org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat"
SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
"""Spark's value for tables whose files Hive must not read."""
DECIMAL = re.compile(r"decimal\(\d+,\s*-?\d+\)")
NAME = re.compile(r"\w+")
UNKNOWN = "string"
"""Replaces a type that catalogs do not have."""
SAME_STORE = re.compile(r"^(s3a|s3n)://")


def wanted(table: TableFacts, location: str) -> TableEntry:
    """Return the description that a catalog should have of a table."""
    return TableEntry(
        location=location,
        columns=tuple(
            CatalogColumn(str(field["name"]).lower(), hive_type(field["type"]))
            for field in table.schema["fields"]
        ),
        parameters=PARAMETERS,
    )


def hive_type(kind: object) -> str:
    """Return a Delta type as Hive, Glue and Athena spell it."""
    match kind:
        case str() if kind in PLAIN:
            return PLAIN[kind] or kind
        case str() if DECIMAL.fullmatch(kind):
            return kind.replace(" ", "")
        case {"type": "array", "elementType": element}:
            return f"array<{hive_type(element)}>"
        case {"type": "map", "keyType": key, "valueType": value}:
            return f"map<{hive_type(key)},{hive_type(value)}>"
        case {"type": "struct", "fields": list(fields)} if all(map(_is_plain, fields)):
            inner = (f"{field['name'].lower()}:{hive_type(field['type'])}" for field in fields)
            return f"struct<{','.join(inner)}>"
    return UNKNOWN


def _is_plain(field: Mapping[str, Any]) -> bool:
    return NAME.fullmatch(str(field["name"])) is not None


def differs(found: TableEntry, want: TableEntry, *, name: str) -> bool:
    """Whether a catalog must be updated; CatalogConflict if another table has the name."""
    if _place(found.location) != _place(want.location):
        raise CatalogConflict(
            f"the catalog has a table {name} at another place; drop it there, or set "
            "catalog.table to another name",
            location=found.location,
        )
    if not _is_delta(found):
        raise CatalogConflict(
            f"the catalog has a table {name} that is not a Delta table; drop it there, or set "
            "catalog.table to another name"
        )
    given = {key: found.parameters.get(key, "") for key in want.parameters}
    same = all(given[key].lower() == value.lower() for key, value in want.parameters.items())
    return not same or found.columns != want.columns


def _is_delta(found: TableEntry) -> bool:
    keys = ("spark.sql.sources.provider", "table_type", "classification")
    return any(found.parameters.get(key, "").lower() == "delta" for key in keys)


def _place(location: str) -> str:
    """Normalise a location, so that two spellings of one place are equal."""
    plain = SAME_STORE.sub("s3://", location.rstrip("/"))
    return re.sub(r"^file:/*", "/", plain)


TRIES = 3


class AlreadyRegistered(Exception):
    """Another writer has registered or changed the table since it was read."""


class CatalogTable(Protocol):
    """One table of a catalog. Errors are those of this module."""

    def find(self) -> TableEntry | None:
        """Return the catalog's description; None if it does not know the table."""

    def create(self, entry: TableEntry) -> None:
        """Register the table; AlreadyRegistered if it exists by now."""

    def update(self, entry: TableEntry) -> None:
        """Update the description that `find` read, and keep what others added.

        AlreadyRegistered if another writer has changed it meanwhile.
        """

    def close(self) -> None:
        """Close connections."""


def register(catalog: CatalogTable, settings: CatalogSettings, table: TableFacts, uri: str) -> bool:
    """Register or update a table in a catalog; return whether anything changed.

    It is idempotent, and safe under concurrency.
    """
    entry = wanted(table, settings.location or uri)
    for left in reversed(range(TRIES)):
        found = catalog.find()
        if found is not None and not differs(found, entry, name=settings.name):
            return False
        try:
            (catalog.create if found is None else catalog.update)(entry)
        except AlreadyRegistered:
            if not left:
                raise
        else:
            return True
    raise AssertionError("unreachable")


BACKOFF = Backoff(first_secs=10, limit_secs=600)
CHECK_SECS = 3600.0
"""Interval between checks of a registered table: it may have been dropped."""

OpenCatalog = Callable[[CatalogSettings], CatalogTable]


def open_catalog(settings: CatalogSettings) -> CatalogTable:
    """Open the catalog of a table; load its library only then."""
    match settings.type:
        case CatalogType.GLUE:
            from penguin.catalog.glue import GlueCatalog  # noqa: PLC0415

            return GlueCatalog(settings)
        case CatalogType.HIVE:
            from penguin.catalog.hive import HiveCatalog  # noqa: PLC0415

            return HiveCatalog(settings)


@dataclass(slots=True, kw_only=True)
class Registrar:
    """Keeps the catalog's description of one table current."""

    table: str
    table_uri: str
    settings: CatalogSettings
    emit: Emit
    clock: Clock
    open_catalog: OpenCatalog | None = None
    _thread: threading.Thread | None = None
    _done: tuple[object, ...] | None = None
    """The table shape that is registered."""
    _failures: int = 0
    _next: float = 0.0
    """No attempt is made before this time, unless the table changes after a success."""

    def see(self, facts: TableFacts) -> None:
        """Start updating the catalog in a thread if the table changed or a check is due."""
        if self._thread is not None and self._thread.is_alive():
            return
        is_new = self._failures == 0 and facts.shape() != self._done
        if is_new or self.clock.seconds() >= self._next:
            self._thread = threading.Thread(
                target=self._run, args=(facts,), name=f"catalog-{self.table}", daemon=True
            )
            self._thread.start()

    def finish(self, facts: TableFacts | None = None, *, secs: float = 30.0) -> None:
        """Wait for the update in progress, then for that of the last facts, up to `secs` each."""
        for last in (None, facts):
            if last is not None:
                self.see(last)
            if self._thread is not None:
                self._thread.join(secs)

    def _run(self, facts: TableFacts) -> None:
        try:
            with closing((self.open_catalog or open_catalog)(self.settings)) as catalog:
                changed = register(catalog, self.settings, facts, self.table_uri)
        except Exception as error:  # noqa: BLE001 - no catalog error may end a run
            self._failed(error)
            return
        first = self._done is None or self._failures > 0
        self._done, self._failures = facts.shape(), 0
        self._next = self.clock.seconds() + CHECK_SECS
        if changed or first:
            self.emit(
                TableRegistered(
                    table=self.table,
                    catalog=self.settings.type,
                    name=self.settings.name,
                    changed=changed,
                )
            )

    def _failed(self, error: Exception) -> None:
        self._failures += 1
        wait = BACKOFF.wait(self._failures, random)
        self._next = self.clock.seconds() + wait
        known = isinstance(error, LakeError)
        self.emit(
            TableNotRegistered(
                table=self.table,
                catalog=self.settings.type,
                name=self.settings.name,
                code=error.code if isinstance(error, LakeError) else "catalog_unavailable",
                error=str(error) if known else type(error).__name__,
                next_secs=wait,
            )
        )
