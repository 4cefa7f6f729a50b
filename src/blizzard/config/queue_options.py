"""Options of a queue: its own, or those of the store of its source. Pure."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from urllib.parse import urlsplit

from pydantic import SecretStr

from lakebed.config.faults import Fault
from lakebed.config.models import KeyPath, Source, plain
from lakebed.storage.options import StorageOptions, bare
from lakebed.storage.settings import SPELLINGS


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """The options of one service's queues: which there are, and how people write them."""

    credentials: tuple[str, ...]
    others: tuple[str, ...]
    name_of: Callable[[str], str]
    """Returns the name by which the code knows an option."""
    written: tuple[str, ...]
    """The names to use, for those who used another."""
    allow_http: str
    """As it is written."""

    def own(self, source: Source) -> dict[str, str]:
        """Return what a queue is given itself."""
        return self._named(_own(source))

    def of(self, source: Source) -> dict[str, str]:
        """Return the options that hold for a queue: its own, or those of the store of its source.

        Credentials are of one place: those of the store are not joined to others.
        """
        own, store = self.own(source), self._named(source.storage_options)
        meant = self.others
        if not set(self.credentials) & set(own):
            meant = (*self.credentials, *self.others)
        return {**{key: store[key] for key in meant if key in store}, **own}

    def credentials_of(self, source: Source) -> StorageOptions:
        """Return what a queue is opened with."""
        options = self.of(source)
        return StorageOptions({key: options[key] for key in self.credentials if key in options})

    def faults(self, here: KeyPath, source: Source, queue: str) -> Iterator[Fault]:
        """Yield options that there are not, and an address that is not encrypted unasked."""
        for name in _own(source):
            if self.name_of(name) not in (*self.credentials, *self.others):
                fault = f"unknown option of a queue; there are {', '.join(self.written)}"
                yield Fault((*here, "storage_options", name), fault)
        allowed = self.of(source).get("allow_http", "").lower() == "true"
        if urlsplit(queue).scheme == "http" and not allowed:
            yield Fault(
                (*here, "queue"),
                f"is http://, which is not encrypted; to allow it set {self.allow_http}: true in "
                "storage_options",
            )

    def _named(self, options: Mapping[str, SecretStr]) -> dict[str, str]:
        return {self.name_of(name): value for name, value in plain(options).items()}


def _own(source: Source) -> Mapping[str, SecretStr]:
    return source.notifications.storage_options if source.notifications else {}


def as_stores_spell(scheme: str) -> Callable[[str], str]:
    """Return what names the options of a queue as those of stores of a scheme are named."""
    names = {
        bare(name.lower()): bare(canonical)
        for canonical, spellings in SPELLINGS[scheme].items()
        for name in spellings
    }

    def name_of(name: str) -> str:
        plain_name = bare(name.lower())
        return names.get(plain_name, plain_name)

    return name_of


def package_faults(here: KeyPath, module: str, package: str, extra: str) -> Iterator[Fault]:
    """Yield what must be installed, where a module could not be imported."""
    if not _is_installed(module):
        way_out = f"needs the package {package}: pip install 'blizzard-penguin[{extra}]'"
        yield Fault(here, way_out, near=())


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False  # Nor is the package that it would be in.
