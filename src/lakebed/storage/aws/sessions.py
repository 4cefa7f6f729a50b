"""AWS profiles: keys and regions in the files of `~/.aws`, and the keys that they lead to.

Store libraries disagree on profiles: one does not read them, the other finds its own. So botocore
reads them here, follows a role, a single sign-on or a program, and renews the keys; every library
is given them. It is optional, so it is imported only where a profile may apply. No message quotes a
file. A process has one session per profile that leads to keys: all stores get the same ones, and a
role is not assumed again for each of them.
"""

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

DEFAULT = "default"
KEYS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
FILES = ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE")
Renews = Callable[[], dict[str, Any]]
GOOD_FOR = timedelta(minutes=10)
"""Interval between two queries to botocore, which renews keys this early."""
BEFORE = timedelta(minutes=5)
"""Keys are renewed this long before they expire: a request may take as long."""

NOT_INSTALLED = (
    "names a profile, which takes the package botocore: pip install 'blizzard-penguin[aws]'; or "
    "export its keys (aws configure export-credentials --format env)"
)
NO_KEYS = (
    "names a profile that led to no keys [{}]; see what `aws sts get-caller-identity` says of it, "
    "and log in again if it is a single sign-on"
)
NO_NEW_KEYS = "the profile leads to no new keys [{}]; it is followed again"
_NO_NEW_KEYS = re.compile(r"KeysLost: (the profile leads to no new keys [^\n;]+)")


class KeysLost(Exception):
    """A profile that led to keys leads to none any more; the message says why."""


class ProfileUnusable(Exception):
    """A profile is missing, unreadable or without keys; the message is a fault."""


@dataclass(slots=True)
class _Session:
    """The credentials that a profile leads to; botocore renews them when asked."""

    credentials: Any
    has_worked: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def keys(self) -> tuple[dict[str, str], datetime]:
        """Return the keys, and when to ask for them again.

        Raise ProfileUnusable if there never were any, KeysLost if there are none any more:
        an operator may log in again, or the service may recover.
        """
        with self.lock:
            try:
                found = self.credentials.get_frozen_credentials()
            except Exception as cause:  # noqa: BLE001 - any error on the way to keys
                # Its text may contain the output of a program.
                kind = type(cause).__name__
                if self.has_worked:
                    raise KeysLost(NO_NEW_KEYS.format(kind)) from None
                raise ProfileUnusable(NO_KEYS.format(kind)) from None
            self.has_worked = True
            over = getattr(self.credentials, "_expiry_time", None)
        ahead = datetime.now(UTC) + GOOD_FOR
        values = zip(KEYS, (found.access_key, found.secret_key, found.token), strict=True)
        given = {name: str(value) for name, value in values if value}
        return given, ahead if over is None else min(ahead, over.astimezone(UTC) - BEFORE)

    def renewed(self) -> dict[str, Any]:
        """Return the current keys in the form of the store's library."""
        keys, until = self.keys()
        return {
            "access_key_id": keys["aws_access_key_id"],
            "secret_access_key": keys["aws_secret_access_key"],
            "token": keys.get("aws_session_token"),
            "expires_at": until,
        }


_sessions: dict[tuple[str, ...], _Session] = {}
_lock = threading.Lock()


def settings_of_default(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of the profile `default` if it has keys of its own; else none."""
    home = Path(environment.get("HOME", ""))
    usual = any((home / ".aws" / name).exists() for name in ("config", "credentials"))
    if find_spec("botocore") is None or not (usual or any(map(environment.get, FILES))):
        return {}
    try:
        settings = _read(DEFAULT, environment)[1]
    except ProfileUnusable:
        return {}  # It was not requested.
    return settings if _has_keys(settings) else {}


def settings_of_profile(
    name: str, environment: Mapping[str, str]
) -> tuple[dict[str, str], Renews | None]:
    """Return a profile's settings with its keys, and a function that renews them if need be.

    An open store calls that when its keys are about to expire.
    """
    if find_spec("botocore") is None:
        raise ProfileUnusable(NOT_INSTALLED)
    opened, settings = _read(name, environment)
    if _has_keys(settings):
        return settings, None
    place = (name, *(environment.get(each, "") for each in ("HOME", *FILES)))
    with _lock:
        if place not in _sessions:
            try:
                found = opened.get_credentials()
            except Exception as cause:  # noqa: BLE001 - any error on the way to keys
                raise ProfileUnusable(NO_KEYS.format(type(cause).__name__)) from None
            if found is None:
                raise ProfileUnusable(NO_KEYS.format("NoCredentials"))
            _sessions[place] = _Session(found)
        session = _sessions[place]
    return {**settings, **session.keys()[0]}, session.renewed


def _has_keys(settings: Mapping[str, str]) -> bool:
    return all(settings.get(name) for name in KEYS[:2])


def _read(name: str, environment: Mapping[str, str]) -> tuple[Any, dict[str, str]]:
    """Open a session of a profile, and return it with the settings in the files of profiles."""
    from botocore.exceptions import BotoCoreError, ProfileNotFound  # noqa: PLC0415 - it is optional
    from botocore.session import Session  # noqa: PLC0415

    session = Session(profile=name)
    for variable, each in zip(("config_file", "credentials_file"), FILES, strict=True):
        if environment.get(each):
            session.set_config_variable(variable, environment[each])
    try:
        given = session.get_scoped_config()
    except ProfileNotFound:
        raise ProfileUnusable("names a profile that is in neither of the files of ~/.aws") from None
    except (BotoCoreError, OSError, UnicodeDecodeError):
        raise ProfileUnusable("names a profile, but the files of ~/.aws cannot be read") from None
    values = {key: given[key] for key in KEYS if given.get(key)}
    for key, canonical in (("region", "aws_region"), ("endpoint_url", "aws_endpoint")):
        if given.get(key):
            values[canonical] = given[key]
    return session, values


def no_new_keys(text: str) -> str | None:
    """Return why an open store has lost its keys, if its library's error says so."""
    found = _NO_NEW_KEYS.search(text)
    return None if found is None else found[1]
