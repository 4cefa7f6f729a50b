"""`blizzard files`: what landed on each day, and whether everything of it is in the table."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Annotated

import typer

from blizzard.cli.files.shown import FileRow, show_days, show_files
from blizzard.cli.output import One, chosen, load, looked_with, open_reader
from blizzard.cli.surroundings import Surroundings
from blizzard.inspect.files.report import DAYS, Question, Reconciler, Reconciliation
from blizzard.inspect.files.standing import FileStanding, FileState
from blizzard.log_questions import asks_fates, asks_refusal, asks_still_out
from blizzard.model.locations import source_location
from blizzard.model.settings import PipelineSettings
from lakebed.clock import Clock
from lakebed.dataclass import dataclass
from lakebed.locations import below
from lakebed.shown import typed
from lakebed.terminal.arguments import FAILED, Files, Folders, Outcome, Output, Shape
from lakebed.terminal.console import print_lines

MOST_LISTED = 20


class By(StrEnum):
    """What files are counted by."""

    DAY = "day"
    PARTITION = "partition"


def files_command(
    context: typer.Context,
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="PATH",
            help="A file or what paths begin with: below a source, or a URI. Its files are listed.",
            show_default=False,
        ),
    ] = None,
    files: Files = None,
    folders: Folders = None,
    pipeline: One = None,
    days: Annotated[
        list[str] | None,
        typer.Option(
            "--day",
            metavar="DAY",
            help="Only files that landed on this day (UTC): 2024-05-01, today or yesterday; "
            "repeatable.",
        ),
    ] = None,
    partition: Annotated[
        str | None,
        typer.Option(
            "--partition", metavar="VALUE", help="Only files of a partition, by what paths say."
        ),
    ] = None,
    by: Annotated[
        By | None, typer.Option("--by", help="What is counted together.", show_default="day")
    ] = None,
    states: Annotated[
        list[FileState] | None,
        typer.Option(
            "--state",
            metavar="STATE",
            help=f"List the files in this state: {', '.join(FileState)}; repeatable.",
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, metavar="COUNT", help="How many files are listed at most.")
    ] = MOST_LISTED,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 1 unless everything is in the table.")
    ] = False,
    output: Shape = Output.TEXT,
) -> None:
    """Show what landed on each day, and whether everything of it is in the table.

    With PATH or --state the files are listed. Nothing is written.
    """
    pipelines = chosen(load(files, folders), pipeline)
    clock = Surroundings.of(context).clock
    asked = _Asked(
        clock=clock,
        days=tuple(_day(day, clock.now()) for day in days or ()),
        partition=partition,
        by=by or (By.DAY if partition is None else By.PARTITION),
        states=frozenset(states or ()),
        path=path,
        limit=limit,
    )
    outcome = Outcome()
    everywhere: list[Reconciliation] = []
    for settings in pipelines:
        with outcome.of(settings.name):
            found = asked.tell(settings, output)
            everywhere += found
            troubled = any(one.errors for one in found)
            # A path may be one of another pipeline's sources.
            missing = check and (asked.misses(found) or (path is None and asked.lacks(found)))
            outcome.at_least(FAILED if troubled or missing else outcome.code)
    if check and path is not None and asked.lacks(everywhere):
        outcome.at_least(FAILED)
    if path is not None and not asked.met:
        raise typer.BadParameter(f"no source of the configuration has a path such as {path}")
    raise typer.Exit(outcome.code)


def _day(text: str, now: datetime) -> str:
    """Return a day as it is written in ISO 8601."""
    ago = {"today": 0, "yesterday": 1}.get(text)
    if ago is not None:
        return f"{now - timedelta(days=ago):%Y-%m-%d}"
    try:
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
            return date.fromisoformat(text).isoformat()
    except ValueError:
        pass
    raise typer.BadParameter(
        f"{text!r} is no day; write it as 2024-05-01, today or yesterday", param_hint="--day"
    )


@dataclass(slots=True, kw_only=True)
class _Asked:
    """What is asked of each pipeline."""

    clock: Clock
    days: tuple[str, ...]
    partition: str | None
    by: By
    states: frozenset[FileState]
    path: str | None
    limit: int
    met: bool = field(default=False)
    """Whether the path is one of a source's."""

    def tell(self, settings: PipelineSettings, output: Output) -> list[Reconciliation]:
        """Print the answer for one pipeline, and return it."""
        lists = self.path is not None or bool(self.states)
        told = []
        for question in self._questions(settings):
            self.met = True
            with looked_with(settings.name, output) as opens:
                reconciler = Reconciler(
                    settings,
                    opens,
                    self.clock,
                    fates=asks_fates(settings),
                    still_out=asks_still_out(settings),
                    refusal=asks_refusal(settings),
                )
                found, files = reconciler.reconcile_and_list(question, self._lists)
            told.append(found)
            if output is Output.JSON:
                print_lines(_rows(files, settings) if lists else [found])
            else:
                show_days(found)
                rows = list(_rows(files[: self.limit], settings))
                show_files(rows, more=len(files) - self.limit)
        return told

    def misses(self, found: Sequence[Reconciliation]) -> bool:
        """Whether something is still to come of files that landed."""
        groups = (group for one in found for group in one.groups)
        return any(group.landed and not group.complete for group in groups)

    def lacks(self, found: Sequence[Reconciliation]) -> bool:
        """Whether no file landed of a day, or of all that was asked about."""
        landed = {group.name for one in found for group in one.groups if group.landed}
        if self.by is By.DAY and self.days:
            return not landed.issuperset(self.days)
        is_narrowed = self.days or self.path is not None or self.partition is not None
        return bool(is_narrowed) and not landed

    def _lists(self, one: FileStanding) -> bool:
        """Whether a file is listed."""
        return one.state in self.states if self.states else self.path is not None

    def _questions(self, settings: PipelineSettings) -> Iterator[Question]:
        places: list[tuple[str | None, str]] = [(None, "")]
        if self.path is not None:
            places = list(_places(self.path, settings))
        for source, prefix in places:
            yield Question(
                by=self.by.value,
                days=self.days,
                prefix=prefix,
                source=source,
                partition=self.partition,
                most=max(DAYS, len(self.days)),
            )


def _places(path: str, settings: PipelineSettings) -> Iterator[tuple[str | None, str]]:
    """Yield the sources that a path may be of, and what paths below them begin with.

    It may be typed as it was printed.
    """
    path = typed(path) or path
    is_place = "://" in path or path.startswith(("/", "~"))
    head = path.partition(":")[0]
    named = head if head in {source.name for source in settings.sources} else None
    for source in settings.sources:
        if is_place:
            prefix = below(source.uri, path)
            if prefix is not None:
                is_folder = bool(prefix) and path.endswith("/")
                yield source.name, f"{prefix.rstrip('/')}/" if is_folder else prefix
        elif named in (None, source.name):
            yield source.name, path if named is None else path.partition(":")[2]


def _rows(files: Sequence[FileStanding], settings: PipelineSettings) -> Iterator[FileRow]:
    """Yield files in the form that is printed."""
    roots = {source.name: open_reader(source_location(source)) for source in settings.sources}
    for one in files:
        yield FileRow(
            pipeline=settings.name,
            uri=roots[one.source].describe(one.path),
            standing=one,
            day=one.day,
        )
