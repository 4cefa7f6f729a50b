"""Plan the next batch, from the findings in the sources to its units. Read-only.

Runs and dry runs share `plan_batch`, so a dry run cannot differ from the run.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from blizzard.discover.finding import Finding
from blizzard.execute.bisect import Portion, given_up, portion
from blizzard.model.settings import PipelineSettings
from blizzard.model.source.file import SourceFile
from blizzard.model.source.forecast import Forecast
from blizzard.model.stores import OpenReader
from blizzard.model.work import Effort, WorkUnit
from blizzard.plan.planner import UNKNOWN, planned
from lakebed.clock import Clock
from lakebed.documents.entry import Entry, Started
from lakebed.documents.records import SourceRecord
from lakebed.types import OnChange

DRIVER_DIED = (
    "the process died every time it read this file on its own; the file may be too large for it"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchProposal:
    """The proposed work of the next batch."""

    findings: Mapping[str, Finding] = field(default_factory=dict)
    files: tuple[SourceFile, ...] = ()
    misplaced: tuple[SourceRecord, ...] = ()
    """Files that failed by their paths alone."""
    renew: tuple[SourceFile, ...] = ()
    """Files whose rows are replaced with new content before the batch."""
    died: tuple[SourceRecord, ...] = ()
    """Files that are given up because they kill the process."""
    gone: tuple[SourceRecord, ...] = ()
    """Unfinished files that left their source."""
    units: tuple[WorkUnit, ...] = ()
    max_seconds: float | None = None
    """How long the batch may run; None for no limit."""
    note: Started = field(default_factory=Started)
    """The start note to write before the first file is opened."""
    began: float = 0.0

    @classmethod
    def of(cls, findings: Mapping[str, Finding]) -> "BatchProposal":
        """Return the unplanned proposal for some findings."""
        every = findings.values()
        return cls(
            findings=findings,
            files=tuple(file for finding in every for file in finding.take),
            misplaced=tuple(record for finding in every for record in finding.misplaced),
            gone=tuple(record for finding in every for record in finding.gone),
        )

    @property
    def more(self) -> bool:
        """Whether more files wait than one batch may hold."""
        return any(finding.left_over for finding in self.findings.values())

    @property
    def is_empty(self) -> bool:
        """Whether nothing was found to do."""
        return not any(finding.has_work for finding in self.findings.values())

    @property
    def failed(self) -> tuple[SourceRecord, ...]:
        """The files that failed without being read."""
        return self.misplaced + self.died + self.gone

    def after(self, failed: tuple[SourceRecord, ...]) -> "BatchProposal":
        """Return the rest of the proposal after replacements were read or failed. Pure."""
        return replace(self, renew=(), misplaced=self.misplaced + failed)

    @property
    def again(self) -> frozenset[str]:
        """The keys of files that were ingested before as other objects."""
        return frozenset(key for finding in self.findings.values() for key in finding.again)

    def noted(self, records: Iterable[SourceRecord]) -> tuple[SourceRecord, ...]:
        """Mark the records of files that were ingested before as other objects. Pure."""
        again = self.again
        return tuple(
            replace(record, reingested=True) if record.key in again else record
            for record in records
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRun:
    """A batch that has run: the proposal and the outcome."""

    proposal: BatchProposal = field(default_factory=BatchProposal)
    effort: Effort = field(default_factory=Effort)
    left: int = 0
    """Planned files that were left over, for which the next batch starts without a trigger."""
    got_nowhere: bool = False
    """Whether it had too little time for any progress, so the next one has no time limit."""
    entry: Entry | None = None
    """Its journal entry; None if in doubt or without one."""
    handed_off: bool = True
    """Whether it is completely handed off."""


def plan_batch(
    found: BatchProposal,
    settings: PipelineSettings,
    open_source: OpenReader,
    *,
    parallelism: int,
    clock: Clock,
    started: Callable[[], Started],
    unbounded: bool = False,
    forecast: Forecast = UNKNOWN,
    hurry: bool = True,
) -> BatchProposal:
    """Return the batch for what was found.

    `started` returns how often it was started by processes that died with it. An `unbounded` batch
    has no time limit; in a `hurry` all cores get work at once, even if data files become smaller.
    """
    began = clock.seconds()
    renew = _to_renew(found, settings)
    files = tuple(file for file in found.files if file not in renew)
    part = portion(files, started()) if files else Portion(take=())
    files, died = part.take, tuple(given_up(file, DRIVER_DIED) for file in part.died)
    plan = partial(planned, parallelism=parallelism, forecast=forecast, hurry=hurry)
    return replace(
        found,
        files=files,
        renew=renew,
        died=died,
        units=plan(settings, files, open_source) if files else (),
        max_seconds=None if unbounded else settings.sink.rolling.rollover,
        note=part.note,
        began=began,
    )


def _to_renew(proposal: BatchProposal, settings: PipelineSettings) -> tuple[SourceFile, ...]:
    """Return the files whose rows are replaced; a partly read present object is continued."""
    replacing = {one.name for one in settings.sources if one.on_change is OnChange.REPLACE}
    return tuple(
        file
        for file in proposal.files
        if file.source in replacing and file.key in proposal.again and not file.skip
    )
