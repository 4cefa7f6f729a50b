"""Queues that tell of new source files: what a configuration may say of them. Pure.

A queue is named by its URL, which says where it is and in which region. Its credentials are those
of the source's store unless it has its own.
"""

import re
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from urllib.parse import urlsplit

from pydantic import SecretStr

from blizzard.model.settings import QueueSettings
from lakebed.config.faults import Fault
from lakebed.config.models import Document, KeyPath, Source, plain
from lakebed.storage.options import StorageOptions

CREDENTIALS = ("access_key_id", "secret_access_key", "session_token", "profile")
OTHERS = ("region", "default_region", "allow_http")
SAME = {"token": "session_token"}

_ARN = re.compile(r"arn:(aws[\w-]*):sqs:([\w-]+):(\d+):([\w.-]+)")
_AWS = re.compile(
    r"(?:sqs(?:-fips)?\.([a-z0-9-]+)|([a-z0-9-]+)\.queue|[\w.-]*sqs\.([a-z0-9-]+)\.vpce)"
    r"\.(?:amazonaws\.com(?:\.cn)?|api\.aws)"
)
EXAMPLE = "https://sqs.eu-west-1.amazonaws.com/123456789012/new-files"


def faults(path: KeyPath, source: Source) -> Iterator[Fault]:
    """Yield what is wrong with the queue of a source."""
    given = source.notifications
    if given is None:
        return
    here = (*path, "notifications")
    if (wrong := _url_fault(given.queue)) is not None:
        yield Fault((*here, "queue"), wrong)
        return
    if not source.path.startswith("s3://"):
        yield Fault(
            (*here, "queue"),
            "is a queue of SQS, which tells of objects in S3, but the path of the source is not "
            "s3://",
        )
    if find_spec("botocore") is None:
        yield Fault(
            here, "needs the package botocore: pip install 'blizzard-penguin[aws]'", near=()
        )
    yield from _option_faults((*here, "storage_options"), given.storage_options)
    own = _named(given.storage_options)
    options = _options(source)
    if urlsplit(given.queue).scheme == "http" and options.get("allow_http", "").lower() != "true":
        yield Fault(
            (*here, "queue"),
            "is http://, which is not encrypted; to allow it set AWS_ALLOW_HTTP: true in "
            "storage_options",
        )
    region = region_of(given.queue)
    for key in ("region", "default_region"):
        if region is not None and own.get(key, region) != region:
            yield Fault(
                (*here, "storage_options"),
                f"has another region than the queue, whose URL says {region}; remove the option",
            )


def shared_faults(document: Document) -> Iterator[Fault]:
    """Yield queues that two pipelines would read: each would take the other's messages."""
    users: dict[str, str] = {}
    for path, pipeline_name, pipeline in document.named_pipelines():
        for below, _name, source in pipeline.named_sources():
            if source.notifications is None:
                continue
            first = users.setdefault(source.notifications.queue.rstrip("/"), pipeline_name)
            if first != pipeline_name:
                yield Fault(
                    (*path, *below, "notifications", "queue"),
                    f"is the queue of pipeline {first}, too; each would take the other's "
                    "messages: give every pipeline a queue of its own",
                )


def queue_of(source: Source) -> QueueSettings | None:
    """Return the queue of a source, if it has one."""
    if source.notifications is None:
        return None
    url = source.notifications.queue.rstrip("/")
    options = _options(source)
    parts = urlsplit(url)
    chosen = options.get("region") or options.get("default_region")
    return QueueSettings(
        url=url,
        endpoint=f"{parts.scheme}://{parts.netloc}",
        region=region_of(url) or chosen,
        options=StorageOptions({key: options[key] for key in CREDENTIALS if key in options}),
    )


def region_of(url: str) -> str | None:
    """Return the region that a queue's URL names; None for a queue that is not at AWS."""
    found = _AWS.fullmatch(urlsplit(url).hostname or "")
    return None if found is None else next(each for each in found.groups() if each)


def _url_fault(text: str) -> str | None:
    if (arn := _ARN.fullmatch(text)) is not None:
        partition, region, account, name = arn.groups()
        end = ".cn" if partition == "aws-cn" else ""
        url = f"https://sqs.{region}.amazonaws.com{end}/{account}/{name}"
        return f"must be the URL of the queue, not its ARN: {url}"
    if ".queue.core.windows.net" in text or text.startswith(("projects/", "pubsub:")):
        return "must be a queue of SQS; queues of Azure and Google are not supported"
    parts = urlsplit(text)
    names = [name for name in parts.path.split("/") if name]
    if parts.scheme not in ("http", "https") or not parts.hostname or len(names) < 2:
        return f"must be the URL of an SQS queue, as in {EXAMPLE}"
    if parts.username or parts.password or parts.query or parts.fragment:
        return "must not hold credentials, ? or #; put keys into storage_options"
    return None


def _option_faults(here: KeyPath, given: Mapping[str, SecretStr]) -> Iterator[Fault]:
    known = (*CREDENTIALS, *OTHERS)
    for name in given:
        if _bare(name) not in known:
            names = ", ".join(f"AWS_{each.upper()}" for each in known)
            yield Fault((*here, name), f"unknown option of a queue; there are {names}")
    named = _named(given)
    if ("access_key_id" in named) != ("secret_access_key" in named):
        yield Fault(here, "has only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")


def _options(source: Source) -> dict[str, str]:
    """Return the options that hold for a queue: its own, or those of the store of its source."""
    own = source.notifications.storage_options if source.notifications else {}
    named = _named(own)
    store = _named(source.storage_options)
    if not set(CREDENTIALS) & set(named):
        named = {**{key: store[key] for key in CREDENTIALS if key in store}, **named}
    return {**{key: store[key] for key in OTHERS if key in store}, **named}


def _named(options: Mapping[str, SecretStr]) -> dict[str, str]:
    return {_bare(name): value for name, value in plain(options).items()}


def _bare(name: str) -> str:
    bare = name.lower().removeprefix("aws_")
    return SAME.get(bare, bare)
