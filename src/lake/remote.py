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


def split(
    options: Mapping[str, str], *, uri: str, environment: Mapping[str, str] | None = None
) -> tuple[dict[str, str], dict[str, str]]:
    """Part what is the store's from what is its HTTP client's; names in any case are taken.

    ConfigInvalid names an option that is given twice, or plain HTTP that is not allowed. A message
    never holds a value: it may be a secret.
    """
    store: dict[str, str] = {}
    # The store's own options are taken from the environment by the library, this one is not.
    allow_http = (environment or {}).get("AWS_ALLOW_HTTP", "false")
    client: dict[str, str] = {**TIMEOUTS, "allow_http": allow_http}
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
    if plain and client["allow_http"].lower() != "true":
        fault = (
            f"{plain[0]} is http://, which is not encrypted; to allow it set AWS_ALLOW_HTTP: true"
        )
        raise ConfigInvalid([f"{uri}: storage_options: {fault}"])
    return store, client


def for_delta(options: Mapping[str, str]) -> dict[str, str]:
    """Give the options as deltalake takes them, with the same bounds on waiting and trying.

    Its client has no timeout for reading alone, and its requests are small: one timeout does.
    """
    bounds = {
        "max_retries": str(RETRY["max_retries"]),
        "retry_timeout": _duration(RETRY["retry_timeout"]),
        "backoff_config.init_backoff": _duration(RETRY["backoff"]["init_backoff"]),
        "backoff_config.max_backoff": _duration(RETRY["backoff"]["max_backoff"]),
        "connect_timeout": TIMEOUTS["connect_timeout"],
        "timeout": TIMEOUTS["read_timeout"],
    }
    given = {name.lower() for name in options}
    return {
        **{name: value for name, value in bounds.items() if name not in given},
        **options,
    }


def in_words(text: str) -> str:
    """Say what a client's error comes down to: the store's answer, or that there was none.

    What the store wrote beside its status is left out, except for the code that names the error:
    stores repeat headers, signatures and keys there.
    """
    first = next(iter(text.splitlines()), "").strip() or "no reason given"
    if answered := _STATUS.search(_ARROW.sub(": ", text)):
        code = _CODE.search(text)
        named = f" ({code[1]})" if code else ""
        return f"the store answered {answered[1].strip()}{named}"
    _request, trouble, reason = first.partition(" - HTTP error: ")
    return without_urls(f"the store gave no answer: {reason}" if trouble else first)


def without_urls(text: str) -> str:
    """Take logins and queries out of the URLs in a text: they may hold passwords and signatures."""
    return _QUERY.sub(r"\1?…", _LOGIN.sub(r"\1", text))


_ARROW = re.compile(r"\s*\n\s*(?:\x1b\[\d+m)*↳(?:\x1b\[\d+m)*\s*")
"""How deltalake sets one cause below the other."""
_STATUS = re.compile(r"status code: (\d{3}[A-Za-z ]*)")
_CODE = re.compile(r"<Code>([A-Za-z]{3,60})</Code>")
_LOGIN = re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^\s/@]+@", re.IGNORECASE)
_QUERY = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s?]*)\?[^\s)]*", re.IGNORECASE)


def _bare(key: str) -> str:
    for prefix in PREFIXES:
        if key.startswith(prefix):
            return key.removeprefix(prefix)
    return key


def _duration(time: timedelta) -> str:
    return f"{round(time / timedelta(milliseconds=1))}ms"


def _is_plain(value: str) -> bool:
    return value.lower().startswith("http://")
