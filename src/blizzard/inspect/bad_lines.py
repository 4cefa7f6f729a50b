"""What waits in quarantine, in groups and line by line. Read-only."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from blizzard.journal.quarantine import WaitingFile, may_have, waiting_files
from blizzard.model.bad_lines import Fault, Meant
from blizzard.model.locations import OpenReader, sink_location
from blizzard.model.settings import PipelineSettings
from blizzard.worker.quarantine_reader import QuarantinedLine, lines_of, read_table
from lakebed.errors import ObjectMissing
from lakebed.journal import JournalReader
from lakebed.storage.store import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine:
    """The quarantine files of one pipeline that have lines which wait."""

    store: Reader | None
    """None where there is no table yet."""
    files: tuple[WaitingFile, ...] = ()

    def lines(self, meant: Meant) -> Iterator[tuple[WaitingFile, QuarantinedLine]]:
        """Yield the lines that are meant, in the order in which they were set aside."""
        for waiting in self.files:
            if self.store is None or not may_have(waiting, meant):
                continue
            for line in lines_of(read_table(self.store, waiting.file), waiting.file):
                if meant.takes(line.fault.group, line.key):
                    yield waiting, line


def quarantine_of(settings: PipelineSettings, open_reader: OpenReader) -> Quarantine:
    """Return the quarantine of a pipeline. It is handed readers only, so it cannot write."""
    try:
        store = open_reader(sink_location(settings))
    except ObjectMissing:
        return Quarantine(store=None)  # The table's folder does not exist yet.
    return Quarantine(
        store=store, files=waiting_files(JournalReader(store, settings.name).entries())
    )


@dataclass(slots=True)
class Group:
    """Lines with the same fault."""

    fault: Fault
    sample: QuarantinedLine
    """The first of them."""
    lines: int = 0
    files: set[str] = field(default_factory=set)
    """The keys of the source files that they are from."""


def groups_of(quarantine: Quarantine, meant: Meant) -> list[Group]:
    """Return the lines that are meant in groups, the largest first."""
    found: dict[Fault, Group] = {}
    for _file, line in quarantine.lines(meant):
        group = found.setdefault(line.fault, Group(line.fault, line))
        group.lines += 1
        group.files.add(line.key)
    return sorted(found.values(), key=lambda one: (-one.lines, one.fault.group))
