"""The rows of one source file until its last line has parsed: in memory, then on the local disk.

A file that fails half-way must leave nothing in a data file that it shares with others, so its rows
are written once all of it is read. Those of a small file are kept in memory. What is more goes to
the local disk, in Arrow's own format: that costs a copy, and the file shares data files as a small
one does.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from blizzard.worker.output.origins import Slice
from lakebed.documents.data_file import Run

ON_DISK = 8
"""How many times what is kept in memory is kept on the disk at most, the former included."""


class KeptRows:
    """Rows that are not to be written yet, in their order."""

    def __init__(self, folder: Path, in_memory: int) -> None:
        self._folder = folder
        self._in_memory = in_memory
        self._room = in_memory
        self._slices: list[Slice] = []
        self._spills: list[_Spill] = []

    def add(self, slices: Iterable[Slice]) -> None:
        """Keep more rows: on the disk, once there is no room for them in memory."""
        for one in slices:
            self._room -= one.size
            if self._room >= 0:
                self._slices.append(one)
                continue
            if not self._spills or self._spills[-1].schema != one.batch.schema:
                path = self._folder / f"kept-{len(self._spills)}.arrow"
                self._spills.append(_Spill(path, one.batch.schema))
            self._spills[-1].add(one)

    def take(self) -> Iterator[Slice]:
        """Yield the rows, and keep them no longer."""
        try:
            yield from self._slices
            self._slices = []
            for spill in self._spills:
                yield from spill.slices()
        finally:
            self.forget()

    def forget(self) -> None:
        """Keep nothing any longer; there is room in memory again."""
        self._slices, self._room = [], self._in_memory
        for spill in self._spills:
            spill.remove()
        self._spills = []


class _Spill:
    """Rows of one schema in a file on the local disk."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.schema = schema
        self._path = path
        self._about: list[tuple[int, tuple[Run, ...]]] = []
        """The memory that the rows of each batch take, and the records that they come from."""
        self._file = pa.OSFile(str(path), "wb")
        self._writer = pa.ipc.new_stream(self._file, schema)

    def add(self, rows: Slice) -> None:
        self._writer.write_batch(rows.batch)
        self._about.append((rows.size, rows.runs))

    def slices(self) -> Iterator[Slice]:
        self._writer.close()
        self._file.close()
        with pa.memory_map(str(self._path)) as file, pa.ipc.open_stream(file) as batches:
            for (size, runs), batch in zip(self._about, batches, strict=True):
                yield Slice(batch, size, runs)

    def remove(self) -> None:
        for each in (self._writer, self._file):
            with suppress(
                Exception
            ):  # what is closed already, or on a full disk, goes all the same
                each.close()
        self._path.unlink(missing_ok=True)
