"""Something happens in the very moment before a method runs."""

from collections.abc import Callable
from typing import Any

import pytest


def overtake(
    monkeypatch: pytest.MonkeyPatch, where: type, name: str, meanwhile: Callable[[], object]
) -> list[bool]:
    """Let something happen once, right before a method; what is returned is empty once it has."""
    goes_on, turns = getattr(where, name), [True]

    def overtaken(self: object, *given: Any, **named: Any) -> Any:
        if turns:
            turns.clear()
            meanwhile()
        return goes_on(self, *given, **named)

    monkeypatch.setattr(where, name, overtaken)
    return turns
