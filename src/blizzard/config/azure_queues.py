"""Storage queues of Azure: what a configuration may say of them. Pure.

The URL names the account, as its host or, on a server of another kind such as an emulator, as the
first part of its path. Credentials are those of the source's store unless the queue has its own.
"""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from blizzard.config.queue_options import QueueOptions, as_stores_spell, package_faults
from blizzard.model.settings import QueueService, QueueSettings
from lakebed.config.faults import Fault
from lakebed.config.models import KeyPath, Source, place_in

CREDENTIALS = ("account_key", "sas_key", "token", "client_id", "client_secret", "tenant_id")
OF_THE_ACCOUNT = ("account_key", "sas_key")
"""Credentials that are good in one account alone."""
EXAMPLE = "https://ACCOUNT.queue.core.windows.net/new-files"
_HOST = re.compile(r"([a-z0-9]{3,24})\.(?:z\d+\.)?queue\.(?:core\.[a-z.]+|storage\.azure\.net)")
OPTIONS = QueueOptions(
    credentials=CREDENTIALS,
    others=("allow_http",),
    name_of=as_stores_spell("az"),
    written=(*(f"AZURE_STORAGE_{each.upper()}" for each in CREDENTIALS), "AZURE_ALLOW_HTTP"),
    allow_http="AZURE_ALLOW_HTTP",
)


def names_azure(url: str) -> bool:
    """Whether a URL is one of Azure's own."""
    return _HOST.fullmatch(urlsplit(url).hostname or "") is not None


def faults(here: KeyPath, source: Source, queue: str) -> Iterator[Fault]:
    """Yield what is wrong with the queue of a source."""
    if (wrong := _url_fault(queue)) is not None:
        yield Fault((*here, "queue"), wrong)
        return
    place = place_in(source.path, source.storage_options)
    if place.scheme != "az":
        yield Fault(
            (*here, "queue"),
            "is a storage queue of Azure, which tells of blobs in Azure, but the path of the "
            "source is not in Azure",
        )
    yield from package_faults(here, "azure.storage.queue", "azure-storage-queue", "azure")
    yield from OPTIONS.faults(here, source, queue)
    options, own = OPTIONS.of(source), OPTIONS.own(source)
    inherited = [each for each in OF_THE_ACCOUNT if each in options and each not in own]
    if inherited and place.account not in ("", _parts(queue)[1]):
        yield Fault(
            (*here, "queue"),
            "is in another account than the source, whose key it does not take; set the queue's "
            "credentials in notifications.storage_options",
        )


def queue_at(url: str, source: Source) -> QueueSettings:
    """Return the queue at a URL that has no fault."""
    endpoint, account = _parts(url)
    return QueueSettings(
        url=url,
        endpoint=endpoint,
        service=QueueService.AZURE,
        account=account,
        options=OPTIONS.credentials_of(source),
    )


def _parts(url: str) -> tuple[str, str]:
    """Return the address of a queue's account, and the account."""
    parts = urlsplit(url.rstrip("/"))
    host = _HOST.fullmatch(parts.hostname or "")
    endpoint = url.rstrip("/").rpartition("/")[0]
    return endpoint, host[1] if host is not None else parts.path.split("/")[1]


def _url_fault(text: str) -> str | None:
    parts = urlsplit(text)
    names = [name for name in parts.path.split("/") if name]
    expected = 1 if names_azure(text) else 2
    if parts.scheme not in ("http", "https") or not parts.hostname or len(names) != expected:
        return f"must be the URL of a storage queue, as in {EXAMPLE}"
    if parts.username or parts.password or parts.query or parts.fragment:
        return "must not hold credentials, ? or #; put keys and signatures into storage_options"
    return None
