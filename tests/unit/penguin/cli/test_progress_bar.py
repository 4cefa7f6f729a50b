"""A bar while many files are committed, and partition columns on a command line."""

import io

import pytest
from rich.console import Console

from lakebed.telemetry.events import StepFinished, StopRequested
from lakebed.telemetry.health import PartKind
from penguin.cli.adopt import PartitionColumns, parse_partition_columns
from penguin.cli.progress_bar import CommitProgress
from penguin.events.backlog import FilesLookedAt, TableWatched


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None)


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_large_commit_shows_how_many_files_are_looked_at():
    console = terminal()
    display = CommitProgress(console)
    for done in (500, 10_000):
        display.emit(FilesLookedAt(table="events", done=done, files=10_000))
        display._bars._progress.refresh()
    for words in ("events: looking at", "500/10,000 files", "events: committing"):
        assert words in shown(console)
    display.emit(StepFinished(kind=PartKind.TABLE, who="events", found=True))
    before = shown(console)
    display.write("a line")
    assert shown(console).removeprefix(before) == "a line\n"


def test_a_table_that_waits_says_what_is_watched_until_there_is_work():
    console = terminal()
    display = CommitProgress(console)
    watched = TableWatched(table="events", table_uri="s3://b/events", every_secs=10)
    assert watched.sentence() == "events: watching s3://b/events every 10 s"
    display.emit(watched)
    display.emit(FilesLookedAt(table="events", done=500, files=10_000))
    assert list(display._bars._lines) == ["events"]
    display.emit(StepFinished(kind=PartKind.TABLE, who="events", found=False))
    assert list(display._bars._lines) == ["events waits"]
    display._bars._progress.refresh()
    assert watched.sentence() in shown(console)
    display.emit(StopRequested(signal="SIGINT"))
    assert not display._bars._lines


def test_a_small_commit_shows_nothing():
    console = terminal()
    CommitProgress(console).emit(FilesLookedAt(table="events", done=5, files=5))
    assert shown(console) == ""


def test_columns_have_an_order_and_types_that_may_be_left_out():
    found = parse_partition_columns("date:date, region ,n:bigint,b:boolean,s:int16")
    assert found.names == ("date", "region", "n", "b", "s")
    assert found.types == {"date": "date", "n": "long", "b": "boolean", "s": "short"}


@pytest.mark.parametrize("text", ["", ",", "a:", ":date", "a,a", "a:float", "a:decimal(3,1)"])
def test_what_cannot_be_a_partition_column_is_refused(text):
    with pytest.raises(ValueError, match=r"form|twice|cannot be of type"):
        parse_partition_columns(text)


def test_a_template_of_the_configuration_says_the_same():
    found = PartitionColumns.of_template("date=%Y-%m-%d/region=%s")
    assert found is not None
    assert found.types == {"date": "date", "region": "string"}
    assert PartitionColumns.of_template(None) is None
