"""Opening a catalog by its type; its library is loaded only then."""

from lakebed.types import CatalogType
from penguin.catalog.catalog import Catalog
from penguin.model.catalog import CatalogSettings


def open_catalog(settings: CatalogSettings) -> Catalog:
    """Open the catalog that a table is registered in."""
    match settings.type:
        case CatalogType.GLUE:
            from penguin.catalog.glue import GlueCatalog  # noqa: PLC0415

            return GlueCatalog(settings)
        case CatalogType.HIVE:
            from penguin.catalog.hive import HiveCatalog  # noqa: PLC0415

            return HiveCatalog(settings)
