"""Queues of SQS: what a configuration may say of them. Pure.

The URL says where the queue is and in which region. Credentials are those of the source's store
unless the queue has its own.
"""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from blizzard.config.queue_options import QueueOptions, package_faults
from blizzard.model.settings import QueueSettings
from lakebed.config.faults import Fault
from lakebed.config.models import KeyPath, Source
from lakebed.locations import place_of

CREDENTIALS = ("access_key_id", "secret_access_key", "session_token", "profile")
OTHERS = ("region", "default_region", "allow_http")
SAME = {"token": "session_token"}


def _bare(name: str) -> str:
    bare = name.lower().removeprefix("aws_")
    return SAME.get(bare, bare)


OPTIONS = QueueOptions(
    credentials=CREDENTIALS,
    others=OTHERS,
    name_of=_bare,
    written=tuple(f"AWS_{each.upper()}" for each in (*CREDENTIALS, *OTHERS)),
    allow_http="AWS_ALLOW_HTTP",
)

_ARN = re.compile(r"arn:(aws[\w-]*):sqs:([\w-]+):(\d+):([\w.-]+)")
_AWS = re.compile(
    r"(?:sqs(?:-fips)?\.([a-z0-9-]+)|([a-z0-9-]+)\.queue|[\w.-]*sqs\.([a-z0-9-]+)\.vpce)"
    r"\.(?:amazonaws\.com(?:\.cn)?|api\.aws)"
)
EXAMPLE = "https://sqs.eu-west-1.amazonaws.com/123456789012/new-files"


def names_aws(url: str) -> bool:
    """Whether a URL or ARN is one of AWS' own."""
    return region_of(url) is not None or _ARN.fullmatch(url) is not None


def faults(here: KeyPath, source: Source, queue: str) -> Iterator[Fault]:
    """Yield what is wrong with the queue of a source."""
    if (wrong := _url_fault(queue)) is not None:
        yield Fault((*here, "queue"), wrong)
        return
    if place_of(source.path).scheme != "s3":
        yield Fault(
            (*here, "queue"),
            "is a queue of SQS, which tells of objects in S3, but the path of the source is not "
            "in S3",
        )
    yield from package_faults(here, "botocore", "botocore", "aws")
    yield from OPTIONS.faults(here, source, queue)
    own = OPTIONS.own(source)
    if ("access_key_id" in own) != ("secret_access_key" in own):
        yield Fault(
            (*here, "storage_options"),
            "has only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        )
    region = region_of(queue)
    for key in ("region", "default_region"):
        if region is not None and own.get(key, region) != region:
            yield Fault(
                (*here, "storage_options"),
                f"has another region than the queue, whose URL says {region}; remove the option",
            )


def queue_at(url: str, source: Source) -> QueueSettings:
    """Return the queue at a URL that has no fault."""
    options = OPTIONS.of(source)
    parts = urlsplit(url)
    chosen = options.get("region") or options.get("default_region")
    return QueueSettings(
        url=url,
        endpoint=f"{parts.scheme}://{parts.netloc}",
        region=region_of(url) or chosen,
        options=OPTIONS.credentials_of(source),
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
    parts = urlsplit(text)
    names = [name for name in parts.path.split("/") if name]
    if parts.scheme not in ("http", "https") or not parts.hostname or len(names) < 2:
        return f"must be the URL of an SQS queue, as in {EXAMPLE}"
    if parts.username or parts.password or parts.query or parts.fragment:
        return "must not hold credentials, ? or #; put keys into storage_options"
    return None
