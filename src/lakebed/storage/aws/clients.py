"""Clients of AWS services, by botocore: their credentials and their errors.

botocore finds credentials wherever AWS programs look for them: keys, profiles, roles of a machine,
a container or a web identity. Its error texts may hold names and keys, so our messages have only
the error's code. It is optional, so this module is imported only where it is used.
"""

import re
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

DENIED = re.compile(
    r"403|.*(?:AccessDenied|AccessDisabled|Unauthorized|AuthFailure|Signature|AuthenticationToken"
    r"|ClientToken|ExpiredToken|InvalidSecurity|OptInRequired|UnrecognizedClient).*"
)
"""The codes of requests that lack a permission, or whose credentials were rejected."""


class AwsFault(Enum):
    """The kind of a failed request."""

    DENIED = auto()
    """A permission is missing, or the credentials were rejected."""
    NO_KEYS = auto()
    """There are no credentials."""
    SILENT = auto()
    """No answer."""
    OTHER = auto()
    """Another error, named by the code."""


class AwsError(Exception):
    """A failed request: its kind, and the code or type of the error."""

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
        raise AwsError(
            AwsFault.DENIED if DENIED.fullmatch(code) else AwsFault.OTHER, code
        ) from cause
    except (
        NoCredentialsError,
        PartialCredentialsError,
        CredentialRetrievalError,
        ProfileNotFound,
    ) as cause:
        raise AwsError(AwsFault.NO_KEYS, type(cause).__name__) from cause
    except BotoCoreError as cause:
        raise AwsError(AwsFault.SILENT, type(cause).__name__) from cause


def open_client(
    service: str,
    options: Mapping[str, str],
    *,
    region: str | None,
    endpoint: str | None,
    **config: Any,  # noqa: ANN401 - settings of botocore's Config
) -> Any:  # noqa: ANN401 - botocore has no types
    """Open a client that signs with the keys in some options, named without prefix.

    Without keys botocore looks for credentials itself.
    """
    session = Session(profile=options.get("profile"))
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
        config=Config(**config),
    )
