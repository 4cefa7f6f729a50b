"""A source of many names without bodies, and one who looks at it."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from blizzard.discover.finding import Finding
from blizzard.discover.lister import SourceLister
from blizzard.discover.scan import DiscoveryContext
from blizzard.discover.schedule import Pace, Schedule
from blizzard.journal import segments
from blizzard.journal.ledger import Ledger
from blizzard.model.settings import ListingLimits, Sizing
from blizzard.model.source.file import UNKNOWN, IngestedFile, SourceFile, UnfinishedFile
from lakebed.clock import Clock
from lakebed.documents.records import SourceRecord
from tests.support.bucket import Bucket
from tests.support.builders import NOON, pipeline_settings, source_settings

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
USUAL = ListingLimits()
QUICK = ListingLimits(page=1)
"""Sources of a few files count as large, so that quick looks are made."""


class Site:
    """A source, the names that are done, and one who looks."""

    def __init__(
        self, names: Iterable[str] = (), *, limits: ListingLimits = USUAL, **source: Any
    ) -> None:
        self.bucket = Bucket(names)
        self.table = Bucket(uri="s3://bucket/table")
        self.history = Ledger(store=self.table, pipeline="default")
        self.now = NOON
        self.since: datetime | None = NOON
        self.settings = source_settings("s3://bucket/in", **source)
        self.limits = limits
        self.last = Finding()
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
            IngestedFile(key=f"default:{path}", size=10, etag=f"e-{path}").row
            for path in self.bucket.names
        )
        segment = segments.write_segment(self.table, "default", names, Clock().fresh_id())
        self.history = Ledger(store=self.table, pipeline="default", segments=[segment])

    def fail(self, found: SourceRecord) -> None:
        self.history.unfinished[found.key] = UnfinishedFile(record=found, at=self.now)

    def look(self, *, later: timedelta = timedelta(0)) -> Finding:
        self.now += later
        lookup = self.history.lookup()
        context = DiscoveryContext(
            store=self.bucket,
            lookup=lookup,
            unfinished=self.history.unfinished,
            since=self.since,
            now=self.now,
        )
        open_work = [key for key in self.last.work if lookup(key) == UNKNOWN]
        self.last = self.lister.discover(context, open_work=open_work)
        return self.last

    def arrive(self, *paths: str) -> None:
        for path in paths:
            self.bucket.add(path, modified=self.now)

    def restart(self) -> None:
        self.lister = SourceLister(
            source=self.settings, template=None, partition_fields={}, limits=self.limits
        )


class Backlog:
    """A schedule over a site, whose batches are journaled as a pipeline does it."""

    def __init__(self, site: Site, *, once: bool = False) -> None:
        self.site = site
        self.once = once
        self.restart()

    def _seconds(self) -> float:
        return self.site.now.timestamp()

    def restart(self) -> None:
        settings = pipeline_settings(
            Path("in"), Path("table"), sizing=Sizing(quick_listing=self.site.limits)
        )
        self.schedule = Schedule(
            replace(settings, sources=(self.site.settings,)),
            lambda _place: self.site.bucket,
            clock=cast("Clock", SimpleNamespace(now=lambda: self.site.now, seconds=self._seconds)),
            pace=Pace(drain=self.once),
        )

    def found(self) -> tuple[SourceFile, ...]:
        """Return the files of the next batch."""
        (finding,) = self.schedule.findings(self.site.history, frozenset()).values()
        return finding.take

    def journal(self, files: Iterable[SourceFile]) -> None:
        """Let files be done as they were found."""
        for file in files:
            done = IngestedFile(key=file.key, size=file.size, etag=file.etag)
            self.site.history.recent[file.key] = done
        self.schedule.journaled({file.key for file in files})

    def batch(self) -> list[str]:
        """Run a batch; return the paths of its files."""
        files = self.found()
        self.journal(files)
        return [file.path for file in files]


def taken(finding: Finding) -> list[str]:
    return [file.path for file in finding.take]


def flat(count: int) -> list[str]:
    return [f"{number:08d}.ndjson" for number in range(count)]
