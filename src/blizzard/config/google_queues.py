"""Subscriptions of Google's Pub/Sub: what a configuration may say of them. Pure.

A subscription is named as Google names it, `projects/PROJECT/subscriptions/NAME`. A URL before that
says that it is elsewhere: at another endpoint of Google's, or at an emulator. Credentials are those
of the source's store unless the subscription has its own.
"""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from blizzard.config.queue_options import QueueOptions, as_stores_spell, package_faults
from blizzard.model.settings import QueueService, QueueSettings
from lakebed.config.faults import Fault
from lakebed.config.models import KeyPath, Source
from lakebed.locations import place_of

CREDENTIALS = ("service_account", "service_account_key", "application_credentials")
OPTIONS = QueueOptions(
    credentials=CREDENTIALS,
    others=("allow_http",),
    name_of=as_stores_spell("gs"),
    written=tuple(f"GOOGLE_{each.upper()}" for each in (*CREDENTIALS, "allow_http")),
    allow_http="GOOGLE_ALLOW_HTTP",
)
EXAMPLE = "projects/my-project/subscriptions/new-files"
ENDPOINT = "https://pubsub.googleapis.com"

_NAME = re.compile(
    r"(?:(?P<endpoint>https?://[^/?#\s]+)/(?:v1/)?)?"
    r"(?P<name>projects/[a-z0-9][a-z0-9.:-]*/subscriptions/[A-Za-z][\w.~+%-]*)"
)
_HOST = re.compile(r"(?:[a-z0-9-]+-)?pubsub(?:\.[a-z0-9-]+\.rep)?\.googleapis\.com")


def names_google(text: str) -> bool:
    """Whether a queue is named as Google's are, or by a URL of Google's own."""
    by_name = text.startswith(("projects/", "pubsub:", "//pubsub."))
    return by_name or _HOST.fullmatch(urlsplit(text).hostname or "") is not None


def name_of(text: str) -> str:
    """Return the one name of a subscription at Google, whichever of its endpoints a URL names."""
    found = _NAME.fullmatch(text)
    if found is None or (found["endpoint"] and not names_google(text)):
        return text
    return found["name"]


def faults(here: KeyPath, source: Source, queue: str) -> Iterator[Fault]:
    """Yield what is wrong with the subscription of a source."""
    if (wrong := _fault(queue)) is not None:
        yield Fault((*here, "queue"), wrong)
        return
    if place_of(source.path).scheme != "gs":
        yield Fault(
            (*here, "queue"),
            "is a subscription of Pub/Sub, which tells of objects in Google Cloud Storage, but the "
            "path of the source is not there",
        )
    yield from package_faults(here, "google.pubsub_v1", "google-cloud-pubsub", "google")
    yield from OPTIONS.faults(here, source, queue)


def queue_at(text: str, source: Source) -> QueueSettings:
    """Return the subscription of a name that has no fault."""
    found = _NAME.fullmatch(text)
    return QueueSettings(
        url=text,
        endpoint=(found and found["endpoint"]) or ENDPOINT,
        service=QueueService.PUBSUB,
        options=OPTIONS.credentials_of(source),
    )


def _fault(text: str) -> str | None:
    parts = urlsplit(text)
    if parts.username or parts.password or parts.query or parts.fragment:
        return "must not hold credentials, ? or #; put keys into storage_options"
    if re.search(r"projects/[^/]+/topics/", text):
        return f"is a topic; it must be a subscription of it, as in {EXAMPLE}"
    if _NAME.fullmatch(text.rstrip("/")) is None:
        return f"must be a subscription of Pub/Sub, as in {EXAMPLE}"
    return None
