"""Amazon SQS."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from blizzard.model.settings import QueueSettings
from blizzard.notices.queue import Depth, Message, QueueDenied, QueueMissing, QueueUnavailable
from lakebed.errors import LakeError
from lakebed.storage.aws.clients import AwsError, AwsFault, asking, open_client

WAIT_SECS = 5
"""The most seconds that a request waits for a message; settled messages wait as long to go."""
MOST = 10
"""Messages in one request: the limit of SQS."""

NO_CREDENTIALS = (
    "there are no credentials for the queue [{code}]; set them under "
    "source.notifications.storage_options or source.storage_options, in the environment (keys, or "
    "AWS_PROFILE with a profile that exists), or give the machine a role"
)
_MISSING_CODES = frozenset({"NonExistentQueue", "QueueDoesNotExist", "InvalidAddress"})
MISSING = "the queue does not exist, or not in this region and account; check its URL"
REFUSED = (
    "access to the queue was refused; it needs {permission} on the queue, and valid credentials "
    "for the region of the queue [{code}]"
)
ERRORS: Mapping[AwsFault, tuple[type[LakeError], str]] = {
    AwsFault.DENIED: (QueueDenied, REFUSED),
    AwsFault.NO_KEYS: (QueueDenied, NO_CREDENTIALS),
    AwsFault.SILENT: (QueueUnavailable, "the queue does not answer [{code}]"),
    AwsFault.OTHER: (QueueUnavailable, "the queue cannot answer now [{code}]"),
}


class SqsQueue:
    """An SQS queue."""

    def __init__(self, settings: QueueSettings, *, wait_secs: int = WAIT_SECS) -> None:
        self._url = settings.url
        self._wait_secs = wait_secs
        with _translated(self._url, "a role or keys"):
            self._client = open_client(
                "sqs",
                settings.options.plain(),
                region=settings.region,
                endpoint=settings.endpoint,
                connect_timeout=5,
                read_timeout=wait_secs + 10,
                # Longer outages are left to our own backoff, which is logged.
                retries={"mode": "standard", "total_max_attempts": 2},
            )

    def receive(self, *, hide_secs: int) -> Sequence[Message]:
        """Wait up to some seconds for messages, and hide the returned ones."""
        with _translated(self._url, "sqs:ReceiveMessage"):
            answer = self._client.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=MOST,
                WaitTimeSeconds=self._wait_secs,
                VisibilityTimeout=hide_secs,
            )
        return [
            Message(id=each["MessageId"], receipt=each["ReceiptHandle"], body=each.get("Body", ""))
            for each in answer.get("Messages", ())
        ]

    def delete(self, receipts: Sequence[str]) -> None:
        """Delete messages; ignore those that are gone or were delivered again."""
        for some in _batched(receipts):
            entries = [{"Id": str(n), "ReceiptHandle": each} for n, each in enumerate(some)]
            with _translated(self._url, "sqs:DeleteMessage"):
                self._client.delete_message_batch(QueueUrl=self._url, Entries=entries)

    def hide(self, receipts: Sequence[str], *, secs: int) -> None:
        """Hide delivered messages for `secs` seconds from now."""
        for some in _batched(receipts):
            entries = [
                {"Id": str(n), "ReceiptHandle": each, "VisibilityTimeout": secs}
                for n, each in enumerate(some)
            ]
            with _translated(self._url, "sqs:ChangeMessageVisibility"):
                self._client.change_message_visibility_batch(QueueUrl=self._url, Entries=entries)

    def depth(self) -> Depth:
        """Count the messages without receiving any."""
        names = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        with _translated(self._url, "sqs:GetQueueAttributes"):
            answer = self._client.get_queue_attributes(
                QueueUrl=self._url, AttributeNames=list(names)
            )
        waiting, in_flight = (int(answer.get("Attributes", {}).get(name, 0)) for name in names)
        return Depth(waiting=waiting, in_flight=in_flight)

    def close(self) -> None:
        """Close connections."""
        self._client.close()


def _batched(receipts: Sequence[str]) -> Iterator[Sequence[str]]:
    return (receipts[at : at + MOST] for at in range(0, len(receipts), MOST))


@contextmanager
def _translated(queue: str, permission: str) -> Iterator[None]:
    try:
        with asking():
            yield
    except AwsError as error:
        if error.code in _MISSING_CODES:
            raise QueueMissing(MISSING, queue=queue) from error
        kind, words = ERRORS[error.fault]
        raise kind(words.format(permission=permission, code=error.code), queue=queue) from error
