"""Folders of Parquet files that are to become tables, and who adopts them."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from lakebed.clock import Clock
from lakebed.storage.options import ObjectFacts, StorageOptions
from lakebed.storage.store import Store
from penguin.adopt.adoption import Adopter, Adoption
from penguin.adopt.folder import AdoptOptions
from penguin.model.settings import TableSettings

Row = dict[str, Any]


@dataclass
class ParquetFolder:
    """A folder that some program has written Parquet files to."""

    root: Path
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)

    def file(self, path: str, data: pa.Table | list[int], **options: Any) -> str:
        """Write a file: of a table, or of some ids with a name each."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(data, list):
            names = pa.array([f"n{one}" for one in data], pa.string())
            data = pa.table({"id": pa.array(data, pa.int64()), "name": names})
        pq.write_table(data, target, **options)
        return path

    def junk(self, path: str, body: bytes = b"this is not Parquet at all") -> str:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(body)
        return path

    def files(self) -> dict[str, tuple[int, int]]:
        """Return every data file with its size and time: nothing of it may ever change."""
        found = {path: path.stat() for path in self.root.rglob("*.parquet") if path.is_file()}
        return {
            str(path.relative_to(self.root)): (facts.st_size, facts.st_mtime_ns)
            for path, facts in found.items()
            if "_delta_log" not in path.parts
        }

    def rows(self, columns: list[str]) -> list[Row]:
        """Read the files as Arrow does, without any log."""
        paths = [str(self.root / path) for path in sorted(self.files())]
        parts = [ds.dataset(path, partitioning="hive", partition_base_dir=str(self.root))
                 for path in paths]  # fmt: skip
        return [row for part in parts for row in part.to_table(columns).to_pylist()]

    def adopter(self, store: Store | None = None, **wanted: Any) -> Adopter:
        return Adopter(
            settings=TableSettings(name="events", table_uri=str(self.root), **self.settings),
            wanted=AdoptOptions(**wanted),
            store=store or Store(str(self.root), StorageOptions()),
            clock=Clock(),
        )

    def look(self, **wanted: Any) -> Adoption:
        return self.adopter(**wanted).plan()

    def adopt(self, store: Store | None = None, **wanted: Any) -> Adoption:
        return self.adopter(store, **wanted).adopt()


class Counting(Store):
    """A store that counts what is read of data files."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri, StorageOptions())
        self.reads: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()

    def part(self, path: str, start: int, end: int, *, etag: str | None) -> bytes:
        if path.endswith(".parquet") and not path.startswith("_"):
            self.reads[path] += 1
            self.bytes[path] += end - start
        return super().part(path, start, end, etag=etag)


class Meddling(Counting):
    """A store whose files change right before it is listed for the second time."""

    def __init__(self, uri: str, meddle: Callable[[], object]) -> None:
        super().__init__(uri)
        self.meddle = meddle
        self.listings = 0

    def in_order(self, *given: Any, **named: Any) -> Iterator[ObjectFacts]:
        self.listings += 1
        if self.listings == 2:
            self.meddle()
        return super().in_order(*given, **named)


def in_the_way(found: Adoption) -> dict[str, str]:
    """Return the files that keep a folder from being adopted, with their codes."""
    return {one.path: one.code for one in found.troubles}
