"""Run every pipeline: wiring, exit codes, and the final report."""

import os
import sys
import time
from collections.abc import Collection, Iterator, Mapping

from rich.console import Console

from blizzard.cli.call import PipelineCall, document_of
from blizzard.execute.spark.jvm import require_java
from blizzard.execute.spark.runner import SparkRunner
from blizzard.handoff.held_rows import Counts, WithheldFiles, read_withheld
from blizzard.listeners import BatchDisplay, exporting
from blizzard.metrics import METRICS
from blizzard.model.settings import BlizzardSettings, PipelineSettings
from blizzard.model.stores import open_reader, sink_location
from blizzard.pipeline_log import PipelineLog
from blizzard.service import Result, Service
from lakebed.errors import LakeError
from lakebed.telemetry.events import Emit, shared
from lakebed.telemetry.health import HealthPart, PartKind
from lakebed.telemetry.logs import log_events
from lakebed.telemetry.metrics_server import build_info, live_page, observed
from lakebed.terminal.call import DONE, FAILED, FILES_FAILED, exit_code_of_run
from lakebed.terminal.console import Line, Table, fields_of
from lakebed.types import CommitMode, LogFormat, LogLevel
from lakebed.units import in_words, plural
from penguin.telemetry import METRICS as PENGUIN_METRICS

MORE_FAIL = "source files from earlier runs still fail"


def run_pipelines(call: PipelineCall, log_level: LogLevel, *, once: bool) -> None:
    """Run the pipelines of a configuration, and report what each did."""
    around = call.around
    settings = call.loaded.only(call.pipeline)
    parts = {
        HealthPart(PartKind.PIPELINE, each.name): each.poll_interval + settings.poll_jitter
        for each in settings.pipelines
    }
    inline = _tables_committed_inline(settings)
    with (
        observed(
            shared(_log(log_level, call.log_format), around.also),
            address=settings.metrics_address,
            key=settings.metrics_key,
            guard=settings.metrics_guard,
            specs=METRICS + PENGUIN_METRICS,
            parts=parts,
            beside=inline,
            known=lambda: [build_info(PartKind.PIPELINE, "pyspark")],
            seconds=time.time,
            page=live_page("blizzard", settings, call.files, call.folders, (*parts, *inline)),
        ) as watched,
        exporting(settings, watched, os.environ) as emit,
    ):
        require_java(os.environ)
        around.listen(around.stop, emit)
        results = Service(
            settings=settings,
            emit=emit,
            stop=around.stop,
            once=once,
            table_of=call.table_of,
            clock=around.clock,
            make_runner=around.make_runner or SparkRunner,
        ).run()
    _report(call, results, once=once)


def _report(call: PipelineCall, results: Collection[Result], *, once: bool) -> None:
    """Print what each pipeline did, and set the exit code."""
    withheld = {each.settings.name: _withheld(each.settings) for each in results}
    counts = {name: files.counts() for name, files in withheld.items()}
    documents = (
        {
            **document_of(each.settings),
            **fields_of(each.statistics),
            **fields_of(counts[each.settings.name]),
            "error": None if each.error is None else str(each.error),
        }
        for each in results
    )
    call.show(result_lines(results, counts), *documents)
    errors = [each.error for each in results if each.error is not None]
    # With inline commits this run answers for held files, as `penguin --once` does.
    held = once and any(
        each.settings.sink.commit is CommitMode.INLINE and withheld[each.settings.name].held
        for each in results
    )
    failed = once and any(each.statistics.files_failed for each in results)
    otherwise = FAILED if held else FILES_FAILED if failed else DONE
    stopped = call.around.stop.requested
    call.at_least(exit_code_of_run(errors, stopped=stopped, otherwise=otherwise))


def result_lines(results: Collection[Result], counts: Mapping[str, Counts]) -> Iterator[Line]:
    """Yield a row for each pipeline with what it did, and further problems."""
    titles = ("pipeline", ">files", ">failed", ">rows", ">bad lines", ">Parquet files", ">bytes")
    rows = []
    for each in results:
        name, done = each.settings.name, each.statistics
        read = (done.files_processed, done.files_failed, done.records_processed)
        size = in_words(done.bytes_written)
        written = (done.lines_quarantined, done.parquet_files_written, size)
        rows.append((name, *read, *written, _outcome(each, counts[name])))
    yield Table((*titles, ""), rows)
    for each in results:
        earlier = each.statistics.files_still_failed - _failed(each)
        if earlier > 0:
            still = plural(earlier, "source file from earlier runs still fails", MORE_FAIL)
            yield f"{each.settings.name}: {still}"


def _failed(result: Result) -> int:
    """Count the source files that failed in this run and were not read since."""
    return min(result.statistics.files_failed, result.statistics.files_still_failed)


def _outcome(result: Result, counts: Counts) -> str:
    """Return the problems of a pipeline after a run, in a few words."""
    failed = _failed(result)
    held = plural(counts.held_files, "file")
    words = (
        ("FAILED", result.error),
        (f"{held} held", counts.held_files),
        (f"{plural(failed, 'source file')} failed", failed),
    )
    return ", ".join(word for word, applies in words if applies)


def _tables_committed_inline(settings: BlizzardSettings) -> list[HealthPart]:
    """Return the tables that blizzard commits to, for metrics, as penguin would name them."""
    return [
        HealthPart(PartKind.TABLE, settings.tables.get(each.name, each.sink.table_uri))
        for each in settings.pipelines
        if each.sink.commit is CommitMode.INLINE
    ]


def _withheld(settings: PipelineSettings) -> WithheldFiles:
    """Return the rows of a pipeline that are journaled but not in the table."""
    try:
        store = open_reader(sink_location(settings))
    except LakeError:
        return WithheldFiles()  # The table has no folder: the run reports why.
    return read_withheld(store, settings.name, PipelineLog(settings).fates)


def _log(least: LogLevel, shape: LogFormat) -> Emit:
    """Log to standard error; a terminal also shows the progress of batches."""
    if shape is LogFormat.JSON or not sys.stderr.isatty():
        return log_events(least, shape)
    display = BatchDisplay(Console(stderr=True))
    return shared(log_events(least, shape, write=display.write), display.emit)
