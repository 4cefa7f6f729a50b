"""Where each program serves its metrics: one file may be for both, and no two share a port. Pure.

A program's own key decides. Without it, `metrics.address` is that of the one program which the
document is for. A document for both gives it to penguin, and blizzard takes the port below, as in
9090 and 9091: so which port is whose is known before either runs, whichever starts first.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from lakebed.config.models import Document, KeyPath

Program = Literal["blizzard", "penguin"]

DEFAULTS: dict[Program, str] = {"blizzard": "127.0.0.1:9090", "penguin": "127.0.0.1:9091"}
SHARED = "metrics.address"


@dataclass(frozen=True, slots=True)
class MetricsAddress:
    """Where a program listens, and the key that says so, or that would say otherwise."""

    address: str
    key: str


def metrics_address(document: Document, program: Program) -> MetricsAddress:
    """Return where a program serves its metrics."""
    metrics = document.metrics
    own = metrics.blizzard_address if program == "blizzard" else metrics.penguin_address
    key = f"metrics.{program}_address"
    if own is not None:
        return MetricsAddress(own, key)
    if metrics.address is None:
        return MetricsAddress(DEFAULTS[program], key)
    if program == "blizzard" and is_for_both(document):
        return MetricsAddress(_port_below(metrics.address), key)
    return MetricsAddress(metrics.address, SHARED)


def is_for_both(document: Document) -> bool:
    """Whether a document is for both programs: it has tables, and pipelines that need penguin."""
    needs_penguin = any(
        pipeline.sink is None or pipeline.sink.commit == "penguin"
        for _, _, pipeline in document.named_pipelines()
    )
    return bool(document.tables) and needs_penguin


def address_faults(document: Document) -> Iterator[tuple[KeyPath, str]]:
    """Yield what keeps two programs of one document from serving at the same time."""
    if not is_for_both(document):
        return
    metrics = document.metrics
    shares = metrics.address is not None and metrics.blizzard_address is None
    if shares and _port(metrics.address or "") == 1:
        yield (
            ("metrics", "address"),
            (
                "is penguin's address, and leaves no port below it for blizzard; set "
                "metrics.blizzard_address"
            ),
        )
        return
    blizzard, penguin = (metrics_address(document, program) for program in DEFAULTS)
    if blizzard.address == penguin.address and _port(blizzard.address):
        yield (
            tuple(blizzard.key.split(".")),
            f"is the same as {penguin.key}, so only one of the two programs could listen there",
        )


def guard_faults(document: Document) -> Iterator[tuple[KeyPath, str]]:
    """Yield what is contradictory or incomplete about who may read the metrics, and how."""
    metrics = document.metrics
    if metrics.token is not None and metrics.token_file is not None:
        yield ("metrics", "token_file"), "means the same as token; keep one of them"
    if (metrics.tls_cert_file is None) != (metrics.tls_key_file is None):
        given = "tls_key_file" if metrics.tls_cert_file is None else "tls_cert_file"
        other = "tls_cert_file" if metrics.tls_cert_file is None else "tls_key_file"
        yield ("metrics", given), f"needs {other} too: TLS takes a certificate and its key"


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


def _port_below(address: str) -> str:
    """Return the neighbour's address; port 0, a free one, is so for both."""
    host, _colon, port = address.rpartition(":")
    return f"{host}:{max(0, int(port) - 1)}"
