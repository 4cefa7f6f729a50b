"""Answers in words that depend on the time, the configuration, or what the log still knows."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from blizzard.answers.answer import Answer, Backlog, DataFile, FailedAt, Read
from blizzard.answers.lifecycle import FileState
from blizzard.answers.words import worded
from lakebed.types import Commit
from tests.support.builders import NOON, pipeline_settings

SETTINGS = pipeline_settings(Path("/in"), Path("/table"))
READ = Read(
    entry=7,
    at=NOON,
    lines=1,
    blank=0,
    filtered=0,
    quarantined=0,
    rescued=0,
    dropped=0,
    rows=1,
    committed=True,
)
FILE = DataFile(
    path="x.parquet", rows=1, bytes=10, entry=7, sources=1, state=FileState.IN_TABLE, version=3
)


def said(state, *, settings=SETTINGS, **facts):
    answer = Answer(kind="source", state=state, uri="/in/a", path="a", answer="", **facts)
    return worded(answer, settings, settings.sources[0], NOON)


def failure(**changes):
    usual = FailedAt(
        stage="download",
        code="store_unavailable",
        message="no answer",
        line=None,
        field=None,
        attempts=3,
        since=NOON - timedelta(hours=2),
        last=NOON - timedelta(minutes=1),
        entry=9,
        next_try=NOON + timedelta(minutes=3),
    )
    return replace(usual, **changes)


def test_a_file_that_rests_says_when_it_is_tried_again_and_how_to_have_it_at_once():
    told = said(FileState.FAILED, failure=failure())
    since = f"{NOON - timedelta(hours=2):%Y-%m-%d %H:%M:%S} UTC"
    again = f"{NOON + timedelta(minutes=3):%Y-%m-%d %H:%M:%S} UTC"
    assert f"It has failed since {since} (3 tries) at stage download" in told.answer
    assert f"It is tried again at {again}." in told.answer
    assert told.next == ("blizzard dlq retry --file a has it read right away",)
    due = said(FileState.FAILED, failure=failure(next_try=NOON))
    assert "tried again with the next batch" in due.answer


def test_what_is_not_known_since_when_is_not_told():
    told = said(FileState.FAILED, failure=failure(since=None))
    assert told.answer.startswith("It has failed (3 tries) at stage download")


@pytest.mark.parametrize(
    ("running", "way"),
    [(False, "start blizzard"), (None, "make sure that blizzard still runs"), (True, "nothing")],
)
def test_what_to_do_about_a_waiting_file_depends_on_whether_blizzard_runs(running, way):
    backlog = Backlog(position=1, files=1, counted="source", in_next_batch=True, running=running)
    (told,) = said(FileState.WAITING, backlog=backlog).next
    assert told.startswith(way)


def test_who_commits_is_as_configured():
    inline = replace(SETTINGS, sink=replace(SETTINGS.sink, commit=Commit.INLINE))
    assert "penguin has yet to commit it" in said(FileState.JOURNALED, read=(READ,)).answer
    told = said(FileState.JOURNALED, settings=inline, read=(READ,))
    assert "blizzard commits it with its next batch" in told.answer
    assert told.next == ("run blizzard --once",)


def test_a_version_that_was_cleaned_up_is_not_made_up():
    told = said(FileState.IN_TABLE, read=(READ,), data_files=(replace(FILE, version=None),))
    assert "1 row from 1 line" in told.answer
    assert "in a version that the Delta log has cleaned up since" in told.answer


def test_rows_of_which_some_were_removed_say_so():
    gone = replace(
        FILE, state=FileState.REMOVED, removed_version=5, removed_by="DELETE by somebody"
    )
    told = said(FileState.IN_TABLE, read=(READ,), data_files=(FILE, gone))
    assert (
        "Some of its rows have been removed since: DELETE by somebody in version 5." in told.answer
    )
