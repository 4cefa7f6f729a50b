"""Storage queues of Azure: the only door to Azure's libraries.

A queue there does not wait for messages: it is asked again and again. Every time that a message is
hidden anew, it has another receipt. What the libraries say of an error may hold names and keys, so
only the error's code goes into our messages.
"""

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from azure.core.credentials import (
    AccessToken,
    AzureNamedKeyCredential,
    AzureSasCredential,
    TokenCredential,
)
from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ServiceRequestError,
    ServiceResponseError,
)
from azure.storage.queue import QueueClient

from blizzard.model.settings import QueueSettings
from blizzard.notices.queue import Depth, Message, QueueDenied, QueueMissing, QueueUnavailable
from lakebed.errors import LakeError
from lakebed.storage.options import bare
from lakebed.storage.settings import resolved

MOST = 32
"""Messages in one request: the limit of a storage queue."""
logging.getLogger("azure").addHandler(logging.NullHandler())
"""Their warnings quote what a service answered, and are for users who log them."""
PAUSE_SECS = 0.5
"""How long an empty queue is left alone before it is asked again."""
TOKEN_SECS = 3600
"""A token that somebody gives us says nothing of its end; it is asked for again by then."""

Credential = AzureNamedKeyCredential | AzureSasCredential | TokenCredential

ROLE = "the role Storage Queue Data Contributor"
READER = "the role Storage Queue Data Reader"
NO_CREDENTIALS = (
    "there are no credentials for the queue that work; set them under "
    "source.notifications.storage_options or source.storage_options, in the environment, or give "
    "the machine an identity"
)
NO_IDENTITY = (
    "there is no key, signature or token for the queue, and other credentials take "
    "the package azure-identity: pip install 'blizzard-penguin[azure]'"
)
MISSING = "the queue does not exist in this account; check its URL"
DENIED = "access to the queue was refused; it takes {}, or a signature for queues [{}]"
UNKNOWN_KEY = "the queue refused the credentials; check them and the account [{}]"

_GONE_CODES = frozenset({"MessageNotFound", "PopReceiptMismatch"})
_KEY_CODES = frozenset({"AuthenticationFailed", "InvalidAuthenticationInfo"})
_REFUSED = (401, 403)


class AzureQueue:
    """A storage queue; asked by two threads at once."""

    def __init__(
        self,
        settings: QueueSettings,
        *,
        environment: Mapping[str, str] = os.environ,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._url = settings.url
        self._pause = pause
        self._renewed: dict[str, str] = {}
        """The receipts of messages that were hidden again, by the message."""
        with _in_our_words(self._url, ROLE):
            self._client = QueueClient(
                settings.endpoint,
                settings.url.rpartition("/")[2],
                credential=credential_of(settings, environment),
                connection_timeout=5,
                read_timeout=20,
                # Longer outages are left to our own backoff, which is logged.
                retry_total=1,
                initial_backoff=1,
                increment_base=1,
                random_jitter_range=1,
            )

    def receive(self, *, hide_secs: int) -> Sequence[Message]:
        """Return messages and hide them; where there are none, wait before that is said."""
        with _in_our_words(self._url, ROLE):
            pages = self._client.receive_messages(
                messages_per_page=MOST, visibility_timeout=hide_secs
            ).by_page()
            received = list(next(pages, ()))
        if not received:
            self._pause(PAUSE_SECS)
        for each in received:
            self._renewed.pop(each.id, None)
        return [
            Message(
                id=each.id,
                receipt=f"{each.id} {each.pop_receipt}",
                body=each.content if isinstance(each.content, str) else "",
                deliveries=each.dequeue_count or 1,
            )
            for each in received
        ]

    def delete(self, receipts: Sequence[str]) -> None:
        """Delete messages; those that are gone or were delivered anew are passed over."""
        for message, receipt in map(self._newest, receipts):
            with _in_our_words(self._url, ROLE), _unless_gone():
                self._client.delete_message(message, receipt)
            self._renewed.pop(message, None)

    def hide(self, receipts: Sequence[str], *, secs: int) -> None:
        """Hide delivered messages for so many seconds from now."""
        for message, receipt in map(self._newest, receipts):
            with _in_our_words(self._url, ROLE), _unless_gone():
                hidden = self._client.update_message(message, receipt, visibility_timeout=secs)
                self._renewed[message] = str(hidden.pop_receipt)

    def depth(self) -> Depth:
        """Count the messages, and take none of them; those that are hidden are among them."""
        with _in_our_words(self._url, READER):
            found = self._client.get_queue_properties().approximate_message_count
        return Depth(waiting=found or 0, in_flight=None)

    def close(self) -> None:
        """Let go of connections."""
        self._client.close()

    def _newest(self, receipt: str) -> tuple[str, str]:
        """Return a message and the receipt that it has now."""
        message, _, received = receipt.partition(" ")
        return message, self._renewed.get(message, received)


def credential_of(settings: QueueSettings, environment: Mapping[str, str]) -> Credential:
    """Return what a queue is asked with: as the configuration says, else as the environment does.

    Where neither names any, Azure's library looks for an identity as its programs do.
    """
    given = settings.options.plain()
    place = f"az://queue@{settings.account}"
    found = resolved(given, uri=place, environment=environment, key=settings.options.key)
    every = {bare(name): setting.value for name, setting in found.items()}
    try:
        for options in (given, every):
            if (credential := _named(settings.account, options)) is not None:
                return credential
        from azure.identity import DefaultAzureCredential  # noqa: PLC0415 - it is optional
    except ImportError as cause:
        raise QueueDenied(NO_IDENTITY, queue=settings.url) from cause
    client = every.get("client_id")
    return DefaultAzureCredential(
        managed_identity_client_id=client, workload_identity_client_id=client
    )


def _named(account: str, options: Mapping[str, str]) -> Credential | None:
    """Return the credential that options make, in the order of the store's library."""
    if token := options.get("token"):
        return _GivenToken(token)
    if key := options.get("account_key"):
        return AzureNamedKeyCredential(account, key)
    client = tuple(options.get(name, "") for name in ("tenant_id", "client_id", "client_secret"))
    if all(client):
        from azure.identity import ClientSecretCredential  # noqa: PLC0415 - it is optional

        return ClientSecretCredential(*client)
    if signature := options.get("sas_key"):
        return AzureSasCredential(signature)
    return None


class _GivenToken:
    """A token that was given to us."""

    def __init__(self, token: str) -> None:
        self._token = token

    def get_token(self, *_scopes: str, **_more: Any) -> AccessToken:  # noqa: ANN401 - the protocol's
        """Return the token, for any scope."""
        return AccessToken(self._token, int(time.time()) + TOKEN_SECS)


@contextmanager
def _unless_gone() -> Iterator[None]:
    """Ignore a message that is gone, or that another delivery has another receipt of."""
    try:
        yield
    except HttpResponseError as cause:
        if _code(cause) not in _GONE_CODES:
            raise


@contextmanager
def _in_our_words(queue: str, permission: str) -> Iterator[None]:
    try:
        yield
    except HttpResponseError as cause:
        raise _refused(cause, queue, permission) from cause
    except AzureError as cause:
        silent = isinstance(cause, (ServiceRequestError, ServiceResponseError))
        says = "does not answer" if silent else "cannot be asked"
        message = f"the queue {says} [{type(cause).__name__}]"
        raise QueueUnavailable(message, queue=queue) from cause
    except ValueError as cause:
        # So the libraries say it of what can be no credentials at all.
        raise QueueDenied(NO_CREDENTIALS, queue=queue) from cause


def _refused(cause: HttpResponseError, queue: str, permission: str) -> LakeError:
    code = _code(cause)
    if code == "QueueNotFound":
        return QueueMissing(MISSING, queue=queue)
    if code in _KEY_CODES:
        return QueueDenied(UNKNOWN_KEY.format(code), queue=queue)
    if cause.status_code in _REFUSED:
        return QueueDenied(DENIED.format(permission, code), queue=queue)
    if isinstance(cause, ClientAuthenticationError):
        return QueueDenied(NO_CREDENTIALS, queue=queue)
    return QueueUnavailable(f"the queue cannot answer now [{code}]", queue=queue)


def _code(cause: HttpResponseError) -> str:
    code = getattr(cause, "error_code", None)
    return str(getattr(code, "value", code) or cause.status_code or "unknown")
