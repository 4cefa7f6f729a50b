"""Google Pub/Sub: the only module that imports Google's libraries.

A pull waits for messages on the server. A subscription does not report how many it has. Error texts
of the libraries may contain names and keys, so our messages have only the error's code.
"""

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import google.auth
import grpc
from google.api_core.exceptions import (
    DeadlineExceeded,
    FailedPrecondition,
    Forbidden,
    GoogleAPICallError,
    InternalServerError,
    InvalidArgument,
    NotFound,
    RetryError,
    ServiceUnavailable,
    Unauthenticated,
)
from google.api_core.retry import Retry, if_exception_type
from google.auth.credentials import Credentials, with_scopes_if_required
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError, TransportError
from google.auth.transport.grpc import secure_authorized_channel
from google.auth.transport.requests import Request
from google.oauth2.credentials import Credentials as UserCredentials
from google.oauth2.service_account import Credentials as ServiceAccount
from google.pubsub_v1.services.subscriber import SubscriberClient
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcTransport
from google.pubsub_v1.types import ReceivedMessage

from blizzard.model.settings import QueueSettings
from blizzard.notices.queue import Depth, Message, QueueDenied, QueueMissing, QueueUnavailable
from lakebed.errors import LakeError
from lakebed.storage.options import bare
from lakebed.storage.settings import resolved

for _library in ("google", "grpc"):
    # Their warnings quote responses, and are for users who log them.
    logging.getLogger(_library).addHandler(logging.NullHandler())

WAIT_SECS = 5.0
"""The most seconds that a pull waits for a message; a timeout is not an error. Settled messages
wait as long to go."""
MOST = 100
"""Messages in one request."""
MOST_RECEIPTS = 500
"""Receipts in one request, whose size is limited to half a megabyte."""
CONNECT_SECS = 5.0
CALL_SECS = 20.0
SCOPES = ("https://www.googleapis.com/auth/pubsub",)
CHANNEL = (
    ("grpc.max_receive_message_length", -1),
    # Detects a dead connection, which otherwise looks like a subscription without messages.
    ("grpc.keepalive_time_ms", 30_000),
)
# Longer outages are left to our own backoff, which is logged.
ONCE_MORE = Retry(
    if_exception_type(ServiceUnavailable, InternalServerError), initial=0.2, maximum=1, timeout=2
)

CONSUME = "the role Pub/Sub Subscriber (pubsub.subscriptions.consume)"
VIEW = "the role Pub/Sub Viewer (pubsub.subscriptions.get)"
NO_CREDENTIALS = (
    "there are no valid credentials for the queue; set GOOGLE_SERVICE_ACCOUNT under "
    "source.notifications.storage_options or source.storage_options, set "
    "GOOGLE_APPLICATION_CREDENTIALS in the environment, or give the machine a service account"
)
MISSING = "the subscription does not exist; check its project and its name"
DENIED = "access to the queue was refused; it needs {} on the subscription [{}]"
UNKNOWN_KEY = "the queue refused the credentials; check them [{}]"


class PubSubQueue:
    """A Pub/Sub subscription."""

    def __init__(
        self,
        settings: QueueSettings,
        *,
        environment: Mapping[str, str] = os.environ,
        wait_secs: float = WAIT_SECS,
    ) -> None:
        self._url = settings.url
        self._subscription = settings.url[settings.url.index("projects/") :]
        self._wait_secs = wait_secs
        self._login: Credentials | None = None
        with _translated(self._url, CONSUME):
            if not settings.endpoint.startswith("http://"):
                self._login = login_of(settings, environment)
                self._renew()
            self._channel = _channel(settings.endpoint, self._login)
            self._client = SubscriberClient(
                transport=SubscriberGrpcTransport(channel=self._channel)
            )
            _connect(self._channel)

    def receive(self, *, hide_secs: int) -> Sequence[Message]:
        """Wait up to some seconds for messages, and hide the returned ones."""
        received: Sequence[ReceivedMessage] = ()
        with self._asked(CONSUME), suppress(DeadlineExceeded):
            received = self._client.pull(
                subscription=self._subscription,
                max_messages=MOST,
                retry=ONCE_MORE,
                timeout=self._wait_secs,
            ).received_messages
        self.hide([each.ack_id for each in received], secs=hide_secs)
        return [
            Message(
                id=each.message.message_id,
                receipt=each.ack_id,
                body=_body(each),
            )
            for each in received
        ]

    def delete(self, receipts: Sequence[str]) -> None:
        """Acknowledge messages; ignore those that are gone or were delivered again."""
        self._each(self._client.acknowledge, receipts)

    def hide(self, receipts: Sequence[str], *, secs: int) -> None:
        """Hide delivered messages for `secs` seconds from now."""
        self._each(self._client.modify_ack_deadline, receipts, ack_deadline_seconds=secs)

    def depth(self) -> Depth:
        """Check that the subscription exists; it does not report its number of messages."""
        with self._asked(VIEW):
            self._client.get_subscription(
                subscription=self._subscription, retry=ONCE_MORE, timeout=CALL_SECS
            )
        return Depth(waiting=None, in_flight=None)

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()

    def _each(self, call: Callable[..., object], receipts: Sequence[str], **more: int) -> None:
        for at in range(0, len(receipts), MOST_RECEIPTS):
            with self._asked(CONSUME), suppress(InvalidArgument, FailedPrecondition):
                # A subscription with exactly-once delivery raises these for expired receipts.
                call(
                    subscription=self._subscription,
                    ack_ids=list(receipts[at : at + MOST_RECEIPTS]),
                    retry=ONCE_MORE,
                    timeout=CALL_SECS,
                    **more,
                )

    @contextmanager
    def _asked(self, permission: str) -> Iterator[None]:
        with _translated(self._url, permission):
            self._renew()
            yield

    def _renew(self) -> None:
        """Refresh an expired token here: an error within a call would have no type."""
        if self._login is not None and not self._login.valid:
            self._login.refresh(Request())


def login_of(settings: QueueSettings, environment: Mapping[str, str]) -> Credentials:
    """Return the credentials for a subscription from the configuration, else the environment.

    Without either, Google's library looks for some, as in its own programs.
    """
    given = settings.options.plain()
    found = resolved(given, uri="gs://queue", environment=environment, key=settings.options.key)
    ours = {bare(name): setting.value for name, setting in found.items() if not setting.outside}
    outside = {bare(name): setting.value for name, setting in found.items() if setting.outside}
    # The library itself reads this variable, with any kind of credentials.
    outside.pop("application_credentials", None)
    for options in (ours, outside):
        if (login := _from_options(options)) is not None:
            return login
    return google.auth.default(scopes=SCOPES)[0]


def _from_options(options: Mapping[str, str]) -> Credentials | None:
    """Return the credentials in options, in the precedence of the store's library."""
    text = options.get("service_account_key")
    for name in ("service_account", "application_credentials"):
        if text is None and name in options:
            text = Path(options[name]).read_text(encoding="utf-8")
    if text is None:
        return None
    document = json.loads(text)
    login: Credentials
    if document["type"] == "authorized_user":
        login = UserCredentials.from_authorized_user_info(document)
    else:
        login = ServiceAccount.from_service_account_info(document)
    scoped: Credentials = with_scopes_if_required(login, SCOPES)
    return scoped


def _channel(endpoint: str, login: Credentials | None) -> Any:  # noqa: ANN401 - grpc has no types
    parts = urlsplit(endpoint)
    if login is None:
        # An emulator: no secrets are sent to it.
        return grpc.insecure_channel(parts.netloc, options=CHANNEL)
    target = f"{parts.hostname}:{parts.port or 443}"
    return secure_authorized_channel(login, Request(), target, options=CHANNEL)


def _connect(channel: Any) -> None:  # noqa: ANN401 - grpc has no types
    """Wait for a connection: a pull could not tell a missing one from missing messages."""
    try:
        grpc.channel_ready_future(channel).result(timeout=CONNECT_SECS)
    except grpc.FutureTimeoutError:
        channel.close()
        raise


def _body(received: ReceivedMessage) -> str:
    """Return the attributes of a message, which name the object, as JSON."""
    return json.dumps({"attributes": dict(received.message.attributes)})


@contextmanager
def _translated(queue: str, permission: str) -> Iterator[None]:
    try:
        yield
    except RetryError as cause:
        raise _refused(cause.cause, queue, permission) from cause
    except GoogleAPICallError as cause:
        raise _refused(cause, queue, permission) from cause
    except grpc.FutureTimeoutError as cause:
        raise QueueUnavailable("the queue does not answer [NoConnection]", queue=queue) from cause
    except TransportError as cause:
        message = "the service that issues tokens for the queue does not answer [TransportError]"
        raise QueueUnavailable(message, queue=queue) from cause
    except DefaultCredentialsError as cause:
        raise QueueDenied(NO_CREDENTIALS, queue=queue) from cause
    except GoogleAuthError as cause:
        raise QueueDenied(UNKNOWN_KEY.format(type(cause).__name__), queue=queue) from cause
    except (OSError, ValueError, KeyError, TypeError) as cause:
        # The key file is missing or malformed.
        raise QueueDenied(NO_CREDENTIALS, queue=queue) from cause


def _refused(cause: Any, queue: str, permission: str) -> LakeError:  # noqa: ANN401 - of any library
    code = getattr(getattr(cause, "grpc_status_code", None), "name", type(cause).__name__)
    match cause:
        case NotFound():
            return QueueMissing(MISSING, queue=queue)
        case Forbidden():
            return QueueDenied(DENIED.format(permission, code), queue=queue)
        case Unauthenticated():
            return QueueDenied(UNKNOWN_KEY.format(code), queue=queue)
        case ServiceUnavailable():
            return QueueUnavailable(f"the queue does not answer [{code}]", queue=queue)
    return QueueUnavailable(f"the queue cannot answer now [{code}]", queue=queue)
