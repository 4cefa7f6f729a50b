"""Files in Google Cloud Storage found by notice: Pub/Sub tells, blizzard looks, the message goes.

The store has no notifications here, so the tests publish what it would publish.
"""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.pubsub_v1.services.publisher import PublisherClient
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport
from google.pubsub_v1.services.subscriber import SubscriberClient
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcTransport
from google.pubsub_v1.types import PubsubMessage
from typer.testing import CliRunner

from blizzard.cli.app import app
from blizzard.config.load import load
from blizzard.events import NoticeUnreadable, QueueFailed
from blizzard.model.settings import QueueService, QueueSettings
from blizzard.notices.pubsub import PubSubQueue
from blizzard.notices.queue import Message, QueueMissing, QueueUnavailable
from tests.support.answering import Given, answering
from tests.support.noticed import NoticedLake, found_by_notice, said
from tests.support.queues import counted, google_attributes, google_object
from tests.support.servers import pubsub
from tests.support.servers_reached import BUCKET, Contestant
from tests.support.waits import until

pytestmark = pytest.mark.stores

_names = count()


def settings_of(url: str) -> QueueSettings:
    endpoint = url.partition("/projects/")[0]
    return QueueSettings(url=url, endpoint=endpoint, service=QueueService.PUBSUB)


class Forgetful(PubSubQueue):
    """A process that dies after the entry and before the message is acknowledged."""

    def receive(self, *, hide_secs: int) -> Sequence[Message]:
        del hide_secs
        return super().receive(hide_secs=1)

    def delete(self, receipts: Sequence[str]) -> None:
        pass


@dataclass
class GoogleLake(NoticedLake):
    """A source in a bucket, and a subscription that tells of it."""

    topic: str
    publisher: PublisherClient
    books: str

    def publish(self, name: str, folder: str = "in", *, data: bool = True, **how: str) -> None:
        """Publish what the store would publish of a file."""
        key = self.key(name, folder)
        told = google_object(key, BUCKET) if data else ""
        self.send(told.encode(), **google_attributes(key, BUCKET, **how))

    def send(self, data: bytes, **attributes: str) -> None:
        message = PubsubMessage(data=data, attributes=attributes)
        self.publisher.publish(topic=self.topic, messages=[message])

    def messages(self) -> list[dict[str, Any]]:
        """Return what became of the messages, as the server tells it."""
        with urllib.request.urlopen(f"http://{self.books}/?topic={self.topic}") as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return found

    def left(self) -> int:
        """Count the messages that are not acknowledged."""
        return sum(not each["Acks"] for each in self.messages())


@pytest.fixture(scope="module")
def service() -> Iterator[tuple[str, str]]:
    with pubsub() as address:
        yield address


@pytest.fixture
def lake(
    running: dict[str, Contestant], service: tuple[str, str], tmp_path: Path
) -> Iterator[GoogleLake]:
    google, number, (address, books) = running["google"], next(_names), service
    topic, name = f"projects/p/topics/t{number}", f"projects/p/subscriptions/new-files-{number}"
    with grpc.insecure_channel(address) as channel:
        publisher = PublisherClient(transport=PublisherGrpcTransport(channel=channel))
        publisher.create_topic(name=topic)
        subscriber = SubscriberClient(transport=SubscriberGrpcTransport(channel=channel))
        subscriber.create_subscription(name=name, topic=topic, ack_deadline_seconds=10)
        url = f"http://{address}/{name}"
        yield GoogleLake(google, google.fresh(), url, tmp_path, topic, publisher, books)


@pytest.mark.parametrize("data", [True, False], ids=["described", "named_alone"])
def test_a_file_is_found_by_notice_and_its_message_goes(lake: GoogleLake, data: bool):
    """The source is not listed for another hour; names are written as they are."""
    name = "date=2024-01-01/a b+c é%20.ndjson"
    with lake.run() as events:
        lake.put(name)
        lake.publish(name, data=data)
        lake.publish(name, "elsewhere", data=data)
        lake.publish(name, event="OBJECT_METADATA_UPDATE", data=data)
        until(lambda: found_by_notice(events))
        until(lambda: lake.left() == 0)
    assert lake.ingested() == [name]
    assert counted(events) == {"taken": 1, "elsewhere": 1, "other_event": 1}
    assert said(events, QueueFailed) == []


def test_a_message_is_acknowledged_after_the_entry_and_hidden_until_then(lake: GoogleLake):
    """The subscription would deliver it again after ten seconds; it is hidden for five minutes."""
    acknowledged: list[list[str]] = []

    class Watched(PubSubQueue):
        def delete(self, receipts: Sequence[str]) -> None:
            acknowledged.extend([lake.ingested()] * bool(receipts))
            super().delete(receipts)

    with lake.run(Watched) as events:
        lake.put("a.ndjson")
        lake.publish("a.ndjson")
        until(lambda: found_by_notice(events))
        until(lambda: lake.left() == 0)
    assert acknowledged == [["a.ndjson"]]
    (message,) = lake.messages()
    assert {each["AckDeadline"] for each in message["Modacks"]} == {300}


def test_garbage_is_told_once_and_left_and_wedges_nothing(lake: GoogleLake):
    lake.send(b"garbage")
    lake.send(b"\xff\xfe", eventType="")
    lake.send(b"{}", eventType="OBJECT_FINALIZE")
    with lake.run() as events:
        lake.put("a.ndjson")
        lake.publish("a.ndjson")
        until(lambda: found_by_notice(events))
        until(lambda: lake.left() == 2)
    assert counted(events) == {"taken": 1, "unreadable": 2, "other_event": 1}
    assert len(said(events, NoticeUnreadable)) == 1


def test_a_death_between_entry_and_acknowledgement_costs_nothing(lake: GoogleLake):
    """The message comes again, in the same process and in the next one."""
    with lake.run(Forgetful) as events:
        lake.put("a.ndjson")
        lake.publish("a.ndjson")
        until(lambda: counted(list(events)).get("known"))
    assert lake.left() == 1
    with lake.run() as events:
        until(lambda: counted(list(events)).get("known"))
        until(lambda: lake.left() == 0)
    assert lake.ingested() == ["a.ndjson"]


def test_messages_are_hidden_and_acknowledged(lake: GoogleLake):
    with closing(PubSubQueue(settings_of(lake.queue))) as queue:
        for number in range(120):
            lake.send(str(number).encode())
        got = [*queue.receive(hide_secs=60), *queue.receive(hide_secs=60)]
        assert len({each.id for each in got}) == 120
        assert queue.receive(hide_secs=60) == []
        first, second, *rest = [each.receipt for each in got]
        queue.delete([first, *rest])
        assert lake.left() == 1
        queue.hide([second], secs=0)
        (again,) = queue.receive(hide_secs=60)
        queue.delete([again.receipt])
        assert lake.left() == 0
        for gone in (queue.delete, lambda some: queue.hide(some, secs=1)):
            gone([again.receipt])


def test_the_queue_says_what_is_wrong_in_our_words(lake: GoogleLake, service: tuple[str, str]):
    nobody = f"http://{service[0]}/projects/p/subscriptions/nobody"
    with closing(PubSubQueue(settings_of(nobody))) as queue:
        for ask in (queue.depth, lambda: queue.receive(hide_secs=1)):
            with pytest.raises(QueueMissing, match="check its project and its name"):
                ask()


def test_a_subscription_that_ends_is_told_and_files_are_found_without_it(
    running: dict[str, Contestant], tmp_path: Path
):
    """A server that is killed while it is asked, and one that was never there."""
    google = running["google"]
    with pubsub() as (address, _books):
        url = f"http://{address}/projects/p/subscriptions/s"
        queue = PubSubQueue(settings_of(url))
    with closing(queue), pytest.raises(QueueUnavailable, match=r"does not answer \[UNAVAILABLE\]"):
        queue.receive(hide_secs=1)
    lake = NoticedLake(google, google.fresh(), url, tmp_path)
    lake.put("a.ndjson")
    with lake.run() as events:
        until(lambda: said(events, QueueFailed))
    assert "does not answer [NoConnection]" in said(events, QueueFailed)[0].error
    assert lake.ingested() == ["a.ndjson"]


@pytest.mark.parametrize("command", ["--dry-run", "status", "validate --online"])
def test_a_look_shows_the_queue_and_takes_no_message(lake: GoogleLake, command: str):
    lake.put("a.ndjson")
    lake.publish("a.ndjson")
    shown = CliRunner().invoke(app, [*command.split(), "-c", str(lake.config())])
    assert "the queue of notices answers" in " ".join(shown.stdout.split())
    (message,) = lake.messages()
    assert (message["Deliveries"], message["Acks"]) == (0, 0)


def test_the_library_is_told_to_write_nothing_to_the_terminal(service: tuple[str, str]):
    """It would, of a certificate that nobody trusts; it reads the variable when it is imported."""
    imports = (
        "import os, sys; from blizzard.service import open_queue\n"
        "from blizzard.model.settings import QueueService, QueueSettings\n"
        "assert 'grpc' not in sys.modules\n"
        "open_queue(QueueSettings(url='projects/p/subscriptions/s', endpoint=sys.argv[1],"
        " service=QueueService.PUBSUB)).close()\n"
        "print(os.environ['GRPC_VERBOSITY'])"
    )
    command = [sys.executable, "-c", imports, f"http://{service[0]}"]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"NONE\n"


@pytest.mark.parametrize("shape", ["text", "json"])
def test_no_secret_of_a_subscription_is_printed_logged_or_written(lake: GoogleLake, shape: str):
    """HOLES W17: a key that is refused by somebody who repeats it, and a text that is no key."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    account = {
        "type": "service_account",
        "client_email": "canary@example.com",
        "private_key_id": "canary-key-id",
        "private_key": key.decode(),
    }
    told: list[str] = []
    with answering() as issuer:
        gossip = {"error": "invalid_grant", "error_description": f"canary {key.decode()}"}
        issuer.answer = lambda _asked: Given(400, json.dumps(gossip))
        account["token_uri"] = f"{issuer.address}/token"
        for secret in (json.dumps(account), "canary: no key"):
            document = yaml.safe_load(lake.config().read_text())
            document["source"]["notifications"] = {
                "queue": "https://127.0.0.1:1/projects/p/subscriptions/s",
                "storage_options": {"GOOGLE_SERVICE_ACCOUNT_KEY": secret},
            }
            file = lake.folder / "canary.yaml"
            file.write_text(yaml.safe_dump(document))
            told.append(repr(load([file], [], {})))
            for command in (
                ("--dry-run", "--log-level", "trace", "--log-format", shape),
                ("status",),
                ("validate", "--online"),
            ):
                shown = CliRunner().invoke(app, [*command, "--output", shape, "-c", str(file)])
                told += [shown.output, repr(shown.exception)]
    texts = "".join(told)
    assert "queue_denied" in texts
    assert "refused the credentials" in texts
    assert "canary" not in texts.replace("canary.yaml", "")
    assert key.decode().splitlines()[1] not in texts
