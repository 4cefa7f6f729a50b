"""What a program tells at its metrics address, asked for with a short timeout.

No proxy is used and no redirect is followed: the token goes to the address that the configuration
names, and nowhere else. With TLS, the certificate must be the configured one.
"""

import http.client
import ssl
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from lakebed.errors import ConfigInvalid
from lakebed.telemetry.credentials import secret_of
from lakebed.telemetry.guard import Guard
from liveview.parts import Process

LARGEST = 64 << 20
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - to be asked, not bound
"""Who listens everywhere is asked on this machine."""

Document = TypeVar("Document")


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Why a program is not heard, in words."""

    note: str


def ask(address: str, guard: Guard, *, timeout: float) -> Process | Unreachable:
    """Return what the program at an address knows of itself, or why it does not answer."""
    return fetched(address, guard, "/api/v1/process", _process, timeout=timeout)


@cache
def _process() -> TypeAdapter[Process]:
    """Return what reads its document. Made when another program answers first: it costs a bit."""
    return TypeAdapter(Process)


def fetched(
    address: str,
    guard: Guard,
    path: str,
    document: Callable[[], TypeAdapter[Document]],
    *,
    timeout: float,
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
            return document().validate_json(answer.read(LARGEST))
    except ConfigInvalid:
        return Unreachable("the token or the certificate of the configuration cannot be read")
    except (OSError, http.client.HTTPException):
        return Unreachable(f"nobody answers at {address}")
    except ValidationError:
        return Unreachable(f"what answers at {address} is another version, or another program")


def _connection(host: str, port: int, guard: Guard, timeout: float) -> http.client.HTTPConnection:
    if guard.tls_cert_file is None:
        return http.client.HTTPConnection(host, port, timeout=timeout)
    # Both programs serve with the same certificate. It is the one that is trusted, whoever has
    # signed it and whatever name it carries.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cafile=guard.tls_cert_file)
    except (ssl.SSLError, ValueError) as cause:
        raise ConfigInvalid([f"metrics.tls_cert_file: {guard.tls_cert_file}"]) from cause
    return http.client.HTTPSConnection(host, port, timeout=timeout, context=context)
