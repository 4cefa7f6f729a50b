"""Translate errors of the store's library to ours, with the way out and without secrets. Pure.

A client's error carries the store's answer only as text. Only this module parses it: the status,
the error code and, if given, the bucket's region. The rest of an answer is dropped: stores repeat
headers, signatures and keys there. Missing answers and errors of a local disk are explained, too.
"""

import os
import re
from collections.abc import Mapping
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
from lakebed.storage.options import StorageOptions, bare, is_endpoint


def explained(text: str, options: StorageOptions) -> str:
    """Return the essence of a client's error without secrets, and what to do about it."""
    return options.redact(in_words(text)) + _way_out(text, options)


def _way_out(text: str, options: StorageOptions) -> str:
    """Return the address of a store that gave no answer, and what to check."""
    asked = _ASKED_OR_HIDDEN.search(ARROW.sub(": ", text))
    if asked is None or _STATUS_LINE.search(ARROW.sub(": ", text)):
        return ""
    endpoints = {name: value for name, value in options.plain().items() if is_endpoint(name)}
    where = LOGIN.sub(r"\1", asked[1])
    if where == _HIDDEN:  # The library hides an address that is signed.
        own = _HOST.match(LOGIN.sub(r"\1", next(iter(endpoints.values()), "")))
        where = own[0] if own else ""
    if any(place in where for place in CREDENTIALS_OF_THE_MACHINE):
        return (
            f"; it was asked at {where} for the credentials of this machine, because there are "
            f"none in {options.origin.section} or in the environment: set them, or give the "
            "machine a role"
        )
    proxies = [name for name in options.plain() if bare(name.lower()) == "proxy_url"]
    proxy = f", through the proxy of {options.key(proxies[0])}" if proxies else ""
    checked = "that proxy, " if proxies else ""
    asked_at = f"it was asked at {where}" if where else "it was asked at its usual address"
    if endpoints:
        leading = (name for name, value in endpoints.items() if where in LOGIN.sub(r"\1", value))
        name = next(leading, next(iter(endpoints)))
        return (
            f"; {asked_at}, as {options.key(name)} specifies{proxy}: check {checked}that "
            "address, and that the store is up"
        )
    return (
        f"; {asked_at}{proxy}: check {checked}the network, or set an endpoint in "
        f"{options.origin.section}"
    )


def in_words(text: str) -> str:
    """Return the essence of a client's error: the store's answer, or that there was none.

    Of the store's answer only the status and the error code are kept: stores repeat headers,
    signatures and keys in the rest.
    """
    first = next(iter(text.splitlines()), "").strip() or "no reason given"
    if answered := _STATUS_LINE.search(ARROW.sub(": ", text)):
        code = CODE.search(text)
        named = f" ({code[1]})" if code else ""
        return f"the store answered {answered[1].strip()}{named}"
    _request, trouble, reason = ARROW.sub(": ", text).partition(" - HTTP error: ")
    if trouble:
        reason = next(iter(reason.splitlines()), "").strip()
        known = (words for sign, words in _REASONS.items() if sign in text)
        return without_urls(f"the store gave no answer: {next(known, reason)}")
    return without_urls(first)


def without_urls(text: str) -> str:
    """Remove logins and queries from URLs in a text: they may hold passwords and signatures."""
    return _QUERY.sub(r"\1?…", LOGIN.sub(r"\1", text))


_STATUS_LINE = re.compile(r"status code: (\d{3}[A-Za-z ]*)")
_QUERY = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s?]*)\?[^\s)]*", re.IGNORECASE)


_REASONS = {
    "ConnectionRefused": "the connection was refused",
    "Connection refused": "the connection was refused",
    "failed to lookup address": "there is no host of that name",
    "dns error": "there is no host of that name",
    "InvalidCertificate": "its certificate is not trusted",
    "invalid peer certificate": "its certificate is not trusted",
    "ConnectionReset": "the connection was reset",
}
"""Explanations of failed requests, by their signs in the library's text."""
_ASKED_OR_HIDDEN = re.compile(r"Error performing [A-Z]+ (https?://[^\s/?]+|REDACTED)")
_HIDDEN = "REDACTED"
_HOST = re.compile(r"https?://[^\s/?]+", re.IGNORECASE)


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


def store_refusal(text: str, *, uri: str, options: StorageOptions) -> LakeError | None:
    """Return the error that the store's own answer describes; None without one."""
    if (over := sessions.no_new_keys(text)) is not None:
        return StoreUnavailable(over)
    answer = answer_in(text)
    if answer is None:
        return None
    caller = Caller(uri=uri, options=options, environment=os.environ)
    refusal = meaning(answer, caller)
    return refusal or (refused(answer, caller) if answer.status in (401, 403) else None)


def is_no_object(cause: Exception) -> bool:
    """Whether only the object is missing, not its bucket or container."""
    answer = answer_in(str(cause))
    return answer is None or not has_meaning(answer)


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


PROFILE = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE")
ACCESS = ("AWS_ACCESS_KEY_ID", *PROFILE)
SECRET = ("AWS_SECRET_ACCESS_KEY", *PROFILE)
SESSION = ("AWS_SESSION_TOKEN", "AWS_TOKEN", *PROFILE)
REGION = ("AWS_REGION", "AWS_DEFAULT_REGION")
ACCOUNT = ("AZURE_STORAGE_ACCOUNT_NAME",)
AZURE_KEY = (
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_SAS_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_TOKEN",
    "AZURE_STORAGE_CLIENT_SECRET",
    "AZURE_CLIENT_SECRET",
)
GOOGLE_KEY = (
    "GOOGLE_SERVICE_ACCOUNT",
    "GOOGLE_SERVICE_ACCOUNT_PATH",
    "GOOGLE_SERVICE_ACCOUNT_KEY",
    "GOOGLE_APPLICATION_CREDENTIALS",
)

CREDENTIALS_OF_THE_MACHINE = ("169.254.169.254", "169.254.170.2", "metadata.google.internal")
"""Hosts that a client asks for credentials when none are configured."""

REFUSED = "access was refused; check permissions and credentials"
EXISTS = frozenset({"BlobAlreadyExists", "PathAlreadyExists", "PreconditionFailed"})
"""The codes of a create-only write that found an object, if the status does not show it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAnswer:
    """The parts of a store's answer that may be shown."""

    status: int | None
    code: str | None = None
    region: str | None = None
    """The bucket's region, if the answer has it."""
    stale: bool = False
    """Whether the answer rejects the time of a request."""
    asked: str = "the store"
    """The scheme and host that were asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The context of a request: the location, its options, and the environment."""

    uri: str
    options: StorageOptions
    environment: Mapping[str, str]

    @property
    def kind(self) -> str:
        """Return the kind of store: s3, az or gs."""
        return place_of(self.uri).scheme

    @property
    def bucket(self) -> str:
        """Return the bucket or container as messages name it."""
        noun = "container" if self.kind == "az" else "bucket"
        return f"{noun} {place_of(self.uri).bucket}"

    def key(self, names: tuple[str, ...]) -> str:
        """Return the key that sets an option, or would set it."""
        return self.options.key_of(*names, environment=self.environment)

    @property
    def credentials(self) -> str:
        """Return the key of the credentials."""
        return self.key({"s3": ACCESS, "az": AZURE_KEY, "gs": GOOGLE_KEY}.get(self.kind, ACCESS))


def answer_in(text: str) -> StoreAnswer | None:
    """Return the store's answer in a client's error; None without one."""
    flat = ARROW.sub(": ", text)
    asked = _ASKED.search(flat)
    where = "the store" if asked is None else LOGIN.sub(r"\1", asked[1])
    if _REDIRECTED in flat:
        return StoreAnswer(status=301, asked=where)
    status = _STATUS.search(flat)
    if status is None:
        return None
    code = CODE.search(flat) or _GOOGLE_CODE.search(flat)
    region = _REGION.search(flat) or _EXPECTED.search(flat)
    return StoreAnswer(
        status=int(status[1]),
        code=code[1] if code else None,
        region=region[1] if region else None,
        stale=_STALE.search(flat) is not None,
        asked=where,
    )


def meaning(answer: StoreAnswer, caller: Caller) -> LakeError | None:
    """Return the error for an answer if its code or status shows the cause; else None."""
    host = answer.asked.partition("://")[2].partition(":")[0]
    if 400 <= (answer.status or 0) < 500 and host in CREDENTIALS_OF_THE_MACHINE:
        return _error(StoreMisconfigured, _NO_CREDENTIALS, answer, caller)
    if answer.status == 301 and answer.code is None:  # Moved: no store says more to a PUT.
        return _error(StoreMisconfigured, _WRONG_REGION, answer, caller)
    if answer.stale and answer.status in (400, 401, 403):
        return _error(MachineTrouble, _CLOCK, answer, caller)
    error, words = _BY_CODE.get(answer.code or "", (None, ""))
    if words == _MALFORMED and answer.region:
        words = _WRONG_REGION
    return None if error is None else _error(error, words, answer, caller)


def refused(answer: StoreAnswer, caller: Caller) -> LakeError:
    """Return the error for a refusal without a known code."""
    return _error(StoreDenied, _DENIED, answer, caller)


def has_meaning(answer: StoreAnswer) -> bool:
    """Whether the code of an answer is about the store, not about one object."""
    return answer.code in _BY_CODE


def means_exists(text: str) -> bool:
    """Whether a create-only write was refused because the object exists.

    The library reports every conflict as that, such as a container that is being removed.
    """
    answer = answer_in(text)
    return answer is None or answer.status != 409 or answer.code is None or answer.code in EXISTS


def _error(error: type[LakeError], words: str, answer: StoreAnswer, caller: Caller) -> LakeError:
    """Fill in the store, the bucket and the keys to correct."""
    region = answer.region
    return error(
        words.format(
            store="the store" if answer.asked == "the store" else f"the store at {answer.asked}",
            asked=answer.asked,
            code=f" ({answer.code})" if answer.code else "",
            bucket=caller.bucket,
            place=caller.options.origin.place or "its name",
            section=caller.options.origin.section,
            credentials=caller.credentials,
            access=caller.key(ACCESS),
            secret=caller.key(SECRET),
            session=caller.key(SESSION),
            account=caller.key(ACCOUNT),
            or_account=f", or {caller.key(ACCOUNT)}" if caller.kind == "az" else "",
            region=caller.key(REGION),
            where=f"the region {region}" if region else "another region",
            other=region or "the region of the bucket",
        )
    )


_NO_CREDENTIALS = (
    "there are no credentials for the {bucket}: {section} and the environment have none, and this "
    "machine has no role (it was asked at {asked}): set {credentials}, or give the machine a role"
)
_WRONG_REGION = "{store} says that the {bucket} is in {where}{code}: set {region} to {other}"
_MALFORMED = "{store} cannot read the signature of a request{code}: correct {region} or {access}"
_CLOCK = (
    "the clock of this machine differs too much from that of {store}{code}: set the clock, or have "
    "it set by NTP"
)
_DENIED = (
    "{store} refused access{code}; check the permissions on the {bucket}, and the credentials: "
    "{credentials}"
)
_NOT_ACCEPTED = "{store} does not accept the credentials{code}: correct or renew {credentials}"

_MEANINGS: Mapping[tuple[type[LakeError], str], str] = {
    (MachineTrouble, _CLOCK): "RequestTimeTooSkewed RequestExpired",
    (
        StoreMisconfigured,
        "{store} does not know the access key{code}: correct {access}",
    ): "InvalidAccessKeyId",
    (
        StoreMisconfigured,
        "{store} does not accept the secret of the access key{code}: correct {secret}",
    ): "SignatureDoesNotMatch",
    (
        StoreMisconfigured,
        "{store} says that the session has expired or its token is wrong{code}: renew {session}",
    ): "ExpiredToken InvalidToken TokenRefreshRequired",
    (StoreMisconfigured, _WRONG_REGION): (
        "PermanentRedirect TemporaryRedirect IllegalLocationConstraintException"
    ),
    (StoreMisconfigured, _MALFORMED): "AuthorizationHeaderMalformed",
    (
        StoreMisconfigured,
        "{store} has no {bucket}{code}: correct {place}{or_account}, or create it",
    ): "NoSuchBucket ContainerNotFound FilesystemNotFound ContainerBeingDeleted",
    (
        StoreMisconfigured,
        "{store} says that the {bucket} cannot be called that{code}: correct {place}",
    ): "InvalidBucketName InvalidResourceName",
    (
        StoreMisconfigured,
        "{store} says that the account cannot be used{code}: correct {account}, or enable it",
    ): "AccountIsDisabled",
    (StoreDenied, _DENIED): (
        "AccessDenied AllAccessDisabled AccountProblem AuthorizationFailure "
        "AuthorizationPermissionMismatch AuthorizationServiceMismatch "
        "AuthorizationResourceTypeMismatch InsufficientAccountPermissions ContainerDisabled "
        "UserProjectMissing"
    ),
    (StoreMisconfigured, _NOT_ACCEPTED): (
        "AuthenticationFailed InvalidAuthenticationInfo NoAuthenticationInformation "
        "KeyBasedAuthenticationNotPermitted PublicAccessNotPermitted AuthenticationRequired "
        "InvalidSecurity invalid_grant invalid_client unauthorized_client"
    ),
}
"""The meanings of codes of S3, Azure and Google, including Google's login."""
_BY_CODE = {code: meant for meant, codes in _MEANINGS.items() for code in codes.split()}

ARROW = re.compile(r"\s*\n\s*(?:\x1b\[\d+m)*↳(?:\x1b\[\d+m)*\s*")
"""The separator of causes in deltalake's errors."""
_ASKED = re.compile(r"Error performing [A-Z]+ (https?://[^\s/?]+)")
LOGIN = re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^\s/@]+@", re.IGNORECASE)
_STATUS = re.compile(r"status code: (\d{3})")
CODE = re.compile(r"<Code>([A-Za-z]{3,60})</Code>")
_GOOGLE_CODE = re.compile(r"\"error\"\s*:\s*\"([a-z_]{3,40})\"")
_REGION = re.compile(r"<Region>([a-z0-9-]{1,32})</Region>")
_EXPECTED = re.compile(r"expecting (?:'|&apos;|&#39;)([a-z0-9-]{1,32})")
_REDIRECTED = "Received redirect without LOCATION"
_STALE = re.compile(r"Request date header too old|Token must be a short-lived token", re.IGNORECASE)
"""How Azure and Google say, under an unspecific code, that a clock is wrong."""
