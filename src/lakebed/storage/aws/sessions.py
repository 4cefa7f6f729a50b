"""Keys to which a profile of AWS leads: by a role, a single sign-on or a program.

botocore follows it, as AWS's own programs do, and renews what it has found. It is optional, so it
is imported only where it is used. There is one session of a profile in a process: all
stores get the same keys, and a role is not assumed anew for each of them.
"""

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from typing import Any

from lakebed.errors import StoreUnavailable
from lakebed.storage.aws.profiles import KEYS, Profile, ProfileUnusable

Renews = Callable[[], dict[str, Any]]
FILES = ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE")
GOOD_FOR = timedelta(minutes=10)
"""botocore renews keys before they are over by so much, so it is asked again after this time."""
BEFORE = timedelta(minutes=5)
"""Keys are asked for anew so long before they are over: a request may take as long."""

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
_NO_NEW_KEYS = re.compile(r"StoreUnavailable: (the profile \(\w+\) leads to no new keys [^\n;]+)")


@dataclass(slots=True)
class _Session:
    """What was found for a profile; botocore renews it when it is asked."""

    way: str
    credentials: Any
    has_worked: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def keys(self) -> tuple[dict[str, str], datetime]:
        """Return the keys, and when to ask for them again.

        ProfileUnusable where there never were any, StoreUnavailable where there are none any more:
        somebody may log in again, or the service that gives them come back.
        """
        with self.lock:
            try:
                found = self.credentials.get_frozen_credentials()
            except Exception as cause:  # noqa: BLE001 - any error on the way to keys
                # Its words may hold what a program wrote to the terminal.
                kind = type(cause).__name__
                if self.has_worked:
                    raise StoreUnavailable(NO_NEW_KEYS.format(self.way, kind)) from None
                raise ProfileUnusable(NO_KEYS.format(self.way, kind)) from None
            self.has_worked = True
            over = getattr(self.credentials, "_expiry_time", None)
        ahead = datetime.now(UTC) + GOOD_FOR
        values = zip(KEYS, (found.access_key, found.secret_key, found.token), strict=True)
        given = {name: str(value) for name, value in values if value}
        return given, ahead if over is None else min(ahead, over.astimezone(UTC) - BEFORE)

    def renewed(self) -> dict[str, Any]:
        """Return the keys of today, as the store's library asks for them."""
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
    """Return what a profile sets, with the keys to which it leads, and what gives those of later.

    An open store asks for those when the ones that it has are nearly over.
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
    """Return why an open store has no keys any more, if that is what its library's error says."""
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
