"""The configuration that a command is given."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lakebed.telemetry.levels import LogFormat
from lakebed.terminal.arguments import Output, usage_is_checked

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakebed.storage.store import Store
    from penguin.model.settings import PenguinSettings, TableSettings

    Opens = Callable[[], Store | None]


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


@contextmanager
def looked_with(table: "TableSettings", output: Output) -> "Iterator[Opens]":
    """Yield what opens a table's directory; a person at a terminal sees how far a long look is."""
    from lakebed.storage.store import is_there  # noqa: PLC0415
    from lakebed.terminal.progress_bars import CountedStore, looking  # noqa: PLC0415 - it brings rich along

    with looking(table.name, shown=output is Output.TEXT and sys.stderr.isatty()) as looked:
        yield (
            lambda: (
                CountedStore(table.table_uri, table.storage_options, looked)
                if is_there(table.table_uri)
                else None
            )
        )


def _refused_properties(properties: Mapping[str, str]) -> Mapping[str, str]:
    from penguin.delta.table import refused_properties  # noqa: PLC0415 - only where it is asked

    return refused_properties(properties)
