"""AWS Glue."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from lakebed.errors import LakeError
from lakebed.storage.aws.clients import AwsError, AwsFault, asking, open_client
from lakebed.storage.options import bare
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

SECS = 10
SETTABLE = frozenset(
    {
        "Name",
        "Description",
        "Owner",
        "LastAccessTime",
        "LastAnalyzedTime",
        "Retention",
        "StorageDescriptor",
        "PartitionKeys",
        "ViewOriginalText",
        "ViewExpandedText",
        "TableType",
        "Parameters",
        "TargetTable",
    }
)
"""The fields of Glue's answer that its TableInput accepts."""
FORMAT = {"InputFormat": INPUT, "OutputFormat": OUTPUT}
_MISSING = "EntityNotFoundException"
_THERE = frozenset({"AlreadyExistsException", "ConcurrentModificationException", "VersionMismatch"})
NO_CREDENTIALS = (
    "there are no credentials for Glue [{code}]; set them under catalog.storage_options or "
    "storage_options, in the environment (keys, or AWS_PROFILE with a profile that exists), or "
    "give the machine a role"
)
ERRORS: Mapping[AwsFault, tuple[type[LakeError], str]] = {
    AwsFault.DENIED: (CatalogDenied, "Glue denied access; it requires {permission} [{code}]"),
    AwsFault.NO_KEYS: (CatalogDenied, NO_CREDENTIALS),
    AwsFault.SILENT: (CatalogUnavailable, "Glue does not answer [{code}]"),
    AwsFault.OTHER: (CatalogUnavailable, "Glue cannot answer now [{code}]"),
}


class GlueCatalog:
    """One table of the Glue Data Catalog."""

    def __init__(self, settings: CatalogSettings) -> None:
        self._database = settings.database
        self._table = settings.table
        self._found: Mapping[str, Any] = {}
        with self._in_our_words("a role or keys"):
            self._client = _client(settings)

    def find(self) -> TableEntry | None:
        """Return Glue's description; None if it does not know the table."""
        try:
            with self._in_our_words("glue:GetTable"):
                answer = self._client.get_table(DatabaseName=self._database, Name=self._table)
        except _NotInGlue:
            self._require_database()
            return None
        self._found = answer["Table"]
        storage = self._found.get("StorageDescriptor") or {}
        return TableEntry(
            location=storage.get("Location", ""),
            columns=tuple(
                CatalogColumn(one["Name"], one.get("Type", ""))
                for one in storage.get("Columns") or ()
            ),
            parameters=dict(self._found.get("Parameters") or {}),
        )

    def create(self, entry: TableEntry) -> None:
        """Register the table."""
        with self._in_our_words("glue:CreateTable"):
            self._client.create_table(
                DatabaseName=self._database, TableInput=_input({"Name": self._table}, entry)
            )

    def update(self, entry: TableEntry) -> None:
        """Update the description that `find` read, and keep what others added."""
        kept = {key: value for key, value in self._found.items() if key in SETTABLE}
        version = self._found.get("VersionId")
        with self._in_our_words("glue:UpdateTable"):
            self._client.update_table(
                DatabaseName=self._database,
                TableInput=_input(kept, entry),
                # Glue keeps a limited number of versions, and these are of no later use.
                SkipArchive=True,
                **({} if version is None else {"VersionId": version}),
            )

    def close(self) -> None:
        """Close connections."""
        self._client.close()

    def _require_database(self) -> None:
        try:
            with self._in_our_words("glue:GetDatabase"):
                self._client.get_database(Name=self._database)
        except _NotInGlue:
            raise CatalogMissing(
                f"Glue has no database {self._database}; create it (aws glue create-database), or "
                "correct catalog.database: penguin registers tables and creates no databases"
            ) from None

    @contextmanager
    def _in_our_words(self, permission: str) -> Iterator[None]:
        name = f"{self._database}.{self._table}"
        try:
            with asking():
                yield
        except AwsError as error:
            if error.code == _MISSING:
                raise _NotInGlue from error
            if error.code in _THERE:
                raise AlreadyRegistered from error
            kind, words = ERRORS[error.fault]
            raise kind(words.format(permission=permission, code=error.code), table=name) from error


class _NotInGlue(Exception):
    """Glue does not know the table or its database."""


def _input(kept: Mapping[str, Any], entry: TableEntry) -> dict[str, Any]:
    """Return Glue's TableInput: our fields, and those of others unchanged. Pure."""
    storage = dict(kept.get("StorageDescriptor") or {**FORMAT, "SerdeInfo": {}})
    serde = dict(storage.get("SerdeInfo") or {})
    known = {one["Name"]: one for one in storage.get("Columns") or ()}
    return {
        **kept,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {**(kept.get("Parameters") or {}), **entry.parameters},
        "PartitionKeys": [],
        "StorageDescriptor": {
            **storage,
            "Location": storage.get("Location") or entry.location,
            # Comments on columns stay.
            "Columns": [
                {**known.get(column.name, {}), "Name": column.name, "Type": column.type}
                for column in entry.columns
            ],
            "SerdeInfo": {
                **serde,
                "SerializationLibrary": serde.get("SerializationLibrary") or SERDE,
                "Parameters": {
                    "serialization.format": "1",
                    "path": entry.location,
                    **(serde.get("Parameters") or {}),
                },
            },
        },
    }


def _client(settings: CatalogSettings) -> Any:  # noqa: ANN401 - botocore has no types
    options = {bare(name.lower()): value for name, value in settings.options.plain().items()}
    return open_client(
        "glue",
        options,
        region=settings.region or options.get("region") or options.get("default_region"),
        endpoint=settings.endpoint,
        connect_timeout=SECS,
        read_timeout=SECS,
        # Longer outages are left to our own backoff, which is logged.
        retries={"mode": "standard", "total_max_attempts": 2},
        max_pool_connections=1,
    )
