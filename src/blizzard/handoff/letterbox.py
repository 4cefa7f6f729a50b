"""The way to the dead letter queue: known to be open before a batch is run, not after."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from blizzard.handoff.dead_letters import dlq_location_of, record_failures
from blizzard.model.files import Location
from blizzard.model.settings import PipelineSettings
from lakebed.clock import Clock
from lakebed.documents.source_record import SourceRecord
from lakebed.errors import LakeError, StoreDenied
from lakebed.storage.store import Created, Store

PROOF = "_writable"
"""What is written to see that the queue can be; no source takes a name that begins like this."""


@dataclass(slots=True, kw_only=True)
class Letterbox:
    """Where the letters of a pipeline are written, and whether that is known to be possible."""

    settings: PipelineSettings
    clock: Clock
    _is_open: bool = False

    def check(self, open_sink: Callable[[Location], Store]) -> None:
        """Raise if the queue cannot be written to; asked at the start, and again after trouble.

        Without it a batch is not journaled, so that it would be run in vain, each time again. A
        queue in the table directory is not asked: nothing is run without that.
        """
        if self._is_open or self.settings.dlq_path is None:
            return
        place = dlq_location_of(self.settings)
        store = open_sink(place.location)
        # Create-only, so that a proof that may not be removed is left once and for all.
        if isinstance(store.create(PROOF, b""), Created):
            with suppress(StoreDenied):
                store.delete(PROOF)
        self._is_open = True

    def record(
        self,
        records: Iterable[SourceRecord],
        open_sink: Callable[[Location], Store],
        *,
        batch: int,
        pause: Callable[[float], None],
    ) -> tuple[str, ...]:
        """Write the letters of a batch before its entry; return the URI that the entry then names.

        If that fails, the next batch is not run before the queue can be written to.
        """
        try:
            return record_failures(
                records,
                self.settings,
                open_sink,
                batch=batch,
                clock=self.clock,
                pause=pause,
            )
        except LakeError:
            self._is_open = False
            raise
