"""Amazon SQS: the only door to botocore.

botocore finds credentials wherever an AWS program looks for them: keys, profiles, roles of a
machine, a container or a web identity. What it says of an error may hold names and keys, so only
the error's code goes into our messages.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
)
from botocore.session import Session

from blizzard.model.settings import QueueSettings
from blizzard.notices.queue import Depth, Message, QueueDenied, QueueMissing, QueueUnavailable
from lakebed.errors import LakeError

WAIT_SECS = 20
"""How long SQS waits for a message before it answers that there is none: its limit."""
MOST = 10
"""Messages in one request: SQS' limit."""
ANY_REGION = "us-east-1"
"""Signs requests to stores other than AWS where no region is set."""

NO_CREDENTIALS = (
    "there are no credentials for the queue; set them under source.notifications.storage_options "
    "or source.storage_options, in the environment, or give the machine a role"
)
MISSING = "the queue does not exist, or not in this region and account; check its URL"
DENIED = "access to the queue was refused; it takes {} on the queue [{}]"
UNKNOWN_KEY = (
    "the queue refused the credentials; check them, and that they are for the region of the queue "
    "[{}]"
)
_MISSING_CODES = frozenset({"NonExistentQueue", "QueueDoesNotExist", "InvalidAddress"})
_DENIED_CODES = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"})
_KEY_CODES = frozenset(
    {
        "AuthFailure",
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "InvalidSecurity",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "OptInRequired",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)


class SqsQueue:
    """A queue of SQS; asked by two threads at once."""

    def __init__(self, settings: QueueSettings, *, wait_secs: int = WAIT_SECS) -> None:
        self._url = settings.url
        self._wait_secs = wait_secs
        with _in_our_words(self._url, "a role or keys"):
            self._client = _client(settings, wait_secs)

    def receive(self, *, hide_secs: int) -> Sequence[Message]:
        """Wait for messages, some seconds at most, and hide those that are returned."""
        with _in_our_words(self._url, "sqs:ReceiveMessage"):
            answer = self._client.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=MOST,
                WaitTimeSeconds=self._wait_secs,
                VisibilityTimeout=hide_secs,
                MessageSystemAttributeNames=["ApproximateReceiveCount"],
            )
        return [
            Message(
                id=each["MessageId"],
                receipt=each["ReceiptHandle"],
                body=each.get("Body", ""),
                deliveries=int(each.get("Attributes", {}).get("ApproximateReceiveCount", 1)),
            )
            for each in answer.get("Messages", ())
        ]

    def delete(self, receipts: Sequence[str]) -> None:
        """Delete messages; those that are gone or were delivered anew are passed over."""
        for some in _in_tens(receipts):
            entries = [{"Id": str(n), "ReceiptHandle": each} for n, each in enumerate(some)]
            with _in_our_words(self._url, "sqs:DeleteMessage"):
                self._client.delete_message_batch(QueueUrl=self._url, Entries=entries)

    def hide(self, receipts: Sequence[str], *, secs: int) -> None:
        """Hide delivered messages for so many seconds from now."""
        for some in _in_tens(receipts):
            entries = [
                {"Id": str(n), "ReceiptHandle": each, "VisibilityTimeout": secs}
                for n, each in enumerate(some)
            ]
            with _in_our_words(self._url, "sqs:ChangeMessageVisibility"):
                self._client.change_message_visibility_batch(QueueUrl=self._url, Entries=entries)

    def depth(self) -> Depth:
        """Count the messages, and take none of them."""
        names = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        with _in_our_words(self._url, "sqs:GetQueueAttributes"):
            answer = self._client.get_queue_attributes(
                QueueUrl=self._url, AttributeNames=list(names)
            )
        waiting, in_flight = (int(answer.get("Attributes", {}).get(name, 0)) for name in names)
        return Depth(waiting=waiting, in_flight=in_flight)

    def close(self) -> None:
        """Let go of connections."""
        self._client.close()


def _client(settings: QueueSettings, wait_secs: int) -> Any:  # noqa: ANN401 - botocore has no types
    options = settings.options.plain()
    session = Session(profile=options.get("profile"))
    if {"access_key_id", "secret_access_key"} <= options.keys():
        session.set_credentials(
            options["access_key_id"], options["secret_access_key"], options.get("session_token")
        )
    return session.create_client(
        "sqs",
        region_name=settings.region or session.get_config_variable("region") or ANY_REGION,
        endpoint_url=settings.endpoint,
        config=Config(
            connect_timeout=5,
            read_timeout=wait_secs + 10,
            # Longer outages are left to our own backoff, which is logged.
            retries={"mode": "standard", "total_max_attempts": 2},
            max_pool_connections=2,
        ),
    )


def _in_tens(receipts: Sequence[str]) -> Iterator[Sequence[str]]:
    return (receipts[at : at + MOST] for at in range(0, len(receipts), MOST))


@contextmanager
def _in_our_words(queue: str, permission: str) -> Iterator[None]:
    try:
        yield
    except ClientError as cause:
        raise _refused(cause, queue, permission) from cause
    except ProfileNotFound as cause:
        raise QueueDenied("AWS_PROFILE names a profile that is not there", queue=queue) from cause
    except (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError) as cause:
        raise QueueDenied(NO_CREDENTIALS, queue=queue) from cause
    except BotoCoreError as cause:
        message = f"the queue does not answer [{type(cause).__name__}]"
        raise QueueUnavailable(message, queue=queue) from cause


def _refused(cause: ClientError, queue: str, permission: str) -> LakeError:
    code = str(cause.response.get("Error", {}).get("Code", "unknown")).rpartition(".")[2]
    if code in _MISSING_CODES:
        return QueueMissing(MISSING, queue=queue)
    if code in _DENIED_CODES:
        return QueueDenied(DENIED.format(permission, code), queue=queue)
    if code in _KEY_CODES:
        return QueueDenied(UNKNOWN_KEY.format(code), queue=queue)
    return QueueUnavailable(f"the queue cannot answer now [{code}]", queue=queue)
