"""A source in a store, a queue that tells of its files, and a blizzard that listens to it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from blizzard.config.load import load
from blizzard.events import FilesNoticed
from blizzard.notices.listener import open_queue
from blizzard.notices.queue import OpenQueue
from blizzard.service import Service
from lakebed.documents.entry import decode_entry
from lakebed.layout import entry_sequence, journal_folder
from lakebed.polling import Stop
from lakebed.telemetry.events import Event, StepFinished
from tests.support.builders import ndjson, rows
from tests.support.runner import inside
from tests.support.servers_reached import BUCKET, Contestant
from tests.support.waits import until

HOUR = 3600


@dataclass
class NoticedLake:
    """A source, a queue, and the configuration that names both. No poll finds a file in time."""

    contestant: Contestant
    uri: str
    queue: str
    folder: Path

    def config(self) -> Path:
        """Write the configuration."""
        access = self.contestant.options()
        document = {
            "source": {
                "path": f"{self.uri}/in",
                "storage_options": access,
                "poll_interval_secs": HOUR,
                "notifications": {"queue": self.queue},
            },
            "sink": {
                "path": f"{self.uri}/table",
                "storage_options": access,
                "inactivity_timeout_secs": 0.001,
            },
            "schema": {
                "fields": [{"name": "id", "type": "int64"}, {"name": "name", "type": "string"}]
            },
        }
        file = self.folder / "pipeline.yaml"
        file.write_text(yaml.safe_dump(document))
        return file

    def put(self, name: str) -> None:
        """Let a file of one row arrive."""
        self.contestant.open(f"{self.uri}/in").create(name, ndjson(rows(1)))

    def key(self, name: str, folder: str = "in") -> str:
        """Return the key of a file in its bucket."""
        _bucket, _, place = self.uri.partition(f"://{BUCKET}/")
        return f"{place}/{folder}/{name}"

    def ingested(self) -> list[str]:
        """Return the files that entries of the journal name."""
        journal = self.contestant.open(f"{self.uri}/table")
        names = sorted(each.path for each in journal.objects(journal_folder("default")))
        entries = [
            decode_entry(journal.get(name) or b"", name)
            for name in names
            if entry_sequence(name.rpartition("/")[2]) is not None
        ]
        return [each.path for entry in entries for each in entry.sources]

    @contextmanager
    def run(self, opened: OpenQueue = open_queue) -> Iterator[list[Event]]:
        """Run blizzard until the end of the block, from the moment when it has looked once."""
        events: list[Event] = []
        stop = Stop()
        service = Service(
            settings=load([self.config()], [], {}),
            emit=events.append,
            stop=stop,
            once=False,
            make_runner=inside,
            open_queue=opened,
        )
        thread = threading.Thread(target=service.run)
        thread.start()
        try:
            until(lambda: said(events, StepFinished))
            yield events
        finally:
            stop.request()
            thread.join(300)
        assert not thread.is_alive()


def said(events: list[Event], kind: type[Event]) -> list[Any]:
    """Return the events of a kind, while more of them may come."""
    return [each for each in list(events) if isinstance(each, kind)]


def found_by_notice(events: list[Event]) -> int:
    """Count the files that were found because a message named them."""
    return sum(each.files for each in said(events, FilesNoticed))
