"""Which value each setting of a store has: one answer for every library that opens it.

It is pure but for AWS profiles: their files are read where one may be meant, and what they lead to
is asked for.

Libraries read the environment by themselves, and each prefers another of two names of one setting.
So that the journal and the Delta log are never in two stores, a setting is looked up here alone,
and every library gets its value under one name.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from lakebed.errors import ConfigInvalid
from lakebed.locations import place_of
from lakebed.storage.aws import sessions
from lakebed.storage.options import bare

SPELLINGS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "s3": {
        "aws_endpoint": ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"),
        "aws_region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
        "aws_access_key_id": ("AWS_ACCESS_KEY_ID",),
        "aws_secret_access_key": ("AWS_SECRET_ACCESS_KEY",),
        "aws_session_token": ("AWS_SESSION_TOKEN", "AWS_TOKEN"),
        "aws_conditional_put": ("AWS_CONDITIONAL_PUT",),
        "aws_profile": ("AWS_PROFILE", "AWS_DEFAULT_PROFILE"),
    },
    "az": {
        "azure_storage_endpoint": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
        "azure_storage_account_name": ("AZURE_STORAGE_ACCOUNT_NAME",),
        "azure_storage_account_key": (
            "AZURE_STORAGE_ACCOUNT_KEY",
            "AZURE_STORAGE_ACCESS_KEY",
            "AZURE_STORAGE_MASTER_KEY",
        ),
        "azure_storage_client_id": ("AZURE_STORAGE_CLIENT_ID", "AZURE_CLIENT_ID"),
        "azure_storage_client_secret": ("AZURE_STORAGE_CLIENT_SECRET", "AZURE_CLIENT_SECRET"),
        "azure_storage_tenant_id": (
            "AZURE_STORAGE_TENANT_ID",
            "AZURE_TENANT_ID",
            "AZURE_STORAGE_AUTHORITY_ID",
            "AZURE_AUTHORITY_ID",
        ),
        "azure_storage_sas_key": ("AZURE_STORAGE_SAS_KEY", "AZURE_STORAGE_SAS_TOKEN"),
        "azure_storage_token": ("AZURE_STORAGE_TOKEN",),
    },
    "gs": {
        "google_base_url": ("GOOGLE_BASE_URL",),
        "google_service_account": ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH"),
        "google_service_account_key": ("GOOGLE_SERVICE_ACCOUNT_KEY",),
        "google_application_credentials": ("GOOGLE_APPLICATION_CREDENTIALS",),
    },
}
"""The names of each setting in the environment, by the kind of store and by the name that libraries
expect. In a section their prefix may be left out."""

S3_ENDPOINT = "aws_endpoint_url_s3"
"""In the environment it wins over every other endpoint, so libraries get this name, too."""
RANKED = frozenset({"aws_region", "aws_profile"})
"""Settings of which one name wins by custom, so that two values of them are no contradiction."""
KEYS = ("aws_access_key_id", "aws_secret_access_key")
ONE_PLACE = frozenset({*KEYS, "aws_session_token", "aws_profile"})
"""Settings that make a key together, or stand for one: none is joined from elsewhere."""
WEB_IDENTITY = "AWS_WEB_IDENTITY_TOKEN_FILE"
PLACES = frozenset({"bucket", "bucket_name", "container", "container_name"})
"""Options that name a bucket or container: one library would follow them, the other the URI."""
OF_LINES = frozenset({"service_account_key", "proxy_ca_certificate"})
"""Options whose values are documents of many lines."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting's value, and the name of the option or variable that gave it."""

    name: str
    value: str
    outside: bool = False
    """Whether the environment gave it."""
    renews: sessions.Renews | None = field(default=None, compare=False)
    """What gives the keys of later, of which it is one or stands beside one."""

    @property
    def where(self) -> str:
        """Return the name as a message says it."""
        return f"the environment variable {self.name}" if self.outside else self.name


def resolved(
    options: Mapping[str, str],
    *,
    uri: str,
    environment: Mapping[str, str],
    key: Callable[[str], str] = str,
) -> dict[str, Setting]:
    """Return every setting of a store by the name that libraries expect; a section always wins.

    ConfigInvalid says which option or variable cannot be used, or which two contradict each other.
    `key` turns the name of an option into its key in the configuration. No message has a value.
    """
    place = place_of(uri)
    spellings = SPELLINGS.get(place.scheme, {})
    found: dict[str, Setting] = {}
    for name, value in options.items():
        canonical = _canonical(name, spellings)
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
    """Add what the environment and profiles say of settings that a section does not set.

    What makes a key is not joined to a whole one, or to a profile, of the section: neither the
    token of another session nor another profile.
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
            # Else a library adds the token of the environment to a key that it does not belong to.
            found["aws_session_token"] = Setting(name="AWS_SESSION_TOKEN", value="")


def _join_profile(found: dict[str, Setting], environment: Mapping[str, str]) -> None:
    """Add what the profile that is meant sets, unless there is a key already."""
    if found.keys() & set(KEYS) or _is_unsigned(found):
        return
    profile, renews = found.get("aws_profile"), None
    if profile is None or (profile.outside and environment.get(WEB_IDENTITY)):
        # No profile is named: as AWS's own programs do, take the keys of the default one.
        default = None if environment.get(WEB_IDENTITY) else _default(environment)
        given = default.values if default is not None and default.has_keys else {}
    else:
        named = sessions.named(profile.value, environment)
        given = named.values
        if not named.has_keys:
            given, renews = sessions.followed(profile.value, named, environment)
    name = profile.name if profile is not None else sessions.DEFAULT
    for canonical, value in given.items():
        setting = Setting(name=name, value=value, outside=True, renews=renews)
        found.setdefault(canonical, setting)


def _default(environment: Mapping[str, str]) -> sessions.Profile | None:
    try:
        return sessions.read(sessions.DEFAULT, environment)
    except sessions.ProfileUnusable:
        return None  # It was not requested.


def _is_unsigned(found: Mapping[str, Setting]) -> bool:
    unsigned = (each for name, each in found.items() if bare(name) == "skip_signature")
    return any(each.value.lower() == "true" for each in unsigned)


def told(settings: Mapping[str, Setting], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings for a library, complete so that it follows no environment variable."""
    values = {name: setting.value for name, setting in settings.items()}
    if "aws_endpoint" in values and S3_ENDPOINT.upper() in environment:
        values[S3_ENDPOINT] = values["aws_endpoint"]
    return values


def meant(name: str) -> str:
    """Return which setting the name of an option means, whichever of its spellings it is."""
    for spellings in SPELLINGS.values():
        if (found := _canonical(name, spellings)) in spellings:
            return found
    return bare(name.lower())


def _outside(
    canonical: str, names: tuple[str, ...], uri: str, environment: Mapping[str, str]
) -> Setting | None:
    """Return what the environment says of a setting; None if it says nothing."""
    given = [
        Setting(name=name, value=environment[name], outside=True)
        for name in names
        if environment.get(name)
    ]
    for each in given:
        if fault := _fault(each.name, each.value):
            raise ConfigInvalid([f"{uri}: {each.where}: {fault}"])
    others = [each for each in given[1:] if each.value.rstrip("/") != given[0].value.rstrip("/")]
    if others and canonical not in RANKED:
        fault = (
            f"the environment variables {given[0].name} and {others[0].name} are the same "
            f"setting, with two values; unset one of them, or set {names[0]} in storage_options"
        )
        raise ConfigInvalid([f"{uri}: {fault}"])
    if not given and canonical == "aws_endpoint":
        _refuse_empty(names, uri, environment)
    return given[0] if given else None


def _refuse_empty(names: tuple[str, ...], uri: str, environment: Mapping[str, str]) -> None:
    """Raise if the environment has an empty address: a client that is given one panics."""
    for name in names:
        if name in environment:
            raise ConfigInvalid(
                [f"{uri}: the environment variable {name} is empty; unset it, or give it a URL"]
            )


def _missing(found: Mapping[str, Setting]) -> str:
    """Return the half of a key that is not given beside the other one; empty if none is missing."""
    missing = [name for name in KEYS if name not in found or not found[name].value]
    return missing[0].upper() if len(missing) == 1 else ""


def _canonical(name: str, spellings: Mapping[str, tuple[str, ...]]) -> str:
    """Return the name that libraries expect for an option as it is written in a section."""
    meant = bare(name.lower())
    for canonical, names in spellings.items():
        if any(meant == bare(each.lower()) for each in names):
            return canonical
    return name.lower()


def _fault(name: str, value: str) -> str:
    """Return what is wrong with an option in any store; empty if nothing is."""
    return next(_faults(bare(name.lower()), value), "")


def _faults(meant: str, value: str) -> Iterator[str]:
    if meant in PLACES:
        yield "the bucket is named by the URI; remove this option"
    if meant == "conditional_put" and value.lower() == "disabled":
        yield (
            "must not be disabled: both programs depend on create-only writes; remove this option, "
            "or use a store that supports them"
        )
    if meant not in OF_LINES and _CONTROL.search(value):
        if value.endswith(("\n", "\r")) and not _CONTROL.search(value.rstrip("\r\n")):
            yield (
                "it ends with a line break, which is no part of it; remove it (in YAML write the "
                "value on the line of its key, or with |- instead of |)"
            )
        yield "it has a line break or another control character in it; remove that"
