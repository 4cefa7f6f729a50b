"""A source of many names without bodies, and one who looks at it."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from blizzard.discover.finding import Finding
from blizzard.discover.lister import SourceLister
from blizzard.journal import ingested
from blizzard.journal.state import History
from blizzard.model.files import IngestedFile, UnfinishedFile
from blizzard.model.limits import LookLimits
from lakebed.clock import Clock
from lakebed.documents.source_record import SourceRecord
from tests.support.bucket import Bucket
from tests.support.builders import NOON, source_settings

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
USUAL = LookLimits()
QUICK = LookLimits(page=1)
"""Sources of a few files count as large, so that quick looks are made."""


class Site:
    """A source, the names that are done, and one who looks."""

    def __init__(
        self, names: Iterable[str] = (), *, limits: LookLimits = USUAL, **source: Any
    ) -> None:
        self.bucket = Bucket(names)
        self.table = Bucket(uri="s3://bucket/table")
        self.history = History()
        self.now = NOON
        self.since: datetime | None = NOON
        self.settings = source_settings("s3://bucket/in", **source)
        self.limits = limits
        self.restart()

    def finish(self, *paths: str) -> None:
        """Let files be in the table, as they are now."""
        for path in paths:
            facts = self.bucket.facts(path)
            key = f"default:{path}"
            self.history.recent[key] = IngestedFile(key=key, size=facts.size, etag=facts.etag)
            self.history.unfinished.pop(key, None)

    def finish_all(self) -> None:
        """Write all names to a segment, as a long history has them."""
        names = (
            IngestedFile(key=f"default:{path}", size=10, etag=f"e-{path}")
            for path in self.bucket.names
        )
        segment = ingested.write_segment(self.table, "default", names, Clock().fresh_id())
        self.history = History(segments=[segment])

    def fail(self, found: SourceRecord) -> None:
        self.history.unfinished[found.key] = UnfinishedFile(record=found, at=self.now)

    def look(self, *, later: timedelta = timedelta(0)) -> Finding:
        self.now += later
        return self.lister.look(
            self.bucket,
            self.history.lookup(self.table, "default"),
            unfinished=self.history.unfinished,
            since=self.since,
            tried=frozenset(),
            now=self.now,
        )

    def arrive(self, *paths: str) -> None:
        for path in paths:
            self.bucket.add(path, modified=self.now)

    def restart(self) -> None:
        self.lister = SourceLister(
            source=self.settings, template=None, partition_fields={}, limits=self.limits
        )


def taken(finding: Finding) -> list[str]:
    return [file.path for file in finding.take]


def flat(count: int) -> list[str]:
    return [f"{number:08d}.ndjson" for number in range(count)]
