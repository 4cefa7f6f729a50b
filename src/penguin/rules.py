"""penguin's rules for a table, for blizzard to apply before it writes a file.

Delta is loaded by the rules that need it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from lakebed.errors import SchemaConflict
from lakebed.storage.options import StorageOptions
from lakebed.types import Evolution
from penguin.model.settings import TableSettings


def refused_properties(properties: Mapping[str, str]) -> Mapping[str, str]:
    """Return why a table cannot be created with some properties, by the property to blame."""
    from penguin.delta import table  # noqa: PLC0415

    return table.refused_properties(properties)


def check_schema(
    table: TableSettings,
    schema: dict[str, Any],
    partition_columns: tuple[str, ...],
    *,
    mode_is_known: bool = True,
) -> None:
    """Raise if penguin would hold every file with these columns."""
    if reasons := reasons_to_hold(table, schema, partition_columns, mode_is_known=mode_is_known):
        mode = f"with schema_evolution {table.evolution}" if mode_is_known else "in every mode"
        raise SchemaConflict(
            f"the table cannot hold the declared fields, {mode}: {'; '.join(reasons)}. "
            "penguin would hold every file; declare the fields as the table has them, change "
            "schema_evolution, or write to another table",
            table=table.table_uri,
        )


def reasons_to_hold(
    table: TableSettings,
    schema: Mapping[str, Any],
    partition_columns: tuple[str, ...],
    *,
    mode_is_known: bool = True,
) -> tuple[str, ...]:
    """Return why penguin would hold every file with these columns.

    If penguin's configuration is unknown, only what every mode refuses counts. A table that does
    not exist yet takes any columns; for one without a file nothing is predicted.
    """
    from dataclasses import replace  # noqa: PLC0415

    from lakebed.columns.column_mapping import marked  # noqa: PLC0415
    from lakebed.deltalog.tables import newest_snapshot  # noqa: PLC0415
    from penguin.model.commit import EntryRefused  # noqa: PLC0415
    from penguin.plan.evolution import decide_on  # noqa: PLC0415

    found = newest_snapshot(table.table_uri, table.storage_options)
    if found is None:
        return ()
    if not mode_is_known:
        table = replace(table, evolution=Evolution.OVERWRITE)
    columns = found.mapping
    # Files use the table's physical names.
    written = dict(schema) if columns is None else marked(schema, columns)
    decision = decide_on(found.facts, written, partition_columns, table)
    return decision.reasons if isinstance(decision, EntryRefused) and found.files else ()


def came_back(uri: str, options: StorageOptions, names: Iterable[str]) -> dict[str, str]:
    """Return how given-up files came into the table again, by name."""
    from lakebed.deltalog.tables import newest_snapshot  # noqa: PLC0415
    from lakebed.storage.store import Reader  # noqa: PLC0415
    from penguin.backlog import redo_conflicts  # noqa: PLC0415

    wanted, table = frozenset(names), newest_snapshot(uri, options)
    if table is None or not wanted:
        return {}
    return redo_conflicts.came_back(Reader(uri, options), wanted, table.transaction)
