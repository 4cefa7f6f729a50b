"""What the next batch is to do, from a look at the sources to its units.

A run and a dry run both go through `propose`, so a plan cannot differ from the run. Nothing here
writes.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from blizzard.discover.finding import Finding
from blizzard.execute.bisect import Portion, given_up, portion
from blizzard.handoff.commit_lag import CommitsBehind
from blizzard.journal.segments import SegmentBroken
from blizzard.model.bounds import Bounds
from blizzard.model.files import Effort, SourceFile, WorkUnit
from blizzard.model.locations import OpenReader
from blizzard.model.settings import PipelineSettings
from blizzard.model.source.forecast import Forecast
from blizzard.plan.recognise import planned
from lakebed.clock import Clock
from lakebed.documents.entry import Entry, Started
from lakebed.documents.source_record import SourceRecord
from lakebed.errors import LakeError, ProtocolConflict
from lakebed.types import OnChange

DRIVER_DIED = (
    "the process died every time it read this file on its own; the file may be too large for it"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a proposal is made from: a run's own state, or what a dry run can read of it."""

    settings: PipelineSettings
    open_source: OpenReader
    parallelism: int
    clock: Clock
    look: Callable[[], Mapping[str, Finding]]
    """Looks at every source that is due."""
    rebuild: Callable[[SegmentBroken], None]
    """Reads every entry again, because the names that were derived from them are damaged."""
    started_before: Callable[[], Started]
    """Returns how often the batch was started by processes that died with it."""
    check: Callable[[], None]
    """Raises where no batch may begin now."""
    found: Callable[[Mapping[str, Finding]], None] = lambda _findings: None
    """Called with what was found before anything is decided."""
    is_time: Callable[[tuple[SourceFile, ...], bool], bool] = lambda _files, _more: True
    """Whether the waiting files make a batch now; there may be more than one may hold."""
    failed: frozenset[str] = frozenset()
    """The files that count against `max_failures` already."""
    unbounded: bool = False
    """Whether the batch may take as long as it wants."""
    forecast: Forecast = field(default_factory=Forecast)
    """What source files are expected to become."""
    hurry: Callable[[bool], bool] = lambda _more: True
    """Whether all cores get work at once, even if data files come out smaller; there may be more
    than a batch may hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
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
    waits: bool = False
    """Whether there are files, and it is not yet time for them."""
    refusal: LakeError | None = None
    """Why no batch may begin now."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was found to do."""
        return not any(finding.has_work for finding in self.findings.values())

    @property
    def failed(self) -> tuple[SourceRecord, ...]:
        """Return the files that have failed before any is read."""
        return self.misplaced + self.died + self.gone

    def after(self, failed: tuple[SourceRecord, ...]) -> "Proposal":
        """Return the rest of it, once the new content of files was read, or failed. Pure."""
        return replace(self, renew=(), misplaced=self.misplaced + failed)

    @property
    def late(self) -> frozenset[str]:
        """Return the keys of files that a bare watermark would have missed."""
        return frozenset(key for finding in self.findings.values() for key in finding.late)

    @property
    def noticed(self) -> frozenset[str]:
        """Return the keys of files that were found because a message named them."""
        return frozenset(key for finding in self.findings.values() for key in finding.noticed)

    @property
    def again(self) -> frozenset[str]:
        """Return the keys of files that were ingested before, as other objects."""
        return frozenset(key for finding in self.findings.values() for key in finding.again)

    def noted(self, records: Iterable[SourceRecord]) -> tuple[SourceRecord, ...]:
        """Return records with what was found out when their files were listed. Pure.

        That is when each was written, and whether it was ingested before, as another object.
        """
        again = self.again
        written = {file.key: file.modified_ms for file in self.files}
        return tuple(
            _noted(
                record,
                reingested=record.reingested or key in again,
                modified=written.get(key, record.modified),
            )
            for record in records
            for key in (record.key,)
        )


def _noted(record: SourceRecord, *, reingested: bool, modified: int | None) -> SourceRecord:
    """Return a record with this in it: itself where it says so already, as most of them do."""
    if record.reingested == reingested and record.modified == modified:
        return record
    return replace(record, reingested=reingested, modified=modified)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One batch that has run: what was proposed, and what came of it."""

    proposal: Proposal = field(default_factory=Proposal)
    effort: Effort = field(default_factory=Effort)
    left: int = 0
    """Files that it had begun with and has left: the next batch waits for no trigger."""
    got_nowhere: bool = False
    """Whether its time was too short for anything: the next one may take as long as it wants."""
    entry: Entry | None = None
    """What the journal says of it; None where that is in doubt, or there was nothing to say."""
    handed_off: bool = True
    """Whether nothing of it has yet to be handed off."""


def propose(view: View) -> Proposal:
    """Return what the next batch is to do. Damaged names are built again, and not believed."""
    try:
        findings = view.look()
    except SegmentBroken as broken:
        view.rebuild(broken)
        findings = view.look()
    view.found(findings)
    proposal = Proposal(
        findings=findings,
        files=tuple(file for finding in findings.values() for file in finding.take),
        misplaced=tuple(record for finding in findings.values() for record in finding.misplaced),
        gone=tuple(record for finding in findings.values() for record in finding.gone),
    )
    if proposal.is_empty:
        return proposal
    files, misplaced = proposal.files, proposal.misplaced
    more = any(finding.left_over for finding in findings.values())
    if files and not misplaced and not view.is_time(files, more):
        return replace(proposal, waits=True)
    try:
        view.check()
    except (ProtocolConflict, CommitsBehind) as refusal:
        return replace(proposal, refusal=refusal)
    began = view.clock.seconds()
    limit = view.settings.max_failures
    may_fail = None if limit is None else limit - len(view.failed)
    misplaced = misplaced[:may_fail]
    renew = _to_renew(proposal, view.settings)
    files = tuple(file for file in files if file not in renew)
    part = portion(files, view.started_before()) if files else Portion(take=())
    files, died = part.take, tuple(given_up(file, DRIVER_DIED) for file in part.died)
    bounds = Bounds(
        seconds=None if view.unbounded else view.settings.sink.rolling.rollover,
        failures=None if may_fail is None else may_fail - len(misplaced) - len(died),
        forgiven=view.failed & {file.key for file in files},
    )
    if bounds.failures is not None and bounds.failures <= 0:
        files = ()  # The last file that may fail has failed by its path alone.
    return replace(
        proposal,
        files=files,
        renew=renew,
        misplaced=misplaced,
        died=died,
        units=_planned(view, files, hurry=view.hurry(more)),
        bounds=bounds,
        note=part.note,
        began=began,
    )


def _to_renew(proposal: Proposal, settings: PipelineSettings) -> tuple[SourceFile, ...]:
    """Return the files whose rows are replaced; one that was begun as it is now is read on."""
    replacing = {one.name for one in settings.sources if one.on_change is OnChange.REPLACE}
    return tuple(
        file
        for file in proposal.files
        if file.source in replacing and file.key in proposal.again and not file.skip
    )


def _planned(view: View, files: tuple[SourceFile, ...], *, hurry: bool) -> tuple[WorkUnit, ...]:
    if not files:
        return ()
    return planned(
        view.settings,
        files,
        view.open_source,
        parallelism=view.parallelism,
        forecast=view.forecast,
        hurry=hurry,
    )
