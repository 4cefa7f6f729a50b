"""Penguin's settings for a pipeline's table, and checks of the pipeline against them."""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from blizzard.journal.fence import identity_of
from blizzard.model.settings import BlizzardSettings, PipelineSettings
from lakebed.config.files import Given
from lakebed.deltalog import tables
from lakebed.errors import ConfigInvalid, LakeError, ProtocolConflict
from lakebed.types import CommitMode
from penguin.config.load import load
from penguin.model.settings import TableSettings
from penguin.rules import check_schema, refused_properties

TableOf = Callable[[str], TableSettings | None]
"""Returns the `tables:` settings of a pipeline; None without an entry."""


def table_entry(settings: PipelineSettings, table_of: TableOf) -> TableSettings | None:
    """Return the `tables:` entry of a pipeline; None if it is invalid and only penguin commits."""
    try:
        return table_of(settings.name)
    except ConfigInvalid:
        if settings.sink.commit is CommitMode.INLINE:
            raise
        return None


def table_rules(
    settings: PipelineSettings, table: TableSettings | None
) -> tuple[TableSettings, bool]:
    """Return how penguin treats a pipeline's table, and whether its schema evolution is known."""
    sink = settings.sink
    unknown = TableSettings(
        name=settings.name, table_uri=sink.table_uri, storage_options=sink.storage_options
    )
    return table or unknown, table is not None or sink.commit is CommitMode.INLINE


def checks_schema(settings: PipelineSettings, table_of: TableOf) -> Callable[[], None]:
    """Return a check of a pipeline's declared fields against its table, by penguin's rules.

    penguin reports an unreadable log or invalid settings; neither stops the pipeline from writing
    files that wait for penguin.
    """
    identity = identity_of(settings, run_id="")

    def check() -> None:
        rules, mode_is_known = table_rules(settings, table_entry(settings, table_of))
        try:
            tables.require_writable(rules.table_uri, rules.storage_options)
            if settings.infer:
                return  # Columns found in the data fit the table or are rescued.
            check_schema(
                rules,
                identity.table_schema,
                identity.partition_columns,
                mode_is_known=mode_is_known,
            )
        except ProtocolConflict:
            raise
        except LakeError as unread:
            if unread.retryable:
                raise

    return check


def not_among(pipeline: PipelineSettings, tables: Iterable[TableSettings]) -> str:
    """Return the message that penguin with these tables would not commit a pipeline's files."""
    others = ", ".join(table.table_uri for table in tables)
    where = pipeline.sink.table_uri
    return f"it writes to {where}, which is none of the tables that penguin commits: {others}"


def uncommitted(
    pipeline: PipelineSettings,
    settings: BlizzardSettings,
    files: Sequence[Given],
    folders: Sequence[Path],
) -> str | None:
    """Return why a configuration with tables has none for a pipeline; None if it has one."""
    if pipeline.sink.commit is not CommitMode.PENGUIN or pipeline.name in settings.tables:
        return None
    try:
        tables = load(files, folders, os.environ, refused_properties).tables
    except ConfigInvalid:
        return None  # It configures no tables; penguin may have its own configuration.
    return not_among(pipeline, tables)


def tables_of(
    settings: BlizzardSettings, files: Sequence[Given], folders: Sequence[Path]
) -> TableOf:
    """Return a function that finds the `tables:` entry of a pipeline, which says how to commit."""

    def table_of(pipeline: str) -> TableSettings | None:
        name = settings.tables.get(pipeline)
        if name is None:
            return None
        loaded = load(files, folders, os.environ, refused_properties)
        return next(each for each in loaded.tables if each.name == name)

    return table_of
