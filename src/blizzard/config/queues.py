"""Validate the configuration of notification queues, and convert it into settings. Pure.

A queue is identified by its URL, or by the name of a Pub/Sub subscription. The service follows from
the URL or else, as for an emulator, from the store of the source. Credentials are those of the
source's store unless the queue has its own.
"""

import re
from collections.abc import Iterator
from typing import Any, ClassVar
from urllib.parse import urlsplit

from blizzard.model.settings import QueueService, QueueSettings
from lakebed.config.checks import package_faults
from lakebed.config.faults import ConfigFault
from lakebed.config.models import Document, KeyPath, Source, place_in, plain
from lakebed.locations import place_of
from lakebed.storage.options import SPELLINGS, StorageOptions, bare


class _Queue:
    """The queue of a source, as far as all services have it in common."""

    service: ClassVar[QueueService]
    scheme: ClassVar[str]
    """The URI scheme of the store whose objects the queues announce."""
    what: ClassVar[tuple[str, str, str]]
    """Words for a queue, for what it announces, and for a source in another store."""
    noun: ClassVar[str]
    """The required form of its URL, with an example."""
    package: ClassVar[tuple[str, str, str]]
    """The required module, its package, and the extra that installs it."""
    credentials: ClassVar[tuple[str, ...]]
    others: ClassVar[tuple[str, ...]] = ("allow_http",)
    prefix: ClassVar[str]
    """The prefix of option names."""
    host: ClassVar[re.Pattern[str]]
    """The hosts of the service itself."""
    named: ClassVar[tuple[str, ...]] = ()
    """Prefixes of queue names other than URLs of the service."""

    def __init__(self, source: Source, url: str) -> None:
        self.source, self.url, self.parts = source, url, urlsplit(url)
        self.given = source.notifications.storage_options if source.notifications else {}
        self.own = {self.option(name): value for name, value in plain(self.given).items()}
        """The options of the queue itself."""
        store = {self.option(name): value for name, value in plain(source.storage_options).items()}
        # Credentials come from one place: those of the store and the queue are never mixed.
        has_login = bool(set(self.credentials) & set(self.own))
        inherited = self.others if has_login else (*self.credentials, *self.others)
        self.options = {**{key: store[key] for key in inherited if key in store}, **self.own}
        """The options in effect: its own, or those of its source's store."""

    @classmethod
    def names(cls, url: str) -> bool:
        """Whether a URL is one of the service's own."""
        return url.startswith(cls.named) or cls.own_host(url) is not None

    @classmethod
    def own_host(cls, url: str) -> re.Match[str] | None:
        """Return the host of a URL if it is one of the service's own."""
        return cls.host.fullmatch(urlsplit(url).hostname or "")

    def url_fault(self) -> str | None:
        """Return the fault of the queue's URL, if any."""
        if (mistaken := self.mistaken()) is not None:
            return mistaken
        parts = self.parts
        if parts.username or parts.password or parts.query or parts.fragment:
            return "must not hold credentials, ? or #; put keys into storage_options"
        return None if self.is_queue() else f"must be {self.noun}"

    def mistaken(self) -> str | None:
        """Return the fault of a name for something other than a queue, such as a topic."""

    def is_queue(self) -> bool:
        """Whether the URL has the form of a queue's."""
        names = 1 if self.names(self.url) else 2
        return self._has_names(range(names, names + 1))

    def _has_names(self, counts: range) -> bool:
        """Whether the number of names in the URL's path is one of `counts`."""
        count = sum(1 for name in self.parts.path.split("/") if name)
        is_url = self.parts.scheme in ("http", "https") and bool(self.parts.hostname)
        return is_url and count in counts

    def more_faults(self, here: KeyPath) -> Iterator[ConfigFault]:  # noqa: ARG002 - most have no more
        """Yield further faults of a queue of this service."""
        yield from ()

    def settings(self, **more: Any) -> QueueSettings:  # noqa: ANN401 - fields of the settings
        """Return the settings of a queue without faults."""
        login = {key: self.options[key] for key in self.credentials if key in self.options}
        more = {"url": self.url, "endpoint": self.url.rpartition("/")[0], **more}
        return QueueSettings(service=self.service, options=StorageOptions(login), **more)

    def faults(self, here: KeyPath) -> Iterator[ConfigFault]:
        """Yield the faults of the queue."""
        if (wrong := self.url_fault()) is not None:
            yield ConfigFault((*here, "queue"), wrong)
            return
        if place_of(self.source.path).scheme != self.scheme:
            what, announced, store = self.what
            fault = f"is {what}, which announces {announced}, but the source's path is {store}"
            yield ConfigFault((*here, "queue"), fault)
        yield from package_faults(here, *self.package)
        known = (*self.credentials, *self.others)
        for name in self.given:
            if self.option(name) not in known:
                names = ", ".join(self.written(each) for each in known)
                fault = f"unknown option of a queue; the options are {names}"
                yield ConfigFault((*here, "storage_options", name), fault)
        if self.parts.scheme == "http" and self.options.get("allow_http", "").lower() != "true":
            yield ConfigFault(
                (*here, "queue"),
                "is http://, which is not encrypted; to allow it set "
                f"{self.prefix}ALLOW_HTTP: true in storage_options",
            )
        yield from self.more_faults(here)

    def option(self, name: str) -> str:
        """Return the canonical name of an option, which the stores of the same cloud share."""
        plain_name = bare(name.lower())
        for canonical, spellings in SPELLINGS[self.scheme].items():
            if plain_name in (bare(each.lower()) for each in spellings):
                return bare(canonical)
        return plain_name

    def written(self, option: str) -> str:
        """Return the name of an option in a configuration."""
        return f"{self.prefix}{option.upper()}"


class _Sqs(_Queue):
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

    def mistaken(self) -> str | None:
        if (arn := self._arn.fullmatch(self.url)) is None:
            return None
        partition, region, account, name = arn.groups()
        end = ".cn" if partition == "aws-cn" else ""
        meant = f"https://sqs.{region}.amazonaws.com{end}/{account}/{name}"
        return f"must be the URL of the queue, not its ARN: {meant}"

    def is_queue(self) -> bool:
        return self._has_names(range(2, 100))

    def more_faults(self, here: KeyPath) -> Iterator[ConfigFault]:
        own, region = self.own, self._region()
        if ("access_key_id" in own) != ("secret_access_key" in own):
            yield ConfigFault(
                (*here, "storage_options"),
                "has only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            )
        for key in ("region", "default_region"):
            if region is not None and own.get(key, region) != region:
                yield ConfigFault(
                    (*here, "storage_options"),
                    f"has another region than the queue's URL, which is in {region}; remove the "
                    "option",
                )

    def settings(self, **_more: Any) -> QueueSettings:  # noqa: ANN401
        options = self.options
        region = self._region() or options.get("region") or options.get("default_region")
        endpoint = f"{self.parts.scheme}://{self.parts.netloc}"
        return super().settings(endpoint=endpoint, region=region)

    def _region(self) -> str | None:
        """Return the region in the URL; None for a queue outside AWS."""
        found = self.own_host(self.url)
        return None if found is None else next(each for each in found.groups() if each)


class _Azure(_Queue):
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

    def more_faults(self, here: KeyPath) -> Iterator[ConfigFault]:
        # These credentials are valid in one account only.
        inherited = {"account_key", "sas_key"} & (self.options.keys() - self.own.keys())
        place = place_in(self.source.path, self.source.storage_options)
        if inherited and place.account not in ("", self._account()):
            yield ConfigFault(
                (*here, "queue"),
                "is in another account than the source, whose key is not valid there; set the "
                "queue's credentials in notifications.storage_options",
            )

    def settings(self, **_more: Any) -> QueueSettings:  # noqa: ANN401
        return super().settings(account=self._account())

    def _account(self) -> str:
        host = self.own_host(self.url)
        return self.parts.path.split("/")[1] if host is None else host[1]


class _PubSub(_Queue):
    """A Pub/Sub subscription; a URL before its name is another endpoint."""

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

    @classmethod
    def name_of(cls, url: str) -> str:
        """Return the unique name of a subscription, without the URL of an endpoint of Google."""
        found = cls._name.fullmatch(url)
        if found is None or (found["endpoint"] and not cls.names(url)):
            return url
        return found["name"]

    def mistaken(self) -> str | None:
        is_topic = re.search(r"projects/[^/]+/topics/", self.url)
        return f"is a topic; it must be {self.noun}" if is_topic else None

    def is_queue(self) -> bool:
        return self._name.fullmatch(self.url) is not None

    def settings(self, **_more: Any) -> QueueSettings:  # noqa: ANN401
        found = self._name.fullmatch(self.url)
        endpoint = (found and found["endpoint"]) or "https://pubsub.googleapis.com"
        return super().settings(endpoint=endpoint)


_SERVICES: tuple[type[_Queue], ...] = (_Azure, _PubSub, _Sqs)


def faults(path: KeyPath, source: Source) -> Iterator[ConfigFault]:
    """Yield the faults of a source's queue."""
    if (queue := _queue(source)) is not None:
        yield from queue.faults((*path, "notifications"))


def shared_faults(document: Document) -> Iterator[ConfigFault]:
    """Yield the queues of several pipelines, each of which would take the others' messages."""
    users: dict[str, str] = {}
    for path, pipeline_name, pipeline in document.named_pipelines():
        for below, _name, source in pipeline.named_sources():
            if source.notifications is None:
                continue
            queue = _PubSub.name_of(source.notifications.queue.rstrip("/"))
            first = users.setdefault(queue, pipeline_name)
            if first != pipeline_name:
                yield ConfigFault(
                    (*path, *below, "notifications", "queue"),
                    f"is also the queue of pipeline {first}; each would take the other's messages: "
                    "give every pipeline a queue of its own",
                )


def queue_of(source: Source) -> QueueSettings | None:
    """Return the queue of a source, if it has one."""
    queue = _queue(source)
    return None if queue is None else queue.settings()


def _queue(source: Source) -> _Queue | None:
    """Return the queue of a source, whose service follows from the URL, else from the store."""
    if source.notifications is None:
        return None
    url, scheme = source.notifications.queue.rstrip("/"), place_of(source.path).scheme
    own = next((each for each in _SERVICES if each.names(url)), None)
    service = own or next((each for each in _SERVICES if each.scheme == scheme), _Sqs)
    return service(source, url)
