"""From entries, versions and answers to documents."""

from array import array
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from blizzard.answers.answer import Answer, FailedSource, FileState
from blizzard.answers.file_counts import DayOrPartition, Reconciliation
from lakebed.deltalog.versions import Commit, SettledEntries, read_commit
from lakebed.documents.entry import Entry
from lakebed.documents.records import Failure, FailureStage, FinishedFile, SourceRecord
from lakebed.layout import TablePath
from lakebed.types import Handoff
from liveview.answers import without_quotes
from liveview.history import (
    EntryFacts,
    batch_of,
    changes_of,
    committed_entries,
    freshness_of,
    version_of,
)
from liveview.summaries import days_of, verdict_of

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
READ = SourceRecord(
    source="s", path="a", size=10, etag=None, lines=5, blank=1, quarantined=1, rows=3, modified=7
)
WRITTEN = FinishedFile(
    filename=TablePath("x.parquet"),
    size=99,
    record_count=3,
    partition_values={},
    source_file=None,
    unit="u",
    modification_time=0,
)
ENTRY = Entry(
    kind="batch",
    pipeline="p",
    journal="j",
    sequence=4,
    run="r",
    created=NOON.isoformat(),
    previous=None,
    handoff=Handoff.JOURNAL,
    source_uris={},
    table_schema={"type": "struct", "fields": []},
    partition_columns=(),
    sources=(READ,),
    files=(WRITTEN,),
)


def facts(number: int, at: float, rows: int = 10, written: tuple[int, ...] = ()) -> EntryFacts:
    batch = replace(batch_of(ENTRY), entry=number, rows=rows, bytes_read=5, files=1)
    return EntryFacts(at=at, batch=batch, written=array("q", written))


def test_a_file_that_is_to_be_read_again_has_not_failed_with_that_entry():
    failed = Failure(stage=FailureStage.PARSE, code="not_json", message="", attempts=1)
    record = replace(READ, rows=0, failure=failed)
    batch, retry = (
        batch_of(replace(ENTRY, kind=kind, sources=(record,), files=()))
        for kind in ("batch", "retry")
    )
    assert (batch.files_failed, batch.error) == (1, "not_json (1)")
    assert (retry.files_failed, retry.error) == (0, None)


def test_the_first_schema_that_is_known_is_a_change_unless_it_made_the_table():
    versions = [
        Commit(version=29, at_ms=1),
        Commit(version=30, at_ms=2, columns={"a": "long", "b": "long"}),
        Commit(version=31, at_ms=3, columns={"a": "long", "b": "long", "c": "long"}),
    ]
    assert [(one.version, one.what) for one in changes_of(versions)] == [
        (31, "added column c: long"),
        (30, "replaced the schema: 2 columns since then"),
    ]
    made = Commit(version=0, at_ms=0, columns={"a": "long"})
    assert [one.what for one in changes_of([made])] == ["created with 1 column"]


def test_freshness_counts_only_what_is_in_the_table():
    entries = [facts(1, 0.0, written=(1000, 2000, 9000)), facts(2, 0.0, written=(5000,))]
    fresh = freshness_of(entries, {1: Commit(version=1, at_ms=10_000)}, since=0.0)
    assert (fresh.median_secs, fresh.worst_secs, fresh.measured_files) == (8.0, 9.0, 3)
    held = freshness_of(entries, {1: Commit(version=1, at_ms=10_000)}, since=0.0, held={1})
    assert held.measured_files == 0


def test_a_version_says_its_columns_and_bytes_and_what_it_settles():
    body = (
        b'{"metaData": {"schemaString": "{\\"fields\\": [{\\"name\\": \\"a\\", '
        b'\\"type\\": \\"long\\"}]}"}}\n{"add": {"path": "x", "size": 7}}\n'
        b'{"commitInfo": {"penguin": {"entries": {"p": {"first": 2, "last": 3}}}}}\n'
    )
    commit = read_commit(1, body)
    assert (commit.columns, commit.bytes_added) == ({"a": "long"}, 7)
    assert set(committed_entries([commit], "p")) == {2, 3}
    both = Commit(
        version=1,
        entries=(
            SettledEntries(pipeline="p", first=2, last=3),
            SettledEntries(pipeline="q", first=7, last=7),
        ),
    )
    assert (version_of(both).pipeline, version_of(both).entry) == ("p, q", None)
    assert (version_of(commit).pipeline, version_of(commit).entry) == ("p", 3)
    assert version_of(Commit(version=1)).pipeline is None
    absurd = Commit(version=1, entries=(SettledEntries(pipeline="p", first=0, last=10**12),))
    assert committed_entries([absurd], "p") == {}
    assert read_commit(1, b'{"metaData": {"schemaString": "["}}').columns is None


def test_a_day_that_was_not_looked_at_is_not_complete():
    assert verdict_of("2024-01-01", None).complete is None
    whole = DayOrPartition(
        name="2024-01-01", landed=1, in_table=1, complete=True, sentence="all in"
    )
    found = Reconciliation(
        pipeline="p",
        table_uri="t",
        by="day",
        groups=(whole, DayOrPartition(name="2023-12-31")),
        left_out=3,
    )
    days = days_of(found)
    assert [one.name for one in days.days] == ["2024-01-01"]
    verdict = verdict_of("2024-01-01", found.day("2024-01-01"))
    assert (verdict.complete, verdict.sentence) == (True, "all in")
    assert days.note == "3 files of other days are not shown"
    assert verdict_of("2024-01-01", whole, outdated=True).complete is None
    mixed = DayOrPartition(
        name="2024-01-01", landed=30, in_table=1, journaled=2, held=3, failed=4, waiting=5,
        changed=6, retracted=3, discarded=4, removed=2,
    )  # fmt: skip
    (day,) = days_of(replace(found, groups=(mixed,))).days
    states = (day.in_table, day.journaled, day.held, day.failed, day.waiting, day.changed)
    assert states == (1, 2, 3, 4, 5, 6)
    assert day.landed == sum(states) + day.retracted + day.discarded + day.removed
    nothing = DayOrPartition(name="2024-01-01", complete=False, standing="empty", sentence="none")
    verdict = verdict_of("2024-01-01", nothing)
    assert (verdict.complete, verdict.standing) == (None, "empty")


@pytest.mark.parametrize("quotes", [True, False])
def test_a_failure_is_quoted_only_where_its_message_holds_nothing(quotes: bool):
    failure = FailedSource(
        path="a",
        stage="parse",
        code="bad_json",
        message="canary",
        line=1,
        field=None,
        attempts=2,
        since=NOON,
        failed_at=NOON,
        entry=3,
        next_try=None,
    )
    answer = Answer(
        kind="source", state=FileState.FAILED, uri="u", answer="failed: canary", failure=failure
    )
    shown = str(answer if quotes else without_quotes(answer))
    assert ("canary" in shown) is quotes
    assert "bad_json" in shown
