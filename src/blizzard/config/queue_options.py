"""Options of a queue: its own, or those of the store of its source. Pure."""

from collections.abc import Callable, Collection, Mapping
from importlib.util import find_spec

from pydantic import SecretStr

from lakebed.config.models import Source, plain


def own_options(source: Source) -> Mapping[str, SecretStr]:
    """Return what a queue is given itself."""
    return source.notifications.storage_options if source.notifications else {}


def named(options: Mapping[str, SecretStr], name_of: Callable[[str], str]) -> dict[str, str]:
    """Return options by the names that the code knows them by."""
    return {name_of(name): value for name, value in plain(options).items()}


def joined(
    source: Source,
    name_of: Callable[[str], str],
    *,
    credentials: Collection[str],
    others: Collection[str],
) -> dict[str, str]:
    """Return the options that hold for a queue: its own, or those of the store of its source.

    Credentials are of one place: those of the store are not joined to others.
    """
    own = named(own_options(source), name_of)
    store = named(source.storage_options, name_of)
    meant = others if set(credentials) & set(own) else (*credentials, *others)
    return {**{key: store[key] for key in meant if key in store}, **own}


def is_installed(package: str) -> bool:
    """Whether a package could be imported."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False  # Nor is the package that it would be in.
