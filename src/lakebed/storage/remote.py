"""How a remote store is reached: which option goes where, how long to wait, how often to try. Pure.

The store's client tries again by itself on 429, 5xx, timeouts and dropped connections, for about
a minute at most. A longer outage is an error of the batch, and the pipeline's own backoff
takes over: it is the one that a person sees in the log and that a stop can interrupt.
"""

import os
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from difflib import get_close_matches
from typing import Any
from urllib.parse import urlsplit

from obstore.exceptions import InvalidPathError, PermissionDeniedError, UnauthenticatedError

from lakebed.errors import (
    ConfigInvalid,
    LakeError,
    NameUnusable,
    ObjectMissing,
    StoreDenied,
    StoreFull,
    StoreUnavailable,
)
from lakebed.listing import sort
from lakebed.locations import place_of
from lakebed.storage import answers, odd_names, settings
from lakebed.storage.answers import ARROW, CODE, CREDENTIALS_OF_THE_MACHINE, LOGIN
from lakebed.storage.aws import sessions
from lakebed.storage.options import PREFIXES, StorageOptions, bare

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

ALLOW_HTTP = {"s3": "AWS_ALLOW_HTTP", "az": "AZURE_ALLOW_HTTP", "gs": "GOOGLE_ALLOW_HTTP"}
"""The option that allows plain HTTP, by the kind of store; the environment may set it, too."""

KNOWN = (
    *sorted(CLIENT_OPTIONS),
    *(bare(name) for spellings in settings.SPELLINGS.values() for name in spellings),
)
"""Options that may have been meant, without the prefix of a store."""

NO_URL = "is not a URL; write http:// or https://, then the host, then the port if there is one"


def split(
    options: Mapping[str, str],
    *,
    uri: str,
    environment: Mapping[str, str] | None = None,
    key: Callable[[str], str] = str,
) -> tuple[dict[str, str], dict[str, str]]:
    """Separate the store's options from its HTTP client's; names in any case are accepted.

    Both hold what is set in the environment, too. ConfigInvalid names an option that cannot be
    used, or plain HTTP that is not allowed. A message never holds a value: it may be a secret.
    """
    outside, kind = environment or {}, place_of(uri).scheme
    allowing = ALLOW_HTTP.get(kind, ALLOW_HTTP["s3"])
    # The store's own options are taken from the environment by the library, this one is not.
    client: dict[str, str] = {**TIMEOUTS, "allow_http": outside.get(allowing) or "false"}
    found = settings.resolved(options, uri=uri, environment=outside, key=key)
    switch = allowing
    for name in [name for name in found if bare(name) in CLIENT_OPTIONS]:
        setting = found.pop(name)
        client[bare(name)] = setting.value
        switch = setting.name if bare(name) == "allow_http" else switch
    if client["allow_http"].lower() not in ("true", "false"):
        raise ConfigInvalid(
            [f"{uri}: storage_options: {switch}: is not understood; write true or false"]
        )
    for setting in (each for name, each in found.items() if is_endpoint(name)):
        if not _leads_somewhere(setting.value):
            raise ConfigInvalid([f"{uri}: storage_options: {setting.name}: {NO_URL}"])
        if setting.value.lower().startswith("http://") and client["allow_http"].lower() != "true":
            fault = (
                f"{setting.name} is http://, which is not encrypted; to allow it set "
                f"{allowing}: true"
            )
            raise ConfigInvalid([f"{uri}: storage_options: {fault}"])
    return settings.told(found, outside), client


def with_region(options: StorageOptions, uri: str) -> StorageOptions:
    """Return the options with the region that an https address names, if they name none."""
    region = place_of(uri).region if uri.startswith("https://") else ""
    given = {bare(name.lower()) for name in options.plain()}
    if not region or given & {"region", "default_region"}:
        return options
    return StorageOptions({**options.plain(), "aws_region": region}, options.origin)


def fault_of(
    options: Mapping[str, str], said: str, opens: Callable[[Mapping[str, str]], object]
) -> str:
    """Return which option keeps a store from being opened, as it was written, and what to do.

    A library names no option whose value it cannot read: it is the one without which the store
    could be opened. Empty where no single option is to blame.
    """
    if unknown := _UNKNOWN.search(said):
        name = next((each for each in options if each.lower() == unknown[1].lower()), unknown[1])
        near = get_close_matches(bare(name.lower()), KNOWN, n=1, cutoff=0.75)
        return f"{name}: unknown option" + (
            f"; did you mean {_like(name, near[0])}?" if near else ""
        )
    for name in options:
        try:
            opens({other: value for other, value in options.items() if other != name})
        except Exception:  # noqa: BLE001, S112 - it is another option, or not this one alone
            continue
        return f"{name}: invalid value"
    return ""


def explained(text: str, options: StorageOptions) -> str:
    """Return what a client's error comes down to, without secrets, and what to do about it."""
    return options.redact(in_words(text)) + _way_out(text, options)


def _way_out(text: str, options: StorageOptions) -> str:
    """Return where a store was looked for that gave no answer, and what may be wrong with it."""
    asked = _ASKED.search(ARROW.sub(": ", text))
    if asked is None or _STATUS.search(ARROW.sub(": ", text)):
        return ""
    endpoints = {name: value for name, value in options.plain().items() if is_endpoint(name)}
    where = LOGIN.sub(r"\1", asked[1])
    if where == _HIDDEN:  # The library hides an address that is signed.
        own = _HOST.match(LOGIN.sub(r"\1", next(iter(endpoints.values()), "")))
        where = own[0] if own else ""
    if any(place in where for place in CREDENTIALS_OF_THE_MACHINE):
        return (
            f"; it was asked at {where} for the credentials of this machine, because there are "
            f"none in {options.origin.section} or in the environment: set them, or give the "
            "machine a role"
        )
    proxies = [name for name in options.plain() if bare(name.lower()) == "proxy_url"]
    proxy = f", through the proxy of {options.key(proxies[0])}" if proxies else ""
    checked = "that proxy, " if proxies else ""
    asked_at = f"it was asked at {where}" if where else "it was asked at its usual address"
    if endpoints:
        leading = (name for name, value in endpoints.items() if where in LOGIN.sub(r"\1", value))
        name = next(leading, next(iter(endpoints)))
        return (
            f"; {asked_at}, as {options.key(name)} specifies{proxy}: check {checked}that "
            "address, and that the store is up"
        )
    return (
        f"; {asked_at}{proxy}: check {checked}the network, or set an endpoint in "
        f"{options.origin.section}"
    )


def for_delta(
    options: Mapping[str, str], *, uri: str, environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the options as deltalake takes them, with the same bounds on waiting and trying.

    They lead to the store to which `split` leads. Its client has no timeout for reading alone, and
    its requests are small: one timeout does.
    """
    store, client = split(options, uri=uri, environment=environment)
    given = {bare(name.lower()) for name in options}
    if "timeout" not in given:
        client["timeout"] = client["read_timeout"]
    if "read_timeout" not in given:
        del client["read_timeout"]
    return {
        "max_retries": str(RETRY["max_retries"]),
        "retry_timeout": _duration(RETRY["retry_timeout"]),
        "backoff_config.init_backoff": _duration(RETRY["backoff"]["init_backoff"]),
        "backoff_config.max_backoff": _duration(RETRY["backoff"]["max_backoff"]),
        **client,
        **store,
    }


def in_words(text: str) -> str:
    """Return what a client's error comes down to: the store's answer, or that there was none.

    What the store wrote beside its status is left out, except for the code that names the error:
    stores repeat headers, signatures and keys there.
    """
    first = next(iter(text.splitlines()), "").strip() or "no reason given"
    if answered := _STATUS.search(ARROW.sub(": ", text)):
        code = CODE.search(text)
        named = f" ({code[1]})" if code else ""
        return f"the store answered {answered[1].strip()}{named}"
    _request, trouble, reason = ARROW.sub(": ", text).partition(" - HTTP error: ")
    if trouble:
        reason = next(iter(reason.splitlines()), "").strip()
        known = (words for sign, words in _REASONS.items() if sign in text)
        return without_urls(f"the store gave no answer: {next(known, reason)}")
    return without_urls(first)


def without_urls(text: str) -> str:
    """Take logins and queries out of the URLs in a text: they may hold passwords and signatures."""
    return _QUERY.sub(r"\1?…", LOGIN.sub(r"\1", text))


_STATUS = re.compile(r"status code: (\d{3}[A-Za-z ]*)")
_QUERY = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s?]*)\?[^\s)]*", re.IGNORECASE)


_REASONS = {
    "ConnectionRefused": "the connection was refused",
    "Connection refused": "the connection was refused",
    "failed to lookup address": "there is no host of that name",
    "dns error": "there is no host of that name",
    "InvalidCertificate": "its certificate is not trusted",
    "invalid peer certificate": "its certificate is not trusted",
    "ConnectionReset": "the connection was reset",
}
"""What a client means by an error in sending a request, which it tells further down."""
_UNKNOWN = re.compile(r"Configuration key: '([^']+)' is not valid")
_ASKED = re.compile(r"Error performing [A-Z]+ (https?://[^\s/?]+|REDACTED)")
_HIDDEN = "REDACTED"
_HOST = re.compile(r"https?://[^\s/?]+", re.IGNORECASE)


def is_endpoint(name: str) -> bool:
    """Whether an option is the address of a store."""
    return "endpoint" in name.lower() or bare(name.lower()) == "base_url"


def _leads_somewhere(url: str) -> bool:
    """Whether a URL has a host that can be asked; a client that is given another panics."""
    try:
        parts = urlsplit(url)
        _port = parts.port
    except ValueError:
        return False
    return (
        parts.scheme.lower() in ("http", "https")
        and bool(parts.hostname)
        and not re.search(r"[\s<>\"{}|\\^`]", url)
    )


def _like(written: str, bare: str) -> str:
    """Write an option as the one that it was taken for: with its prefix, in its case."""
    prefix = next((each for each in PREFIXES if written.lower().startswith(each)), "")
    return f"{prefix}{bare}".upper() if written.isupper() else f"{prefix}{bare}"


def _duration(time: timedelta) -> str:
    return f"{round(time / timedelta(milliseconds=1))}ms"


NOWHERE = "the bucket, container or folder does not exist"
READ_ONLY = "the file system is read-only"
SIGNS: tuple[tuple[str, type[LakeError], str], ...] = (
    ("404 Not Found", ObjectMissing, NOWHERE),
    ("Permission denied", StoreDenied, "permission denied"),
    ("No space left", StoreFull, "no space is left on the device; free some and try again"),
    ("quota exceeded", StoreFull, "the disk quota is used up; free some space or raise the quota"),
    ("Read-only file system", StoreDenied, READ_ONLY),
    ("Input/output error", StoreUnavailable, "the disk reports an I/O error; check it with dmesg"),
    ("File system loop", NameUnusable, "a link leads to a folder above it; remove the link"),
)
"""Trouble that only a library's text tells."""


def translated(cause: Exception, where: str, *, uri: str, options: StorageOptions) -> LakeError:
    """Return our error for one of the library's, about an object as it is shown to a person."""
    text = str(cause)
    if isinstance(cause, InvalidPathError) and (name := odd_names.name_in(text)) is not None:
        root = "/".join(place_of(uri).folders)
        unusable = NameUnusable(
            "the store holds an object whose name cannot be used; rename or remove it",
            object=sort.readable(name),
        )
        unusable.key = name.removeprefix(f"{root}/") if root else name
        return unusable
    if (told := told_by_store(text, uri=uri, options=options)) is not None:
        told.facts = {"path": where}
        return told
    if isinstance(cause, PermissionDeniedError | UnauthenticatedError):
        return StoreDenied(answers.REFUSED, path=where)
    if isinstance(cause, FileNotFoundError):
        return ObjectMissing(NOWHERE, path=where)
    for sign, error, message in SIGNS:
        if sign in text:
            return error(message, path=where)
    return StoreUnavailable(explained(text, options), path=where)


def told_by_store(text: str, *, uri: str, options: StorageOptions) -> LakeError | None:
    """Return what the store's own answer says is wrong; None if it says nothing of the kind."""
    if (over := sessions.no_new_keys(text)) is not None:
        return StoreUnavailable(over)
    answer = answers.answer_in(text)
    if answer is None:
        return None
    asker = answers.Asker(uri=uri, options=options, environment=os.environ)
    told = answers.meaning(answer, asker)
    return told or (answers.refused(answer, asker) if answer.status in (401, 403) else None)


def is_no_object(cause: Exception) -> bool:
    """Whether an object alone is not there: what it would be in is, as far as the store says."""
    answer = answers.answer_in(str(cause))
    return answer is None or not answers.has_meaning(answer)
