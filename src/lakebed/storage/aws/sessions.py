"""AWS profiles: keys and regions in the files of `~/.aws`, and the keys that they lead to.

Store libraries disagree on profiles: one does not read them, the other finds its own. So they are
read here, and every library is given the keys. No message quotes a file.

botocore follows a role, a single sign-on or a program, and renews the keys. It is optional, so it
is imported only where it is used. A process has one session per profile: all stores get the same
keys, and a role is not assumed again for each of them.
"""

import configparser
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
OTHER_WAYS = (
    "role_arn",
    "sso_session",
    "sso_start_url",
    "credential_process",
    "web_identity_token_file",
    "login_session",
)
"""Settings of a profile that lead to keys, which an AWS library follows."""

NOT_THERE = "names a profile that is in neither of the files of ~/.aws"
NO_KEYS_IN_PROFILE = (
    "names a profile without keys of its own; export its keys "
    "(aws configure export-credentials --format env), or let the machine have a role"
)


class KeysLost(Exception):
    """A profile that led to keys leads to none any more; the message says why."""


class ProfileUnusable(Exception):
    """A profile is missing, unreadable or without keys; the message is a fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The settings of a profile, under the names of store libraries."""

    values: Mapping[str, str] = field(default_factory=dict)
    other_way: str = ""
    """The setting that leads to keys, if it has none."""

    @property
    def has_keys(self) -> bool:
        """Whether it has a complete key."""
        return all(self.values.get(name) for name in KEYS[:2])


def named(name: str, environment: Mapping[str, str]) -> Profile:
    """Return a profile with keys or a way to some; raise ProfileUnusable otherwise."""
    found = read(name, environment)
    if found is None:
        raise ProfileUnusable(NOT_THERE)
    if not found.has_keys and not found.other_way:
        raise ProfileUnusable(NO_KEYS_IN_PROFILE)
    return found


def read(name: str, environment: Mapping[str, str]) -> Profile | None:
    """Read a profile from both files; None without one. Keys of the credentials file win."""
    config, credentials = (
        _file(environment, variable, usual)
        for variable, usual in (
            ("AWS_CONFIG_FILE", "config"),
            ("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
        )
    )
    sections = [
        *(_section(config, title) for title in (name, f"profile {name}")),
        _section(credentials, name),
    ]
    if not any(section is not None for section in sections):
        return None
    given: dict[str, str] = {}
    for section in sections:
        given |= section or {}
    values = {key: given[key] for key in KEYS if given.get(key)}
    if given.get("region"):
        values["aws_region"] = given["region"]
    if given.get("endpoint_url"):
        values["aws_endpoint"] = given["endpoint_url"]
    return Profile(values=values, other_way=next((way for way in OTHER_WAYS if way in given), ""))


def _file(
    environment: Mapping[str, str], variable: str, usual: str
) -> configparser.RawConfigParser:
    """Read a file of profiles; a missing one is empty."""
    parser = configparser.RawConfigParser(strict=False, default_section="\0")
    home = environment.get("HOME") or environment.get("USERPROFILE")
    given = environment.get(variable)
    if not given and not home:
        return parser
    path = Path(given) if given else Path(home or "") / ".aws" / usual
    if given and home and given.startswith("~/"):
        path = Path(home) / given[2:]
    try:
        parser.read_string(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, UnicodeDecodeError, configparser.Error):
        raise ProfileUnusable(f"names a profile, but {path} cannot be read") from None
    return parser


def _section(parser: configparser.RawConfigParser, title: str) -> dict[str, str] | None:
    return dict(parser.items(title)) if parser.has_section(title) else None


Renews = Callable[[], dict[str, Any]]
FILES = ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE")
GOOD_FOR = timedelta(minutes=10)
"""Interval between two queries to botocore, which renews keys this early."""
BEFORE = timedelta(minutes=5)
"""Keys are renewed this long before they expire: a request may take as long."""

NOT_INSTALLED = (
    "names a profile without keys of its own ({}), which takes the package botocore: pip install "
    "'blizzard-penguin[aws]'; or export its keys (aws configure export-credentials --format env), "
    "or let the machine have a role"
)
NO_KEYS = (
    "names a profile that led to no keys ({}) [{}]; see what `aws sts get-caller-identity` says of "
    "it, and log in again if it is a single sign-on"
)
NO_NEW_KEYS = "the profile ({}) leads to no new keys [{}]; it is followed again"
_NO_NEW_KEYS = re.compile(r"KeysLost: (the profile \(\w+\) leads to no new keys [^\n;]+)")


@dataclass(slots=True)
class _Session:
    """The credentials of a profile; botocore renews them when asked."""

    way: str
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
                    raise KeysLost(NO_NEW_KEYS.format(self.way, kind)) from None
                raise ProfileUnusable(NO_KEYS.format(self.way, kind)) from None
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


def followed(
    name: str, profile: Profile, environment: Mapping[str, str]
) -> tuple[dict[str, str], Renews]:
    """Return a profile's settings with the keys that it leads to, and a function that renews them.

    An open store calls that when its keys are about to expire.
    """
    if find_spec("botocore") is None:
        raise ProfileUnusable(NOT_INSTALLED.format(profile.other_way))
    files = [environment.get(each, "") for each in FILES]
    with _lock:
        place = (name, environment.get("HOME", ""), *files)
        session = _sessions.get(place)
        if session is None:
            session = _sessions[place] = _begun(name, profile.other_way, files)
    keys, _until = session.keys()
    return {**profile.values, **keys}, session.renewed


def no_new_keys(text: str) -> str | None:
    """Return why an open store has lost its keys, if its library's error says so."""
    found = _NO_NEW_KEYS.search(text)
    return None if found is None else found[1]


def _begun(name: str, way: str, files: list[str]) -> _Session:
    """Follow a profile to its keys."""
    from botocore.session import Session  # noqa: PLC0415 - it is optional

    try:
        session = Session(profile=name)
        for variable, file in zip(("config_file", "credentials_file"), files, strict=True):
            if file:
                session.set_config_variable(variable, file)
        found = session.get_credentials()
    except Exception as cause:  # noqa: BLE001 - any error on the way to keys
        raise ProfileUnusable(NO_KEYS.format(way, type(cause).__name__)) from None
    if found is None:
        raise ProfileUnusable(NO_KEYS.format(way, "NoCredentials"))
    return _Session(way, found)
