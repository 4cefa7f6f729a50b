"""Queues of notifications about new source files: what a configuration may say of them. Pure.

A queue is named by its URL, one of Google's by the name of its subscription. The URL says which
service it is or else the store of the source does: a queue on another server, such as an emulator,
has an address like any other. Credentials are those of the source's store unless the queue has
its own.
"""

import re
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any, ClassVar
from urllib.parse import urlsplit

from pydantic import SecretStr

from blizzard.model.settings import QueueService, QueueSettings
from lakebed.config.faults import ConfigFault
from lakebed.config.models import Document, KeyPath, Source, place_in, plain
from lakebed.locations import place_of
from lakebed.storage.options import StorageOptions, bare
from lakebed.storage.settings import SPELLINGS


class _Queues:
    """The queues of one service: what all of them have in common."""

    service: ClassVar[QueueService]
    scheme: ClassVar[str]
    """The stores whose objects the queues announce."""
    what: ClassVar[tuple[str, str, str]]
    """What a queue is, what it announces, and what is wrong with a source elsewhere."""
    noun: ClassVar[str]
    """What its URL must be, with an example."""
    package: ClassVar[tuple[str, str, str]]
    """The module that is needed, its package, and the extra that installs it."""
    credentials: ClassVar[tuple[str, ...]]
    others: ClassVar[tuple[str, ...]] = ("allow_http",)
    prefix: ClassVar[str]
    """How the names of options begin."""
    host: ClassVar[re.Pattern[str]]
    """The hosts of the service itself."""
    named: ClassVar[tuple[str, ...]] = ()
    """How other names of its queues begin."""

    def names(self, url: str) -> bool:
        """Whether a URL is one of the service's own."""
        return url.startswith(self.named) or self.own_host(url) is not None

    def own_host(self, url: str) -> re.Match[str] | None:
        """Return the host of a URL if it is one of the service's own."""
        return self.host.fullmatch(urlsplit(url).hostname or "")

    def url_fault(self, url: str) -> str | None:
        """Return what is wrong with the URL of a queue."""
        if (mistaken := self.mistaken(url)) is not None:
            return mistaken
        if _has_login(url):
            return "must not hold credentials, ? or #; put keys into storage_options"
        return None if self.is_queue(url) else f"must be {self.noun}"

    def mistaken(self, url: str) -> str | None:
        """Return what is wrong with the name of something else, such as a topic."""

    def is_queue(self, url: str) -> bool:
        """Whether a URL has the form of a queue's."""
        names = range(1, 2) if self.names(url) else range(2, 3)
        return _is_url(url, names=names)

    def more_faults(self, here: KeyPath, source: Source, url: str) -> Iterator[ConfigFault]:  # noqa: ARG002 - most have no more
        """Yield what else is wrong with a queue of this service."""
        yield from ()

    def queue(self, url: str, source: Source, **more: Any) -> QueueSettings:  # noqa: ANN401 - fields of the settings
        """Return the queue at a URL that has no fault."""
        options = self.options(source)
        login = {key: options[key] for key in self.credentials if key in options}
        more = {"endpoint": url.rpartition("/")[0], **more}
        return QueueSettings(url=url, service=self.service, options=StorageOptions(login), **more)

    def faults(self, here: KeyPath, source: Source, url: str) -> Iterator[ConfigFault]:
        """Yield what is wrong with the queue of a source."""
        if (wrong := self.url_fault(url)) is not None:
            yield ConfigFault((*here, "queue"), wrong)
            return
        if place_of(source.path).scheme != self.scheme:
            what, announced, store = self.what
            fault = f"is {what}, which tells of {announced}, but the path of the source is {store}"
            yield ConfigFault((*here, "queue"), fault)
        module, package, extra = self.package
        if not _is_installed(module):
            way_out = f"needs the package {package}: pip install 'blizzard-penguin[{extra}]'"
            yield ConfigFault(here, way_out, near=())
        known = (*self.credentials, *self.others)
        for name in _own(source):
            if self.option(name) not in known:
                names = ", ".join(self.written(each) for each in known)
                fault = f"unknown option of a queue; there are {names}"
                yield ConfigFault((*here, "storage_options", name), fault)
        allowed = self.options(source).get("allow_http", "").lower() == "true"
        if urlsplit(url).scheme == "http" and not allowed:
            yield ConfigFault(
                (*here, "queue"),
                "is http://, which is not encrypted; to allow it set "
                f"{self.prefix}ALLOW_HTTP: true in storage_options",
            )
        yield from self.more_faults(here, source, url)

    def option(self, name: str) -> str:
        """Return the name of an option in the code, as the stores of the same cloud have it."""
        plain_name = bare(name.lower())
        for canonical, spellings in SPELLINGS[self.scheme].items():
            if plain_name in (bare(each.lower()) for each in spellings):
                return bare(canonical)
        return plain_name

    def written(self, option: str) -> str:
        """Return how an option is written in a configuration."""
        return f"{self.prefix}{option.upper()}"

    def own_options(self, source: Source) -> dict[str, str]:
        """Return the options that are set for the queue itself."""
        return {self.option(name): value for name, value in plain(_own(source)).items()}

    def options(self, source: Source) -> dict[str, str]:
        """Return the options that hold for a queue: its own, or those of the store of its source.

        Credentials belong to one place: those of the store are not joined to others.
        """
        own = self.own_options(source)
        store = {self.option(name): value for name, value in plain(source.storage_options).items()}
        inherited = self.others
        if not set(self.credentials) & set(own):
            inherited = (*self.credentials, *self.others)
        return {**{key: store[key] for key in inherited if key in store}, **own}


class _Sqs(_Queues):
    service = QueueService.SQS
    scheme = "s3"
    what = ("a queue of SQS", "objects in S3", "not in S3")
    noun = (
        "the URL of an SQS queue, as in https://sqs.eu-west-1.amazonaws.com/123456789012/new-files"
    )
    package = ("botocore", "botocore", "aws")
    credentials = ("access_key_id", "secret_access_key", "session_token", "profile")
    others = ("region", "default_region", "allow_http")
    prefix = "AWS_"
    named = ("arn:aws",)
    host = re.compile(
        r"(?:sqs(?:-fips)?\.([a-z0-9-]+)|([a-z0-9-]+)\.queue|[\w.-]*sqs\.([a-z0-9-]+)\.vpce)"
        r"\.(?:amazonaws\.com(?:\.cn)?|api\.aws)"
    )
    _arn = re.compile(r"arn:(aws[\w-]*):sqs:([\w-]+):(\d+):([\w.-]+)")

    def option(self, name: str) -> str:
        bare_name = name.lower().removeprefix("aws_")
        return "session_token" if bare_name == "token" else bare_name

    def mistaken(self, url: str) -> str | None:
        if (arn := self._arn.fullmatch(url)) is None:
            return None
        partition, region, account, name = arn.groups()
        end = ".cn" if partition == "aws-cn" else ""
        meant = f"https://sqs.{region}.amazonaws.com{end}/{account}/{name}"
        return f"must be the URL of the queue, not its ARN: {meant}"

    def is_queue(self, url: str) -> bool:
        return _is_url(url, names=range(2, 100))

    def more_faults(self, here: KeyPath, source: Source, url: str) -> Iterator[ConfigFault]:
        own, region = self.own_options(source), self._region(url)
        if ("access_key_id" in own) != ("secret_access_key" in own):
            yield ConfigFault(
                (*here, "storage_options"),
                "has only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            )
        for key in ("region", "default_region"):
            if region is not None and own.get(key, region) != region:
                yield ConfigFault(
                    (*here, "storage_options"),
                    f"has another region than the queue, whose URL says {region}; remove the "
                    "option",
                )

    def queue(self, url: str, source: Source, **_more: Any) -> QueueSettings:  # noqa: ANN401
        options, parts = self.options(source), urlsplit(url)
        region = self._region(url) or options.get("region") or options.get("default_region")
        endpoint = f"{parts.scheme}://{parts.netloc}"
        return super().queue(url, source, endpoint=endpoint, region=region)

    def _region(self, url: str) -> str | None:
        """Return the region that a URL names; None for a queue that is not at AWS."""
        found = self.own_host(url)
        return None if found is None else next(each for each in found.groups() if each)


class _Azure(_Queues):
    """The URL names the account: as its host or, on an emulator, as the first part of its path."""

    service = QueueService.AZURE
    scheme = "az"
    what = ("a storage queue of Azure", "blobs in Azure", "not in Azure")
    noun = "the URL of a storage queue, as in https://ACCOUNT.queue.core.windows.net/new-files"
    package = ("azure.storage.queue", "azure-storage-queue", "azure")
    credentials = ("account_key", "sas_key", "token", "client_id", "client_secret", "tenant_id")
    prefix = "AZURE_"
    host = re.compile(r"([a-z0-9]{3,24})\.(?:z\d+\.)?queue\.(?:core\.[a-z.]+|storage\.azure\.net)")

    def written(self, option: str) -> str:
        part = "" if option in self.others else "STORAGE_"
        return f"{self.prefix}{part}{option.upper()}"

    def more_faults(self, here: KeyPath, source: Source, url: str) -> Iterator[ConfigFault]:
        options, own = self.options(source), self.own_options(source)
        # These credentials are good in one account alone.
        inherited = {"account_key", "sas_key"} & (options.keys() - own.keys())
        place = place_in(source.path, source.storage_options)
        if inherited and place.account not in ("", self.queue(url, source).account):
            yield ConfigFault(
                (*here, "queue"),
                "is in another account than the source, whose key it does not take; set the "
                "queue's credentials in notifications.storage_options",
            )

    def queue(self, url: str, source: Source, **_more: Any) -> QueueSettings:  # noqa: ANN401
        host = self.own_host(url)
        account = urlsplit(url).path.split("/")[1] if host is None else host[1]
        return super().queue(url.rstrip("/"), source, account=account)


class _PubSub(_Queues):
    """A subscription has its name at Google; a URL before that names another endpoint."""

    service = QueueService.PUBSUB
    scheme = "gs"
    what = ("a subscription of Pub/Sub", "objects in Google Cloud Storage", "not there")
    noun = "a subscription of Pub/Sub, as in projects/my-project/subscriptions/new-files"
    package = ("google.pubsub_v1", "google-cloud-pubsub", "google")
    credentials = ("service_account", "service_account_key", "application_credentials")
    prefix = "GOOGLE_"
    named = ("projects/", "pubsub:", "//pubsub.")
    host = re.compile(r"(?:[a-z0-9-]+-)?pubsub(?:\.[a-z0-9-]+\.rep)?\.googleapis\.com")
    _name = re.compile(
        r"(?:(?P<endpoint>https?://[^/?#\s]+)/(?:v1/)?)?"
        r"(?P<name>projects/[a-z0-9][a-z0-9.:-]*/subscriptions/[A-Za-z][\w.~+%-]*)"
    )

    def name_of(self, url: str) -> str:
        """Return the one name of a subscription, for any endpoint of Google's that a URL names."""
        found = self._name.fullmatch(url)
        if found is None or (found["endpoint"] and not self.names(url)):
            return url
        return found["name"]

    def mistaken(self, url: str) -> str | None:
        is_topic = re.search(r"projects/[^/]+/topics/", url)
        return f"is a topic; it must be {self.noun}" if is_topic else None

    def is_queue(self, url: str) -> bool:
        return self._name.fullmatch(url.rstrip("/")) is not None

    def queue(self, url: str, source: Source, **_more: Any) -> QueueSettings:  # noqa: ANN401
        found = self._name.fullmatch(url)
        endpoint = (found and found["endpoint"]) or "https://pubsub.googleapis.com"
        return super().queue(url, source, endpoint=endpoint)


_SQS, _PUBSUB = _Sqs(), _PubSub()
_SERVICES: tuple[_Queues, ...] = (_Azure(), _PUBSUB, _SQS)


def faults(path: KeyPath, source: Source) -> Iterator[ConfigFault]:
    """Yield what is wrong with the queue of a source."""
    if source.notifications is not None:
        url = source.notifications.queue
        yield from _service(source, url).faults((*path, "notifications"), source, url)


def shared_faults(document: Document) -> Iterator[ConfigFault]:
    """Yield queues that two pipelines would read: each would take the other's messages."""
    users: dict[str, str] = {}
    for path, pipeline_name, pipeline in document.named_pipelines():
        for below, _name, source in pipeline.named_sources():
            if source.notifications is None:
                continue
            queue = _PUBSUB.name_of(source.notifications.queue.rstrip("/"))
            first = users.setdefault(queue, pipeline_name)
            if first != pipeline_name:
                yield ConfigFault(
                    (*path, *below, "notifications", "queue"),
                    f"is the queue of pipeline {first}, too; each would take the other's "
                    "messages: give every pipeline a queue of its own",
                )


def queue_of(source: Source) -> QueueSettings | None:
    """Return the queue of a source, if it has one."""
    if source.notifications is None:
        return None
    url = source.notifications.queue.rstrip("/")
    return _service(source, url).queue(url, source)


def _service(source: Source, url: str) -> _Queues:
    """Return the service of a queue: as its URL says, else that of the store's own cloud."""
    scheme = place_of(source.path).scheme
    own = next((each for each in _SERVICES if each.names(url)), None)
    return own or next((each for each in _SERVICES if each.scheme == scheme), _SQS)


def _own(source: Source) -> Mapping[str, SecretStr]:
    return source.notifications.storage_options if source.notifications else {}


def _is_url(text: str, *, names: range) -> bool:
    """Whether a text is a URL whose path has so many names."""
    parts = urlsplit(text)
    count = sum(1 for name in parts.path.split("/") if name)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and count in names


def _has_login(text: str) -> bool:
    parts = urlsplit(text)
    return bool(parts.username or parts.password or parts.query or parts.fragment)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False  # Nor is the package that it would be in.
