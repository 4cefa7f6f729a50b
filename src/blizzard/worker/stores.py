"""The stores that a unit reads from and writes to."""

from dataclasses import dataclass, field
from typing import Protocol

from blizzard.model.files import Work
from lakebed.storage.store import Reader, Store


class Stores(Protocol):
    """Where a worker gets its stores from."""

    def source(self, name: str) -> Reader:
        """Open a source of the pipeline."""

    def sink(self) -> Store:
        """Open the table's directory."""


@dataclass(slots=True)
class OpenedStores:
    """The stores of a batch, opened where they are used, once."""

    work: Work
    _sources: dict[str, Reader] = field(default_factory=dict)
    _sink: Store | None = None

    def source(self, name: str) -> Reader:
        """Open a source of the pipeline."""
        if name not in self._sources:
            location = self.work.sources[name]
            self._sources[name] = Reader(location.uri, location.options)
        return self._sources[name]

    def sink(self) -> Store:
        """Open the table's directory."""
        if self._sink is None:
            self._sink = Store(self.work.sink.uri, self.work.sink.options, make_folder=True)
        return self._sink
