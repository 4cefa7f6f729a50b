"""Bars on a terminal, and log lines above them."""

import io
import threading

from rich.console import Console

from blizzard.events import (
    BatchProgress,
    BatchStarted,
    InferenceEnded,
    NextBatchDue,
    NothingNew,
    SourcesWatched,
    SparkStarting,
    UnitsEnded,
)
from blizzard.listeners import BatchDisplay
from blizzard.model.progress import Progress, Report
from blizzard.service import Running
from lakebed.telemetry.events import StopRequested, shared
from lakebed.telemetry.logs import log_events
from lakebed.types import LogFormat, LogLevel

STARTED = BatchStarted(pipeline="events", entry=7, files=4, bytes=2048, units=2)
WATCHED = SourcesWatched(pipeline="events", places=("s3://b/in",), every_secs=10)


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=120, color_system=None)


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_running_batch_shows_files_records_speed_and_uploads():
    console = terminal()
    display = BatchDisplay(console)
    display.emit(STARTED)
    display.emit(
        BatchProgress(
            pipeline="events", files_read=3, records=12345, bytes_read=1024, parquet_files=2
        )
    )
    display._bars._progress.refresh()
    display.emit(UnitsEnded(pipeline="events"))
    for words in ("events 7", "0/4 files", "3/4 files", "12,345 records", "2 Parquet files"):
        assert words in shown(console)


def test_the_bar_stays_after_the_columns_are_inferred():
    console = terminal()
    display = BatchDisplay(console)
    running = Running(display.emit)
    emit = shared(running.emit, display.emit)
    for event in (STARTED, InferenceEnded(pipeline="events")):
        emit(event)
        running.heard(Report(unit="events/0", progress=Progress(records=7, bytes_read=2048)))
    (bar,) = display._bars._progress.tasks
    assert (bar.completed, bar.fields["records"]) == (2048, 7)
    emit(UnitsEnded(pipeline="events"))
    assert not display._bars._progress.tasks


def test_a_log_line_is_printed_whole_and_just_as_it_is():
    console = terminal()
    display = BatchDisplay(console)
    emit = shared(log_events(LogLevel.INFO, LogFormat.TEXT, write=display.write), display.emit)
    emit(STARTED)
    emit(SparkStarting(master="spark://[bold]" + "x" * 200))
    emit(UnitsEnded(pipeline="events"))
    line = next(line for line in shown(console).splitlines() if "starting Spark" in line)
    assert line.endswith("starting Spark on spark://[bold]" + "x" * 200)


def test_batches_and_waits_come_and_go_and_leave_no_thread():
    before = set(threading.enumerate())
    display = BatchDisplay(terminal())
    for _ in range(2):
        display.emit(STARTED)
        display.emit(BatchStarted(pipeline="other", entry=1, files=1, bytes=1, units=1))
        display.emit(UnitsEnded(pipeline="events"))
        display.emit(UnitsEnded(pipeline="other"))
        display.emit(BatchProgress(pipeline="events", records=1))
        display.emit(UnitsEnded(pipeline="never began"))
        display.emit(WATCHED)
    display.emit(StopRequested(signal="SIGINT"))
    for thread in set(threading.enumerate()) - before:
        thread.join(300)
    assert set(threading.enumerate()) <= before


def test_a_pipeline_that_waits_says_for_what_and_counts_down():
    now = [100.0]
    console = terminal()
    display = BatchDisplay(console, seconds=lambda: now[0])
    display.emit(WATCHED)
    display._bars._progress.refresh()
    display.emit(NextBatchDue(pipeline="events", files=4, starts_in_secs=41))
    display._bars._progress.refresh()
    now[0] += 40
    display._bars._progress.refresh()
    display.emit(STARTED)
    display.emit(UnitsEnded(pipeline="events"))
    display.emit(NothingNew(pipeline="events", resting=0))
    display._bars._progress.refresh()
    display.emit(StopRequested(signal="SIGTERM"))
    for words in (
        "events: watching s3://b/in every 10 s",
        "events: 4 files waiting, next batch in 41 s",
        "events: 4 files waiting, next batch in 1 s",
        "0/4 files",
    ):
        assert words in shown(console)
    last = shown(console).rpartition("0/4 files")[2]
    assert "watching s3://b/in" in last
