"""Documents of a program at its metrics address, asked for with a short timeout.

No proxy is used and no redirect is followed: the token goes to the address that the configuration
names, and nowhere else. With TLS, the certificate must be the configured one.
"""

import http.client
import ssl
from contextlib import closing
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from lakebed.errors import ConfigInvalid
from lakebed.telemetry.credentials import secret_of
from lakebed.telemetry.guard import Guard

LARGEST = 64 << 20
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - to be asked, not bound
"""A server that listens everywhere is asked on this machine."""

Document = TypeVar("Document")
_READERS: dict[type[Any], TypeAdapter[Any]] = {}


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Why a program does not answer, in words."""

    note: str | None


def fetched(
    address: str, guard: Guard, path: str, kind: type[Document], *, timeout: float
) -> Document | Unreachable:
    """Return a document of the program at an address, or why there is none."""
    host, _colon, port = address.rpartition(":")
    host = EVERYWHERE.get(host.strip("[]"), host.strip("[]"))
    if not int(port):
        return Unreachable("its port is chosen when it starts, so it cannot be asked")
    try:
        with closing(_connection(host, int(port), guard, timeout)) as connection:
            secret = secret_of(guard)
            headers = {} if secret is None else {"Authorization": f"Bearer {secret.decode()}"}
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            if answer.status != HTTPStatus.OK:
                return Unreachable(f"it answers {answer.status} at {address}")
            if kind not in _READERS:  # Made when a program first answers, because it costs a bit.
                _READERS[kind] = TypeAdapter(kind)
            found: Document = _READERS[kind].validate_json(answer.read(LARGEST))
            return found
    except ConfigInvalid:
        return Unreachable("the token or the certificate of the configuration cannot be read")
    except (OSError, http.client.HTTPException):
        return Unreachable(f"nobody answers at {address}")
    except ValidationError:
        return Unreachable(f"what answers at {address} is another version, or another program")


def _connection(host: str, port: int, guard: Guard, timeout: float) -> http.client.HTTPConnection:
    if guard.tls_cert_file is None:
        return http.client.HTTPConnection(host, port, timeout=timeout)
    # Both programs serve with the same certificate. It is the one that is trusted, with any
    # issuer and name.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cafile=guard.tls_cert_file)
    except (ssl.SSLError, ValueError) as cause:
        raise ConfigInvalid([f"metrics.tls_cert_file: {guard.tls_cert_file}"]) from cause
    return http.client.HTTPSConnection(host, port, timeout=timeout, context=context)
