"""Catalogs that tables are registered in: what a configuration may say of them. Pure."""

import re
from collections.abc import Iterator
from importlib.util import find_spec

from lakebed.config.faults import Fault
from lakebed.config.models import Catalog, Document, KeyPath, Table, plain
from lakebed.config.profiles import options_at
from lakebed.storage.options import StorageOptions
from lakebed.types import CatalogType
from penguin.model.catalog import CatalogSettings

METASTORE = re.compile(r"thrift://[\w.-]+:\d+|thrift://\[[0-9a-fA-F:]+\]:\d+")
NAME = re.compile(r"[a-z0-9_]{1,128}")
NEEDS = {CatalogType.GLUE: ("botocore", "glue"), CatalogType.HIVE: ("thriftpy2", "hive")}
"""The library that a catalog is reached by, and the extra that brings it."""


def faults(path: KeyPath, name: str, given: Catalog | None) -> Iterator[Fault]:
    """Yield what is wrong with the catalog of a table."""
    if given is None:
        return
    library, extra = NEEDS[given.type]
    if find_spec(library) is None:
        message = f"needs the package {library}: pip install 'blizzard-penguin[{extra}]'"
        yield Fault(path, message, near=())
    if given.table is None and not NAME.fullmatch(name):
        yield Fault(
            (*path, "table"),
            f"is missing, and {name} is no name for a table of a catalog: lower-case letters, "
            "digits and _",
        )
    if given.type is CatalogType.HIVE:
        if given.uri is None or not METASTORE.fullmatch(given.uri):
            yield Fault((*path, "uri"), "must be the address of a metastore: thrift://host:9083")
        for key in ("endpoint", "region", "storage_options"):
            if getattr(given, key):
                yield Fault((*path, key), "belongs to type glue")
    elif given.uri is not None:
        yield Fault((*path, "uri"), "belongs to type hive; Glue has an endpoint")


def settings(document: Document, name: str, table: Table) -> CatalogSettings | None:
    """Return where a table is registered; None where it is nowhere."""
    given = table.catalog
    if given is None:
        return None
    here = ("tables", name)
    own = plain(given.storage_options)
    options = options_at(document, here, table.storage_options, place="table_uri")
    return CatalogSettings(
        type=given.type,
        database=given.database,
        table=given.table or name,
        location=given.location,
        uri=given.uri,
        endpoint=given.endpoint,
        region=given.region,
        # Its own credentials, or those of the table: never some of both.
        options=StorageOptions(own) if own else options,
    )
