"""What a reader of a table sees: counts, and the first rows."""

from dataclasses import dataclass

from lakebed.storage.options import StorageOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A look at a table."""

    version: int
    files: int
    rows: int
    columns: tuple[str, ...]
    first_rows: tuple[tuple[object, ...], ...]


def look(uri: str, *, rows: int, options: StorageOptions | None = None) -> Preview:
    """Look at the latest version of a table."""
    from lakebed.deltalog.snapshot import LogReader  # noqa: PLC0415
    from lakebed.errors import ObjectMissing  # noqa: PLC0415
    from lakebed.storage.store import Reader  # noqa: PLC0415

    snapshot = LogReader(Reader(uri, options or StorageOptions())).look()
    if snapshot is None:
        raise ObjectMissing("there is no Delta table here", path=uri)
    columns = tuple(field["name"] for field in snapshot.facts.schema["fields"])
    files, count = snapshot.counts()
    return Preview(
        version=snapshot.version,
        files=files,
        rows=count,
        columns=columns,
        first_rows=snapshot.first_rows(columns, rows),
    )
