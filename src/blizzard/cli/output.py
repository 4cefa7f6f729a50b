"""What the commands share: the configuration, readers, and how things are shown at 80 columns."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from blizzard.config import load as config
from blizzard.inspect import sample
from blizzard.model.files import Location
from blizzard.model.settings import BlizzardSettings, PipelineSettings
from lakebed.arguments import USAGE, usage_is_checked
from lakebed.storage.store import Reader

One = Annotated[
    str | None,
    typer.Option("-p", "--pipeline", metavar="NAME", help="Only this pipeline."),
]


def load(files: list[Path] | None, folders: list[Path] | None) -> BlizzardSettings:
    """Read the configuration, or end the program with every fault of it."""
    with usage_is_checked():
        return config.load(files or [], folders or [], os.environ, sample.proposal)


def chosen(settings: BlizzardSettings, name: str | None) -> tuple[PipelineSettings, ...]:
    """Give all pipelines of a configuration, or the one that is named."""
    if name is None:
        return settings.pipelines
    found = tuple(each for each in settings.pipelines if each.name == name)
    if not found:
        names = ", ".join(each.name for each in settings.pipelines)
        typer.echo(f"error: there is no pipeline {name!r}; there are: {names}", err=True)
        raise typer.Exit(USAGE)
    return found


def the_one(settings: BlizzardSettings, name: str | None) -> PipelineSettings:
    """Give the one pipeline that is meant; of several it must be said which."""
    found = chosen(settings, name)
    if len(found) > 1:
        names = ", ".join(each.name for each in found)
        typer.echo(f"error: say which pipeline with --pipeline; there are: {names}", err=True)
        raise typer.Exit(USAGE)
    return found[0]


def open_reader(location: Location) -> Reader:
    """Open a place to look only."""
    return Reader(location.uri, location.options)


def console() -> Console:
    """Print names and messages as they are: a file may be called `a[/b].ndjson`."""
    return Console(markup=False, highlight=False, emoji=False)


def say(to: Console, text: str) -> None:
    """Print a line of its own; a long one is left whole, so that it can be copied."""
    to.print(text, soft_wrap=True)


def columns(*names: str, numbers: Iterable[str] = (), wide: Iterable[str] = ()) -> Table:
    """Begin a table that fits 80 columns: what is wide is folded, the rest is not."""
    shown = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    right, folded = set(numbers), set(wide)
    for name in names:
        shown.add_column(
            name,
            justify="right" if name in right else "left",
            overflow="fold",
            no_wrap=name not in folded,
        )
    return shown


def add(table: Table, *cells: object) -> None:
    """Add a row of plain text."""
    table.add_row(*(Text("-" if cell is None else _shown(cell)) for cell in cells))


def _shown(cell: object) -> str:
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def second(at: datetime | None) -> str:
    """Show a time to the second, in UTC."""
    return "-" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def span(seconds: float) -> str:
    """Say a time span in its two largest units."""
    whole = int(seconds)
    for unit, size, smaller, part in (("d", 86_400, "h", 3600), ("h", 3600, "m", 60)):
        if whole >= size:
            return f"{whole // size}{unit} {whole % size // part}{smaller}"
    return f"{whole // 60}m {whole % 60}s" if whole >= 60 else f"{whole}s"


def plural(count: int, one: str, many: str | None = None) -> str:
    """Count things in words: `1 file`, `2 files`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def place(stage: str, line: int | None, field: str | None) -> str:
    """Say where a file failed: the stage and, as far as they are known, the line and the field."""
    known = (("line", line), ("field", field))
    return ", ".join((stage, *(f"{name} {at}" for name, at in known if at is not None)))


def print_line(value: object) -> None:
    """Print a value as one line of JSON; times are written in ISO 8601."""
    print(json.dumps(plain(value), ensure_ascii=False), flush=True)  # noqa: T201 - this is the program's output


def plain(value: Any) -> Any:  # noqa: ANN401 - JSON knows no one type
    """Turn a value into what JSON can say."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in value]
    if isinstance(value, Enum):
        return value.value
    return value.isoformat() if isinstance(value, datetime) else value
