"""Run every pipeline: wiring, exit codes, what is printed in the end."""

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import typer
from rich.console import Console

from blizzard.answers.source_status import failed_files
from blizzard.answers.ways_out import quarantine_hint
from blizzard.cli.output import chosen, load, tables_of
from blizzard.cli.rows.compact import compacts
from blizzard.cli.rows.rewriting import renews
from blizzard.cli.run import results as show
from blizzard.cli.run.dry_run import dry_run as dry_run_plan
from blizzard.cli.run.exports import exporting
from blizzard.cli.run.progress_bar import Display
from blizzard.cli.surroundings import Surroundings
from blizzard.execute.spark.cds_archive import require_java
from blizzard.handoff.held_rows import Aside, read_aside
from blizzard.journal.checkpoint import read_ledger
from blizzard.log_questions import TableOf, asks_fates, open_reader
from blizzard.metrics import METRICS
from blizzard.model.locations import sink_location
from blizzard.model.settings import BlizzardSettings, PipelineSettings
from blizzard.service import Service
from lakebed.errors import LakeError
from lakebed.storage.opening import local_path
from lakebed.telemetry import machine
from lakebed.telemetry.events import Emit, shared
from lakebed.telemetry.health import Part, PartKind
from lakebed.telemetry.levels import LogFormat, LogLevel
from lakebed.telemetry.live_page import live_page
from lakebed.telemetry.logs import log_events
from lakebed.telemetry.measures import Measure
from lakebed.telemetry.observed import observed
from lakebed.terminal.arguments import (
    DONE,
    FAILED,
    FILES_FAILED,
    Output,
    exit_code_of_run,
    usage_is_checked,
)
from lakebed.terminal.console import console, say
from lakebed.types import Commit
from penguin.metrics import METRICS as PENGUIN_METRICS


def run_pipelines(
    context: typer.Context,
    files: list[Path] | None,
    folders: list[Path] | None,
    pipeline: str | None,
    *,
    once: bool,
    dry_run: bool,
    log_level: LogLevel,
    log_format: LogFormat,
    output: Output,
) -> int:
    """Run the pipelines of a configuration, or show what a run would do; return the exit code."""
    around = Surroundings.of(context)
    emit = shared(_log(log_level, log_format), around.also)
    settings = load(files, folders, log_format)
    settings = replace(settings, pipelines=chosen(settings, pipeline, log_format))
    if dry_run:
        table_of = tables_of(settings, files, folders)
        return dry_run_plan(settings.pipelines, output, table_of, log_format)
    parts = {
        Part(PartKind.PIPELINE, each.name): each.poll_interval + settings.poll_jitter
        for each in settings.pipelines
    }
    inline = _tables_committed_inline(settings)
    with (
        usage_is_checked(log_format),
        observed(
            emit,
            address=settings.metrics_address,
            key=settings.metrics_key,
            guard=settings.metrics_guard,
            specs=METRICS + PENGUIN_METRICS,
            parts=parts,
            beside=inline,
            known=lambda: _known(settings),
            seconds=time.time,
            page=live_page("blizzard", settings, files, folders, (*parts, *inline)),
        ) as watched,
        exporting(settings, watched, os.environ) as listened,
    ):
        require_java(os.environ)
        table_of = tables_of(settings, files, folders)
        return _run(settings, listened, around, once=once, output=output, table_of=table_of)


def _run(
    settings: BlizzardSettings,
    emit: Emit,
    around: Surroundings,
    *,
    once: bool,
    output: Output,
    table_of: TableOf,
) -> int:
    """Run every pipeline, print what each did, and return the exit code."""
    around.listen(around.stop, emit)
    results = Service(
        settings=settings,
        emit=emit,
        stop=around.stop,
        once=once,
        table_of=table_of,
        clock=around.clock,
        make_runner=around.make_runner,
        renew_of=renews(around.clock),
        compact_of=compacts(around.clock),
    ).run()
    asides = {each.settings.name: _aside(each.settings) for each in results}
    show.results(
        [
            show.ResultRow(
                pipeline=each.settings.name,
                table_uri=each.settings.sink.table_uri,
                statistics=each.statistics,
                aside=asides[each.settings.name].counts(),
                error=None if each.error is None else str(each.error),
            )
            for each in results
        ],
        output,
        inline=[one.settings.name for one in results if one.settings.sink.commit is Commit.INLINE],
    )
    if output is Output.TEXT:
        _hint([each.settings for each in results if each.statistics.files_failed])
    errors = [each.error for each in results if each.error is not None]
    # With inline commits this run answers for what is held, as `penguin --once` does.
    held = once and any(
        each.settings.sink.commit is Commit.INLINE and asides[each.settings.name].held
        for each in results
    )
    failed = once and any(each.statistics.files_failed for each in results)
    otherwise = FAILED if held else FILES_FAILED if failed else DONE
    return exit_code_of_run(errors, stopped=around.stop.requested, otherwise=otherwise)


def _hint(failed: list[PipelineSettings]) -> None:
    """Name quarantine where bad lines have failed whole files of pipelines."""
    for settings in failed:
        try:
            history = read_ledger(open_reader(sink_location(settings)), settings.name)
        except LakeError:
            continue  # The run has reported what is wrong with the store.
        files = (one for each in settings.sources for one in failed_files(settings, each, history))
        hint = quarantine_hint(settings, (one.line for one in files))
        if hint is not None:
            say(console(), f"pipeline {settings.name}: {hint}")


def _tables_committed_inline(settings: BlizzardSettings) -> list[Part]:
    """Return the tables whose metrics blizzard serves, as penguin's commits would name them."""
    return [
        Part(PartKind.TABLE, settings.tables.get(each.name, each.sink.table_uri))
        for each in settings.pipelines
        if each.sink.commit is Commit.INLINE
    ]


def _known(settings: BlizzardSettings) -> Iterator[Measure]:
    """Yield what metrics show from the start: what is running, and the room for its tables."""
    yield machine.build_info(PartKind.PIPELINE, "pyspark")
    yield from machine.room(
        (Part(PartKind.PIPELINE, each.name), local_path(each.sink.table_uri))
        for each in settings.pipelines
    )


def _aside(settings: PipelineSettings) -> Aside:
    """Return the rows of a pipeline that are journaled and not in the table."""
    try:
        store = open_reader(sink_location(settings))
    except LakeError:
        return Aside()  # There is no table's folder: what keeps it away is told by the run.
    return read_aside(store, settings.name, asks_fates(settings))


def _log(least: LogLevel, shape: LogFormat) -> Emit:
    """Log to standard error; a person at a terminal also sees how far the batches are."""
    if shape is LogFormat.JSON or not sys.stderr.isatty():
        return log_events(least, shape)
    display = Display(Console(stderr=True))
    return shared(log_events(least, shape, write=display.write), display.emit)
