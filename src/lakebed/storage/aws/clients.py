"""Clients of Amazon's services, by botocore: how they sign, and what went wrong when one was asked.

botocore finds credentials wherever an AWS program looks for them: keys, profiles, roles of a
machine, a container or a web identity. What it says of an error may hold names and keys, so only
the error's code goes into our messages. It is optional, so this module is loaded where it is used.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum, auto
from typing import Any

from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
)
from botocore.session import Session

from lakebed.storage.options import ANY_REGION

NO_PROFILE = "AWS_PROFILE names a profile that is not there"
DENIED_CODES = frozenset(
    {"403", "AccessDenied", "AccessDeniedException", "AllAccessDisabled", "UnauthorizedOperation"}
)
KEY_CODES = frozenset(
    {
        "AuthFailure",
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "InvalidSecurity",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "OptInRequired",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)


class AwsFault(Enum):
    """What went wrong when a service was asked."""

    DENIED = auto()
    """It refused access: a permission is missing."""
    KEYS = auto()
    """It refused the credentials."""
    NO_KEYS = auto()
    NO_PROFILE = auto()
    SILENT = auto()
    """It gave no answer."""
    OTHER = auto()
    """It answered with another error, which the code names."""


class AwsError(Exception):
    """A request that failed: what went wrong, and the code or the kind of the error."""

    def __init__(self, fault: AwsFault, code: str) -> None:
        super().__init__(code)
        self.fault = fault
        self.code = code


@contextmanager
def asking() -> Iterator[None]:
    """Raise any error of botocore as an AwsError."""
    try:
        yield
    except ClientError as cause:
        code = str(cause.response.get("Error", {}).get("Code", "unknown")).rpartition(".")[2]
        fault = AwsFault.KEYS if code in KEY_CODES else AwsFault.OTHER
        raise AwsError(AwsFault.DENIED if code in DENIED_CODES else fault, code) from cause
    except ProfileNotFound as cause:
        raise AwsError(AwsFault.NO_PROFILE, NO_PROFILE) from cause
    except (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError) as cause:
        raise AwsError(AwsFault.NO_KEYS, type(cause).__name__) from cause
    except BotoCoreError as cause:
        raise AwsError(AwsFault.SILENT, type(cause).__name__) from cause


def open_client(
    service: str,
    options: Mapping[str, str],
    *,
    region: str | None,
    endpoint: str | None,
    verify: bool = True,
    profile: bool = True,
    **config: Any,  # noqa: ANN401 - settings of botocore's Config
) -> Any:  # noqa: ANN401 - botocore has no types
    """Open a client that signs with the keys among some options, named without their prefix.

    Without keys botocore looks for credentials itself; `profile` is whether it follows AWS_PROFILE.
    """
    session = Session(
        profile=options.get("profile"),
        session_vars=None if profile else {"profile": (None, None, None, None)},
    )
    if {"access_key_id", "secret_access_key"} <= options.keys():
        token = options.get("session_token") or options.get("token") or None
        session.set_credentials(options["access_key_id"], options["secret_access_key"], token)
    if "metadata_endpoint" in options:
        endpoint_of_roles = options["metadata_endpoint"]
        session.set_config_variable("ec2_metadata_service_endpoint", endpoint_of_roles)
    if options.get("skip_signature", "").lower() == "true":
        config["signature_version"] = UNSIGNED
    return session.create_client(
        service,
        region_name=region or session.get_config_variable("region") or ANY_REGION,
        endpoint_url=endpoint,
        verify=verify,
        config=Config(**config),
    )
