"""Storage profiles: options by the beginning of a location, so that no section repeats them. Pure.

The profile with the longest prefix is used for a place. What a section sets itself wins over it,
option by option, in any spelling.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import SecretStr

from lakebed.config.faults import dotted
from lakebed.config.models import Document, KeyPath, StorageProfile, place_in, plain
from lakebed.config.section import Section
from lakebed.locations import Place
from lakebed.storage.options import OptionOrigin, StorageOptions
from lakebed.storage.settings import meant

Options = Mapping[str, SecretStr]
SomeSection = TypeVar("SomeSection", bound=Section)


def with_profiles(document: Document) -> Document:
    """Return the document in which every section has the options that are meant for its place."""
    return _placed(document, document.storage) if document.storage else document


def _placed(section: SomeSection, profiles: list[StorageProfile]) -> SomeSection:
    """Return a section, and those inside it, with the options of the profiles that fit."""

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
    """Return the options of a section, which know by which keys they were set.

    `place` is the key of the section's location, `named` that of its options.
    """
    keys = {name: dotted(key_path(document, (*section, named), name, options)) for name in options}
    origin = OptionOrigin(
        place=dotted((*section, place)), section=dotted((*section, named)), keys=keys
    )
    return StorageOptions(plain(options), origin)


def key_path(document: Document, section: KeyPath, name: str, options: Options) -> KeyPath:
    """Return where an option of a section was written: there, or in a profile."""
    for index, profile in enumerate(document.storage):
        # The very value, not one like it: the section may have repeated it.
        if profile.options.get(name) is options[name]:
            return ("storage", index, "options", name)
    return (*section, name)


def _merged(profiles: list[StorageProfile], uri: str, own: Options) -> dict[str, SecretStr]:
    place = place_in(uri, own)
    fitting = [profile for profile in profiles if _fits(profile, place)]
    if not fitting:
        return dict(own)
    given = {meant(name) for name in own}
    longest = max(fitting, key=lambda profile: _length(profile.prefix))
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
