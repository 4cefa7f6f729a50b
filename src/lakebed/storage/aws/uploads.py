"""Incomplete multipart uploads: listings of objects do not show them, and they cost money.

The store's library begins, completes and aborts uploads, but cannot list those of others. botocore
can. It is optional, so it is imported only where it is used.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import Any

from lakebed.errors import LakeError, StoreDenied, StoreUnavailable
from lakebed.locations import place_of
from lakebed.storage.options import ANY_REGION, StorageOptions, bare
from lakebed.storage.settings import split

ATTEMPTS = 5
GONE = "NoSuchUpload"

RULE = (
    "let the bucket remove them with a lifecycle rule, AbortIncompleteMultipartUpload "
    "(docs/storage.md has one)"
)
NOT_INSTALLED = (
    "unfinished uploads in this bucket cannot be seen without the package botocore: "
    f"pip install 'blizzard-penguin[aws]', or {RULE}"
)
GOOGLE = f"unfinished uploads cannot be seen on Google Cloud Storage: {RULE}"
DENIED = (
    "unfinished uploads in this bucket cannot be seen [{}]: it takes "
    f"s3:ListBucketMultipartUploads and s3:ListMultipartUploadParts; or {RULE}"
)
_UNABLE_CODES = frozenset({"NotImplemented", "MethodNotAllowed", "405", "501"})
UNABLE = f"this store cannot list unfinished uploads [{{}}]: {RULE}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenUpload:
    """An upload that was neither completed nor aborted."""

    path: str
    id: str
    size: int
    """The bytes of its uploaded parts."""
    written: datetime
    """When it was begun, or its newest part was uploaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadsUnlisted:
    """Open uploads cannot be listed here."""

    why: str
    """The reason and the way out."""


def open_uploads(uri: str, options: StorageOptions) -> tuple[OpenUpload, ...] | UploadsUnlisted:
    """Return the open uploads below a location; stores other than S3 and Google have none.

    Azure discards uncompleted uploads after a week.
    """
    kind = place_of(uri).scheme
    if kind == "gs":
        return UploadsUnlisted(why=GOOGLE)
    if kind != "s3":
        return ()
    if find_spec("botocore") is None:
        return UploadsUnlisted(why=NOT_INSTALLED)
    from lakebed.storage.aws.clients import AwsError, AwsFault  # noqa: PLC0415 - botocore

    try:
        with _asked(uri, options) as client:
            return tuple(_listed(client, uri))
    except AwsError as error:
        if error.fault is AwsFault.DENIED:
            return UploadsUnlisted(why=DENIED.format(error.code))
        if error.code in _UNABLE_CODES:
            return UploadsUnlisted(why=UNABLE.format(error.code))
        raise _unavailable(error.code, uri) from error


def abort(uri: str, options: StorageOptions, upload: tuple[str, str]) -> None:
    """Abort an upload, given its path and id; one that is already over is no error.

    A process that is still writing to it gets an error, and begins another.
    """
    from lakebed.storage.aws.clients import AwsError, AwsFault  # noqa: PLC0415 - botocore

    path, number = upload
    try:
        with _asked(uri, options) as client:
            key = f"{_prefix(uri)}{path}"
            client.abort_multipart_upload(Bucket=place_of(uri).bucket, Key=key, UploadId=number)
    except AwsError as error:
        if error.code == GONE:
            return
        if error.fault is AwsFault.DENIED:
            raise StoreDenied(
                f"an unfinished upload may not be aborted [{error.code}]: it takes "
                "s3:AbortMultipartUpload",
                path=f"{uri.rstrip('/')}/{path}",
            ) from error
        raise _unavailable(error.code, uri) from error


def last_written(begun: datetime, parts: Iterable[datetime]) -> datetime:
    """Return when an upload was last written to. Pure.

    A part may be much newer than the upload's beginning.
    """
    return max((begun.astimezone(UTC), *(part.astimezone(UTC) for part in parts)))


def client_settings(given: Mapping[str, str], client: Mapping[str, str]) -> dict[str, Any]:
    """Return settings with which botocore's client reaches the library's store. Pure."""
    hosted = given.get("virtual_hosted_style_request", "").lower() == "true"
    settings: dict[str, Any] = {
        "region": given.get("region") or ANY_REGION,
        "endpoint": given.get("endpoint"),
        "verify": client.get("allow_invalid_certificates", "").lower() != "true",
        "s3": {"addressing_style": "virtual" if hosted else "path"},
    }
    if proxy := client.get("proxy_url"):
        settings["proxies"] = {"http": proxy, "https": proxy}
    return settings


@contextmanager
def _asked(uri: str, options: StorageOptions) -> Iterator[Any]:
    """Open a client for the block; raise AwsError for failed requests."""
    from lakebed.storage.aws.clients import asking, open_client  # noqa: PLC0415 - botocore

    config, http = split(options.plain(), uri=uri, environment=os.environ, key=options.key)
    given = {bare(name): value for name, value in config.items()}
    with asking():
        client = open_client(
            "s3",
            given,
            profile=False,  # The profile is resolved elsewhere; its keys are given.
            connect_timeout=5,
            read_timeout=60,
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            **client_settings(given, http),
        )
        with closing(client):
            yield client


def _listed(client: Any, uri: str) -> Iterator[OpenUpload]:  # noqa: ANN401 - botocore has no types
    bucket, prefix = place_of(uri).bucket, _prefix(uri)
    pages = client.get_paginator("list_multipart_uploads").paginate(Bucket=bucket, Prefix=prefix)
    for page in pages:
        for each in page.get("Uploads", ()):
            key = each["Key"]
            if not key.startswith(prefix):
                continue
            parts = _parts(client, bucket, key, each["UploadId"])
            if parts is not None:
                yield OpenUpload(
                    path=key.removeprefix(prefix),
                    id=each["UploadId"],
                    size=sum(part["Size"] for part in parts),
                    written=last_written(
                        each["Initiated"], (part["LastModified"] for part in parts)
                    ),
                )


def _parts(client: Any, bucket: str, key: str, number: str) -> list[Any] | None:  # noqa: ANN401
    """Return the uploaded parts; None if the upload is over by now."""
    from lakebed.storage.aws.clients import AwsError, asking  # noqa: PLC0415 - botocore

    pages = client.get_paginator("list_parts").paginate(Bucket=bucket, Key=key, UploadId=number)
    try:
        with asking():
            return [part for page in pages for part in page.get("Parts", ())]
    except AwsError as error:
        if error.code == GONE:
            return None
        raise


def _prefix(uri: str) -> str:
    """Return the key prefix of objects below a location."""
    return "".join(f"{folder}/" for folder in place_of(uri).folders)


def _unavailable(code: str, uri: str) -> LakeError:
    return StoreUnavailable(f"unfinished uploads cannot be listed or aborted [{code}]", path=uri)
