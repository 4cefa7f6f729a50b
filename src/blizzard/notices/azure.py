"""Azure Storage queues: the only module that imports Azure's libraries.

A queue does not wait for messages, so it is polled. A message gets another receipt each time it is
hidden again. Error texts of the libraries may contain names and keys, so our messages have only the
error's code.
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
"""Warnings of the libraries quote responses, and are for users who log them."""
PAUSE_SECS = 0.5
"""The pause before polling an empty queue again."""
TOKEN_SECS = 3600
"""The assumed lifetime of a configured token, whose expiry is unknown."""

Credential = AzureNamedKeyCredential | AzureSasCredential | TokenCredential

ROLE = "the role Storage Queue Data Contributor"
READER = "the role Storage Queue Data Reader"
NO_CREDENTIALS = (
    "there are no valid credentials for the queue; set them under "
    "source.notifications.storage_options or source.storage_options, in the environment, or give "
    "the machine an identity"
)
NO_IDENTITY = (
    "there is no key, signature or token for the queue, and other credentials need "
    "the package azure-identity: pip install 'blizzard-penguin[azure]'"
)
MISSING = "the queue does not exist in this account; check its URL"
DENIED = "access to the queue was refused; it needs {}, or a signature for queues [{}]"
UNKNOWN_KEY = "the queue refused the credentials; check them and the account [{}]"

_GONE_CODES = frozenset({"MessageNotFound", "PopReceiptMismatch"})
_KEY_CODES = frozenset({"AuthenticationFailed", "InvalidAuthenticationInfo"})
_REFUSED = (401, 403)


class AzureQueue:
    """A storage queue."""

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
        """The newest receipts of messages that were hidden again, by message."""
        with _translated(self._url, ROLE):
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
        """Return messages and hide them; if there are none, pause before returning."""
        with _translated(self._url, ROLE):
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
            )
            for each in received
        ]

    def delete(self, receipts: Sequence[str]) -> None:
        """Delete messages; ignore those that are gone or were delivered again."""
        for message, receipt in map(self._newest, receipts):
            with _translated(self._url, ROLE), _unless_gone():
                self._client.delete_message(message, receipt)
            self._renewed.pop(message, None)

    def hide(self, receipts: Sequence[str], *, secs: int) -> None:
        """Hide delivered messages for `secs` seconds from now."""
        for message, receipt in map(self._newest, receipts):
            with _translated(self._url, ROLE), _unless_gone():
                hidden = self._client.update_message(message, receipt, visibility_timeout=secs)
                self._renewed[message] = str(hidden.pop_receipt)

    def depth(self) -> Depth:
        """Count the messages, including hidden ones, without receiving any."""
        with _translated(self._url, READER):
            found = self._client.get_queue_properties().approximate_message_count
        return Depth(waiting=found or 0, in_flight=None)

    def close(self) -> None:
        """Close connections."""
        self._client.close()

    def _newest(self, receipt: str) -> tuple[str, str]:
        """Return a message and its newest receipt."""
        message, _, received = receipt.partition(" ")
        return message, self._renewed.get(message, received)


def credential_of(settings: QueueSettings, environment: Mapping[str, str]) -> Credential:
    """Return the credentials for a queue from the configuration, else from the environment.

    Without either, Azure's library looks for an identity, as in its own programs.
    """
    given = settings.options.plain()
    place = f"az://queue@{settings.account}"
    found = resolved(given, uri=place, environment=environment, key=settings.options.key)
    every = {bare(name): setting.value for name, setting in found.items()}
    try:
        for options in (given, every):
            if (credential := _from_options(settings.account, options)) is not None:
                return credential
        from azure.identity import DefaultAzureCredential  # noqa: PLC0415 - it is optional
    except ImportError as cause:
        raise QueueDenied(NO_IDENTITY, queue=settings.url) from cause
    client = every.get("client_id")
    return DefaultAzureCredential(
        managed_identity_client_id=client, workload_identity_client_id=client
    )


def _from_options(account: str, options: Mapping[str, str]) -> Credential | None:
    """Return the credential in options, in the precedence of the store's library."""
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
    """A configured token."""

    def __init__(self, token: str) -> None:
        self._token = token

    def get_token(self, *_scopes: str, **_more: Any) -> AccessToken:  # noqa: ANN401 - the protocol's
        """Return the token, for any scope."""
        return AccessToken(self._token, int(time.time()) + TOKEN_SECS)


@contextmanager
def _unless_gone() -> Iterator[None]:
    """Ignore a message that is gone or was delivered again with another receipt."""
    try:
        yield
    except HttpResponseError as cause:
        if _code(cause) not in _GONE_CODES:
            raise


@contextmanager
def _translated(queue: str, permission: str) -> Iterator[None]:
    try:
        yield
    except HttpResponseError as cause:
        raise _refused(cause, queue, permission) from cause
    except AzureError as cause:
        silent = isinstance(cause, (ServiceRequestError, ServiceResponseError))
        says = "does not answer" if silent else "cannot be reached"
        message = f"the queue {says} [{type(cause).__name__}]"
        raise QueueUnavailable(message, queue=queue) from cause
    except ValueError as cause:
        # The libraries raise this for malformed credentials.
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
