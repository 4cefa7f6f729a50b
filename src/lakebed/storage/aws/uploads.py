"""Incomplete multipart uploads: no listing of objects shows them, and they cost.

The store's library begins, completes and aborts uploads, but cannot list those of others. botocore
can. It is optional, so it is imported only where it is used.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import Any

from lakebed.errors import LakeError, StoreDenied, StoreUnavailable
from lakebed.locations import place_of
from lakebed.storage.options import StorageOptions, bare
from lakebed.storage.remote import split

ANY_REGION = "us-east-1"
"""What the store's library signs with, too, where no region is set."""
ATTEMPTS = 5
NO_PROFILE = {"profile": (None, None, None, None)}
"""Which profile is meant is decided elsewhere; the keys of one are given."""
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
_DENIED_CODES = frozenset({"AccessDenied", "AllAccessDisabled", "403"})
_UNABLE_CODES = frozenset({"NotImplemented", "MethodNotAllowed", "405", "501"})
UNABLE = f"this store cannot list unfinished uploads [{{}}]: {RULE}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenUpload:
    """An upload that was neither completed nor aborted."""

    path: str
    id: str
    size: int
    """The bytes of its parts that have arrived."""
    written: datetime
    """When it was last written to: when it was begun, or its newest part came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen:
    """There may be open uploads, and here they cannot be seen."""

    why: str
    """One sentence, with what to do."""


def open_uploads(
    uri: str, options: StorageOptions, *, environment: Mapping[str, str]
) -> tuple[OpenUpload, ...] | Unseen:
    """Return the uploads below a place that are open. Other stores than S3 and Google have none.

    Azure forgets by itself, after a week, what was not completed.
    """
    kind = place_of(uri).scheme
    if kind == "gs":
        return Unseen(why=GOOGLE)
    if kind != "s3":
        return ()
    if find_spec("botocore") is None:
        return Unseen(why=NOT_INSTALLED)
    from botocore.exceptions import ClientError  # noqa: PLC0415 - it is optional

    try:
        with _asked(uri, options, environment) as client:
            return tuple(_listed(client, uri))
    except ClientError as cause:
        code = _code(cause)
        if code in _DENIED_CODES:
            return Unseen(why=DENIED.format(code))
        if code in _UNABLE_CODES:
            return Unseen(why=UNABLE.format(code))
        raise _unavailable(code, uri) from cause


def abort(
    uri: str, options: StorageOptions, upload: tuple[str, str], *, environment: Mapping[str, str]
) -> None:
    """Remove the parts of an upload, by its path and id; one that is over is no error.

    A process still writing to it learns that it is gone, and begins another.
    """
    from botocore.exceptions import ClientError  # noqa: PLC0415 - it is optional

    path, number = upload
    try:
        with _asked(uri, options, environment) as client:
            key = f"{_prefix(uri)}{path}"
            client.abort_multipart_upload(Bucket=place_of(uri).bucket, Key=key, UploadId=number)
    except ClientError as cause:
        code = _code(cause)
        if code == GONE:
            return
        if code in _DENIED_CODES:
            raise StoreDenied(
                f"an unfinished upload may not be aborted [{code}]: it takes "
                "s3:AbortMultipartUpload",
                path=f"{uri.rstrip('/')}/{path}",
            ) from cause
        raise _unavailable(code, uri) from cause


def last_written(begun: datetime, parts: Iterable[datetime]) -> datetime:
    """Return when an upload was last written to. Pure.

    A part counts more than the beginning: an upload may take long, and go on.
    """
    return max((begun.astimezone(UTC), *(part.astimezone(UTC) for part in parts)))


def client_settings(config: Mapping[str, str], client: Mapping[str, str]) -> dict[str, Any]:
    """Return settings with which botocore's client reaches the store of the library. Pure."""
    given = {bare(name): value for name, value in config.items()}
    hosted = given.get("virtual_hosted_style_request", "").lower() == "true"
    settings: dict[str, Any] = {
        "region_name": given.get("region") or ANY_REGION,
        "endpoint_url": given.get("endpoint"),
        "verify": client.get("allow_invalid_certificates", "").lower() != "true",
        "config": {"s3": {"addressing_style": "virtual" if hosted else "path"}},
    }
    if proxy := client.get("proxy_url"):
        settings["config"]["proxies"] = {"http": proxy, "https": proxy}
    return settings


@contextmanager
def _asked(uri: str, options: StorageOptions, environment: Mapping[str, str]) -> Iterator[Any]:
    """Open a client until the end of the block; that it gets no answer is an error of ours."""
    from botocore import UNSIGNED  # noqa: PLC0415 - it is optional
    from botocore.config import Config  # noqa: PLC0415
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415
    from botocore.session import Session  # noqa: PLC0415

    config, http = split(options.plain(), uri=uri, environment=environment, key=options.key)
    given = {bare(name): value for name, value in config.items()}
    settings = client_settings(config, http)
    how = settings.pop("config")
    if given.get("skip_signature", "").lower() == "true":
        how["signature_version"] = UNSIGNED
    session = Session(session_vars=NO_PROFILE)
    if {"access_key_id", "secret_access_key"} <= given.keys():
        session.set_credentials(
            given["access_key_id"], given["secret_access_key"], given.get("session_token") or None
        )
    if "metadata_endpoint" in given:
        session.set_config_variable("ec2_metadata_service_endpoint", given["metadata_endpoint"])
    retries = {"mode": "standard", "total_max_attempts": ATTEMPTS}
    try:
        opened = session.create_client(
            "s3",
            config=Config(connect_timeout=5, read_timeout=60, retries=retries, **how),
            **settings,
        )
        try:
            yield opened
        finally:
            opened.close()
    except BotoCoreError as cause:
        # Its own words may hold addresses and keys.
        raise _unavailable(type(cause).__name__, uri) from cause


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
    """Return the parts of an upload that have arrived; None if it is over by now."""
    from botocore.exceptions import ClientError  # noqa: PLC0415 - it is optional

    pages = client.get_paginator("list_parts").paginate(Bucket=bucket, Key=key, UploadId=number)
    try:
        return [part for page in pages for part in page.get("Parts", ())]
    except ClientError as cause:
        if _code(cause) == GONE:
            return None
        raise


def _prefix(uri: str) -> str:
    """Return what the keys of objects below a place begin with."""
    return "".join(f"{folder}/" for folder in place_of(uri).folders)


def _code(cause: Any) -> str:  # noqa: ANN401 - botocore has no types
    return str(cause.response.get("Error", {}).get("Code", "unknown"))


def _unavailable(code: str, uri: str) -> LakeError:
    return StoreUnavailable(f"unfinished uploads cannot be listed or aborted [{code}]", path=uri)
