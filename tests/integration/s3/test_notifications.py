"""Files found by notice: S3 tells a queue, blizzard looks. Sources are polled once an hour here."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from blizzard.cli.app import app
from blizzard.config.load import load
from blizzard.events import FilesNoticed, QueueFailed
from blizzard.model.settings import QueueSettings
from blizzard.notices.queue import QueueMissing, QueueUnavailable
from blizzard.notices.sqs import SqsQueue
from blizzard.service import Service
from lakebed.documents.entry import Entry, decode_entry
from lakebed.layout import entry_sequence, journal_folder
from lakebed.polling import Stop
from lakebed.telemetry.events import Event, StepFinished
from tests.support import waits
from tests.support.builders import ndjson, rows
from tests.support.ports import reserved_port
from tests.support.queues import Aws, aws, counted, queue_settings, s3_body
from tests.support.runner import inside
from tests.support.s3 import options, store

HOUR = 3600
until = partial(waits.until, every=0.1)
"""Asks moto's server, which has other things to do."""


def short(settings: QueueSettings) -> SqsQueue:
    """Open a queue that waits a second for messages."""
    return SqsQueue(settings, wait_secs=1)


class Forgetful(SqsQueue):
    """A process that dies after the entry and before the message is deleted."""

    def __init__(self, settings: QueueSettings) -> None:
        super().__init__(settings, wait_secs=1)

    def receive(self, *, hide_secs: int) -> Sequence[Any]:
        return super().receive(hide_secs=1)

    def delete(self, receipts: Sequence[str]) -> None:
        pass


@dataclass
class Run:
    """A blizzard under way."""

    events: list[Event] = field(default_factory=list)
    stop: Stop = field(default_factory=Stop)

    def said(self, kind: type[Event]) -> list[Any]:
        return [each for each in list(self.events) if isinstance(each, kind)]

    def counted(self, kind: str) -> int:
        return counted(list(self.events)).get(kind, 0)

    def found_by_notice(self) -> int:
        return sum(each.files for each in self.said(FilesNoticed))


@dataclass
class Lake:
    """A bucket, a queue that is told of it, and the configuration that names both."""

    cloud: Aws
    bucket: str
    queue: str
    folder: Path
    poll_secs: int = HOUR

    def config(self, name: str = "in", table: str = "table") -> Path:
        access = options(self.cloud.address)
        document = {
            "source": {
                "path": f"s3://{self.bucket}/{name}",
                "storage_options": access,
                "poll_interval_secs": self.poll_secs,
                "notifications": {"queue": self.queue},
            },
            "sink": {
                "path": f"s3://{self.bucket}/{table}",
                "storage_options": access,
                "inactivity_timeout_secs": 0.001,
            },
            "schema": {
                "fields": [{"name": "id", "type": "int64"}, {"name": "name", "type": "string"}]
            },
        }
        file = self.folder / f"{table}.yaml"
        file.write_text(yaml.safe_dump(document))
        return file

    def put(self, key: str, number: int = 1) -> None:
        self.cloud.put(self.bucket, key, ndjson(rows(number)))

    def entries(self, table: str = "table") -> list[Entry]:
        journal = store(self.cloud.address, f"s3://{self.bucket}/{table}")
        folder = journal_folder("default")
        names = sorted(each.path for each in journal.objects(folder))
        return [
            decode_entry(journal.get(name) or b"", name)
            for name in names
            if entry_sequence(name.rpartition("/")[2]) is not None
        ]

    def ingested(self, table: str = "table") -> list[str]:
        return [each.path for entry in self.entries(table) for each in entry.sources]

    def waiting(self) -> int:
        """Count the messages that nobody has taken."""
        queue = SqsQueue(queue_settings(self.queue), wait_secs=1)
        try:
            return queue.depth().waiting or 0
        finally:
            queue.close()

    @contextmanager
    def run(
        self, config: Path | None = None, open_queue: Callable[[QueueSettings], SqsQueue] = short
    ) -> Iterator[Run]:
        """Run blizzard until the end of the block, from the moment when it has looked once."""
        run = Run()
        service = Service(
            settings=load([config or self.config()], [], {}),
            emit=run.events.append,
            stop=run.stop,
            once=False,
            make_runner=inside,
            open_queue=open_queue,
        )
        thread = threading.Thread(target=service.run)
        thread.start()
        try:
            until(lambda: run.said(StepFinished))
            yield run
        finally:
            run.stop.request()
            thread.join(300)
        assert not thread.is_alive()


@pytest.fixture
def cloud(s3: str) -> Iterator[Aws]:
    with aws(s3) as opened:
        yield opened


@pytest.fixture
def lake(cloud: Aws, bucket: str, tmp_path: Path) -> Lake:
    return Lake(cloud, bucket, cloud.queue(), tmp_path)


@pytest.mark.parametrize("way", ["sqs", "sns", "event_bridge"])
def test_a_file_is_found_by_notice_and_its_message_goes(lake: Lake, way: str):
    """The source is not listed for another hour; names may hold blanks and plus signs."""
    {
        "sqs": lake.cloud.notify,
        "sns": lake.cloud.notify_by_sns,
        "event_bridge": lake.cloud.notify_by_event_bridge,
    }[way](lake.bucket, lake.queue)
    name = "date=2024-01-01/a b+c é.ndjson"
    with lake.run() as run:
        lake.put(f"in/{name}")
        lake.put(f"elsewhere/{name}")
        until(run.found_by_notice)
        until(lambda: lake.cloud.left(lake.queue) == 0)
    assert lake.ingested() == [name]
    assert run.counted("taken") == 1
    assert run.counted("elsewhere") >= 1, "blizzard's own objects are told of, too"
    assert run.counted("unreadable") == 0
    assert run.said(QueueFailed) == []


def test_a_test_event_and_garbage_wedge_nothing(lake: Lake):
    lake.cloud.notify(lake.bucket, lake.queue, "in/")
    lake.cloud.send(lake.queue, "garbage")
    with lake.run() as run:
        lake.put("in/a.ndjson")
        until(run.found_by_notice)
        until(lambda: run.counted("test") and run.counted("unreadable"))
        until(lambda: lake.cloud.left(lake.queue) == 1)
    assert lake.ingested() == ["a.ndjson"]


def test_a_death_between_entry_and_deletion_costs_nothing(lake: Lake):
    """The message comes again, in the same process and in the next one."""
    lake.cloud.notify(lake.bucket, lake.queue, "in/")
    with lake.run(open_queue=Forgetful) as run:
        lake.put("in/a.ndjson")
        until(lambda: run.counted("known"))
    assert lake.cloud.left(lake.queue)
    with lake.run() as run:
        until(lambda: run.counted("known"))
        until(lambda: lake.cloud.left(lake.queue) == 0)
    assert lake.ingested() == ["a.ndjson"]


def test_what_is_told_twice_or_late_or_of_nothing_is_read_once(lake: Lake):
    lake.put("in/old.ndjson")
    with lake.run() as run:
        until(lambda: lake.ingested() == ["old.ndjson"])
        lake.cloud.send(lake.queue, s3_body("in/old.ndjson", bucket=lake.bucket))
        lake.cloud.send(lake.queue, s3_body("in/deleted.ndjson", bucket=lake.bucket))
        lake.put("in/new.ndjson")
        body = s3_body("in/new.ndjson", "in/new.ndjson", bucket=lake.bucket)
        lake.cloud.send(lake.queue, body)
        lake.cloud.send(lake.queue, body)
        until(lambda: run.counted("known"))
        until(run.found_by_notice)
        until(lambda: lake.cloud.left(lake.queue) == 0)
    assert lake.ingested() == ["old.ndjson", "new.ndjson"]
    assert (run.counted("missing"), run.counted("taken")) == (1, 2)


def test_two_blizzards_on_one_queue_lose_only_freshness(lake: Lake):
    """Each takes messages that are the other's; what they say is found by listing."""
    lake.poll_secs = 1
    lake.cloud.notify(lake.bucket, lake.queue)
    with lake.run(lake.config("one", "table")), lake.run(lake.config("two", "other")):
        for number in range(4):
            lake.put(f"one/{number}.ndjson")
            lake.put(f"two/{number}.ndjson")
        names = [f"{number}.ndjson" for number in range(4)]
        until(lambda: sorted(lake.ingested()) == sorted(lake.ingested("other")) == names)


def test_a_queue_that_is_not_there_is_told_and_files_are_found_by_listing(lake: Lake):
    lake.queue = f"{lake.cloud.address}/123456789012/nobody"
    lake.poll_secs = 1
    with lake.run() as run:
        lake.put("in/a.ndjson")
        until(lambda: run.said(QueueFailed))
        until(lambda: lake.ingested() == ["a.ndjson"])
    failed = run.said(QueueFailed)[0]
    assert failed.code == "queue_missing"
    assert "check its URL" in failed.sentence()
    assert not run.said(FilesNoticed)


def test_the_queue_says_what_is_wrong_in_our_words(lake: Lake):
    missing = SqsQueue(queue_settings(f"{lake.cloud.address}/123456789012/nobody"), wait_secs=1)
    for ask in (missing.depth, lambda: missing.receive(hide_secs=1)):
        with pytest.raises(QueueMissing):
            ask()
    missing.close()
    with reserved_port() as port:
        nowhere = SqsQueue(queue_settings(f"http://127.0.0.1:{port}/1/q"), wait_secs=1)
        with pytest.raises(QueueUnavailable):
            nowhere.depth()
        nowhere.close()


def test_messages_are_hidden_deleted_and_counted(lake: Lake):
    queue = SqsQueue(queue_settings(lake.queue), wait_secs=1)
    for number in range(12):
        lake.cloud.send(lake.queue, str(number))
    got = [*queue.receive(hide_secs=60), *queue.receive(hide_secs=60)]
    assert sorted(int(each.body) for each in got) == list(range(12))
    assert (queue.depth().waiting, queue.depth().in_flight) == (0, 12)
    queue.hide([each.receipt for each in got], secs=0)
    again = [*queue.receive(hide_secs=60), *queue.receive(hide_secs=60)]
    queue.delete([each.receipt for each in again])
    assert (queue.depth().waiting, queue.depth().in_flight) == (0, 0)
    queue.delete([again[0].receipt])
    queue.delete([])
    queue.close()


def test_to_drain_takes_no_message(lake: Lake):
    """It sees for itself that nothing is left."""
    lake.put("in/a.ndjson")
    lake.cloud.send(lake.queue, s3_body("in/a.ndjson", bucket=lake.bucket))
    Service(
        settings=load([lake.config()], [], {}),
        emit=lambda _event: None,
        stop=Stop(),
        once=True,
        make_runner=inside,
        open_queue=short,
    ).run()
    assert lake.ingested() == ["a.ndjson"]
    assert lake.waiting() == 1


@pytest.mark.parametrize("command", ["--dry-run", "status"])
def test_a_look_shows_the_queue_and_takes_no_message(lake: Lake, command: str):
    lake.put("in/a.ndjson")
    lake.cloud.send(lake.queue, s3_body("in/a.ndjson", bucket=lake.bucket))
    shown, told = (
        CliRunner().invoke(app, [command, "-c", str(lake.config()), *more])
        for more in ([], ["--output", "json"])
    )
    assert "1 notice waiting or being followed" in " ".join(shown.stdout.split())
    row = json.loads(told.stdout)
    queues = (
        row["notifications"] if command == "--dry-run" else [row["sources"][0]["notifications"]]
    )
    assert queues == [{"queue": lake.queue, "messages": 1, "error": None}]
    assert lake.waiting() == 1
    lake.queue = f"{lake.cloud.address}/123456789012/nobody"
    done = CliRunner().invoke(app, [command, "-c", str(lake.config())])
    assert done.exit_code == 0, "files are found without it"
    assert "does not exist, or not in this region and account" in " ".join(done.stdout.split())
    assert "[queue_missing]" in done.stdout


def test_a_file_is_found_long_before_the_next_poll(lake: Lake):
    """Measured from the put; an hour, if it were by listing."""
    lake.cloud.notify(lake.bucket, lake.queue, "in/")
    with lake.run() as run:
        for found in ("a", "b", "c"):
            before, began = run.found_by_notice(), time.monotonic()
            lake.put(f"in/{found}.ndjson")
            while run.found_by_notice() == before:
                assert not run.said(QueueFailed)
                time.sleep(0.01)
            assert time.monotonic() - began < HOUR / 60
