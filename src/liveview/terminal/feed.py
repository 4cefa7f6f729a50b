"""Where a watch gets its overviews: from a program that runs, or else from journals and logs."""

from dataclasses import replace
from typing import get_args

from pydantic import TypeAdapter

from lakebed.clock import Clock
from liveview.lake import Lake, ProgramName
from liveview.live import Live
from liveview.looks.other import Unreachable, fetched
from liveview.model import Overview, Program
from liveview.observer import Observer
from liveview.patience import Patience
from liveview.terminal.watch import Seen

PATH = "/api/v1/overview"
TIMEOUT_SECS = 10.0
"""A first look at many pipelines takes its time."""
SETTLE_SECS = 30.0
NOBODY = "neither program answers, so this is what journals and tables say"

_OVERVIEW = TypeAdapter(Overview)


class Feed:
    """Asks whichever program answers; where neither does, it looks for itself."""

    def __init__(
        self,
        lake: Lake,
        clock: Clock,
        *,
        only: str | None = None,
        patience: Patience | None = None,
        timeout: float = TIMEOUT_SECS,
    ) -> None:
        self._lake = lake
        self._clock = clock
        self._only = only
        self._patience = patience
        self._timeout = timeout
        self._observer: Observer | None = None

    def __call__(self) -> Seen:
        """Return how things are now."""
        seen = self._seen()
        if self._only is None:
            return seen
        pipelines = [each for each in seen.overview.pipelines if each.name == self._only]
        tables = [each for each in seen.overview.tables if self._only in each.pipelines]
        return replace(seen, overview=replace(seen.overview, pipelines=pipelines, tables=tables))

    def settled(self) -> Seen:
        """Return how things are, with what takes longer to find out."""
        seen = self()
        if self._observer is None:
            return seen
        self._observer.settle(SETTLE_SECS)
        return self()

    def close(self) -> None:
        """Let go of what was opened to look."""
        if self._observer is not None:
            self._observer.close()

    def _seen(self) -> Seen:
        silent: list[Program] = []
        for name in get_args(ProgramName):
            answer = self._asked(name)
            if isinstance(answer, Overview):
                return Seen(answer)
            silent.append(
                Program(
                    name=name,
                    version=None,
                    reachable=False,
                    address=self._lake.addresses.get(name),
                    note=answer.note,
                )
            )
        return Seen(replace(self._looked().overview(), programs=silent), NOBODY)

    def _asked(self, name: ProgramName) -> Overview | Unreachable:
        address = self._lake.addresses.get(name)
        note = self._lake.notes.get(name)
        if note is not None:
            return Unreachable(note)
        if address is None:
            return Unreachable("it serves no page; metrics.enabled turns that on")
        return fetched(address, self._lake.guard, PATH, lambda: _OVERVIEW, timeout=self._timeout)

    def _looked(self) -> Observer:
        if self._observer is None:
            # Nothing happens in this process, so it has nothing to tell of itself.
            live = Live("blizzard", version="", seconds=self._clock.seconds)
            self._observer = Observer(
                self._lake, live, "blizzard", clock=self._clock, patience=self._patience
            )
        return self._observer
