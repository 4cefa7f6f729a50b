"""What the commands share: the configuration, the pipelines that are meant, readers."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from blizzard.cli.options import One as One  # noqa: PLC0414 - it comes with the others
from blizzard.config import load as config
from blizzard.log_questions import TableOf
from blizzard.log_questions import open_reader as open_reader  # noqa: PLC0414 - the commands' own
from blizzard.model.locations import OpenReader
from blizzard.model.settings import BlizzardSettings, PipelineSettings
from lakebed.config.files import Given
from lakebed.errors import ConfigInvalid, ObjectMissing
from lakebed.storage.store import local_path
from lakebed.telemetry.levels import LogFormat
from lakebed.terminal.arguments import USAGE, Output, usage_is_checked
from lakebed.terminal.console import say_error
from penguin import inline
from penguin.config import load as penguin_config
from penguin.model.settings import TableSettings

if TYPE_CHECKING:
    from lakebed.terminal.progress_bars import Looked


def load(
    files: list[Path] | None, folders: list[Path] | None, shape: LogFormat = LogFormat.TEXT
) -> BlizzardSettings:
    """Read the configuration, or end the program with every fault of it."""
    with usage_is_checked(shape):
        return config.load(files or [], folders or [], os.environ)


def chosen(
    settings: BlizzardSettings, name: str | None, shape: LogFormat = LogFormat.TEXT
) -> tuple[PipelineSettings, ...]:
    """Return all pipelines of a configuration, or the one that is named."""
    if name is None:
        return settings.pipelines
    found = tuple(each for each in settings.pipelines if each.name == name)
    if not found:
        names = ", ".join(each.name for each in settings.pipelines)
        with usage_is_checked(shape):
            raise ConfigInvalid([f"there is no pipeline {name!r}; there are: {names}"])
    return found


def the_one(settings: BlizzardSettings, name: str | None) -> PipelineSettings:
    """Return the one pipeline that is meant; if there are several, it has to be named."""
    found = chosen(settings, name)
    if len(found) > 1:
        names = ", ".join(each.name for each in found)
        say_error(f"error: name the pipeline with --pipeline; there are: {names}")
        raise typer.Exit(USAGE)
    return found[0]


def tables_of(
    settings: BlizzardSettings, files: Sequence[Given] | None, folders: list[Path] | None
) -> TableOf:
    """Return the `tables:` entry of a pipeline: how blizzard commits itself, or penguin does."""

    def table_of(pipeline: str) -> TableSettings | None:
        name = settings.tables.get(pipeline)
        if name is None:
            return None
        tables = penguin_config.load(
            files or [], folders or [], os.environ, inline.refused_properties
        ).tables
        return next(each for each in tables if each.name == name)

    return table_of


@contextmanager
def written_before(settings: PipelineSettings) -> Iterator[None]:
    """Say of a table whose folder is not there that no batch has been journaled yet."""
    try:
        yield
    except ObjectMissing as missing:
        folder = local_path(settings.sink.table_uri)
        if folder is None or folder.exists():
            raise
        raise ObjectMissing(
            "no batch has been journaled yet: nothing has been written to this table",
            path=settings.sink.table_uri,
        ) from missing


@contextmanager
def looked_at(what: str, output: Output) -> "Iterator[Looked]":
    """Yield what a look is counted in; a person at a terminal sees how far a long one is."""
    from lakebed.terminal.progress_bars import looking  # noqa: PLC0415 - it brings rich along

    with looking(what, shown=output is Output.TEXT and sys.stderr.isatty()) as looked:
        yield looked


@contextmanager
def looked_with(what: str, output: Output) -> Iterator[OpenReader]:
    """Yield what opens readers; a person at a terminal sees how far a long look is."""
    from lakebed.terminal.progress_bars import CountedReader  # noqa: PLC0415 - it brings rich along

    with looked_at(what, output) as looked:
        yield lambda place: CountedReader(place.uri, place.options, looked)


def place(stage: str, line: int | None, field: str | None) -> str:
    """Return where a file failed: the stage and, where they are known, the line and the field."""
    known = (("line", line), ("field", field))
    return ", ".join((stage, *(f"{name} {at}" for name, at in known if at is not None)))
