"""What the next batch is to do, from a look at the sources to its units.

A run and a dry run both go through `plan_batch`, so a plan cannot differ from the run. Nothing here
writes.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from blizzard.discover.finding import Finding
from blizzard.execute.bisect import Portion, given_up, portion
from blizzard.model.progress import Bounds
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
    """What the next batch is to do."""

    findings: Mapping[str, Finding] = field(default_factory=dict)
    files: tuple[SourceFile, ...] = ()
    misplaced: tuple[SourceRecord, ...] = ()
    """Files that have failed by their paths alone."""
    renew: tuple[SourceFile, ...] = ()
    """Files whose new content takes the place of their rows, before the batch."""
    died: tuple[SourceRecord, ...] = ()
    """Files that are given up, since the process dies with them."""
    gone: tuple[SourceRecord, ...] = ()
    """Files that were not done and are not there any more."""
    units: tuple[WorkUnit, ...] = ()
    bounds: Bounds = field(default_factory=Bounds)
    note: Started = field(default_factory=Started)
    """What to write down before the first file is opened."""
    began: float = 0.0

    @classmethod
    def of(cls, findings: Mapping[str, Finding]) -> "BatchProposal":
        """Return what a look at the sources has found, before it is planned."""
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
        """Return the files that have failed before any is read."""
        return self.misplaced + self.died + self.gone

    def after(self, failed: tuple[SourceRecord, ...]) -> "BatchProposal":
        """Return the rest of it, once the new content of files was read, or failed. Pure."""
        return replace(self, renew=(), misplaced=self.misplaced + failed)

    @property
    def noticed(self) -> frozenset[str]:
        """Return the keys of files that were found because a message named them."""
        return frozenset(key for finding in self.findings.values() for key in finding.noticed)

    @property
    def again(self) -> frozenset[str]:
        """Return the keys of files that were ingested before, as other objects."""
        return frozenset(key for finding in self.findings.values() for key in finding.again)

    def noted(self, records: Iterable[SourceRecord]) -> tuple[SourceRecord, ...]:
        """Return records that say whether a file was ingested before, as another object. Pure."""
        again = self.again
        return tuple(
            replace(record, reingested=True) if record.key in again else record
            for record in records
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRun:
    """One batch that has run: what was proposed, and what came of it."""

    proposal: BatchProposal = field(default_factory=BatchProposal)
    effort: Effort = field(default_factory=Effort)
    left: int = 0
    """Files that it had begun with and has left: the next batch waits for no trigger."""
    got_nowhere: bool = False
    """Whether its time was too short for anything: the next one may take as long as it wants."""
    entry: Entry | None = None
    """What the journal says of it; None where that is in doubt, or there was nothing to say."""
    handed_off: bool = True
    """Whether nothing of it has yet to be handed off."""


def plan_batch(
    found: BatchProposal,
    settings: PipelineSettings,
    open_source: OpenReader,
    *,
    parallelism: int,
    clock: Clock,
    started: Callable[[], Started],
    failed: frozenset[str] = frozenset(),
    unbounded: bool = False,
    forecast: Forecast = UNKNOWN,
    hurry: bool = True,
) -> BatchProposal:
    """Return the batch for what was found.

    `started` returns how often it was started by processes that died with it, `failed` are the
    files that count against `max_failures` already. An `unbounded` batch may take as long as it
    wants; in a `hurry` all cores get work at once, even if data files come out smaller.
    """
    began = clock.seconds()
    limit = settings.max_failures
    may_fail = None if limit is None else limit - len(failed)
    misplaced = found.misplaced[:may_fail]
    renew = _to_renew(found, settings)
    files = tuple(file for file in found.files if file not in renew)
    part = portion(files, started()) if files else Portion(take=())
    files, died = part.take, tuple(given_up(file, DRIVER_DIED) for file in part.died)
    bounds = Bounds(
        seconds=None if unbounded else settings.sink.rolling.rollover,
        failures=None if may_fail is None else may_fail - len(misplaced) - len(died),
        forgiven=failed & {file.key for file in files},
    )
    if bounds.failures is not None and bounds.failures <= 0:
        files = ()  # The last file that may fail has failed by its path alone.
    plan = partial(planned, parallelism=parallelism, forecast=forecast, hurry=hurry)
    return replace(
        found,
        files=files,
        renew=renew,
        misplaced=misplaced,
        died=died,
        units=plan(settings, files, open_source) if files else (),
        bounds=bounds,
        note=part.note,
        began=began,
    )


def _to_renew(proposal: BatchProposal, settings: PipelineSettings) -> tuple[SourceFile, ...]:
    """Return the files whose rows are replaced; one that was begun as it is now is read on."""
    replacing = {one.name for one in settings.sources if one.on_change is OnChange.REPLACE}
    return tuple(
        file
        for file in proposal.files
        if file.source in replacing and file.key in proposal.again and not file.skip
    )
