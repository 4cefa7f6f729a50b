"""What a store's refusal means: its own error code, in one sentence with the way out. Pure.

A client's error carries the store's answer only as text. It is taken apart here, and nowhere else:
the status, the code that names the error and, where the answer says it, the region of the bucket.
Everything else of an answer is left out: stores repeat headers, signatures and keys there.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lakebed.errors import LakeError, MachineTrouble, StoreDenied, StoreMisconfigured
from lakebed.locations import place_of
from lakebed.storage.options import StorageOptions

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
"""Where a client asks for credentials when nobody has given it any."""

REFUSED = "access was refused; check permissions and credentials"
EXISTS = frozenset({"BlobAlreadyExists", "PathAlreadyExists", "PreconditionFailed"})
"""The codes of a create-only write that found an object, where the status does not say so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a store answered, as far as it may be shown."""

    status: int | None
    code: str | None = None
    region: str | None = None
    """Where the bucket is, if the answer says so."""
    stale: bool = False
    """Whether the answer is about the time of a request."""
    asked: str = "the store"
    """Who was asked: scheme and host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who asked for what: the place, how it is reached, and the process's environment."""

    uri: str
    options: StorageOptions
    environment: Mapping[str, str]

    @property
    def kind(self) -> str:
        """Return which kind of store it is: s3, az or gs."""
        return place_of(self.uri).scheme

    @property
    def bucket(self) -> str:
        """Return the bucket or container, as it is called in a message."""
        noun = "container" if self.kind == "az" else "bucket"
        return f"{noun} {place_of(self.uri).bucket}"

    def key(self, names: tuple[str, ...]) -> str:
        """Return where an option is set, or where to set it."""
        return self.options.key_of(*names, environment=self.environment)

    @property
    def place(self) -> str:
        """Return the key of the URI, or what stands for it where nobody has written it."""
        return self.options.origin.place or "its name"

    @property
    def credentials(self) -> str:
        """Return the options that hold what is signed with."""
        return self.key({"s3": ACCESS, "az": AZURE_KEY, "gs": GOOGLE_KEY}.get(self.kind, ACCESS))


def answer_in(text: str) -> Answer | None:
    """Return the store's answer in a client's error; None where there was none."""
    flat = _ARROW.sub(": ", text)
    asked = _ASKED.search(flat)
    where = "the store" if asked is None else _LOGIN.sub(r"\1", asked[1])
    if _REDIRECTED in flat:
        return Answer(status=301, asked=where)
    status = _STATUS.search(flat)
    if status is None:
        return None
    code = _CODE.search(flat) or _GOOGLE_CODE.search(flat)
    region = _REGION.search(flat) or _EXPECTED.search(flat)
    return Answer(
        status=int(status[1]),
        code=code[1] if code else None,
        region=region[1] if region else None,
        stale=_STALE.search(flat) is not None,
        asked=where,
    )


def meaning(answer: Answer, asker: Asker) -> LakeError | None:
    """Return what an answer means if its code or its status says whose fault it is; else None."""
    if 400 <= (answer.status or 0) < 500 and _is_of_the_machine(answer):
        return _no_credentials(answer, asker)
    if answer.status == 301 and answer.code is None:  # Moved: no store says more to a PUT.
        return _wrong_region(answer, asker)
    if answer.stale and answer.status in (400, 401, 403):
        return _clock(answer, asker)
    explain = _MEANINGS.get(answer.code or "")
    return None if explain is None else explain(answer, asker)


def refused(answer: Answer, asker: Asker) -> LakeError:
    """Return the error for a refusal of which no code says more."""
    return StoreDenied(
        f"{_store(answer)} refused access{_named(answer)}; check the permissions on the "
        f"{asker.bucket}, and the credentials: {asker.credentials}"
    )


def has_meaning(answer: Answer) -> bool:
    """Whether the code of an answer is about the store, not about one object of it."""
    return answer.code in _MEANINGS


def means_exists(text: str) -> bool:
    """Whether a create-only write was refused because the object is there, not for another reason.

    The library takes every conflict for that: also a container that is being removed.
    """
    answer = answer_in(text)
    return answer is None or answer.status != 409 or answer.code is None or answer.code in EXISTS


def _store(answer: Answer) -> str:
    return "the store" if answer.asked == "the store" else f"the store at {answer.asked}"


def _named(answer: Answer) -> str:
    return f" ({answer.code})" if answer.code else ""


def _wrong_region(answer: Answer, asker: Asker) -> LakeError:
    where = f"is in the region {answer.region}" if answer.region else "is in another region"
    to = f" to {answer.region}" if answer.region else " to the region of the bucket"
    return StoreMisconfigured(
        f"{_store(answer)} says that the {asker.bucket} {where}{_named(answer)}: "
        f"set {asker.key(REGION)}{to}"
    )


def _malformed(answer: Answer, asker: Asker) -> LakeError:
    if answer.region:
        return _wrong_region(answer, asker)
    return StoreMisconfigured(
        f"{_store(answer)} cannot read the signature of a request{_named(answer)}: "
        f"correct {asker.key(REGION)} or {asker.key(ACCESS)}"
    )


def _is_of_the_machine(answer: Answer) -> bool:
    return answer.asked.partition("://")[2].partition(":")[0] in CREDENTIALS_OF_THE_MACHINE


def _no_credentials(answer: Answer, asker: Asker) -> LakeError:
    return StoreMisconfigured(
        f"there are no credentials for the {asker.bucket}: {asker.options.origin.section} and the "
        f"environment have none, and this machine has no role (it was asked at {answer.asked}): "
        f"set {asker.credentials}, or give the machine a role"
    )


def _clock(answer: Answer, _asker: Asker) -> LakeError:
    return MachineTrouble(
        f"the clock of this machine differs too much from that of {_store(answer)}{_named(answer)}:"
        " set the clock, or have it set by NTP"
    )


def _no_bucket(answer: Answer, asker: Asker) -> LakeError:
    also = f", or {asker.key(ACCOUNT)}" if asker.kind == "az" else ""
    return StoreMisconfigured(
        f"{_store(answer)} has no {asker.bucket}{_named(answer)}: "
        f"correct {asker.place}{also}, or create it"
    )


def _no_such_key(answer: Answer, asker: Asker) -> LakeError:
    return StoreMisconfigured(
        f"{_store(answer)} does not know the access key{_named(answer)}: "
        f"correct {asker.key(ACCESS)}"
    )


def _wrong_secret(answer: Answer, asker: Asker) -> LakeError:
    return StoreMisconfigured(
        f"{_store(answer)} does not accept the secret of the access key{_named(answer)}: "
        f"correct {asker.key(SECRET)}"
    )


def _expired(answer: Answer, asker: Asker) -> LakeError:
    return StoreMisconfigured(
        f"{_store(answer)} says that the session has expired or its token is wrong"
        f"{_named(answer)}: renew {asker.key(SESSION)}"
    )


def _not_accepted(answer: Answer, asker: Asker) -> LakeError:
    return StoreMisconfigured(
        f"{_store(answer)} does not accept the credentials{_named(answer)}: "
        f"correct or renew {asker.credentials}"
    )


def _denied(answer: Answer, asker: Asker) -> LakeError:
    return refused(answer, asker)


def _no_account(answer: Answer, asker: Asker) -> LakeError:
    return StoreMisconfigured(
        f"{_store(answer)} says that the account cannot be used{_named(answer)}: "
        f"correct {asker.key(ACCOUNT)}, or enable the account"
    )


def _bad_name(answer: Answer, asker: Asker) -> LakeError:
    return StoreMisconfigured(
        f"{_store(answer)} says that the {asker.bucket} cannot be called that{_named(answer)}: "
        f"correct {asker.place}"
    )


_MEANINGS: Mapping[str, Callable[[Answer, Asker], LakeError]] = {
    "RequestTimeTooSkewed": _clock,
    "RequestExpired": _clock,
    "InvalidAccessKeyId": _no_such_key,
    "SignatureDoesNotMatch": _wrong_secret,
    "ExpiredToken": _expired,
    "InvalidToken": _expired,
    "TokenRefreshRequired": _expired,
    "PermanentRedirect": _wrong_region,
    "TemporaryRedirect": _wrong_region,
    "AuthorizationHeaderMalformed": _malformed,
    "IllegalLocationConstraintException": _wrong_region,
    "NoSuchBucket": _no_bucket,
    "InvalidBucketName": _bad_name,
    "AccessDenied": _denied,
    "AllAccessDisabled": _denied,
    "AccountProblem": _denied,
    # Azure's.
    "AuthenticationFailed": _not_accepted,
    "InvalidAuthenticationInfo": _not_accepted,
    "NoAuthenticationInformation": _not_accepted,
    "KeyBasedAuthenticationNotPermitted": _not_accepted,
    "AuthorizationFailure": _denied,
    "AuthorizationPermissionMismatch": _denied,
    "AuthorizationServiceMismatch": _denied,
    "AuthorizationResourceTypeMismatch": _denied,
    "InsufficientAccountPermissions": _denied,
    "PublicAccessNotPermitted": _not_accepted,
    "ContainerNotFound": _no_bucket,
    "FilesystemNotFound": _no_bucket,
    "ContainerBeingDeleted": _no_bucket,
    "ContainerDisabled": _denied,
    "AccountIsDisabled": _no_account,
    "InvalidResourceName": _bad_name,
    # Google's, of its stores and of its login.
    "AuthenticationRequired": _not_accepted,
    "InvalidSecurity": _not_accepted,
    "UserProjectMissing": _denied,
    "invalid_grant": _not_accepted,
    "invalid_client": _not_accepted,
    "unauthorized_client": _not_accepted,
}

_ARROW = re.compile(r"\s*\n\s*(?:\x1b\[\d+m)*↳(?:\x1b\[\d+m)*\s*")
"""How deltalake sets one cause below the other."""
_ASKED = re.compile(r"Error performing [A-Z]+ (https?://[^\s/?]+)")
_LOGIN = re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^\s/@]+@", re.IGNORECASE)
_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>([A-Za-z]{3,60})</Code>")
_GOOGLE_CODE = re.compile(r"\"error\"\s*:\s*\"([a-z_]{3,40})\"")
_REGION = re.compile(r"<Region>([a-z0-9-]{1,32})</Region>")
_EXPECTED = re.compile(r"expecting (?:'|&apos;|&#39;)([a-z0-9-]{1,32})")
_REDIRECTED = "Received redirect without LOCATION"
_STALE = re.compile(r"Request date header too old|Token must be a short-lived token", re.IGNORECASE)
"""How Azure and Google tell, under a code that says less, that a clock is wrong."""
