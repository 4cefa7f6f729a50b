"""penguin's commit is in the trace of each batch whose rows it makes visible."""

from pathlib import Path

import pytest

from lakebed.clock import Clock
from lakebed.errors import CommitFailed
from lakebed.telemetry.export.spans import Batch, Span
from penguin.delta.table import Log, Table
from penguin.pipeline import TableRun, commit_all
from penguin.tracing import MOST_ENTRIES, CommitTracer
from tests.support.tables import Journal, TableDirectory, log_of, rows_of


@pytest.fixture
def table(tmp_path: Path) -> TableDirectory:
    return TableDirectory(tmp_path / "table")


def traces_of(table: TableDirectory, open_log: type[Log] = Log, **given: object) -> list[Span]:
    """Commit what waits, by a clock that goes on whenever it is looked at."""
    spans: list[Span] = []
    at = [1_800_000_000.0]

    def seconds() -> float:
        at[0] += 0.001
        return at[0]

    run = TableRun(
        settings=table.settings(**given),
        emit=CommitTracer(spans.append, seconds),
        clock=Clock(seconds=seconds),
        open_store=lambda: table.store,
        open_log=open_log,
    )
    commit_all(run, None)
    return spans


def batch(journal: Journal, entry: int) -> Batch:
    return Batch(pipeline=journal.pipeline, journal=journal.id, entry=entry)


def test_every_entry_of_a_commit_has_it_in_its_trace(table: TableDirectory):
    one, other = table.journal("one"), table.journal("other")
    one.batch(rows_of(1))
    one.batch(rows_of(2))
    other.batch(rows_of(3))
    spans = traces_of(table)
    batches = [batch(one, 1), batch(one, 2), batch(other, 1)]
    for each in batches:
        own = [span for span in spans if span.trace == each.trace]
        assert [span.name for span in own] == ["penguin", "poll", "read", "commit"]
        assert own[0].parent == each.root
        assert {span.parent for span in own[1:]} == {own[0].id}
        assert all(own[0].start <= span.start <= span.end <= own[0].end for span in own)
        assert own[-1].attributes["rows"] == 3
        assert own[-1].attributes["version"] == table.delta().version()


def test_a_look_that_finds_nothing_makes_no_trace(table: TableDirectory):
    table.journal().batch(rows_of(1))
    traces_of(table)
    assert traces_of(table) == []


def test_a_checkpoint_is_in_the_trace_of_the_commit_before_it(table: TableDirectory):
    journal = table.journal()
    journal.batch(rows_of(1))
    spans = traces_of(table, checkpoint_interval=1)
    (found,) = (span for span in spans if span.name == "checkpoint")
    assert found.trace == batch(journal, 1).trace
    assert found.parent == batch(journal, 1).span("penguin")
    assert found.error is None


def test_a_commit_of_very_many_entries_shows_the_last_of_them(table: TableDirectory):
    journal = table.journal()
    for number in range(MOST_ENTRIES + 5):
        journal.batch(rows_of(number))
    spans = traces_of(table)
    assert len({span.trace for span in spans}) <= MOST_ENTRIES
    assert batch(journal, MOST_ENTRIES + 5).trace in {span.trace for span in spans}


class Full(Table):
    """A table whose checkpoints cannot be written."""

    def checkpoint(self) -> None:
        raise CommitFailed("no room")


def test_a_checkpoint_that_fails_says_so(table: TableDirectory):
    table.journal().batch(rows_of(1))
    spans = traces_of(table, log_of(Full), checkpoint_interval=1)
    tries = [span for span in spans if span.name == "checkpoint"]
    assert tries
    assert all("no room" in (span.error or "") for span in tries)
    assert len({span.id for span in tries}) == len(tries)
