"""Faults of a configuration and their messages, and storage profiles. Pure.

A profile has options for locations with a prefix, so that no section repeats them. The profile with
the longest prefix is used. Options of the section itself override it one by one, in any spelling.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_args, get_origin

from pydantic import SecretStr
from pydantic_core import ErrorDetails

from lakebed.config.models import Document, KeyPath, StorageProfile, place_in, plain
from lakebed.config.section import Section
from lakebed.locations import Place
from lakebed.storage.options import OptionOrigin, StorageOptions
from lakebed.storage.settings import meant


@dataclass(frozen=True, slots=True)
class ConfigFault:
    """One thing to fix, and where."""

    path: KeyPath
    message: str


def dotted(path: KeyPath) -> str:
    """Format a path: `schema.fields[2].type`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


_WORDS = {
    "missing": "is required",
    "greater_than": "must be greater than {gt:g}, not {value}",
    "less_than": "must be less than {lt:g}, not {value}",
    "less_than_equal": "must be {le:g} or less, not {value}",
    "greater_than_equal": "must be {ge:g} or greater, not {value}",
    "enum": "must be {expected}, not {quoted}",
    "string_too_short": "must not be empty",
    "string_type": "must be text, not {kind}",
    "list_type": "must be a list, not {kind}",
    "dict_type": "must be a section with keys of its own, not {kind}",
    "model_type": "must be a section with keys of its own, not {kind}",
    "value_error": "{error}",
}


def in_words(error: ErrorDetails, written: object, filled: object) -> str:
    """Return what is wrong with a value. It is quoted as written, variables not filled in."""
    if error["type"] == "extra_forbidden":
        return f"unknown key; {_nearest(error['loc'])}"
    found = value_at(written, error["loc"])
    kind = kind_of(found)
    value, quoted = (found, f"'{found}'") if kind == "text" else (kind, kind)
    facts = error.get("ctx", {}) | {"kind": kind, "value": value, "quoted": quoted}
    if "expected" in facts:
        facts["expected"] = facts["expected"].replace("'", "")
    number = "a whole number" if error["type"].startswith("int_") else "a number"
    words = _WORDS.get(error["type"], f"must be {number}, not {{quoted}}").format(**facts)
    secret = value_at(filled, error["loc"])
    if isinstance(secret, str) and isinstance(found, str) and secret and secret != found:
        # A check quotes its input, and a variable may hold a secret.
        words = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", lambda _: found, words)
    return words


def value_at(tree: Any, path: KeyPath) -> object:  # noqa: ANN401
    """Return the value at a path; None without one."""
    for part in path:
        try:
            tree = tree[part]
        except (LookupError, TypeError):
            return None
    return tree


def kind_of(value: object) -> str:
    """Return the kind of a YAML value, in words."""
    match value:
        case None | "":
            return "empty"
        case dict():
            return "a section"
        case list():
            return "a list"
        case _:
            return "text"


def _nearest(path: KeyPath) -> str:
    """Suggest the key that was probably meant, or list all possible keys."""
    section: type[Section] = Document
    parts = iter(path[:-1])
    for part in parts:
        section.model_rebuild()  # Nested sections refer to their types by name.
        annotation = section.model_fields[section.attributes()[str(part)]].annotation
        if get_origin(annotation) in (dict, list):
            next(parts)
        section = next(
            kind
            for kind in (annotation, *get_args(annotation))
            if isinstance(kind, type) and issubclass(kind, Section)
        )
    close = difflib.get_close_matches(str(path[-1]), section.attributes(), n=1)
    return (
        f"did you mean {close[0]}?"
        if close
        else f"known keys are {', '.join(section.attributes())}"
    )


Options = Mapping[str, SecretStr]
SomeSection = TypeVar("SomeSection", bound=Section)


def with_profiles(document: Document) -> Document:
    """Return the document with the options of profiles merged into every section."""
    return _placed(document, document.storage) if document.storage else document


def _placed(section: SomeSection, profiles: list[StorageProfile]) -> SomeSection:
    """Return a section, and those inside it, with the options of matching profiles."""

    def inner(value: Any) -> Any:  # noqa: ANN401 - any value of a section
        if isinstance(value, Section):
            return _placed(value, profiles)
        if isinstance(value, dict):
            return {key: inner(each) for key, each in value.items()}
        return value

    changed = {name: inner(getattr(section, name)) for name in type(section).model_fields}
    if section.located is not None:
        options, location = section.located
        if (uri := getattr(section, location)) is not None:
            changed[options] = _merged(profiles, uri, changed[options])
    return section.model_copy(update=changed)


def options_at(
    document: Document,
    section: KeyPath,
    options: Options,
    *,
    place: str,
    named: str = "storage_options",
) -> StorageOptions:
    """Return the options of a section, with the keys that set them.

    `place` is the key of the section's location, `named` that of its options.
    """
    keys = {name: dotted(key_path(document, (*section, named), name, options)) for name in options}
    origin = OptionOrigin(
        place=dotted((*section, place)), section=dotted((*section, named)), keys=keys
    )
    return StorageOptions(plain(options), origin)


def key_path(document: Document, section: KeyPath, name: str, options: Options) -> KeyPath:
    """Return the path of an option: in its section, or in a profile."""
    for index, profile in enumerate(document.storage):
        # Identity, not equality: the section may have repeated the value.
        if profile.options.get(name) is options[name]:
            return ("storage", index, "options", name)
    return (*section, name)


def _merged(profiles: list[StorageProfile], uri: str, own: Options) -> dict[str, SecretStr]:
    place = place_in(uri, own)
    matching = [profile for profile in profiles if _fits(profile, place)]
    if not matching:
        return dict(own)
    given = {meant(name) for name in own}
    longest = max(matching, key=lambda profile: _length(profile.prefix))
    shared = {name: value for name, value in longest.options.items() if meant(name) not in given}
    return {**shared, **own}


def _fits(profile: StorageProfile, place: Place) -> bool:
    outer = place_in(profile.prefix, profile.options)
    if not outer.bucket:
        return outer.scheme == place.scheme
    return outer.holds(place)


def _length(prefix: str) -> tuple[bool, int]:
    place = place_in(prefix, {})
    return (bool(place.bucket), len(place.folders))
