"""Validate the configuration of notification queues, and convert it into settings. Pure.

A queue is identified by its URL, or by the name of a Pub/Sub subscription. The service follows from
the URL or else, as for an emulator, from the store of the source. Credentials are those of the
source's store unless the queue has its own.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from pydantic import SecretStr

from blizzard.model.settings import QueueService, QueueSettings
from lakebed.config.checks import package_faults
from lakebed.config.faults import ConfigFault
from lakebed.config.models import Document, KeyPath, Source, plain
from lakebed.locations import place_of
from lakebed.storage.options import SPELLINGS, StorageOptions, bare
from lakebed.storage.settings import ALLOW_HTTP, KEYS, setting_named

_SQS_HOST = (
    r"(?:sqs(?:-fips)?\.([a-z0-9-]+)|([a-z0-9-]+)\.queue|[\w.-]*sqs\.([a-z0-9-]+)\.vpce)"
    r"\.(?:amazonaws\.com(?:\.cn)?|api\.aws)"
)
_AZURE_HOST = r"[a-z0-9]{3,24}\.(?:z\d+\.)?queue\.(?:core\.[a-z.]+|storage\.azure\.net)"
_GOOGLE_HOST = r"(?:[a-z0-9-]+-)?pubsub(?:\.[a-z0-9-]+\.rep)?\.googleapis\.com"
_NO_LOGIN = frozenset(
    {"aws_endpoint", "aws_region", "aws_conditional_put", "azure_storage_endpoint"}
    | {"azure_storage_account_name", "google_base_url"}
)
"""Settings of a store that are not its credentials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Service:
    """A service of queues."""

    service: QueueService
    scheme: str
    """The URI scheme of the store whose objects the queues announce."""
    what: str
    """Words for a queue and for what it announces."""
    noun: str
    """The required form of a queue's name, with an example."""
    package: tuple[str, str, str]
    """The required module, its package, and the extra that installs it."""
    own: re.Pattern[str]
    """How names begin that belong to the service in any case."""
    name: re.Pattern[str]
    """The names of queues, with the address of the service, and the account of Azure."""

    @property
    def credentials(self) -> dict[str, str]:
        """Return the options with credentials, by name without prefix, as they are written."""
        spelled = SPELLINGS[self.scheme].items()
        return {bare(each): names[0] for each, names in spelled if each not in _NO_LOGIN}

    def options(self, given: Mapping[str, SecretStr]) -> dict[str, str]:
        """Return options by their names without prefix."""
        spellings = SPELLINGS[self.scheme]
        return {bare(setting_named(name, spellings)): value for name, value in plain(given).items()}


_SERVICES = (
    _Service(
        service=QueueService.AZURE,
        scheme="az",
        what="a storage queue of Azure, which announces blobs in Azure",
        noun="the URL of a storage queue, as in https://ACCOUNT.queue.core.windows.net/new-files",
        package=("azure.storage.queue", "azure-storage-queue", "azure"),
        own=re.compile(rf"https?://{_AZURE_HOST}"),
        name=re.compile(
            rf"(?P<endpoint>https?://(?:(?={_AZURE_HOST}/)(?P<account>[a-z0-9]+)\.[^/@]+"
            rf"|(?!{_AZURE_HOST}/)[^/?#@\s]+/(?P<first>[^/?#\s]+)))/[^/?#\s]+"
        ),
    ),
    _Service(
        service=QueueService.PUBSUB,
        scheme="gs",
        what="a subscription of Pub/Sub, which announces objects in Google Cloud Storage",
        noun="a subscription of Pub/Sub, as in projects/my-project/subscriptions/new-files",
        package=("google.pubsub_v1", "google-cloud-pubsub", "google"),
        own=re.compile(rf"projects/|https?://{_GOOGLE_HOST}"),
        name=re.compile(
            r"(?:(?P<endpoint>https?://[^/?#@\s]+)/(?:v1/)?)?"
            r"(?P<name>projects/[a-z0-9][a-z0-9.:-]*/subscriptions/[A-Za-z][\w.~+%-]*)"
        ),
    ),
    _Service(
        service=QueueService.SQS,
        scheme="s3",
        what="a queue of SQS, which announces objects in S3",
        noun=(
            "the URL of an SQS queue, as in "
            "https://sqs.eu-west-1.amazonaws.com/123456789012/new-files"
        ),
        package=("botocore", "botocore", "aws"),
        own=re.compile(rf"arn:aws|https?://{_SQS_HOST}"),
        name=re.compile(r"(?P<endpoint>https?://[^/?#@\s]+)(?:/[^/?#\s]+){2,}"),
    ),
)


def faults(path: KeyPath, source: Source) -> Iterator[ConfigFault]:
    """Yield the faults of a source's queue."""
    if source.notifications is None:
        return
    url, service = _queue(source)
    here, given = (*path, "notifications"), source.notifications.storage_options
    if not service.name.fullmatch(url):
        yield ConfigFault((*here, "queue"), f"must be {service.noun}; put keys in storage_options")
        return
    if place_of(source.path).scheme != service.scheme:
        fault = f"is {service.what}, but the source's path is not there"
        yield ConfigFault((*here, "queue"), fault)
        return
    yield from package_faults(here, *service.package)
    known = {*service.credentials, "region", "allow_http"}
    for name in given:
        if not service.options({name: given[name]}).keys() <= known:
            fault = (
                f"unknown option of a queue; known are {', '.join(service.credentials.values())}"
            )
            yield ConfigFault((*here, "storage_options", name), fault)
    allowing, options = ALLOW_HTTP[service.scheme], _options(source, service)
    if url.startswith("http://") and options.get("allow_http", "").lower() != "true":
        yield ConfigFault(
            (*here, "queue"),
            f"is http://, which is not encrypted; to allow it set {allowing}: true in "
            "storage_options",
        )
    if len(set(map(bare, KEYS)) & service.options(given).keys()) == 1:
        names = " and ".join(name.upper() for name in KEYS)
        yield ConfigFault((*here, "storage_options"), f"has only one of {names}")


def shared_faults(document: Document) -> Iterator[ConfigFault]:
    """Yield the queues of several pipelines, each of which would take the others' messages."""
    users: dict[str, str] = {}
    for path, pipeline_name, pipeline in document.named_pipelines():
        for below, _name, source in pipeline.named_sources():
            if source.notifications is None:
                continue
            url, service = _queue(source)
            found = service.name.fullmatch(url)
            # A subscription of Google may be named without the address of an endpoint.
            is_short = found and "name" in found.groupdict() and service.own.match(url)
            first = users.setdefault(found["name"] if found and is_short else url, pipeline_name)
            if first != pipeline_name:
                yield ConfigFault(
                    (*path, *below, "notifications", "queue"),
                    f"is also the queue of pipeline {first}; each would take the other's messages: "
                    "give every pipeline a queue of its own",
                )


def queue_of(source: Source) -> QueueSettings | None:
    """Return the queue of a source, if it has one."""
    if source.notifications is None:
        return None
    url, service = _queue(source)
    found, options = service.name.fullmatch(url), _options(source, service)
    parts = {} if found is None else found.groupdict()
    region = re.fullmatch(_SQS_HOST, urlsplit(url).hostname or "")
    in_url = next((each for each in region.groups() if each), None) if region else None
    return QueueSettings(
        url=url,
        endpoint=parts.get("endpoint") or "https://pubsub.googleapis.com",
        service=service.service,
        region=in_url or options.get("region"),
        account=parts.get("account") or parts.get("first") or "",
        options=StorageOptions(
            {name: options[name] for name in service.credentials if name in options}
        ),
    )


def _queue(source: Source) -> tuple[str, _Service]:
    """Return a queue's name and its service, which follows from it, else from the store."""
    url = source.notifications.queue.rstrip("/") if source.notifications else ""
    scheme = place_of(source.path).scheme
    own = next((each for each in _SERVICES if each.own.match(url)), None)
    return url, own or next((each for each in _SERVICES if each.scheme == scheme), _SERVICES[-1])


def _options(source: Source, service: _Service) -> dict[str, str]:
    """Return the options in effect: the queue's own, else those of its source's store.

    Credentials come from one place: those of the store and the queue are never mixed.
    """
    own = service.options(source.notifications.storage_options if source.notifications else {})
    store = service.options(source.storage_options)
    login = service.credentials.keys()
    if login & own.keys():
        store = {name: value for name, value in store.items() if name not in login}
    return {**store, **own}
