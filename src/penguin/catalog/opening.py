"""Opening a catalog by its type; its library is loaded only then."""

from penguin.catalog.catalog import Catalog
from penguin.model.catalog import CatalogSettings


def open_catalog(settings: CatalogSettings) -> Catalog:
    """Open the catalog that a table is registered in."""
    from penguin.catalog.glue import GlueCatalog  # noqa: PLC0415

    return GlueCatalog(settings)
