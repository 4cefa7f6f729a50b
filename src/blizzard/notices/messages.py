"""Parse notifications: which objects were created, and in which source. Pure.

S3 sends notifications directly to a queue, through SNS (wrapped, unless raw delivery is on) or
through EventBridge; Azure sends them through Event Grid, in one of two schemas, in base64; Google
sends attributes that name the object. Parsing never fails, since anyone may be allowed to send to a
queue.
"""

import json
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote, unquote_plus

from blizzard.model.notices import Hint, NoticeKind
from blizzard.model.settings import SourceSettings
from lakebed.locations import Place, place_of
from lakebed.storage.options import bare

DEEPEST = 3
"""The most wrappings of a message; EventBridge to SNS to a queue is one."""

_SUBJECT = re.compile(r"/blobServices/default/containers/([^/]+)/blobs/(.+)", re.DOTALL)
_TOPIC = re.compile(r"/storageAccounts/([^/]+)$", re.IGNORECASE)
UNWRITTEN = "CreateFile"
"""The Azure event of creating an empty file in a hierarchical account; another event follows when
the file has been written and closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectCreated:
    """An object of a bucket was created."""

    bucket: str
    key: str
    account: str = ""
    """The Azure account, if the message has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The content of a message."""

    created: tuple[ObjectCreated, ...] = ()
    others: tuple[NoticeKind, ...] = ()
    """The kinds of its other notifications."""

    @property
    def is_unreadable(self) -> bool:
        """Whether nothing in it could be parsed."""
        return not self.created and set(self.others) == {NoticeKind.UNREADABLE}


def contents_of(body: str) -> Contents:
    """Parse a message."""
    found = list(_read(body, DEEPEST))
    return Contents(
        created=tuple(each for each in found if isinstance(each, ObjectCreated)),
        others=tuple(each for each in found if isinstance(each, NoticeKind)),
    )


def _read(body: object, wraps: int) -> Iterator[ObjectCreated | NoticeKind]:
    document = _parsed(body)
    if isinstance(document, list) and document:
        for event in document:
            yield _of_event_grid(event)
    elif not isinstance(document, dict) or not wraps:
        yield NoticeKind.UNREADABLE
    elif document.get("Event") == "s3:TestEvent":
        yield NoticeKind.TEST
    elif isinstance(records := document.get("Records"), list) and records:
        for record in records:
            yield _of_s3(record)
    elif document.get("source") == "aws.s3" and "detail-type" in document:
        yield _of_event_bridge(document)
    elif "Type" in document and "TopicArn" in document:
        yield from _of_sns(document, wraps)
    elif isinstance(document.get("attributes"), dict):
        yield _of_google(document)
    else:
        yield _of_event_grid(document)


def _of_sns(document: dict[str, Any], wraps: int) -> Iterator[ObjectCreated | NoticeKind]:
    """Read an SNS message: a wrapped notification, or one about a subscription."""
    if document["Type"] == "Notification":
        yield from _read(document.get("Message"), wraps - 1)
    else:
        yield NoticeKind.OTHER_EVENT


def _parsed(body: object) -> object:
    """Parse a JSON body, which may be in base64; None if invalid."""
    if not isinstance(body, str):
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        pass
    try:
        return json.loads(b64decode("".join(body.split()), validate=True))
    except (ValueError, RecursionError):
        return None


def _of_s3(record: object) -> ObjectCreated | NoticeKind:
    """Read a record of S3, whose key is form-encoded, with + for a space."""
    name = _at(record, "eventName")
    if not isinstance(name, str) or not isinstance(_at(record, "s3"), dict):
        return NoticeKind.UNREADABLE
    if not name.removeprefix("s3:").startswith("ObjectCreated:"):
        return NoticeKind.OTHER_EVENT
    key = _at(record, "s3", "object", "key")
    return _created(
        _at(record, "s3", "bucket", "name"),
        unquote_plus(key) if isinstance(key, str) else None,
    )


def _of_event_bridge(document: dict[str, Any]) -> ObjectCreated | NoticeKind:
    """Read an event of EventBridge, whose key is not encoded."""
    if document["detail-type"] != "Object Created":
        return NoticeKind.OTHER_EVENT
    return _created(
        _at(document, "detail", "bucket", "name"), _at(document, "detail", "object", "key")
    )


def _of_event_grid(event: object) -> ObjectCreated | NoticeKind:
    """Read an event of Event Grid, in its own schema or that of CloudEvents 1.0."""
    kind, topic = _at(event, "eventType"), _at(event, "topic")
    if _at(event, "specversion") is not None:
        kind, topic = _at(event, "type"), _at(event, "source")
    if not isinstance(kind, str):
        return NoticeKind.UNREADABLE
    if kind != "Microsoft.Storage.BlobCreated" or _at(event, "data", "api") == UNWRITTEN:
        return NoticeKind.OTHER_EVENT
    subject = _at(event, "subject")
    found = _SUBJECT.fullmatch(subject) if isinstance(subject, str) else None
    if found is None:
        return NoticeKind.UNREADABLE
    account = _TOPIC.search(topic) if isinstance(topic, str) else None
    return _created(
        found[1],
        _blob(_at(event, "data", "url"), found[1]) or found[2],
        account=account[1] if account is not None else "",
    )


def _of_google(document: dict[str, Any]) -> ObjectCreated | NoticeKind:
    """Read a message of Pub/Sub, whose attributes name the object."""
    kind = _at(document, "attributes", "eventType")
    if not isinstance(kind, str):
        return NoticeKind.UNREADABLE
    if kind != "OBJECT_FINALIZE":
        return NoticeKind.OTHER_EVENT
    return _created(
        _at(document, "attributes", "bucketId"), _at(document, "attributes", "objectId")
    )


def _blob(url: object, container: str) -> str:
    """Return the name of a blob from its encoded URL; empty if the URL has none.

    The subject of an event has the plain name, but garbles characters outside the BMP.
    """
    path = url.partition("://")[2] if isinstance(url, str) else ""
    return unquote(path.partition(f"/{container}/")[2])


def _created(bucket: object, key: object, *, account: str = "") -> ObjectCreated | NoticeKind:
    if not (isinstance(bucket, str) and isinstance(key, str) and bucket and key):
        return NoticeKind.UNREADABLE
    return ObjectCreated(bucket=bucket, key=key, account=account)


def _at(value: object, *path: str) -> object:
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def place_of_source(source: SourceSettings) -> Place:
    """Return the location of a source's objects."""
    return place_of(source.uri, account=_account(source))


def hint_for(created: ObjectCreated, sources: Mapping[str, Place]) -> Hint | None:
    """Return the hint of an object's source and path; None if it is in no source's folder.

    The sources of a pipeline do not overlap, so at most one matches.
    """
    folders = tuple(created.key.split("/"))
    for source, place in sources.items():
        there = replace(place, bucket=created.bucket, account=created.account, folders=folders)
        if path := there.below(place):
            return Hint(source=source, path=path)
    return None


def _account(source: SourceSettings) -> str:
    """Return the account in the options of a source; empty without one."""
    options = source.storage_options.plain().items()
    return next((value for name, value in options if bare(name.lower()) == "account_name"), "")
