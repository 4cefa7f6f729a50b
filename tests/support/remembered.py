"""What costs much to build and is the same each time, built once in a process of tests.

A program builds its commands once and reads its configuration once; tests run hundreds of
commands in one process. Both depend on what they are given alone.
"""

from copy import deepcopy
from functools import cache, lru_cache
from typing import Any

import typer.testing

from lakebed.config import files

MOST_TEXT = 20_000
"""Characters of the longest configuration that is remembered."""


def remember() -> None:
    """Build the commands of an app, and parse the text of a configuration, once each."""
    built_once = cache(typer.testing._get_command)  # type: ignore[attr-defined]
    typer.testing._get_command = built_once  # type: ignore[attr-defined]
    parse = files.parsed
    known = lru_cache(maxsize=64)(parse)

    def parsed(text: str) -> Any:
        if len(text) > MOST_TEXT:
            return parse(text)
        node, content = known(text)
        return node, deepcopy(content)

    files.parsed = parsed
