"""Each file as it will be in the log of its table, or why it cannot be. Pure."""

from dataclasses import dataclass, field

from lakebed.deltalog.delta_types import by_name
from lakebed.layout import why_unreadable
from penguin.adopt.survey import values_of
from penguin.foreign.join import add_of
from penguin.foreign.rules import REFUSED, UNFIT, partition_values, typed_values
from penguin.model.adoption import FileRecord, NewTable, Totals, Trouble
from penguin.model.commit import Add
from penguin.plan.draft import statistics_for

WRONG_FOLDER = "move the file, or name the partition columns and their types with --partition-by"


@dataclass(slots=True)
class Assembly:
    """Files of one table, one after the other."""

    table: NewTable
    files: int = 0
    rows: int = 0
    bytes: int = 0
    empty: list[str] = field(default_factory=list)

    def add(self, record: FileRecord) -> Add | Trouble:
        """Return a file as the log will have it, or why it cannot."""
        found, file = record.found, record.file
        if record.trouble is not None or file is None:
            return record.trouble or Trouble(file=found.path, code=UNFIT, reason="it has no rows")
        unreadable = why_unreadable(found.path)
        if unreadable is not None:
            return Trouble(file=found.path, code=UNFIT, reason=f"{unreadable}; rename it")
        reason = self.table.refused.get(record.schema_key)
        if reason is not None:
            return Trouble(file=found.path, code=REFUSED, reason=reason)
        facts = self.table.facts
        try:
            values_of(found.path.rpartition("/")[0])
            inside = frozenset(by_name(file.schema))
            values = partition_values(found, facts.partition_columns, inside)
            finished = file.finished(typed_values(values, facts))
        except ValueError as wrong:
            return Trouble(file=found.path, code=UNFIT, reason=f"{wrong}; {WRONG_FOLDER}")
        self.files += 1
        self.rows += file.rows
        self.bytes += found.size
        if not file.rows:
            self.empty.append(found.path)
        seen = self.table.seen[record.schema_key]
        return add_of(finished, statistics_for(finished, seen, facts), {})

    def totals(self) -> Totals:
        """Return what all files are together."""
        return Totals(
            files=self.files, rows=self.rows, bytes=self.bytes, empty_files=tuple(self.empty)
        )
