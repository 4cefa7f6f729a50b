"""One way to run the commands that rewrite data files: plan or apply, commit, and report."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from blizzard.cli.call import PipelineCall
from blizzard.events import SparkStarting
from blizzard.execute.runner import ServiceRunner
from blizzard.model.locations import open_reader, sink_location
from blizzard.model.rewriting import ActiveFile
from blizzard.model.settings import PipelineSettings
from blizzard.rewrite.promote import SchemaCheck
from blizzard.rewrite.transaction import Plan, RewriteDone
from blizzard.service import SPARK_SAID
from blizzard.table_rules import table_entry, table_rules
from lakebed.storage.store import Reader, Store
from lakebed.telemetry.levels import LogFormat, LogLevel
from lakebed.telemetry.logs import log_events
from lakebed.terminal.call import Waiting, reading
from lakebed.types import CommitMode
from penguin import inline
from penguin.model.settings import TableSettings


def file_documents(files: Sequence[ActiveFile]) -> list[dict[str, object]]:
    """Return data files as JSON has them; `rows` are all rows of a file."""
    return [{"path": one.path, "rows": one.rows, "bytes": one.size} for one in files]


@dataclass(frozen=True, slots=True)
class RewriteCommand:
    """A command that rewrites data files of one pipeline's table."""

    call: PipelineCall
    settings: PipelineSettings

    def run(
        self,
        *,
        sure: bool,
        plan: Callable[[Reader], Plan],
        apply: Callable[[Store, ServiceRunner, Waiting], RewriteDone[Plan]],
    ) -> RewriteDone[Plan]:
        """Apply the command and commit its entry; if the operator is not sure, only plan it."""
        name, place = self.settings.name, sink_location(self.settings)
        if not sure:
            with reading(name, self.call.output):
                return RewriteDone(found=plan(open_reader(place)))
        with (
            reading(name, self.call.output) as progress,
            rewriter(self.call, write=progress.write) as runner,
        ):
            done = apply(Store(place.uri, place.options), runner, progress)
        commit_inline(self.call, self.settings, done.entry)
        return done

    def committed(self, entry: int, effect: str) -> str:
        """Describe when an entry takes effect: at once, or when penguin commits it."""
        if self.settings.sink.commit is CommitMode.INLINE:
            return f"  entry {entry} is committed"
        return f"  entry {entry} {effect} once penguin has committed it"


@contextmanager
def rewriter(
    call: PipelineCall, *, write: Callable[[str], None] | None = None
) -> Iterator[ServiceRunner]:
    """Yield a runner that rewrites files; Spark starts with the first, and stops at the end.

    `write` takes the lines of the log while something else is drawn on the terminal.
    """
    emit, spark, stop = (
        log_events(LogLevel.INFO, LogFormat.TEXT, write=write),
        call.loaded.spark,
        call.around.stop,
    )
    runner = call.around.make_runner(
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
    committer = inline.committer(
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
    """Return the check whether penguin would change the table to a schema, by its settings."""
    rules, mode_is_known = table_rules(settings, table)
    return partial(inline.check_schema, rules, mode_is_known=mode_is_known)
