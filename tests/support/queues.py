"""Queues for tests: one in memory, and those of moto's server, with what S3 sends to them."""

import hashlib
import json
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from urllib.parse import quote, quote_plus

from botocore.session import Session

from blizzard.events import NoticesSettled
from blizzard.model.settings import QueueSettings
from blizzard.notices.queue import Depth, Message
from lakebed.storage.options import StorageOptions
from tests.support.s3 import KEY, SECRET

_names = count()


def s3_record(
    key: str, bucket: str = "lake", *, event: str = "ObjectCreated:Put", **more: Any
) -> dict[str, Any]:
    """Return a record as S3 sends it; the key is given as it is."""
    return {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": "eu-west-1",
        "eventTime": "2024-01-01T12:00:00.250Z",
        "eventName": event,
        "s3": {
            "s3SchemaVersion": "1.0",
            "configurationId": "new-files",
            "bucket": {"name": bucket, "arn": f"arn:aws:s3:::{bucket}"},
            "object": {"key": quote_plus(key), "size": 7, "eTag": "d41d8", **more},
        },
    }


def s3_body(*keys: str, bucket: str = "lake", **more: Any) -> str:
    """Return the body of a message that S3 sends."""
    return json.dumps({"Records": [s3_record(key, bucket, **more) for key in keys]})


def sns_body(message: str) -> str:
    """Return a message as SNS passes it on, without raw delivery."""
    return json.dumps(
        {
            "Type": "Notification",
            "MessageId": "5a8f",
            "TopicArn": "arn:aws:sns:eu-west-1:123456789012:new-files",
            "Subject": "Amazon S3 Notification",
            "Message": message,
            "Timestamp": "2024-01-01T12:00:01.000Z",
        }
    )


def event_bridge_body(key: str, bucket: str = "lake", kind: str = "Object Created") -> str:
    """Return an event as EventBridge passes it on."""
    return json.dumps(
        {
            "version": "0",
            "id": "17793124-05d4-b198-2fde-7ededc63b103",
            "detail-type": kind,
            "source": "aws.s3",
            "account": "123456789012",
            "time": "2024-01-01T12:00:00Z",
            "region": "eu-west-1",
            "resources": [f"arn:aws:s3:::{bucket}"],
            "detail": {
                "version": "0",
                "bucket": {"name": bucket},
                "object": {
                    "key": key,
                    "size": 7,
                    "etag": "d41d8",
                    "version-id": "IYV3p45BT0ac8hjHg1houSdS1a.Mro8e",
                    "sequencer": "00617F08299329D189",
                },
                "reason": "PutObject",
            },
        }
    )


def event_grid(
    key: str, container: str = "lake", *, cloud_events: bool = False, **data: Any
) -> dict[str, Any]:
    """Return an event of Azure's, by Event Grid's own schema or by that of CloudEvents."""
    topic = "/subscriptions/1/resourceGroups/r/providers/Microsoft.Storage/storageAccounts/store"
    event = {
        "subject": f"/blobServices/default/containers/{container}/blobs/{key}",
        "id": "831e1650-001e-001b-66ab-eeb76e069631",
        "data": {
            "api": "PutBlockList",
            "requestId": "831e1650-001e-001b-66ab-eeb76e000000",
            "eTag": "0x8D4BCC2E4835CD0",
            "contentType": "application/octet-stream",
            "contentLength": 7,
            "blobType": "BlockBlob",
            "url": f"https://store.blob.core.windows.net/{container}/{quote(key)}",
            "sequencer": "00000000000004420000000000028963",
            "storageDiagnostics": {"batchId": "b68529f3-68cd-4744-baa4-3c0498ec19f0"},
            **data,
        },
    }
    kind, at = "Microsoft.Storage.BlobCreated", "2024-01-01T12:00:00.2500000Z"
    if cloud_events:
        return {"source": topic, "type": kind, "time": at, "specversion": "1.0", **event}
    its_own = {"dataVersion": "", "metadataVersion": "1"}
    return {"topic": topic, "eventType": kind, "eventTime": at, **its_own, **event}


def in_base64(event: Any) -> str:
    """Return a body as Event Grid puts it into a storage queue."""
    return b64encode(json.dumps(event).encode()).decode()


def google_attributes(
    key: str, bucket: str = "lake", *, event: str = "OBJECT_FINALIZE"
) -> dict[str, str]:
    """Return the attributes of a message of Google Cloud Storage."""
    return {
        "notificationConfig": f"projects/_/buckets/{bucket}/notificationConfigs/1",
        "eventType": event,
        "payloadFormat": "JSON_API_V1",
        "bucketId": bucket,
        "objectId": key,
        "objectGeneration": "1704110400250000",
        "eventTime": "2024-01-01T12:00:00.250000Z",
    }


def google_object(key: str, bucket: str = "lake", body: bytes = b"{}") -> str:
    """Return what a message of Google Cloud Storage says of an object."""
    return json.dumps(
        {
            "kind": "storage#object",
            "id": f"{bucket}/{key}/1704110400250000",
            "name": key,
            "bucket": bucket,
            "generation": "1704110400250000",
            "metageneration": "1",
            "contentType": "application/octet-stream",
            "timeCreated": "2024-01-01T12:00:00.250Z",
            "size": str(len(body)),
            "md5Hash": b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode(),
            "etag": "CLLwsuDvv4MDEAE=",
        }
    )


def google_body(key: str, bucket: str = "lake", **how: str) -> str:
    """Return a message of Google Cloud Storage as it is handed on."""
    given = {"attributes": google_attributes(key, bucket, **how)}
    return json.dumps({**given, "data": google_object(key, bucket)})


def counted(events: Iterable[object]) -> dict[str, int]:
    """Add up the notices that are settled, by their kind."""
    found: Counter[str] = Counter()
    for each in events:
        if isinstance(each, NoticesSettled):
            found[each.kind] += each.notices
    return dict(found)


@dataclass
class MemoryQueue:
    """A queue that delivers each message once, until it is told to deliver them again."""

    name: str = "memory"
    waiting: list[Message] = field(default_factory=list)
    delivered: dict[str, Message] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    fails: Callable[[], Exception | None] = lambda: None
    closed: bool = False

    def send(self, body: str) -> Message:
        number = next(_names)
        message = Message(id=f"m{number}", receipt=f"r{number}", body=body)
        self.waiting.append(message)
        return message

    def receive(self, *, hide_secs: int) -> Sequence[Message]:
        self._fail()
        some, self.waiting = self.waiting, []
        self.delivered |= {each.receipt: each for each in some}
        return some

    def delete(self, receipts: Sequence[str]) -> None:
        if receipts:
            self._fail()
        self.deleted += receipts

    def hide(self, receipts: Sequence[str], *, secs: int) -> None:
        self.hidden += receipts

    def depth(self) -> Depth:
        self._fail()
        return Depth(waiting=len(self.waiting), in_flight=len(self.delivered) - len(self.deleted))

    def close(self) -> None:
        self.closed = True

    def _fail(self) -> None:
        if (error := self.fails()) is not None:
            raise error


@dataclass
class Aws:
    """SQS, SNS and EventBridge at the same address as the S3."""

    address: str
    clients: dict[str, Any] = field(default_factory=dict)

    def client(self, service: str) -> Any:
        if service not in self.clients:
            session = Session()
            session.set_credentials(KEY, SECRET)
            self.clients[service] = session.create_client(
                service, region_name="us-east-1", endpoint_url=self.address
            )
        return self.clients[service]

    def queue(self, **attributes: str) -> str:
        """Make a queue that nobody else uses; return its URL."""
        name = f"queue-{next(_names)}"
        made = self.client("sqs").create_queue(QueueName=name, Attributes=attributes)
        return f"{self.address}/{made['QueueUrl'].partition('://')[2].partition('/')[2]}"

    def arn(self, url: str) -> str:
        asked = self.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        return str(asked["Attributes"]["QueueArn"])

    def send(self, url: str, body: str) -> None:
        self.client("sqs").send_message(QueueUrl=url, MessageBody=body)

    def left(self, url: str) -> int:
        """Count the messages that are not deleted."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        asked = self.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=names)
        return sum(int(asked["Attributes"][name]) for name in names)

    def notify(self, bucket: str, url: str, prefix: str = "") -> None:
        """Have S3 tell a queue of new objects."""
        rules = {"Filter": {"Key": {"FilterRules": [{"Name": "prefix", "Value": prefix}]}}}
        self.client("s3").put_bucket_notification_configuration(
            Bucket=bucket,
            NotificationConfiguration={
                "QueueConfigurations": [
                    {
                        "QueueArn": self.arn(url),
                        "Events": ["s3:ObjectCreated:*"],
                        **(rules if prefix else {}),
                    }
                ]
            },
        )

    def notify_by_sns(self, bucket: str, url: str) -> None:
        """Have S3 tell a topic of new objects, and the topic the queue."""
        sns = self.client("sns")
        topic = sns.create_topic(Name=f"topic-{next(_names)}")["TopicArn"]
        sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=self.arn(url))
        self.client("s3").put_bucket_notification_configuration(
            Bucket=bucket,
            NotificationConfiguration={
                "TopicConfigurations": [{"TopicArn": topic, "Events": ["s3:ObjectCreated:*"]}]
            },
        )

    def notify_by_event_bridge(self, bucket: str, url: str) -> None:
        """Have S3 tell EventBridge of everything, and a rule the queue."""
        events, rule = self.client("events"), f"rule-{next(_names)}"
        pattern = {"source": ["aws.s3"], "detail": {"bucket": {"name": [bucket]}}}
        events.put_rule(Name=rule, EventPattern=json.dumps(pattern))
        events.put_targets(Rule=rule, Targets=[{"Id": "queue", "Arn": self.arn(url)}])
        self.client("s3").put_bucket_notification_configuration(
            Bucket=bucket, NotificationConfiguration={"EventBridgeConfiguration": {}}
        )

    def put(self, bucket: str, key: str, body: bytes) -> None:
        self.client("s3").put_object(Bucket=bucket, Key=key, Body=body)


@contextmanager
def aws(address: str) -> Iterator[Aws]:
    """Ask moto's server for more than S3 until the end of the block."""
    opened = Aws(address)
    yield opened
    for client in opened.clients.values():
        client.close()


def queue_settings(url: str, **options: str) -> QueueSettings:
    """Return the settings of a queue of moto's."""
    scheme, _, rest = url.partition("://")
    given = {"access_key_id": KEY, "secret_access_key": SECRET, **options}
    return QueueSettings(
        url=url,
        endpoint=f"{scheme}://{rest.partition('/')[0]}",
        region="us-east-1",
        options=StorageOptions(given),
    )
