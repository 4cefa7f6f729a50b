"""How a remote store is reached: which option goes where, how long to wait, how often to try. Pure.

The store's client tries again by itself on 429, 5xx, timeouts and dropped connections, for about
a minute at most. Whatever lasts longer is an error of the batch, and the pipeline's own backoff
takes over: it is the one that a person sees in the log and that a stop can interrupt.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from lake.errors import ConfigInvalid

RETRY: Mapping[str, Any] = {
    "max_retries": 4,
    "retry_timeout": timedelta(seconds=60),
    "backoff": {
        "init_backoff": timedelta(milliseconds=200),
        "max_backoff": timedelta(seconds=5),
        "base": 2,
    },
}
"""One request is sent five times at most, with growing pauses of random length in between."""

TIMEOUTS: Mapping[str, str] = {"connect_timeout": "5s", "read_timeout": "60s", "timeout": "300s"}
"""To connect; without a byte of the answer; for a whole request, a 32 MB part included."""

CLIENT_OPTIONS = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "http1_only",
        "http2_only",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_ca_certificate",
        "proxy_excludes",
        "proxy_url",
        "randomize_addresses",
        "read_timeout",
        "timeout",
        "user_agent",
    }
)
"""Options of the HTTP client. Handed to a store as its own, they make obstore panic."""

PREFIXES = ("aws_", "azure_", "google_")


def split(options: Mapping[str, str], *, uri: str) -> tuple[dict[str, str], dict[str, str]]:
    """Part what is the store's from what is its HTTP client's; names in any case are taken.

    ConfigInvalid names an option that is given twice, or plain HTTP that is not allowed. A message
    never holds a value: it may be a secret.
    """
    store: dict[str, str] = {}
    client: dict[str, str] = dict(TIMEOUTS)
    seen: set[str] = set()
    for name, value in options.items():
        key = name.lower()
        if key in seen:
            raise ConfigInvalid([f"{uri}: storage_options: {key} is given twice"])
        seen.add(key)
        bare = _bare(key)
        if bare in CLIENT_OPTIONS:
            client[bare] = value
        else:
            store[key] = value
    plain = [key for key, value in store.items() if "endpoint" in key and _is_plain(value)]
    if plain and client.get("allow_http", "").lower() != "true":
        fault = (
            f"{plain[0]} is http://, which is not encrypted; to allow it set AWS_ALLOW_HTTP: true"
        )
        raise ConfigInvalid([f"{uri}: storage_options: {fault}"])
    return store, client


def without_urls(text: str) -> str:
    """Take logins and queries out of the URLs in a text: they may hold passwords and signatures."""
    return _QUERY.sub(r"\1?…", _LOGIN.sub(r"\1", text))


_LOGIN = re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^\s/@]+@", re.IGNORECASE)
_QUERY = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s?]*)\?[^\s)]*", re.IGNORECASE)


def _bare(key: str) -> str:
    for prefix in PREFIXES:
        if key.startswith(prefix):
            return key.removeprefix(prefix)
    return key


def _is_plain(value: str) -> bool:
    return value.lower().startswith("http://")
