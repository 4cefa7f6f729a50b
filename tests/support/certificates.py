"""A certificate for the loopback, as an operator would configure one."""

from pathlib import Path

from lakebed.telemetry.settings import Guard
from tests.support.answering import self_signed


def certificate(folder: Path, *, password: bytes | None = None) -> Guard:
    """Write a certificate for the loopback and its key."""
    folder.mkdir(exist_ok=True)
    key, cert = self_signed(password=password)
    (folder / "key.pem").write_bytes(key)
    (folder / "cert.pem").write_bytes(cert)
    return Guard(tls_cert_file=folder / "cert.pem", tls_key_file=folder / "key.pem")
