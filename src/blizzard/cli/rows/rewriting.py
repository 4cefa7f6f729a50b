"""One way to run the commands that rewrite data files: plan or apply, commit, and report."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

import typer

from blizzard.cli.output import load, looked_at, looked_with, tables_of, the_one, written_before
from blizzard.cli.surroundings import Surroundings
from blizzard.events import SparkStarting
from blizzard.execute.runner import Rewriter, Runner
from blizzard.ingest import Ingest
from blizzard.log_questions import (
    asks_columns,
    open_reader,
    table_entry,
    table_rules,
)
from blizzard.model.files import SourceFile
from blizzard.model.locations import OpenReader, sink_location
from blizzard.model.rewriting import ActiveFile
from blizzard.model.settings import BlizzardSettings, PipelineSettings
from blizzard.renewal import Renew, Renewed
from blizzard.rewrite.promote import SchemaCheck
from blizzard.rewrite.replace import renew
from blizzard.service import SPARK_SAID, RenewOf, ServiceRunner
from lakebed.clock import Clock
from lakebed.storage.store import Reader, Store
from lakebed.telemetry.events import Emit
from lakebed.telemetry.levels import LogFormat, LogLevel
from lakebed.telemetry.logs import log_events
from lakebed.terminal.arguments import Files, Folders, Output, ends_on_error, exit_code_of
from lakebed.types import Commit
from penguin import inline
from penguin.model.settings import TableSettings

if TYPE_CHECKING:
    from lakebed.terminal.progress_bars import Looked

REST_SECS = 30.0
"""How long changed files wait before it is tried again to replace their rows."""


class Outcome(Protocol):
    """What a command has done: the number of its entry, or None."""

    @property
    def entry(self) -> int | None:
        """Return the entry that it appended."""


Done = TypeVar("Done", bound=Outcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFileRow:
    """One data file; `rows` are all that are in it."""

    path: str
    rows: int | None
    bytes: int


def file_rows(files: Sequence[ActiveFile]) -> tuple[DataFileRow, ...]:
    """Return data files as JSON has them."""
    return tuple(DataFileRow(path=one.path, rows=one.rows, bytes=one.size) for one in files)


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteCommand:
    """A command that rewrites data files of one pipeline's table."""

    loaded: BlizzardSettings
    settings: PipelineSettings
    around: Surroundings
    output: Output
    table: TableSettings | None

    @classmethod
    @contextmanager
    def of(
        cls,
        context: typer.Context,
        files: Files,
        folders: Folders,
        pipeline: str | None,
        output: Output,
    ) -> Iterator[Self]:
        """Yield the command; an error inside ends the program with its exit code."""
        loaded = load(files, folders)
        settings = the_one(loaded, pipeline)
        with ends_on_error(settings.name, exit_code_of), written_before(settings):
            table = table_entry(settings, tables_of(loaded, files, folders))
            yield cls(
                loaded=loaded,
                settings=settings,
                around=Surroundings.of(context),
                output=output,
                table=table,
            )

    def run(
        self,
        *,
        sure: bool,
        plan: Callable[[OpenReader, Reader], Done],
        apply: "Callable[[Store, ServiceRunner, Looked], Done]",
    ) -> Done:
        """Apply the command and commit its entry; if the operator is not sure, only plan it."""
        from lakebed.terminal.progress_bars import CountedStore  # noqa: PLC0415 - it brings rich along

        name, place = self.settings.name, sink_location(self.settings)
        if not sure:
            with looked_with(name, self.output) as opens:
                return plan(opens, opens(place))
        with (
            looked_at(name, self.output) as looked,
            rewriter(self.loaded, self.around, write=looked.write) as runner,
        ):
            done = apply(CountedStore(place.uri, place.options, looked), runner, looked)
        if done.entry is not None and self.settings.sink.commit is Commit.INLINE:
            commit(self.settings, self.table, self.around)
        return done


@contextmanager
def rewriter(
    loaded: BlizzardSettings,
    around: Surroundings,
    *,
    write: Callable[[str], None] | None = None,
) -> Iterator[ServiceRunner]:
    """Yield what rewrites files; Spark starts with the first of them, and is stopped at the end.

    `write` takes the lines of the log where something else is drawn on the terminal.
    """
    emit = log_events(LogLevel.INFO, LogFormat.TEXT, write=write)
    runner = around.make_runner(
        loaded.spark,
        starting=lambda: emit(SparkStarting(master=loaded.spark.master)),
        stop_requested=lambda: around.stop.requested,
        heard=lambda _report: None,
        unreached=lambda _host, _port: None,
        said=lambda line, severity: emit(SPARK_SAID[severity](line=line)),
    )
    try:
        yield runner
    finally:
        runner.stop()


def ingest_of(
    loaded: BlizzardSettings, settings: PipelineSettings, runner: Runner, clock: Clock, emit: Emit
) -> Ingest:
    """Return what reads source objects that supersede rows."""
    return Ingest(
        settings=settings,
        runner=runner,
        of_table=asks_columns(settings),
        clock=clock,
        emit=emit,
        total_concurrency=loaded.total_concurrency,
    )


def renews(clock: Clock) -> RenewOf:
    """Return what puts new content in the place of rows, for the pipelines of a run."""

    def renew_of(
        loaded: BlizzardSettings, settings: PipelineSettings, runner: Runner, emit: Emit
    ) -> Renew:
        ingest = ingest_of(loaded, settings, runner, clock, emit)
        rested = -REST_SECS
        if not isinstance(runner, Rewriter):
            raise TypeError("this runner rewrites no data files")

        def try_it(store: Store, files: Sequence[SourceFile]) -> Renewed:
            nonlocal rested
            now = clock.seconds()
            # Whoever waits for penguin need not read all journals every second.
            if rested <= now < rested + REST_SECS:
                return Renewed()
            renewed = renew(store, files, runner, ingest, open_reader)
            rested = now if renewed.waits is not None else -REST_SECS
            return renewed

        return try_it

    return renew_of


def commit(settings: PipelineSettings, table: TableSettings | None, around: Surroundings) -> None:
    """Commit the entry, as a batch of this pipeline would: no penguin is expected to."""
    committer = inline.committer(
        table,
        settings.sink.table_uri,
        settings.sink.storage_options,
        emit=log_events(LogLevel.WARN, LogFormat.TEXT),
        clock=around.clock,
        pipeline=settings.name,
    )
    committer()
    committer.finish()


def schema_check(settings: PipelineSettings, table: TableSettings | None = None) -> SchemaCheck:
    """Return the check whether penguin would change the table to a schema, by its settings."""
    rules, mode_is_known = table_rules(settings, table)
    return partial(inline.check_schema, rules, mode_is_known=mode_is_known)
