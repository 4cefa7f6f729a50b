"""The base of configuration sections, and checks of locations. Pure."""

import difflib
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator

from lakebed.locations import SAME_SCHEME, place_of
from lakebed.units import mebibytes

Settings = TypeVar("Settings")


def _boolean(value: object) -> object:
    """Accept true and false, also as text."""
    known = {"true": True, "false": False}
    if str(value).lower() not in known:
        raise ValueError("must be true or false")
    return known[str(value).lower()]


Text = Annotated[str, Field(min_length=1)]
Flag = Annotated[bool, BeforeValidator(_boolean)]


class Section(BaseModel):
    """A closed section: an unknown key is a fault. A key without a value counts as not given."""

    # Built with the first document that is read: a section that is part of others would otherwise
    # be built again for each of them.
    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, defer_build=True
    )

    located: ClassVar[tuple[str, str] | None] = None
    """The keys of its storage options and of the location that they are for, if it has any."""

    @model_validator(mode="before")
    @classmethod
    def _drop_empty_keys(cls, value: Any) -> Any:  # noqa: ANN401 - any YAML value
        if not isinstance(value, Mapping):
            return value
        known = cls.attributes()
        return {key: item for key, item in value.items() if item is not None or key not in known}

    @classmethod
    def attributes(cls) -> dict[str, str]:
        """Return the attribute of each YAML key."""
        return {field.alias or name: name for name, field in cls.model_fields.items()}


def settings_of(kind: type[Settings], section: Section, **given: Any) -> Settings:  # noqa: ANN401 - any field
    """Build settings from a section; a field that is not `given` takes the key of its name.

    `x_secs` and `x_bytes` are also keys of the field `x`, and so is `x_mb`, which becomes bytes.
    Lists become tuples, and secrets plain text.
    """
    for field in fields(kind):  # type: ignore[arg-type]
        for unit in ("", "_secs", "_bytes", "_mb"):
            key = f"{field.name}{unit}"
            if field.name not in given and key in type(section).model_fields:
                value = getattr(section, key)
                given[field.name] = mebibytes(value) if unit == "_mb" else _plain(value)
    return kind(**given)


def _plain(value: Any) -> Any:  # noqa: ANN401 - any value of a section
    match value:
        case SecretStr():
            return value.get_secret_value()
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case list():
            return tuple(value)
    return value


SCHEMES = ("file", "s3", "gs", "az", "abfss", "https")
"""The documented schemes; those of SAME_SCHEME are aliases."""
_ONE_SLASH = re.compile(r"([A-Za-z][A-Za-z0-9]*):(?!//)/?(.*)")


def source_location(text: str) -> str:
    """Return a location that may contain the wildcards `*`, `?` and `[…]`."""
    for after in text.split("?")[1:]:
        if "=" in after.partition("/")[0] and "://" in text:
            # This looks like a signature, not like a pattern.
            return location(text)
    # A private character replaces `?` while the rest is checked.
    stand_in = "\ue000"
    return location(text.replace("?", stand_in)).replace(stand_in, "?")


def location(text: str) -> str:
    """Return a URI or local path without trailing slashes and with `~` expanded.

    A ValueError says how to spell it. It repeats no login, which may be a secret.
    """
    if text.lower().startswith("file:/") and "://" not in text:
        text = f"file://{text[len('file:') :]}"  # RFC 8089 allows one slash as well as three.
    scheme, separator, rest = text.partition("://")
    if not separator:
        return _no_uri(text)
    scheme = scheme.lower()
    host, _, path = rest.partition("/")
    if scheme not in (*SCHEMES, *SAME_SCHEME):
        raise ValueError(_other_scheme(scheme, host))
    if scheme == "file" and host:
        raise ValueError("must have three slashes and a full path, as in file:///data/events")
    if scheme != "file" and not host:
        raise ValueError(f"names no bucket or container after {scheme}://")
    _check_login(scheme, host)
    if scheme != "file":
        _check_rest(rest, path)
    if scheme == "https" and place_of(text).scheme == "https":
        raise ValueError(_other_store(scheme, host))
    return f"{scheme}://{rest.rstrip('/') or ('/' if scheme == 'file' else '')}"


def _check_login(scheme: str, host: str) -> None:
    """Refuse credentials; only Azure has a container before the `@`."""
    login, at, _ = host.rpartition("@")
    if ":" in login:
        raise ValueError("must not hold a password; put it into storage_options")
    if at and SAME_SCHEME.get(scheme, scheme) != "az":
        raise ValueError("must not hold a key; put it into storage_options")


def _check_rest(rest: str, path: str) -> None:
    """Refuse characters that no path of a bucket has."""
    if "?" in rest or "#" in rest:
        raise ValueError("must not hold ? or #; put keys and signatures into storage_options")
    if "//" in f"/{path}".rstrip("/"):
        raise ValueError("must not have two slashes in a row after the bucket; write one")


def prefix(text: str) -> str:
    """Return a prefix of store locations: a scheme, a bucket, or a folder in it."""
    scheme = text.strip().lower().removesuffix("://")
    if text.strip().endswith("://") and scheme in (*SCHEMES[1:-1], *SAME_SCHEME):
        return f"{scheme}://"
    place = location(text)
    if place_of(place).scheme == "file":
        raise ValueError("must be that of a store, as in s3://bucket/; a local disk has no options")
    return place


def _no_uri(text: str) -> str:
    """Return a local path; refuse a misspelled URI."""
    found = _ONE_SLASH.fullmatch(text)
    if found and found[1].lower() in (*SCHEMES, *SAME_SCHEME, "http"):
        raise ValueError(f"must have two slashes after {found[1]}:, as in {found[1].lower()}://…")
    return local(text)


def _other_scheme(scheme: str, host: str) -> str:
    if scheme == "http":
        return _other_store(scheme, host)
    known = ", ".join(f"{name}://" for name in SCHEMES)
    near = difflib.get_close_matches(scheme, SCHEMES[:-1], n=1, cutoff=0.5)
    meant = f"; did you mean {near[0]}://?" if near else ""
    return f"must be a local path or start with one of {known}{meant}"


def _other_store(scheme: str, host: str) -> str:
    """Return what to write for the address of a store of one's own."""
    allowed = " and AWS_ALLOW_HTTP: true" if scheme == "http" else ""
    return (
        "is not the address of a bucket of Amazon or Google or of a container of Azure (https://, "
        "without a port); for another store write s3://bucket/folder, and set "
        f"AWS_ENDPOINT: {scheme}://{host.rpartition('@')[2]}{allowed} in storage_options"
    )


def local(text: str) -> str:
    """Return a local path without trailing slashes and with `~` expanded."""
    if text.startswith("~"):
        try:
            text = str(Path(text).expanduser())
        except RuntimeError:
            raise ValueError("starts with ~, and there is no such home folder") from None
    return text.rstrip("/") or "/"
