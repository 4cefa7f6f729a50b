"""Profiles of AWS: keys and a region by name, in the files of `~/.aws` that its programs share.

The store's libraries do not agree on them: one does not read them, the other finds its own. So they
are read here, and every library is given the keys. Nothing of a file's content is in a message.
"""

import configparser
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

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
"""What a profile has instead of keys: ways to get some, which a library of AWS follows."""

NOT_THERE = "names a profile that is in neither of the files of ~/.aws"
NO_KEYS = (
    "names a profile without keys of its own; export its keys "
    "(aws configure export-credentials --format env), or let the machine have a role"
)


class ProfileUnusable(Exception):
    """A profile that is not there, cannot be read or has no keys; the message is a fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a profile sets, by the names that the store's libraries expect."""

    values: Mapping[str, str] = field(default_factory=dict)
    other_way: str = ""
    """What it has instead of keys."""

    @property
    def has_keys(self) -> bool:
        """Whether it has a whole key."""
        return all(self.values.get(name) for name in KEYS[:2])


def named(name: str, environment: Mapping[str, str]) -> Profile:
    """Return the profile of a name, which has keys or leads to some; ProfileUnusable otherwise."""
    found = read(name, environment)
    if found is None:
        raise ProfileUnusable(NOT_THERE)
    if not found.has_keys and not found.other_way:
        raise ProfileUnusable(NO_KEYS)
    return found


def read(name: str, environment: Mapping[str, str]) -> Profile | None:
    """Read a profile from both files; None if neither has it. Keys of the credentials file win."""
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
    """Read a file of profiles; one that is not there has none."""
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
