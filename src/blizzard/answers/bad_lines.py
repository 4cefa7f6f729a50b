"""What waits in quarantine, in groups and line by line. Read-only."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from blizzard.answers.line_fixes import MOST_LINES, Rules
from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.ledger import Ledger
from blizzard.model.bad_lines import Fault, Meant, WaitingFile, may_have
from blizzard.model.columns import with_found
from blizzard.model.event_time import row_partitions_of
from blizzard.model.locations import OpenReader, sink_location
from blizzard.model.settings import PipelineSettings
from blizzard.worker.quarantine.reader import QuarantinedLine, lines_of, read_table
from lakebed.columns.schema import Schema
from lakebed.errors import ObjectMissing
from lakebed.storage.store import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine:
    """The quarantine files of one pipeline that have lines which wait."""

    store: Reader | None
    """None where there is no table yet."""
    rules: Rules
    """By what a line is read now."""
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
        return Quarantine(store=None, rules=_rules(settings))  # There is no folder of a table yet.
    return quarantine_in(settings, store, read_ledger(store, settings.name))


def quarantine_in(settings: PipelineSettings, store: Reader, history: Ledger) -> Quarantine:
    """Return the quarantine of a pipeline whose journal was read. Pure."""
    known = with_found(settings.schema, history.columns)
    by, template = row_partitions_of(settings), settings.sink.template
    # What the paths of source files give is not in their lines.
    inside = known.without(frozenset(template.keys if template else ())).fields
    schema = Schema(inside + (by.read if by else ()))
    return Quarantine(
        store=store,
        rules=replace(_rules(settings), schema=schema, by=by),
        files=history.books.waiting_files(),
    )


def _rules(settings: PipelineSettings) -> Rules:
    return Rules(
        schema=settings.schema, unknown=settings.unknown_fields, on_mismatch=settings.on_mismatch
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
    tried: list[bytes] = field(default_factory=list)
    """The first of them, to find out what would let them in."""


def groups_of(quarantine: Quarantine, meant: Meant) -> list[Group]:
    """Return the lines that are meant in groups, the largest first."""
    found: dict[Fault, Group] = {}
    for _file, line in quarantine.lines(meant):
        group = found.setdefault(line.fault, Group(line.fault, line))
        group.lines += 1
        group.files.add(line.key)
        if line.is_whole and len(group.tried) < MOST_LINES:
            group.tried.append(line.raw)
    return sorted(found.values(), key=lambda one: (-one.lines, one.fault.group))
