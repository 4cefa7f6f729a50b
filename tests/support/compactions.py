"""A table with many small data files, which are put together."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from blizzard.rewrite.compact import CompactionPlan, compact, plan_compaction
from blizzard.rewrite.transaction import RewriteDone
from lakebed.telemetry.events import Event
from tests.support.erasures import FIELDS, Forgetful
from tests.support.pipelines import pipeline_of
from tests.support.retractions import open_sink
from tests.support.runner import InProcessRunner

AT_ONCE = {"quiet_secs": 0}
DAYS = ("2024-01-01", "2024-01-02")


class Crowded(Forgetful):
    """A table whose small files are put together."""

    def compact(self, **around: Any) -> RewriteDone[CompactionPlan]:
        """Write fewer files and append the entry, in this process."""
        return compact(
            around.get("store", self.store),
            self.settings,
            around.get("runner", InProcessRunner()),
            clock=self.clock,
            progress=around.get("progress", lambda _done, _groups: None),
        )

    def tidy(self, **around: Any) -> RewriteDone[CompactionPlan]:
        """Compact, and let penguin commit it."""
        done = self.compact(**around)
        self.penguin()
        return done

    def worth(self, **around: Any) -> CompactionPlan:
        """Find what a compaction would put together."""
        return plan_compaction(self.store, self.settings, now=self.clock.now(), **around)

    def runs_by_itself(self) -> list[Event]:
        """Run batches until nothing is left, and what is then due; return what was reported."""
        told: list[Event] = []
        settings = self.settings
        compacting = replace(settings.sink.compact, enabled=True)
        pipeline = pipeline_of(
            replace(settings, sink=replace(settings.sink, compact=compacting)),
            InProcessRunner(),
            emit=told.append,
            open_sink=open_sink,
        )
        while pipeline.step():
            pass
        return told

    def lands_every_day(self, number: int) -> None:
        """Bring a small file with two rows into the partition of each day."""
        for place, day in enumerate(DAYS):
            first = 100 * place + 2 * number
            rows = [{"id": first + one, "user": f"user-{50 - number}-{one}"} for one in (0, 1)]
            self.land(f"date={day}/{number}.ndjson", *rows)
        self.ingest()


def crowded_by_day(folder: Path) -> Crowded:
    """Return a table with four small files in each of two partitions."""
    desk = crowded(
        folder,
        {**FIELDS, "provenance": ["file", "line"]},
        files=0,
        partition_by={"prefix_template": "date=%Y-%m-%d"},
    )
    for number in range(4):
        desk.lands_every_day(number)
    return desk


def crowded(
    folder: Path, schema: dict[str, Any] | None = None, *, files: int = 5, **sink: Any
) -> Crowded:
    """Return a table with some data files of two rows each, in the order of their ids."""
    compacting = {**AT_ONCE, **sink.pop("compact", {})}
    desk = Crowded(folder, schema or FIELDS, compact=compacting, **sink)
    for number in range(files):
        first = 2 * number
        rows = [{"id": first + place, "user": f"user-{first + place}"} for place in (0, 1)]
        desk.land(f"{number}.ndjson", *rows)
        desk.ingest()
    return desk
