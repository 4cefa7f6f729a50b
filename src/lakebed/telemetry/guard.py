"""Who may read the metrics, and how they travel, as configured. Pure."""

import re
from dataclasses import field
from pathlib import Path

from lakebed.dataclass import dataclass

_TOKEN = re.compile(r"[!-~]{16,4096}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """What is asked for; `lakebed.telemetry.credentials` reads the files, when they are needed.

    So a command that serves nothing needs no access to the key.
    """

    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    tls_cert_file: Path | None = None
    tls_key_file: Path | None = None


def token(text: str) -> str:
    """Return a token; a ValueError says why a text cannot be one, without repeating it."""
    if not _TOKEN.fullmatch(text):
        raise ValueError("must have at least 16 characters, in ASCII and without spaces")
    return text
