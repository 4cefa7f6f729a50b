"""What a reader of a Delta table sees."""

from dataclasses import dataclass

from lakebed.deltalog.tables import first_rows, look_at
from lakebed.errors import ObjectMissing
from lakebed.storage.options import StorageOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePreview:
    """What a reader of a table sees: counts, and the first rows."""

    version: int
    files: int
    rows: int
    columns: tuple[str, ...]
    first_rows: tuple[tuple[object, ...], ...]


def preview(uri: str, *, rows: int, options: StorageOptions | None = None) -> TablePreview:
    """Return what a reader sees of the newest version of a table."""
    snapshot = look_at(uri, options or StorageOptions())
    if snapshot is None:
        raise ObjectMissing("there is no Delta table here", path=uri)
    columns = tuple(field["name"] for field in snapshot.facts.schema["fields"])
    files, _bytes, count = snapshot.totals()
    return TablePreview(
        version=snapshot.version,
        files=files,
        rows=count or 0,
        columns=columns,
        first_rows=first_rows(snapshot, columns, rows),
    )
