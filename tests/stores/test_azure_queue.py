"""Files in Azure found by notice: a storage queue tells, blizzard looks, and the message goes.

Azurite has no Event Grid, so the tests send what that would send.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from azure.storage.queue import QueueClient, generate_queue_sas
from typer.testing import CliRunner

from blizzard.cli.app import app
from blizzard.events import NoticeUnreadable, QueueFailed
from blizzard.model.settings import QueueService, QueueSettings
from blizzard.notices.azure import AzureQueue
from blizzard.notices.queue import Message, QueueDenied, QueueMissing, QueueUnavailable
from lakebed.storage.options import StorageOptions
from tests.support.noticed import NoticedLake, found_by_notice, said
from tests.support.ports import reserved_port
from tests.support.queues import counted, event_grid, in_base64
from tests.support.servers import azurite_queues
from tests.support.servers_reached import ACCOUNT, ACCOUNT_KEY, BUCKET, Contestant
from tests.support.waits import at_once, until

pytestmark = pytest.mark.stores

_names = count()


def settings_of(url: str, key: str = ACCOUNT_KEY, **options: str) -> QueueSettings:
    return QueueSettings(
        url=url,
        endpoint=url.rpartition("/")[0],
        service=QueueService.AZURE,
        account=ACCOUNT,
        options=StorageOptions(options or {"account_key": key}),
    )


class Forgetful(AzureQueue):
    """A process that dies after the entry and before the message is deleted."""

    def receive(self, *, hide_secs: int) -> Sequence[Message]:
        del hide_secs
        return super().receive(hide_secs=1)

    def delete(self, receipts: Sequence[str]) -> None:
        pass


@dataclass
class AzureLake(NoticedLake):
    """A source in a container, and a storage queue that tells of it."""

    client: QueueClient

    def event(self, name: str, folder: str = "in", **how: Any) -> dict[str, Any]:
        """Return what Event Grid would send of a file."""
        event = event_grid(self.key(name, folder), BUCKET, **how)
        topic = "source" if "specversion" in event else "topic"
        return {**event, topic: event[topic].replace("/store", f"/{ACCOUNT}")}

    def send(self, body: str) -> None:
        self.client.send_message(body)

    def left(self) -> int:
        """Count the messages that are not deleted."""
        return self.client.get_queue_properties().approximate_message_count or 0


@pytest.fixture(scope="module")
def queues() -> Iterator[str]:
    with azurite_queues() as address:
        yield f"{address}/{ACCOUNT}"


@pytest.fixture
def lake(running: dict[str, Contestant], queues: str, tmp_path: Path) -> Iterator[AzureLake]:
    azurite = running["azurite"]
    name = f"new-files-{next(_names)}"
    key = {"account_name": ACCOUNT, "account_key": ACCOUNT_KEY}
    with QueueClient(queues, name, credential=key) as client:
        client.create_queue()
        yield AzureLake(azurite, azurite.fresh(), f"{queues}/{name}", tmp_path, client)


@pytest.mark.parametrize("cloud_events", [False, True], ids=["event_grid", "cloud_events"])
@pytest.mark.parametrize("written", [in_base64, json.dumps], ids=["base64", "text"])
def test_a_file_is_found_by_notice_and_its_message_goes(
    lake: AzureLake, written: Any, cloud_events: bool
):
    """The source is not listed for another hour; names may hold what URLs encode."""
    name = "date=2024-01-01/a b+c é.ndjson"
    with lake.run() as events:
        lake.put(name)
        lake.send(written(lake.event(name, cloud_events=cloud_events)))
        lake.send(written(lake.event(name, "elsewhere", cloud_events=cloud_events)))
        until(lambda: found_by_notice(events))
        until(lambda: lake.left() == 0)
    assert lake.ingested() == [name]
    assert counted(events) == {"taken": 1, "elsewhere": 1}
    assert said(events, QueueFailed) == []


def test_garbage_is_told_once_and_left_and_wedges_nothing(lake: AzureLake):
    for body in ("garbage", in_base64("more of it")):
        lake.send(body)
    with lake.run() as events:
        lake.put("a.ndjson")
        lake.send(in_base64(lake.event("a.ndjson")))
        until(lambda: found_by_notice(events))
        until(lambda: lake.left() == 2)
    assert counted(events) == {"taken": 1, "unreadable": 2}
    assert len(said(events, NoticeUnreadable)) == 1


def test_a_death_between_entry_and_deletion_costs_nothing(lake: AzureLake):
    """The message comes again, in the same process and in the next one."""
    with lake.run(Forgetful) as events:
        lake.put("a.ndjson")
        lake.send(in_base64(lake.event("a.ndjson")))
        until(lambda: counted(list(events)).get("known"))
    assert lake.left() == 1
    with lake.run() as events:
        until(lambda: counted(list(events)).get("known"))
        until(lambda: lake.left() == 0)
    assert lake.ingested() == ["a.ndjson"]


def test_messages_are_hidden_deleted_and_counted(lake: AzureLake):
    """Every hiding gives a message another receipt; the one that we were given goes on to hold."""
    with closing(AzureQueue(settings_of(lake.queue), pause=at_once)) as queue:
        for number in range(34):
            lake.send(str(number))
        got = [*queue.receive(hide_secs=60), *queue.receive(hide_secs=60)]
        assert sorted(int(each.body) for each in got) == list(range(34))
        assert queue.receive(hide_secs=60) == []
        depth = queue.depth()
        assert (depth.waiting, depth.in_flight) == (34, None)
        first, second, *rest = [each.receipt for each in got]
        for _again in range(2):
            queue.hide([first, second], secs=60)
        queue.delete([first, *rest])
        assert queue.depth().waiting == 1
        queue.hide([second], secs=0)
        (again,) = queue.receive(hide_secs=60)
        queue.delete([second])
        assert queue.depth().waiting == 1, "it was delivered anew, and is another's by now"
        queue.delete([again.receipt])
        assert queue.depth().waiting == 0
        for gone in (queue.delete, lambda some: queue.hide(some, secs=1)):
            gone([again.receipt])


@pytest.mark.parametrize("allowed", ["rpu", "r"])
def test_a_signature_for_the_queue_is_enough(lake: AzureLake, allowed: str):
    """By the permissions that the documentation names, and not by fewer."""
    signature = generate_queue_sas(
        ACCOUNT,
        lake.queue.rpartition("/")[2],
        ACCOUNT_KEY,
        permission=allowed,
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )
    lake.send("1")
    settings = settings_of(lake.queue, sas_key=f"?{signature}")
    with closing(AzureQueue(settings, environment={})) as queue:
        assert queue.depth().waiting == 1
        if allowed == "r":
            with pytest.raises(QueueDenied, match="Storage Queue Data Contributor"):
                queue.receive(hide_secs=60)
            return
        receipts = [each.receipt for each in queue.receive(hide_secs=60)]
        queue.hide(receipts, secs=60)
        queue.delete(receipts)
        assert queue.depth().waiting == 0


def test_the_queue_says_what_is_wrong_in_our_words(lake: AzureLake, queues: str):
    wrong = "d3Jvbmc="
    with reserved_port() as port:
        for settings, error, words in (
            (settings_of(f"{queues}/nobody"), QueueMissing, "check its URL"),
            (settings_of(lake.queue, wrong), QueueDenied, "refused the credentials"),
            (settings_of(lake.queue, "not base64!"), QueueDenied, "no valid credentials"),
            (settings_of(f"http://127.0.0.1:{port}/x/q"), QueueUnavailable, "does not answer"),
        ):
            with closing(AzureQueue(settings, environment={})) as queue:
                for ask in (queue.depth, lambda each=queue: each.receive(hide_secs=1)):
                    with pytest.raises(error, match=words) as raised:
                        ask()
                    assert wrong not in str(raised.value)


@pytest.mark.parametrize("command", ["--dry-run", "status"])
def test_a_look_shows_the_queue_and_takes_no_message(lake: AzureLake, command: str):
    lake.put("a.ndjson")
    lake.send(in_base64(lake.event("a.ndjson")))
    shown = CliRunner().invoke(app, [command, "-c", str(lake.config())])
    assert "1 notice waiting or being followed in" in " ".join(shown.stdout.split())
    with closing(AzureQueue(settings_of(lake.queue))) as queue:
        assert len(queue.receive(hide_secs=1)) == 1
