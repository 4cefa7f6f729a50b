"""A journal of many entries in a store in memory, and the source whose files it has read."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from blizzard.answers.report import Reconciler
from blizzard.journal.checkpoint import SnapshotWriter, read_ledger
from blizzard.model.settings import PipelineSettings, SinkSettings
from lakebed.clock import Clock
from lakebed.documents.entry import Entry, Receipt, digest, encode
from lakebed.documents.source_record import SourceRecord
from lakebed.layout import journal_entry, receipt
from lakebed.types import Handoff
from tests.support.bucket import Bucket
from tests.support.builders import ID_AND_NAME, NOON, source_settings

SETTINGS = PipelineSettings(
    sources=(source_settings("s3://bucket/in"),),
    sink=SinkSettings(table_uri="s3://bucket/table"),
    schema=ID_AND_NAME,
)
TAIL = 20
"""Entries after the snapshot."""


@dataclass(slots=True)
class LongJournal:
    """So many entries, an hour apart, each of so many files with two rows; all are committed."""

    entries: int
    files: int
    table: Bucket
    source: Bucket

    @classmethod
    def of(cls, entries: int, files: int) -> "LongJournal":
        made = cls(entries, files, Bucket(uri="s3://bucket/table"), Bucket())
        names = [made.name(number, file) for number in range(1, entries) for file in range(files)]
        made.source = Bucket(names)
        for number in range(1, entries):
            at = made.at(number)
            made.source.modified |= {made.name(number, file): at for file in range(files)}
        made._write()
        return made

    def name(self, number: int, file: int) -> str:
        return f"{file:03}/{number:05}.ndjson"

    def at(self, number: int) -> datetime:
        return NOON + timedelta(hours=number)

    def _write(self) -> None:
        previous = body = None
        for number in range(self.entries):
            entry = Entry(
                kind="batch" if number else "open",
                pipeline="default",
                journal="j",
                sequence=number,
                run="r",
                created=self.at(number).isoformat(),
                previous=previous,
                handoff=Handoff.JOURNAL,
                source_uris={"default": "s3://bucket/in"},
                table_schema=ID_AND_NAME.delta(),
                partition_columns=(),
                sources=tuple(self._record(number, file) for file in range(self.files))
                if number
                else (),
            )
            body = encode(entry)
            previous = digest(body)
            self.table.replace(journal_entry("default", number), body)
            if number == self.entries - TAIL:
                keeps = SnapshotWriter(store=self.table, pipeline="default", clock=Clock())
                keeps.write(read_ledger(self.table, "default", spill=keeps.spill))
        assert previous is not None
        done = Receipt(journal="j", sequence=self.entries - 1, digest=previous)
        self.table.replace(receipt("default"), encode(done))

    def _record(self, number: int, file: int) -> SourceRecord:
        path = self.name(number, file)
        return SourceRecord(source="default", path=path, size=10, etag=f"e-{path}", lines=2, rows=2)

    def reconciler(self) -> Reconciler:
        """Return who reconciles it, a day after its last entry."""
        places = {"s3://bucket/in": self.source, "s3://bucket/table": self.table}
        now = self.at(self.entries) + timedelta(days=1)
        return Reconciler(SETTINGS, lambda place: places[place.uri], Clock(seconds=now.timestamp))
