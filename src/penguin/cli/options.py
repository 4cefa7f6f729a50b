"""The configuration that a command is given."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import typer

from lakebed.arguments import usage_is_checked
from penguin.config import load
from penguin.model.settings import PenguinSettings, TableSettings


def checked(files: Sequence[Path], folders: Sequence[Path]) -> PenguinSettings:
    """Load a configuration; its faults end the program."""
    with usage_is_checked():
        return load.load(files, folders, os.environ, _refused_properties)


def _refused_properties(properties: Mapping[str, str]) -> Mapping[str, str]:
    from penguin.delta.table import refused_properties  # noqa: PLC0415 - only where it is asked

    return refused_properties(properties)


def settings(
    _context: typer.Context, files: list[Path] | None, folders: list[Path] | None
) -> PenguinSettings:
    """Load what a command is given."""
    return checked(files or [], folders or [])


def tables(
    context: typer.Context, files: list[Path] | None, folders: list[Path] | None
) -> tuple[TableSettings, ...]:
    """Load the tables of what a command is given."""
    return settings(context, files, folders).tables
