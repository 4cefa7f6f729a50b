"""Translate errors of the store's library to ours, with the way out and without secrets. Pure.

A client's error carries the store's answer only as text. Only this module parses it: the status,
the error code and, if given, the bucket's region. The rest of an answer is dropped: stores repeat
headers, signatures and keys there. Missing answers and errors of a local disk are explained, too.
"""

import os
import re
from dataclasses import dataclass

from obstore.exceptions import InvalidPathError, PermissionDeniedError, UnauthenticatedError

from lakebed.errors import (
    LakeError,
    MachineTrouble,
    NameUnusable,
    ObjectMissing,
    StoreDenied,
    StoreFull,
    StoreMisconfigured,
    StoreUnavailable,
)
from lakebed.listing import sort
from lakebed.locations import place_of
from lakebed.storage.aws import sessions
from lakebed.storage.options import SPELLINGS, StorageOptions, bare, is_endpoint


def explained(text: str, options: StorageOptions) -> str:
    """Return the essence of a client's error without secrets, and what to do about it."""
    return options.redact(in_words(text)) + _way_out(ARROW.sub(": ", text), options)


def _way_out(text: str, options: StorageOptions) -> str:
    """Return the address of a store that gave no answer, and what to check."""
    asked = _ASKED.search(text)
    if asked is None or _STATUS.search(text):
        return ""
    where = LOGIN.sub(r"\1", asked[1])
    section = options.origin.section
    if any(host in where for host in CREDENTIALS_OF_THE_MACHINE):
        return (
            f"; it was asked at {where} for the credentials of this machine, because there are "
            f"none in {section} or in the environment: set them, give the machine a role, or, for "
            "a profile of AWS, install blizzard-penguin[aws]"
        )
    # The library hides an address that is signed.
    at = "" if where == "REDACTED" else f" it was asked at {where}:"
    names = [
        name for name in options.plain() if is_endpoint(name) or bare(name.lower()) == "proxy_url"
    ]
    if not names:
        return f";{at} check the network, or set an endpoint in {section}"
    keys = " and ".join(options.key(name) for name in names)
    return f";{at} check the address in {keys}, and that the store is up"


def in_words(text: str) -> str:
    """Return the essence of a client's error: the store's answer, or that there was none.

    Of the store's answer only the status and the error code are kept: stores repeat headers,
    signatures and keys in the rest.
    """
    flat = ARROW.sub(": ", text)
    if answered := _STATUS.search(flat):
        code = CODE.search(text)
        return f"the store answered {answered[1].strip()}" + (f" ({code[1]})" if code else "")
    _request, trouble, reason = flat.partition(" - HTTP error: ")
    if trouble:
        known = _REASON.search(flat)
        return without_urls(f"the store gave no answer: {known[0] if known else _first(reason)}")
    return without_urls(_first(text))


def _first(text: str) -> str:
    return next(iter(text.splitlines()), "").strip() or "no reason given"


def without_urls(text: str) -> str:
    """Remove logins and queries from URLs in a text: they may hold passwords and signatures."""
    return _QUERY.sub(r"\1?…", LOGIN.sub(r"\1", text))


_QUERY = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s?]*)\?[^\s)]*", re.IGNORECASE)
_REASON = re.compile(
    r"connection refused|failed to lookup address|invalid ?(?:peer )?certificate|connection reset",
    re.IGNORECASE,
)
"""Why a request failed, in the library's words."""


NOWHERE = "the bucket, container or folder does not exist"
READ_ONLY = "the file system is read-only"
SIGNS: tuple[tuple[str, type[LakeError], str], ...] = (
    ("404 Not Found", ObjectMissing, NOWHERE),
    ("Permission denied", StoreDenied, "permission denied"),
    ("No space left", StoreFull, "no space is left on the device; free some and try again"),
    ("quota exceeded", StoreFull, "the disk quota is used up; free some space or raise the quota"),
    ("Read-only file system", StoreDenied, READ_ONLY),
    ("Input/output error", StoreUnavailable, "the disk reports an I/O error; check it with dmesg"),
    ("File system loop", NameUnusable, "a link leads to a folder above it; remove the link"),
)
"""Errors that only the library's text identifies."""


def translated(cause: Exception, where: str, *, uri: str, options: StorageOptions) -> LakeError:
    """Return our error for one of the library's about an object."""
    text = str(cause)
    if isinstance(cause, InvalidPathError) and (name := name_in(text)) is not None:
        root = "/".join(place_of(uri).folders)
        unusable = NameUnusable(
            "the store holds an object whose name cannot be used; rename or remove it",
            object=sort.readable(name),
        )
        unusable.key = name.removeprefix(f"{root}/") if root else name
        return unusable
    if (refusal := store_refusal(text, uri=uri, options=options)) is not None:
        refusal.facts = {"path": where}
        return refusal
    if isinstance(cause, PermissionDeniedError | UnauthenticatedError):
        return StoreDenied(REFUSED, path=where)
    if isinstance(cause, FileNotFoundError):
        return ObjectMissing(NOWHERE, path=where)
    for sign, error, message in SIGNS:
        if sign in text:
            return error(message, path=where)
    return StoreUnavailable(explained(text, options), path=where)


def is_no_object(cause: Exception) -> bool:
    """Whether only the object is missing, not its bucket or container."""
    answer = answer_in(str(cause))
    return answer is None or answer.code not in _BY_CODE


_PATH = re.compile(r'\bpath: "((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\u\{([0-9a-f]+)\}|\\(.)")
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "0": "\0"}


def name_in(text: str) -> str | None:
    """Return the object name in an error of the library, unescaped."""
    found = _PATH.search(text)
    return None if found is None else _ESCAPE.sub(_plain, found[1])


def _plain(escape: re.Match[str]) -> str:
    code, letter = escape.groups()
    return chr(int(code, 16)) if code else _ESCAPES.get(letter, letter)


REFUSED = "access was refused; check permissions and credentials"
EXISTS = frozenset({"BlobAlreadyExists", "PathAlreadyExists", "PreconditionFailed"})
"""The codes of a create-only write that found an object, if the status does not show it."""
CREDENTIALS_OF_THE_MACHINE = ("169.254.169.254", "169.254.170.2", "metadata.google.internal")
"""Hosts that a client asks for credentials when none are configured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAnswer:
    """The parts of a store's answer that may be shown."""

    status: int
    code: str | None = None
    region: str | None = None
    """The bucket's region, if the answer has it."""
    stale: bool = False
    """Whether the answer rejects the time of a request."""
    asked: str = "the store"
    """The scheme and host that were asked."""


def answer_in(text: str) -> StoreAnswer | None:
    """Return the store's answer in a client's error; None without one."""
    flat = ARROW.sub(": ", text)
    asked = _ASKED.search(flat)
    where = "the store" if asked is None else LOGIN.sub(r"\1", asked[1])
    status = _STATUS.search(flat)
    if _REDIRECTED in flat:
        return StoreAnswer(status=301, asked=where)
    if status is None:
        return None
    code = CODE.search(flat) or _GOOGLE_CODE.search(flat)
    region = _REGION.search(flat)
    return StoreAnswer(
        status=int(status[1][:3]),
        code=code[1] if code else None,
        region=region[1] if region else None,
        stale=_STALE.search(flat) is not None,
        asked=where,
    )


def store_refusal(text: str, *, uri: str, options: StorageOptions) -> LakeError | None:
    """Return the error that the store's own answer describes; None without one."""
    if (over := sessions.no_new_keys(text)) is not None:
        return StoreUnavailable(over)
    answer = answer_in(text)
    meant = None if answer is None else _meaning(answer)
    if answer is None or meant is None:
        return None
    place, (error, words) = place_of(uri), meant

    def key(*settings: str) -> str:
        spellings = SPELLINGS.get(place.scheme, SPELLINGS["s3"])
        names = [name for each in settings for name in spellings.get(each, ())]
        return options.key_of(*names, environment=os.environ) if names else "the settings"

    account = f", or {key('azure_storage_account_name')}" if place.scheme == "az" else ""
    login = _KEYS_OF_CODES.get(answer.code or "") or _LOGINS.get(place.scheme, _LOGINS["s3"])
    return error(
        words.format(
            store="the store" if answer.asked == "the store" else f"the store at {answer.asked}",
            asked=answer.asked,
            code=f" ({answer.code})" if answer.code else "",
            bucket=f"{'container' if place.scheme == 'az' else 'bucket'} {place.bucket}",
            place=f"{options.origin.place or 'its name'}{account}",
            section=options.origin.section,
            credentials=key(*login),
            region=key("aws_region"),
            where=f"the region {answer.region}" if answer.region else "another region",
            other=answer.region or "the region of the bucket",
        )
    )


def _meaning(answer: StoreAnswer) -> tuple[type[LakeError], str] | None:
    """Return the error and the words for an answer if its code or status shows the cause."""
    host = answer.asked.partition("://")[2].partition(":")[0]
    if 400 <= answer.status < 500 and host in CREDENTIALS_OF_THE_MACHINE:
        return StoreMisconfigured, _NO_CREDENTIALS
    if answer.status == 301 and answer.code is None:  # Moved: no store says more to a PUT.
        return StoreMisconfigured, _WRONG_REGION
    if answer.stale and answer.status in (400, 401, 403):
        return MachineTrouble, _CLOCK
    unknown = (StoreDenied, _DENIED) if answer.status in (401, 403) else None
    return _BY_CODE.get(answer.code or "", unknown)


def means_exists(text: str) -> bool:
    """Whether a create-only write was refused because the object exists.

    The library reports every conflict as that, such as a container that is being removed.
    """
    answer = answer_in(text)
    return answer is None or answer.status != 409 or answer.code is None or answer.code in EXISTS


_NO_CREDENTIALS = (
    "there are no credentials for the {bucket}: {section} and the environment have none, and this "
    "machine has no role (it was asked at {asked}): set {credentials}, or give the machine a role"
)
_WRONG_REGION = "{store} says that the {bucket} is in {where}{code}: set {region} to {other}"
_CLOCK = (
    "the clock of this machine differs too much from that of {store}{code}: set the clock, or have "
    "it set by NTP"
)
_DENIED = (
    "{store} refused access{code}; check the permissions on the {bucket}, and the credentials: "
    "{credentials}"
)
_NOT_ACCEPTED = "{store} does not accept the credentials{code}: correct or renew {credentials}"
_NO_BUCKET = "{store} has no {bucket}{code}: correct {place}, or create it"

_MEANINGS: dict[tuple[type[LakeError], str], str] = {
    (MachineTrouble, _CLOCK): "RequestTimeTooSkewed RequestExpired",
    (StoreMisconfigured, _WRONG_REGION): (
        "PermanentRedirect TemporaryRedirect IllegalLocationConstraintException "
        "AuthorizationHeaderMalformed"
    ),
    (StoreMisconfigured, _NO_BUCKET): (
        "NoSuchBucket ContainerNotFound FilesystemNotFound ContainerBeingDeleted "
        "InvalidBucketName InvalidResourceName"
    ),
    (StoreDenied, _DENIED): "AccessDenied AccountIsDisabled UserProjectMissing",
    (StoreMisconfigured, _NOT_ACCEPTED): (
        "InvalidAccessKeyId SignatureDoesNotMatch ExpiredToken InvalidToken TokenRefreshRequired "
        "AuthenticationFailed InvalidAuthenticationInfo NoAuthenticationInformation "
        "KeyBasedAuthenticationNotPermitted PublicAccessNotPermitted AuthenticationRequired "
        "InvalidSecurity invalid_grant invalid_client unauthorized_client"
    ),
}
"""The meanings of codes of S3, Azure and Google, including Google's login; any other refusal with
401 or 403 is a denial."""
_BY_CODE = {code: meant for meant, codes in _MEANINGS.items() for code in codes.split()}
_LOGINS = {
    "s3": ("aws_access_key_id", "aws_profile"),
    "az": (
        "azure_storage_account_key",
        "azure_storage_sas_key",
        "azure_storage_token",
        "azure_storage_client_secret",
    ),
    "gs": (
        "google_service_account",
        "google_service_account_key",
        "google_application_credentials",
    ),
}
"""The settings with the credentials of a store; the first one is proposed."""
_SESSION = ("aws_session_token", "aws_profile")
_KEYS_OF_CODES = {
    "SignatureDoesNotMatch": ("aws_secret_access_key", "aws_profile"),
    "ExpiredToken": _SESSION,
    "InvalidToken": _SESSION,
}
"""The settings that a code shows to be wrong, if they are others."""

ARROW = re.compile(r"\s*\n\s*(?:\x1b\[\d+m)*↳(?:\x1b\[\d+m)*\s*")
"""The separator of causes in deltalake's errors."""
_ASKED = re.compile(r"Error performing [A-Z]+ (https?://[^\s/?]+|REDACTED)")
LOGIN = re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^\s/@]+@", re.IGNORECASE)
_STATUS = re.compile(r"status code: (\d{3}[A-Za-z ]*)")
CODE = re.compile(r"<Code>([A-Za-z]{3,60})</Code>")
_GOOGLE_CODE = re.compile(r"\"error\"\s*:\s*\"([a-z_]{3,40})\"")
_REGION = re.compile(r"(?:<Region>|expecting (?:'|&apos;|&#39;))([a-z0-9-]{1,32})")
_REDIRECTED = "Received redirect without LOCATION"
_STALE = re.compile(r"Request date header too old|Token must be a short-lived token", re.IGNORECASE)
"""How Azure and Google say, under an unspecific code, that a clock is wrong."""
