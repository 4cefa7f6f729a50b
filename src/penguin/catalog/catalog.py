"""What is asked of a catalog, whichever it is; and the one step that registers a table in it."""

from typing import Protocol

from penguin.catalog.entry import differs, wanted
from penguin.model.catalog import CatalogSettings, CatalogState, TableEntry
from penguin.model.table import TableFacts

TRIES = 3


class AlreadyRegistered(Exception):
    """Somebody else has registered the table, or changed it, since it was looked at."""


class Catalog(Protocol):
    """One table of a catalog. Errors are those of `penguin.model.catalog`."""

    def find(self) -> TableEntry | None:
        """Return what the catalog says; None where it does not know the table."""

    def create(self, entry: TableEntry) -> None:
        """Register the table; AlreadyRegistered where it is there by now."""

    def update(self, entry: TableEntry) -> None:
        """Change what was found; what others have added to it stays.

        AlreadyRegistered where somebody else has changed it meanwhile.
        """

    def close(self) -> None:
        """Let go of connections."""


def register(catalog: Catalog, settings: CatalogSettings, table: TableFacts, uri: str) -> bool:
    """Let a catalog say what it should of a table; return whether anything had to be changed.

    Repeating it changes nothing, and two at once come to the same.
    """
    entry = wanted(table, settings.location or uri)
    for attempt in range(TRIES):
        found = catalog.find()
        if found is not None and not differs(found, entry, name=settings.name):
            return False
        try:
            if found is None:
                catalog.create(entry)
            else:
                catalog.update(entry)
        except AlreadyRegistered:
            if attempt == TRIES - 1:
                raise
            continue
        return True
    raise AssertionError("unreachable")


def state_in(
    catalog: Catalog, settings: CatalogSettings, table: TableFacts, uri: str
) -> CatalogState:
    """Return what a catalog says of a table. Nothing is changed."""
    found = catalog.find()
    if found is None:
        return CatalogState.MISSING
    changed = differs(found, wanted(table, settings.location or uri), name=settings.name)
    return CatalogState.OUTDATED if changed else CatalogState.REGISTERED
