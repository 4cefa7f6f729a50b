"""A pipeline by its journal, read once and then incrementally, and its bad lines in groups."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from blizzard.answers.answer import CommandPrefix, WayOut
from blizzard.answers.bad_lines import (
    FaultGroup,
    QuarantineFiles,
    fix_for,
    groups_of,
    quarantine_of,
    way_out_for,
)
from blizzard.answers.report import Reconciler
from blizzard.answers.source_status import SourceStatus
from blizzard.answers.status import StatusReader
from blizzard.model.bad_lines import Meant, WaitingFile
from blizzard.model.settings import PipelineSettings
from blizzard.model.stores import OpenReader, open_reader
from blizzard.pipeline_log import PipelineLog
from lakebed.clock import Clock
from lakebed.documents.records import BadLines as SourceBadLines
from lakebed.journal import JournalReader
from liveview.details import BadLineGroup
from liveview.entries import EntryFacts, PipelineView, facts_of
from liveview.looks.window import DocumentWindow


class PipelineLook:
    """Repeated views of one pipeline."""

    def __init__(
        self, settings: PipelineSettings, *, clock: Clock, opening: OpenReader = open_reader
    ) -> None:
        self.settings = settings
        self.window = DocumentWindow[EntryFacts](lambda entry: entry.at)
        self.lock = threading.Lock()
        """Held while the ledger of a view changes."""
        self.reconciler = Reconciler(settings, opening, clock)
        self.reconciling = threading.Lock()
        """Held while it is asked."""
        self._clock = clock
        self._open = opening
        self._listing = threading.Lock()
        self._reader = StatusReader(settings, clock, PipelineLog(settings, opening))
        self._lister = StatusReader(settings, clock)
        """A listing runs beside views, so it has a ledger of its own."""
        self._journal: str | None = None

    def view(self) -> PipelineView:
        """Read what is new in the journal, without listing the sources."""
        with self.lock:
            window, now = self.window, self._clock.seconds()
            since = now - window.span_secs
            asked, status = self._reader.read(self._open, listed=False)
            if status.journal != self._journal:
                window.forget()
                self._journal = status.journal
            store, name = asked.store, self.settings.name
            journal = None if store is None else JournalReader(store, name)
            last = -1 if status.last_entry is None else status.last_entry
            window.look(
                lambda number: None if journal is None else facts_of(journal.entry(number)),
                last,
                since=since,
            )
            entries = tuple(window.since(since))
            return PipelineView(
                asked=replace(asked),  # Without what it has read of the log.
                status=status,
                entries=entries,
                since=None if window.covered else entries[0].at if entries else now,
                unreadable=tuple(sorted(window.missing)),
                aside=asked.aside,
                refusal=asked.refusal(),
            )

    def sources(self) -> tuple[SourceStatus, ...]:
        """List the sources, as a run does that has just started."""
        with self._listing:
            return self._lister.read(self._open)[1].sources


MANY_LINES = "The list reads all of them, and names the setting that accepts them."
MOST_LINES = 20_000
"""Lines that are read to tell their groups; of more, the first fault of each file counts."""


@dataclass(slots=True)
class BadLineGroups:
    """The groups of one pipeline, for as long as the same files have lines that wait."""

    look: PipelineLook
    cli: CommandPrefix
    _of: tuple[str, ...] | None = None
    _groups: list[BadLineGroup] = field(default_factory=list)

    def groups(self, view: PipelineView) -> list[BadLineGroup]:
        """Return the groups, the largest first.

        Nothing is read where no line waits, or where the same files have waited before.
        """
        with self.look.lock:
            found = quarantine_of(view.asked)
        names = tuple(waiting.file.filename for waiting in found.files)
        if names != self._of:
            self._groups = self._read(found)
            self._of = names
        return self._groups

    def _read(self, found: QuarantineFiles) -> list[BadLineGroup]:
        lines = sum(waiting.file.record_count for waiting in found.files)
        if lines > MOST_LINES:
            return by_first_fault(found.files, self.cli)
        return [
            BadLineGroup(
                code=group.fault.code,
                field=group.fault.field,
                lines=group.lines,
                files=len(group.files),
                sample_path=group.sample.key,
                sample_line=group.sample.line,
                way_out=_way_out(group, found, self.cli),
            )
            for group in groups_of(found, Meant(everything=True))
        ]


def by_first_fault(files: Iterable[WaitingFile], cli: CommandPrefix) -> list[BadLineGroup]:
    """Return bad lines by the first fault of each source file, from the journal alone. Pure."""
    groups: dict[tuple[str, str | None], list[SourceBadLines]] = {}
    for waiting in files:
        for one in waiting.file.sources:
            groups.setdefault((one.code, one.field), []).append(one)
    found = [
        BadLineGroup(
            code=code,
            field=field,
            lines=sum(one.lines for one in sources),
            files=len({one.source for one in sources}),
            sample_path=sources[0].source,
            sample_line=sources[0].first,
            way_out=WayOut(advice=MANY_LINES, commands=(f"{cli.blizzard} dlq list",)),
        )
        for (code, field), sources in groups.items()
    ]
    return sorted(found, key=lambda group: -group.lines)


def _way_out(group: FaultGroup, found: QuarantineFiles, cli: CommandPrefix) -> WayOut:
    name = group.fault.group
    try:
        fix = fix_for(group.tried, found.rules)
    except ImportError:
        # Only penguin is installed here, and blizzard's libraries read lines.
        return WayOut(advice="Print them.", commands=(f"{cli.blizzard} dlq show {name}",))
    return way_out_for(name, fix, cli)
