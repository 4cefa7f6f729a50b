"""Keeping a table registered in its catalog, beside its commits and never in their way.

A thread of its own asks the catalog, one at a time. What is seen meanwhile is told next. Whatever
goes wrong is reported and tried again later, at a poll or after a commit.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from random import random

from lakebed.clock import Clock
from lakebed.deltalog.delta_types import TableFacts
from lakebed.errors import LakeError
from lakebed.retry import Backoff
from lakebed.telemetry.events import Emit
from lakebed.types import CatalogType
from penguin.catalog.catalog import Catalog, register
from penguin.events.commits import TableNotRegistered, TableRegistered
from penguin.model.catalog import CatalogSettings

BACKOFF = Backoff(first_secs=10, limit_secs=600)
CHECK_SECS = 3600.0
"""After so long a table that was registered is looked at again: somebody may have dropped it."""

OpenCatalog = Callable[[CatalogSettings], Catalog]


def open_catalog(settings: CatalogSettings) -> Catalog:
    """Open the catalog that a table is registered in; its library is loaded only then."""
    match settings.type:
        case CatalogType.GLUE:
            from penguin.catalog.glue import GlueCatalog  # noqa: PLC0415

            return GlueCatalog(settings)
        case CatalogType.HIVE:
            from penguin.catalog.hive import HiveCatalog  # noqa: PLC0415

            return HiveCatalog(settings)


@dataclass(slots=True, kw_only=True)
class Registrar:
    """One table and its catalog."""

    table: str
    table_uri: str
    settings: CatalogSettings
    open_catalog: OpenCatalog
    emit: Emit
    clock: Clock
    backoff: Backoff = BACKOFF
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _thread: threading.Thread | None = None
    _done: tuple[object, ...] | None = None
    """The shape of the table that the catalog has."""
    _failures: int = 0
    _next: float = 0.0
    """Before that time nothing is tried, unless the table changes after a success."""

    def see(self, facts: TableFacts) -> None:
        """Have the catalog say what a table is now, if it does not, soon, and not in this call."""
        with self._lock:
            now = self.clock.seconds()
            is_new = self._failures == 0 and facts.shape() != self._done
            if self._thread is not None or not (is_new or now >= self._next):
                return
            self._thread = threading.Thread(
                target=self._run, args=(facts,), name=f"catalog-{self.table}", daemon=True
            )
            self._thread.start()

    def finish(self, facts: TableFacts | None = None, *, secs: float = 30.0) -> None:
        """Wait for what is under way, and try once more what is not done; for a while at most."""
        self._join(secs)
        if facts is not None and facts.shape() != self._done and self._failures == 0:
            self.see(facts)
            self._join(secs)

    def _join(self, secs: float) -> None:
        thread = self._thread
        if thread is not None:
            thread.join(secs)

    def _run(self, facts: TableFacts) -> None:
        try:
            changed = self._register(facts)
        except Exception as error:  # noqa: BLE001 - nothing of a catalog may end a run
            self._failed(error)
            return
        with self._lock:
            first = self._done is None or self._failures > 0
            self._done, self._failures = facts.shape(), 0
            self._next, self._thread = self.clock.seconds() + CHECK_SECS, None
        if changed or first:
            self.emit(
                TableRegistered(
                    table=self.table,
                    catalog=self.settings.type,
                    name=self.settings.name,
                    changed=changed,
                )
            )

    def _register(self, facts: TableFacts) -> bool:
        catalog = self.open_catalog(self.settings)
        try:
            return register(catalog, self.settings, facts, self.table_uri)
        finally:
            catalog.close()

    def _failed(self, error: Exception) -> None:
        with self._lock:
            self._failures += 1
            wait = self.backoff.wait(self._failures, random)
            self._next, self._thread = self.clock.seconds() + wait, None
        told = str(error) if isinstance(error, LakeError) else type(error).__name__
        self.emit(
            TableNotRegistered(
                table=self.table,
                catalog=self.settings.type,
                name=self.settings.name,
                code=error.code if isinstance(error, LakeError) else "catalog_unavailable",
                error=told,
                next_secs=wait,
            )
        )
