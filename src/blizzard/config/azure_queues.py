"""Storage queues of Azure: what a configuration may say of them. Pure.

The URL names the account, as its host or, on a server of another kind such as an emulator, as the
first part of its path. Credentials are those of the source's store unless the queue has its own.
"""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from blizzard.config.queue_options import is_installed, joined, named, own_options
from blizzard.model.settings import QueueService, QueueSettings
from lakebed.config.faults import Fault
from lakebed.config.models import KeyPath, Source, place_in
from lakebed.storage.options import StorageOptions, bare
from lakebed.storage.settings import SPELLINGS

CREDENTIALS = ("account_key", "sas_key", "token", "client_id", "client_secret", "tenant_id")
OTHERS = ("allow_http",)
OF_THE_ACCOUNT = ("account_key", "sas_key")
"""Credentials that are good in one account alone."""
EXAMPLE = "https://ACCOUNT.queue.core.windows.net/new-files"
_HOST = re.compile(r"([a-z0-9]{3,24})\.(?:z\d+\.)?queue\.(?:core\.[a-z.]+|storage\.azure\.net)")
_NAMES = {
    bare(name.lower()): bare(canonical)
    for canonical, names in SPELLINGS["az"].items()
    for name in names
}


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
    if not is_installed("azure.storage.queue"):
        package = "azure-storage-queue: pip install 'blizzard-penguin[azure]'"
        yield Fault(here, f"needs the package {package}", near=())
    known = (*CREDENTIALS, *OTHERS)
    for name in own_options(source):
        if _bare(name) not in known:
            names = ", ".join(f"AZURE_STORAGE_{each.upper()}" for each in CREDENTIALS)
            fault = f"unknown option of a queue; there are {names}, AZURE_ALLOW_HTTP"
            yield Fault((*here, "storage_options", name), fault)
    options = _options(source)
    if urlsplit(queue).scheme == "http" and options.get("allow_http", "").lower() != "true":
        yield Fault(
            (*here, "queue"),
            "is http://, which is not encrypted; to allow it set AZURE_ALLOW_HTTP: true in "
            "storage_options",
        )
    own = named(own_options(source), _bare)
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
    options = _options(source)
    return QueueSettings(
        url=url,
        endpoint=endpoint,
        service=QueueService.AZURE,
        account=account,
        options=StorageOptions({key: options[key] for key in CREDENTIALS if key in options}),
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


def _options(source: Source) -> dict[str, str]:
    return joined(source, _bare, credentials=CREDENTIALS, others=OTHERS)


def _bare(name: str) -> str:
    plain_name = bare(name.lower())
    return _NAMES.get(plain_name, plain_name)
