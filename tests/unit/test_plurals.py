"""Sentences count as people do: 1 file, 2 files."""

import re
from dataclasses import MISSING, fields
from typing import Any

import pytest

from lakebed.telemetry.events import Event
from lakebed.units import plural
from tests.unit.test_pages import events

ONE_OF_MANY = re.compile(r"\b1 (\w+ )?(entries|files|units|rows|versions|records|ones)\b")
EXAMPLES: dict[Any, Any] = {int: 1, float: 1.0, str: "x", bool: True, tuple[str, ...]: ("x",)}


@pytest.mark.parametrize(("count", "told"), [(0, "0 files"), (1, "1 file"), (1234, "1,234 files")])
def test_things_are_counted(count: int, told: str):
    assert plural(count, "file") == told


def counted() -> dict[str, Event]:
    """Return the events that can be made of examples alone, each with one of everything."""
    found = {}
    for name, kind in sorted(events().items()):
        given = [
            each
            for each in fields(kind)  # type: ignore[arg-type]
            if each.type in EXAMPLES or each.default is each.default_factory is MISSING
        ]
        if all(each.type in EXAMPLES for each in given):
            found[name] = kind(**{each.name: EXAMPLES[each.type] for each in given})
    return found


@pytest.mark.parametrize("name", sorted(counted()))
def test_one_thing_is_told_as_one(name: str):
    """HOLES W42: no line of the log says "1 files"."""
    said = counted()[name].sentence()
    assert ONE_OF_MANY.search(said) is None, said
