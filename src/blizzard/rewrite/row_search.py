"""Rows that say themselves which source file they came from, found in the data files."""

from collections import Counter
from dataclasses import replace

from blizzard.model.rewriting import ActiveFile, RowsWhere
from blizzard.rewrite.source_rows import RowsFound, SelectedSources
from blizzard.rewrite.transaction import TableNow
from blizzard.worker.deleted_rows import Places, deleted_rows
from blizzard.worker.find_rows import rows_in
from lakebed.storage.store import Reader

Said = dict[str, int]
"""How many rows of a data file say that they came from which source file, by its URI."""
FileVersion = tuple[str, str | None]
"""A data file, and the key of its deletion vector: only this ever changes."""


class RowSearch:
    """Looks into data files for rows; into each of them once for each deletion vector.

    Of a file the footer is read and, unless that rules it out, the column that says it.
    """

    def __init__(self, store: Reader) -> None:
        self._store = store
        self._said: dict[FileVersion, Said] = {}
        self._deleted: dict[FileVersion, Places] = {}

    def __call__(self, rows: RowsFound, meant: SelectedSources, table: TableNow) -> RowsFound:
        """Return the rows, those counted that only a column tells; files without any left out."""
        said = {
            file.path: self._in(file, file.without, table)
            for file in (*rows.mixed, *rows.unnamed)
            if isinstance(file.without, RowsWhere)
        }
        counted: Counter[str] = Counter()
        for one in said.values():
            for uri, count in one.items():
                counted[meant.uris[uri]] += count
        mixed = tuple(file for file in rows.mixed if said.get(file.path, True))
        unnamed = tuple(file for file in rows.unnamed if said[file.path])
        return replace(rows, mixed=mixed, unnamed=unnamed, counted=dict(counted))

    def deleted(self, file: ActiveFile) -> Places:
        """Return the places of the rows of a file that are deleted."""
        key = file.path, file.vector_key
        if key not in self._deleted:
            self._deleted[key] = deleted_rows(self._store, file.vector)
        return self._deleted[key]

    def _in(self, file: ActiveFile, where: RowsWhere, table: TableNow) -> Said:
        key = file.path, file.vector_key
        if key not in self._said:
            found = rows_in(self._store, file, where.predicate, table.columns, table.mapping)
            self._said[key] = {} if found is None else dict(found.by_column)
        return self._said[key]
