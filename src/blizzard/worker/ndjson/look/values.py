"""A look at JSON values: what they look like, for those who want to know what columns they need."""

import json
from collections.abc import Iterable
from typing import Any, NoReturn

from blizzard.model.seen import Seen
from blizzard.worker.ndjson.look.gather import Gathered
from blizzard.worker.ndjson.values import Number


def look(values: Iterable[Any]) -> Seen:
    """Return what values look like that were parsed by `parse`."""
    gathered = Gathered()
    for value in values:
        gathered.add(value)
    return gathered.seen()


def parse(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Parse JSON so that the way a number is written stays known; a ValueError if it is none."""
    return _PARSER.decode(text)


def parse_next(text: str, at: int) -> tuple[Any, int]:
    """Parse the JSON value that begins at a place of a text; return it, and where it ends."""
    return _PARSER.raw_decode(text, at)


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)


_PARSER: json.JSONDecoder = json.JSONDecoder(
    parse_int=Number, parse_float=Number, parse_constant=_refuse
)
