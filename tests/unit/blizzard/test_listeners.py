"""Bars on a terminal, and log lines above them."""

import io
import threading

from rich.console import Console

from blizzard.events import (
    BatchProgress,
    BatchStarted,
    InferenceEnded,
    SparkStarting,
    UnitsEnded,
)
from blizzard.listeners import BatchDisplay
from blizzard.model.progress import Progress, Report
from blizzard.service import Running
from lakebed.telemetry.events import shared
from lakebed.telemetry.logs import log_events
from lakebed.types import LogFormat, LogLevel

STARTED = BatchStarted(pipeline="events", entry=7, files=4, bytes=2048, units=2)


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
    display._progress.refresh()
    display.emit(UnitsEnded(pipeline="events"))
    for words in ("events 7", "4 files", "3 files", "50%", "12,345 records", "2 Parquet files"):
        assert words in shown(console)


def test_the_bar_stays_after_the_columns_are_inferred():
    console = terminal()
    display = BatchDisplay(console)
    running = Running(display.emit)
    emit = shared(running.emit, display.emit)
    for event in (STARTED, InferenceEnded(pipeline="events")):
        emit(event)
        running.heard(Report(unit="events/0", progress=Progress(records=7, bytes_read=2048)))
    (bar,) = display._progress.tasks
    assert bar.completed == 2048
    assert "7 records" in bar.fields["counts"]
    emit(UnitsEnded(pipeline="events"))
    assert not display._progress.tasks


def test_a_log_line_is_printed_whole_and_just_as_it_is():
    console = terminal()
    display = BatchDisplay(console)
    emit = shared(log_events(LogLevel.INFO, LogFormat.TEXT, write=display.write), display.emit)
    emit(STARTED)
    emit(SparkStarting(master="spark://[bold]" + "x" * 200))
    emit(UnitsEnded(pipeline="events"))
    line = next(line for line in shown(console).splitlines() if "starting Spark" in line)
    assert line.endswith("starting Spark on spark://[bold]" + "x" * 200)


def test_batches_come_and_go_and_leave_no_thread():
    before = set(threading.enumerate())
    display = BatchDisplay(terminal())
    for _ in range(2):
        display.emit(STARTED)
        display.emit(BatchStarted(pipeline="other", entry=1, files=1, bytes=1, units=1))
        display.emit(UnitsEnded(pipeline="events"))
        display.emit(UnitsEnded(pipeline="other"))
        display.emit(BatchProgress(pipeline="events", records=1))
        display.emit(UnitsEnded(pipeline="never began"))
    for thread in set(threading.enumerate()) - before:
        thread.join(300)
    assert set(threading.enumerate()) <= before
