"""Bad lines in groups, with the change that lets them in. What they say stays where it is."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from blizzard.answers.bad_lines import (
    FaultGroup,
    LinesWayOut,
    QuarantineFiles,
    fix_for,
    groups_of,
    quarantine_of,
    way_out_for,
)
from blizzard.model.bad_lines import Meant, WaitingFile
from lakebed.documents.source_record import BadLines as SourceBadLines
from liveview.details import BadLineGroup
from liveview.looks.pipelines import PipelineLook, PipelineView

MANY_LINES = "All of them are read, and what lets them in is found out."
MOST_LINES = 20_000
"""Lines that are read to tell their groups; of more, the first fault of each file counts."""


@dataclass(slots=True)
class BadLineGroups:
    """The groups of one pipeline, for as long as the same files have lines that wait."""

    look: PipelineLook
    dlq: str
    """The command with the options that name the configuration."""
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
            return by_first_fault(found.files, self.dlq)
        if not found.files:
            return []
        return [
            BadLineGroup(
                code=group.fault.code,
                field=group.fault.field,
                lines=group.lines,
                files=len(group.files),
                sample_path=group.sample.key,
                sample_line=group.sample.line,
                way_out=_way_out(group, found, self.dlq),
            )
            for group in groups_of(found, Meant(everything=True))
        ]


def by_first_fault(files: Iterable[WaitingFile], dlq: str) -> list[BadLineGroup]:
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
            way_out=LinesWayOut(advice=MANY_LINES, commands=[f"{dlq} list"]),
        )
        for (code, field), sources in groups.items()
    ]
    return sorted(found, key=lambda group: -group.lines)


def _way_out(group: FaultGroup, found: QuarantineFiles, dlq: str) -> LinesWayOut:
    name = group.fault.group
    try:
        fix = fix_for(group.tried, found.rules)
    except ImportError:
        # Only penguin is installed here, and blizzard's libraries read lines.
        return LinesWayOut(advice="Print them.", commands=[f"{dlq} show {name}"])
    return way_out_for(name, fix, dlq)
