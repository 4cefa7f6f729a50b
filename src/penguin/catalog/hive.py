"""A Hive metastore: the only door to thriftpy2.

Error texts of a metastore may be Java stack traces with anything in them, so our messages name only
the kind of the error.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import thriftpy2
from thriftpy2.protocol import TBinaryProtocolFactory
from thriftpy2.rpc import make_client
from thriftpy2.thrift import TException
from thriftpy2.transport import TBufferedTransportFactory, TTransportException

from penguin.catalog.catalog import (
    INPUT,
    OUTPUT,
    SERDE,
    AlreadyRegistered,
    CatalogColumn,
    CatalogDenied,
    CatalogMissing,
    CatalogUnavailable,
    TableEntry,
)
from penguin.model.settings import CatalogSettings

MILLISECONDS = 10_000
PROTOCOL = Path(__file__).with_name("hive_metastore.thrift")
LEAVE_STATISTICS = {"DO_NOT_UPDATE_STATS": "true"}
"""Without this the metastore lists the table's folder on every change."""


@cache
def protocol() -> Any:  # noqa: ANN401 - its types are made when it is read
    """Read the metastore's protocol, once."""
    return thriftpy2.load(str(PROTOCOL), module_name="hive_metastore_thrift")


class HiveCatalog:
    """One table of a Hive metastore."""

    def __init__(self, settings: CatalogSettings) -> None:
        self._database = settings.database
        self._table = settings.table
        self._hive = protocol()
        self._found: Any = None
        place = urlsplit(settings.uri or "")
        with self._in_our_words():
            self._client = make_client(
                self._hive.ThriftHiveMetastore,
                place.hostname or "",
                place.port or 0,
                proto_factory=TBinaryProtocolFactory(),  # type: ignore[no-untyped-call]
                trans_factory=TBufferedTransportFactory(),
                timeout=MILLISECONDS,
            )

    def find(self) -> TableEntry | None:
        """Return the metastore's description; None if it does not know the table."""
        try:
            with self._in_our_words():
                self._found = self._client.get_table(self._database, self._table)
        except _NotInHive:
            self._require_database()
            return None
        storage = self._found.sd
        return TableEntry(
            location=storage.location or "",
            columns=tuple(CatalogColumn(col.name, col.type) for col in storage.cols or ()),
            parameters=dict(self._found.parameters or {}),
        )

    def create(self, entry: TableEntry) -> None:
        """Register the table."""
        hive = self._hive
        table = hive.Table(
            tableName=self._table,
            dbName=self._database,
            owner="penguin",
            createTime=0,
            lastAccessTime=0,
            retention=0,
            tableType="EXTERNAL_TABLE",
            partitionKeys=[],
            parameters=dict(entry.parameters),
            sd=hive.StorageDescriptor(
                location=entry.location,
                inputFormat=INPUT,
                outputFormat=OUTPUT,
                compressed=False,
                numBuckets=-1,
                bucketCols=[],
                sortCols=[],
                parameters={},
                cols=self._columns(entry, {}),
                serdeInfo=hive.SerDeInfo(
                    name=self._table,
                    serializationLib=SERDE,
                    parameters={"serialization.format": "1", "path": entry.location},
                ),
            ),
        )
        with self._in_our_words():
            self._client.create_table(table)

    def update(self, entry: TableEntry) -> None:
        """Update the description that `find` read, and keep what others added."""
        table = self._found
        comments = {col.name: col.comment for col in table.sd.cols or ()}
        table.parameters = {**(table.parameters or {}), **entry.parameters}
        table.sd.cols = self._columns(entry, comments)
        context = self._hive.EnvironmentContext(properties=LEAVE_STATISTICS)
        with self._in_our_words():
            self._client.alter_table_with_environment_context(
                self._database, self._table, table, context
            )

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _columns(self, entry: TableEntry, comments: Mapping[str, str | None]) -> list[Any]:
        return [
            self._hive.FieldSchema(
                name=column.name, type=column.type, comment=comments.get(column.name)
            )
            for column in entry.columns
        ]

    def _require_database(self) -> None:
        try:
            with self._in_our_words():
                self._client.get_database(self._database)
        except _NotInHive:
            raise CatalogMissing(
                f"the metastore has no database {self._database}; create it (CREATE DATABASE "
                f"{self._database}), or correct catalog.database: penguin registers tables and "
                "creates no databases"
            ) from None

    @contextmanager
    def _in_our_words(self) -> Iterator[None]:
        name = f"{self._database}.{self._table}"
        hive = self._hive
        try:
            yield
        except hive.NoSuchObjectException:
            raise _NotInHive from None
        except hive.AlreadyExistsException as cause:
            raise AlreadyRegistered from cause
        except (hive.InvalidObjectException, hive.InvalidOperationException) as cause:
            raise CatalogDenied(
                f"the metastore does not accept the table [{type(cause).__name__}]; its own log "
                "says why",
                table=name,
            ) from cause
        except (TTransportException, OSError) as cause:
            message = f"the metastore does not answer [{type(cause).__name__}]"
            raise CatalogUnavailable(message, table=name) from cause
        except TException as cause:
            message = f"the metastore cannot answer now [{type(cause).__name__}]"
            raise CatalogUnavailable(message, table=name) from cause


class _NotInHive(Exception):
    """The metastore does not know the table or its database."""
