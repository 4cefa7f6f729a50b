"""The configuration that a command is given."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lakebed.arguments import usage_is_checked
from lakebed.telemetry.logs import LogFormat

if TYPE_CHECKING:
    from penguin.model.settings import PenguinSettings, TableSettings


def settings(
    files: list[Path] | None, folders: list[Path] | None, shape: LogFormat = LogFormat.TEXT
) -> "PenguinSettings":
    """Load what a command is given; its faults end the program."""
    from penguin.config import load  # noqa: PLC0415 - help is printed without it

    with usage_is_checked(shape):
        return load.load(files or [], folders or [], os.environ, _refused_properties)


def tables(files: list[Path] | None, folders: list[Path] | None) -> "tuple[TableSettings, ...]":
    """Load the tables of what a command is given."""
    return settings(files, folders).tables


def _refused_properties(properties: Mapping[str, str]) -> Mapping[str, str]:
    from penguin.delta.table import refused_properties  # noqa: PLC0415 - only where it is asked

    return refused_properties(properties)
