"""What every order of an operator on one table needs."""

from collections.abc import Callable
from dataclasses import dataclass, field

from lakebed.clock import Clock
from lakebed.storage.store import Store
from penguin.committer import Committer
from penguin.delta.table import Log
from penguin.model.settings import TableSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOperation:
    """An order on one table, which looks at it and commits to it."""

    settings: TableSettings
    store: Store
    clock: Clock
    pause: Callable[[float], object]
    """Waits some seconds between two attempts."""
    open_log: Callable[[Store], Log] = field(default=Log)

    def committer(self) -> Committer:
        """Return who carries out the order's commits."""
        return Committer(
            log=self.open_log(self.store), store=self.store, clock=self.clock, pause=self.pause
        )
