"""The small tables of a ledger, which are held in memory. Pure."""

from collections.abc import Iterator
from typing import Any, TypeVar

from lakebed.documents.reading import adapter_of

Value = TypeVar("Value")


class LedgerTable(dict[str, Value]):
    """A small table of a ledger: values in memory, and the keys changed since the last segment."""

    def __init__(self, kind: type[Value]) -> None:
        """`kind` is the type of the values, as pydantic reads and writes them."""
        super().__init__()
        self._kind = kind
        self.changed: set[str] = set()

    def __setitem__(self, key: str, value: Value) -> None:
        super().__setitem__(key, value)
        self.changed.add(key)

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        self.changed.add(key)

    def pop(self, key: str, *default: Any) -> Any:  # noqa: ANN401
        """Remove a value and return it, or the default where there is none."""
        if key in self:
            self.changed.add(key)
        return super().pop(key, *default)

    def changes(self) -> Iterator[tuple[str, object]]:
        """Yield the changed keys with their values as JSON has them; None for what is gone."""
        dump = adapter_of(self._kind).dump_python
        for key in self.changed:
            value = self.get(key)
            yield key, None if value is None else dump(value, mode="json", exclude_defaults=True)

    def load(self, key: str, value: object) -> None:
        """Take over a value as a segment has it."""
        super().__setitem__(key, adapter_of(self._kind).validate_python(value))
