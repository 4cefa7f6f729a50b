"""The token and the certificate of the metrics server, read when it starts to listen.

New files take effect after a restart. ConfigInvalid names the key and the faulty file, and quotes
nothing from it.
"""

import hmac
import ssl
from pathlib import Path

from lakebed.errors import ConfigInvalid
from lakebed.telemetry.guard import Guard, token

LONGEST_FILE = 1 << 20


def secret_of(guard: Guard) -> bytes | None:
    """Return the token; None without one."""
    if guard.token_file is None:
        return guard.token.encode() if guard.token is not None else None
    try:
        found = token(_read("token_file", guard.token_file).decode().strip())
    except ValueError as wrong:
        kind = "is not text" if isinstance(wrong, UnicodeDecodeError) else str(wrong)
        raise ConfigInvalid(
            [f"metrics.token_file: the token in {guard.token_file} {kind}"]
        ) from None
    return found.encode()


def tls_of(guard: Guard) -> ssl.SSLContext | None:
    """Return the TLS context; None without TLS."""
    cert, key = guard.tls_cert_file, guard.tls_key_file
    if cert is None or key is None:
        return None
    _read("tls_cert_file", cert)
    _read("tls_key_file", key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # Without a password given, OpenSSL would ask for one on the terminal and wait.
        context.load_cert_chain(cert, key, password=lambda: "")
    except (ssl.SSLError, ValueError) as cause:
        fault = (
            f"metrics.tls_cert_file: {cert} and {key} cannot be used: both must be in PEM format, "
            "the key without a password, and the certificate must be the one of that key"
        )
        raise ConfigInvalid([fault]) from cause
    return context


def may_read(header: str, secret: bytes | None) -> bool:
    """Whether an `Authorization` header has the token; compared in constant time."""
    if secret is None:
        return True
    scheme, _space, given = header.partition(" ")
    same = hmac.compare_digest(given.strip().encode(errors="replace"), secret)
    return same and scheme.lower() == "bearer"


def _read(key: str, path: str | Path) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(LONGEST_FILE)
    except OSError as cause:
        raise ConfigInvalid(
            [f"metrics.{key}: cannot read {path}: {cause.strerror or cause}"]
        ) from cause
