"""Run the commands that rewrite data files: plan or apply, commit, and report."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from blizzard.cli.call import PipelineCall
from blizzard.events import SparkStarting
from blizzard.execute.runner import ServiceRunner
from blizzard.execute.spark.jvm import SPARK_SAID
from blizzard.model.rewriting import ActiveFile
from blizzard.model.settings import PipelineSettings
from blizzard.model.stores import open_reader, sink_location
from blizzard.rewrite.promote import SchemaCheck
from blizzard.rewrite.transaction import Plan, RewriteDone
from blizzard.table_rules import table_entry, table_rules
from lakebed.deltalog import tables
from lakebed.storage.store import Reader, Store
from lakebed.telemetry.logs import log_events
from lakebed.terminal.call import Waiting, reading
from lakebed.terminal.console import first, picked
from lakebed.types import CommitMode, LogFormat, LogLevel
from lakebed.units import in_words, plural
from penguin.model.settings import TableSettings
from penguin.rules import check_schema


def file_documents(files: Sequence[ActiveFile]) -> list[dict[str, object]]:
    """Return data files for JSON; `rows` are all rows of a file."""
    return [picked(one, "path rows bytes=size") for one in files]


@dataclass(frozen=True, slots=True)
class RewriteCommand:
    """A command that rewrites data files of one pipeline's table."""

    call: PipelineCall
    settings: PipelineSettings
    sure: bool
    """Whether to apply it; otherwise it is only planned."""

    def run(
        self,
        plan: Callable[[Reader], Plan],
        apply: Callable[[Store, ServiceRunner, Waiting], RewriteDone[Plan]],
    ) -> RewriteDone[Plan]:
        """Apply the command and commit its entry, or only plan it."""
        name, place = self.settings.name, sink_location(self.settings)
        if not self.sure:
            with reading(name, self.call.output):
                return RewriteDone(found=plan(open_reader(place)))
        with (
            reading(name, self.call.output) as progress,
            rewriter(self.call, write=progress.write) as runner,
        ):
            done = apply(Store(place.uri, place.options), runner, progress)
        commit_inline(self.call, self.settings, done.entry)
        return done

    def file_lines(
        self, files: Sequence[ActiveFile], what: str, named: Sequence[str] = ()
    ) -> Iterator[str]:
        """Yield what was or would be done with data files, and the first names."""
        if files:
            rows = plural(sum(one.rows or 0 for one in files), "row")
            size = in_words(sum(one.size for one in files))
            verb = ("was" if len(files) == 1 else "were") if self.sure else "to be"
            yield f"  {plural(len(files), 'file')} with {rows} ({size}) {verb} {what}:"
            yield from first(named or [one.path for one in files], indent="    ")

    def committed(self, entry: int | None, effect: str, then: str = "") -> Iterator[str]:
        """Yield when an entry takes effect, if there is one, and what to run until then."""
        if entry is None:
            return
        if self.settings.sink.commit is CommitMode.INLINE:
            yield f"  entry {entry} is committed"
        else:
            yield f"  entry {entry} {effect} once penguin has committed it"
            yield f"  -> run penguin{then}"

    def time_travel(self) -> str:
        """Return how long the old data files can still be read."""
        sink = self.settings.sink
        days = tables.file_retention(sink.table_uri, sink.storage_options) / timedelta(days=1)
        return (
            f"  time travel still reads them until VACUUM deletes the files, {days:g} days after "
            "the commit at the earliest"
        )


@contextmanager
def rewriter(
    call: PipelineCall, *, write: Callable[[str], None] | None = None
) -> Iterator[ServiceRunner]:
    """Yield a runner that rewrites files; Spark starts on first use and stops at the end.

    `write` receives log lines while the terminal shows progress.
    """
    from blizzard.execute.spark.runner import SparkRunner  # noqa: PLC0415 - a plan starts no Spark

    emit, spark, stop = (
        log_events(LogLevel.INFO, LogFormat.TEXT, write=write),
        call.loaded.spark,
        call.around.stop,
    )
    runner = (call.around.make_runner or SparkRunner)(
        spark,
        starting=lambda: emit(SparkStarting(master=spark.master)),
        stop_requested=lambda: stop.requested,
        heard=lambda _report: None,
        unreached=lambda _host, _port: None,
        said=lambda line, severity: emit(SPARK_SAID[severity](line=line)),
    )
    try:
        yield runner
    finally:
        runner.stop()


def commit_inline(call: PipelineCall, settings: PipelineSettings, entry: int | None) -> None:
    """Commit an entry of a pipeline that commits inline, as a batch would."""
    if entry is None or settings.sink.commit is not CommitMode.INLINE:
        return
    from penguin.pipeline import InlineCommitter  # noqa: PLC0415 - it loads Delta

    committer = InlineCommitter.of(
        table_entry(settings, call.table_of),
        settings.sink.table_uri,
        settings.sink.storage_options,
        emit=log_events(LogLevel.WARN, LogFormat.TEXT),
        clock=call.around.clock,
        pipeline=settings.name,
    )
    committer()
    committer.finish()


def schema_check(settings: PipelineSettings, table: TableSettings | None = None) -> SchemaCheck:
    """Return a check that penguin would evolve the table to a schema."""
    rules, mode_is_known = table_rules(settings, table)
    return partial(check_schema, rules, mode_is_known=mode_is_known)
