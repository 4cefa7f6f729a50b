"""A store that dies at a chosen call and answers nothing from then on."""

from dataclasses import dataclass
from typing import Any

from lakebed.storage.store import Store

CALLS = (
    *("get", "fetch", "head", "part", "objects", "folders", "level"),
    *("create", "replace", "upload", "move", "delete", "sync"),
)


class Died(BaseException):
    """The process is gone. No `except Exception` may outlive it."""


@dataclass
class Fate:
    """Which call is the last, counted over all stores of one life."""

    call: int
    after: bool = False
    """Whether the call still reaches the store, and only its answer is lost."""
    calls: int = 0
    died: bool = False

    @classmethod
    def none(cls) -> "Fate":
        return cls(call=0)


def dying(store: Store, fate: Fate) -> Store:
    """Wrap every call of a store, so that the fated one is the last."""

    def wrap(name: str) -> Any:
        original = getattr(store, name)

        def call(*arguments: Any, **named: Any) -> Any:
            if fate.died:
                raise Died
            fate.calls += 1
            if fate.calls == fate.call:
                fate.died = True
                if fate.after:
                    original(*arguments, **named)
                raise Died
            return original(*arguments, **named)

        return call

    for name in CALLS:
        setattr(store, name, wrap(name))
    return store
