"""Commit from blizzard's process. Delta is loaded with the first commit."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakebed.clock import Clock
from lakebed.storage.options import StorageOptions
from lakebed.telemetry.events import Emit
from penguin.model.settings import TableSettings

if TYPE_CHECKING:
    from penguin.pipeline import TableRun


@dataclass(slots=True)
class InlineCommitter:
    """Commits what waits for a table and keeps its catalog current, as penguin does."""

    settings: TableSettings
    emit: Emit
    clock: Clock
    pipeline: str | None
    _run: "TableRun | None" = None
    """Kept from batch to batch, so that a pipeline that continues is reported."""

    def __call__(self) -> int:
        """Commit everything that waits; return the number of commits."""
        from penguin.pipeline import commit_all  # noqa: PLC0415

        if self._run is None:
            self._run = self._begun()
        return commit_all(self._run, self.pipeline)

    def finish(self) -> None:
        """Wait for checkpoints and catalog updates in progress, for some seconds at most."""
        if self._run is not None:
            self._run.finish()

    def _begun(self) -> "TableRun":
        from lakebed.storage.store import Store  # noqa: PLC0415
        from penguin.delta.maintenance import beside  # noqa: PLC0415
        from penguin.pipeline import TableRun  # noqa: PLC0415

        store = Store(self.settings.table_uri, self.settings.storage_options)
        return TableRun(
            settings=self.settings,
            emit=self.emit,
            clock=self.clock,
            open_store=lambda: store,
            begin=beside,
        )


def committer(
    table: TableSettings | None,
    table_uri: str,
    options: StorageOptions,
    *,
    emit: Emit,
    clock: Clock,
    pipeline: str | None = None,
) -> InlineCommitter:
    """Return a committer for a table.

    With `pipeline`, errors of the table's other pipelines are reported, not raised.
    """
    settings = table or TableSettings(name=table_uri, table_uri=table_uri, storage_options=options)
    return InlineCommitter(settings, emit, clock, pipeline)
