"""Resolve the settings of a store, once for every library that opens it.

It is pure except for AWS profiles: their files are read if one may apply, and keys that they lead
to are requested.

Libraries read the environment themselves, and each prefers another of two names of a setting. So
that the journal and the Delta log are never in two stores, settings are resolved here alone, and
every library gets each value under one name.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from lakebed.errors import ConfigInvalid, StoreUnavailable
from lakebed.locations import place_of
from lakebed.storage.aws import sessions
from lakebed.storage.options import SPELLINGS, bare, is_endpoint

S3_ENDPOINT = "aws_endpoint_url_s3"
"""In the environment it overrides every other endpoint, so libraries get this name, too."""
KEYS = ("aws_access_key_id", "aws_secret_access_key")
ONE_PLACE = frozenset({*KEYS, "aws_session_token", "aws_profile"})
"""Settings that form a key together, so they must come from one source."""
WEB_IDENTITY = "AWS_WEB_IDENTITY_TOKEN_FILE"
PLACES = frozenset({"bucket", "bucket_name", "container", "container_name"})
"""Options that name a bucket or container: one library would use them, the other the URI."""
OF_LINES = frozenset({"service_account_key", "proxy_ca_certificate"})
"""Options with multi-line values."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
TIMEOUTS: Mapping[str, str] = {"connect_timeout": "5s", "read_timeout": "60s", "timeout": "300s"}
"""Timeouts for connecting, between bytes of the answer, and for a whole request of 32 MB."""

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
"""Options of the HTTP client. As options of the store they make obstore panic."""

ALLOW_HTTP = {"s3": "AWS_ALLOW_HTTP", "az": "AZURE_ALLOW_HTTP", "gs": "GOOGLE_ALLOW_HTTP"}
"""The option that allows plain HTTP, by the kind of store; the environment may set it, too."""
NO_URL = "is not a URL; write http:// or https://, then the host, then the port if there is one"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting's value, and the option or variable that set it."""

    name: str
    value: str
    outside: bool = False
    """Whether the environment set it."""
    renews: sessions.Renews | None = field(default=None, compare=False)
    """Renews the keys that it belongs to."""

    @property
    def where(self) -> str:
        """Return the name for messages."""
        return f"the environment variable {self.name}" if self.outside else self.name


def resolved(
    options: Mapping[str, str],
    *,
    uri: str,
    environment: Mapping[str, str],
    key: Callable[[str], str] = str,
) -> dict[str, Setting]:
    """Return all settings of a store under the libraries' names; a section overrides the rest.

    ConfigInvalid says which option or variable cannot be used, or which two contradict each other.
    `key` maps the name of an option to its key in the configuration. No message has a value.
    """
    place = place_of(uri)
    spellings = SPELLINGS.get(place.scheme, {})
    found: dict[str, Setting] = {}
    for name, value in options.items():
        canonical = setting_named(name, spellings)
        fault = _fault(name, value)
        before = found.get(canonical)
        if before is not None and before.name.lower() == name.lower():
            raise ConfigInvalid([f"{uri}: storage_options: {name.lower()} is given twice"])
        if before is not None and before.value != value:
            fault = f"is the same setting as {before.name}, with another value; remove one of them"
        if canonical == "azure_storage_account_name" and place.account not in ("", value):
            fault = "is another account than the URI names; remove this option"
        if fault:
            raise ConfigInvalid([f"{uri}: {key(name)}: {fault}"])
        found[canonical] = Setting(name=name, value=value)
    if "aws_profile" in found and found.keys() & set(KEYS):
        name, other = found["aws_profile"].name, next(n for n in KEYS if n in found)
        fault = f"is a profile, and {found[other].name} is a key; remove one of them"
        raise ConfigInvalid([f"{uri}: {key(name)}: {fault}"])
    try:
        _join(found, spellings, uri, environment)
    except sessions.KeysLost as lost:
        raise StoreUnavailable(str(lost)) from None
    except sessions.ProfileUnusable as unusable:
        profile = found.get("aws_profile")
        where = profile and (profile.where if profile.outside else key(profile.name))
        raise ConfigInvalid([f"{uri}: {where or 'the default profile'}: {unusable}"]) from None
    found.pop("aws_profile", None)
    if missing := _missing(found):
        raise ConfigInvalid([f"{uri}: {key(missing)} is missing"])
    return found


def _join(
    found: dict[str, Setting],
    spellings: Mapping[str, tuple[str, ...]],
    uri: str,
    environment: Mapping[str, str],
) -> None:
    """Add settings of the environment and of profiles that the section does not set.

    If the section has a complete key or a profile, no part of a key is added: neither the token of
    another session nor another profile.
    """
    ours = found.keys() >= set(KEYS) or "aws_profile" in found
    for canonical, names in spellings.items():
        if canonical in found or (ours and canonical in ONE_PLACE):
            continue
        if place_of(uri).account and canonical == "azure_storage_account_name":
            continue
        outside = _outside(canonical, names, uri, environment)
        if outside is not None:
            found[canonical] = outside
    if "aws_access_key_id" in spellings:
        _join_profile(found, environment)
        given = any(environment.get(name) for name in spellings["aws_session_token"])
        if given and found.keys() & set(KEYS) and "aws_session_token" not in found:
            # Otherwise a library adds the environment's token to another key.
            found["aws_session_token"] = Setting(name="AWS_SESSION_TOKEN", value="")


def _join_profile(found: dict[str, Setting], environment: Mapping[str, str]) -> None:
    """Add the settings of the profile that applies, unless there is a key already."""
    if found.keys() & set(KEYS) or _is_unsigned(found):
        return
    profile = found.get("aws_profile")
    given: Mapping[str, str]
    if profile is not None and not (profile.outside and environment.get(WEB_IDENTITY)):
        given, renews = sessions.settings_of_profile(profile.value, environment)
    else:
        # No profile is named: use the keys of the default one, as AWS's own programs do.
        is_used = not environment.get(WEB_IDENTITY)
        given, renews = sessions.settings_of_default(environment) if is_used else {}, None
    name = profile.name if profile is not None else sessions.DEFAULT
    for canonical, value in given.items():
        setting = Setting(name=name, value=value, outside=True, renews=renews)
        found.setdefault(canonical, setting)


def _is_unsigned(found: Mapping[str, Setting]) -> bool:
    unsigned = (each for name, each in found.items() if bare(name) == "skip_signature")
    return any(each.value.lower() == "true" for each in unsigned)


def _for_library(settings: Mapping[str, Setting], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings for a library, so that it uses no environment variable instead."""
    values = {name: setting.value for name, setting in settings.items()}
    if "aws_endpoint" in values and S3_ENDPOINT.upper() in environment:
        values[S3_ENDPOINT] = values["aws_endpoint"]
    return values


def split(
    options: Mapping[str, str],
    *,
    uri: str,
    environment: Mapping[str, str] | None = None,
    key: Callable[[str], str] = str,
) -> tuple[dict[str, str], dict[str, str]]:
    """Separate the store's options from its HTTP client's; names may be in any case.

    Both include settings of the environment. ConfigInvalid names an option that cannot be used, or
    plain HTTP that is not allowed. A message never holds a value: it may be a secret.
    """
    outside, kind = environment or {}, place_of(uri).scheme
    allowing = ALLOW_HTTP.get(kind, ALLOW_HTTP["s3"])
    # The library does not read this one from the environment.
    client: dict[str, str] = {**TIMEOUTS, "allow_http": outside.get(allowing) or "false"}
    found = resolved(options, uri=uri, environment=outside, key=key)
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
    return _for_library(found, outside), client


def _leads_somewhere(url: str) -> bool:
    """Whether a URL has a valid host; a client panics without one."""
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


def meant(name: str) -> str:
    """Return the setting of an option, in any of its spellings."""
    for spellings in SPELLINGS.values():
        if (found := setting_named(name, spellings)) in spellings:
            return found
    return bare(name.lower())


def _outside(
    canonical: str, names: tuple[str, ...], uri: str, environment: Mapping[str, str]
) -> Setting | None:
    """Return a setting from the environment; None if it is not set."""
    given = [
        Setting(name=name, value=environment[name], outside=True)
        for name in names
        if environment.get(name)
    ]
    for each in given:
        if fault := _fault(each.name, each.value):
            raise ConfigInvalid([f"{uri}: {each.where}: {fault}"])
    empty = [name for name in names if name in environment and canonical == "aws_endpoint"]
    if empty and not given:  # A client panics on it.
        fault = f"the environment variable {empty[0]} is empty; unset it, or give it a URL"
        raise ConfigInvalid([f"{uri}: {fault}"])
    return given[0] if given else None


def _missing(found: Mapping[str, Setting]) -> str:
    """Return the missing half of a key; empty if none is missing."""
    missing = [name for name in KEYS if name not in found or not found[name].value]
    return missing[0].upper() if len(missing) == 1 else ""


def setting_named(name: str, spellings: Mapping[str, tuple[str, ...]]) -> str:
    """Return the libraries' name of an option in a section."""
    meant = bare(name.lower())
    for canonical, names in spellings.items():
        if any(meant == bare(each.lower()) for each in names):
            return canonical
    return name.lower()


def _fault(name: str, value: str) -> str:
    """Return what is wrong with an option in any store; empty if nothing."""
    meant = bare(name.lower())
    if meant in PLACES:
        return "the bucket is named by the URI; remove this option"
    if meant == "conditional_put" and value.lower() == "disabled":
        return (
            "must not be disabled: both programs depend on create-only writes; remove this option, "
            "or use a store that supports them"
        )
    if meant not in OF_LINES and _CONTROL.search(value):
        return (
            "it has a line break or another control character in it; remove that (in YAML write "
            "the value on the line of its key, or with |- instead of |)"
        )
    return ""
