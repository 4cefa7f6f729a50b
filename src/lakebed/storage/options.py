"""How a store is reached: region, endpoint, credentials. Its values are never shown."""

from collections.abc import Mapping

SHORTEST_SECRET = 4
"""Shorter values are switches such as `true`, and blanking them would garble every message."""


class StorageOptions:
    """Options of a store, whose values appear only where `plain` is called.

    It is no Mapping on purpose: handing it to a logger, a message or `dict` reveals nothing. It
    pickles with its values, since executors open the store themselves.
    """

    __slots__ = ("_options",)

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self._options = tuple(sorted((options or {}).items()))

    def plain(self) -> dict[str, str]:
        """Return the options with their values, for the store alone."""
        return dict(self._options)

    def redact(self, text: str) -> str:
        """Blank out the values in a library's text, which may quote what it was given."""
        # The longest first: a short value may be part of a long one and would hide its beginning.
        for value in sorted((value for _name, value in self._options), key=len, reverse=True):
            if len(value) >= SHORTEST_SECRET:
                text = text.replace(value, "***")
        return text

    def __reduce__(self) -> tuple[type["StorageOptions"], tuple[dict[str, str]]]:
        return StorageOptions, (self.plain(),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorageOptions) and self._options == other._options

    def __hash__(self) -> int:
        return hash(self._options)

    def __repr__(self) -> str:
        return f"StorageOptions({', '.join(f'{name}=***' for name, _ in self._options)})"
