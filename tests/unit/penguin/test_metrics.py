"""What penguin's metrics and health say of real commits, scraped over the loopback."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lakebed.clock import Clock
from lakebed.documents.entry import encode
from lakebed.documents.records import SourceRecord
from lakebed.errors import CommitUnconfirmed
from lakebed.layout import journal_entry
from lakebed.polling import Stop, run_step
from lakebed.retry import Backoff
from lakebed.storage.store import Store
from lakebed.telemetry.events import Emit, Event, StepFailed, StepFinished
from lakebed.telemetry.health import HealthPart, PartKind
from lakebed.telemetry.metrics_server import observed
from lakebed.types import Evolution
from penguin.delta.table import Log, WritableTable
from penguin.pipeline import InlineCommitter, TableRun
from penguin.telemetry import METRICS
from tests.support.foreign import Directory
from tests.support.scrape import Pages
from tests.support.tables import EVENTS, WIDER, TableDirectory, log_of, rows_of

PAGE = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text()
JOURNALED = datetime(2026, 1, 1, tzinfo=UTC).timestamp()


@dataclass
class Watched:
    """A penguin on one table directory whose events are served as metrics and health."""

    table: TableDirectory | Directory
    pages: Pages
    emit: Emit
    now: list[float]
    options: dict[str, Any] = field(default_factory=dict)
    log: type[Log] = Log

    def run(self, emit: Emit | None = None) -> TableRun:
        return TableRun(
            settings=self.table.settings(**self.options),
            emit=emit or self.emit,
            clock=Clock(seconds=lambda: self.now[0]),
            open_store=lambda: self.table.store,
            open_log=self.log,
            pause=lambda _seconds: None,
        )

    def drain(self) -> None:
        run = self.run()
        while run.step():
            pass

    def value(self, name: str, **labels: str) -> float | None:
        return self.pages.value(name, table="events", **labels)


def shows(watched: Watched, **wanted: float | None) -> None:
    """Check what the page has of some metrics."""
    assert {name: watched.value(f"penguin_{name}") for name in wanted} == wanted


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    pages, now = Pages(), [JOURNALED + 60]
    with observed(
        pages.log,
        address="127.0.0.1:0",
        specs=METRICS,
        parts={HealthPart(PartKind.TABLE, "events"): 10.0},
        seconds=lambda: now[0],
    ) as emit:
        yield Watched(TableDirectory(tmp_path / "table"), pages, emit, now)


def test_the_names_and_types_are_those_of_the_table(watched):
    watched.table.journal().batch(rows_of(1))
    watched.drain()
    assert watched.pages.types() == {spec.name: spec.kind.value for spec in METRICS}


def test_commits_are_counted_with_what_they_made_visible(watched):
    journal = watched.table.journal()
    journal.batch(rows_of(1, 2), rows_of(3))
    watched.drain()
    journal.schema = WIDER
    journal.batch(rows_of(4))
    watched.drain()
    shows(watched, commits_total=2, commit_duration_seconds_count=2, entries_committed_total=2)
    shows(watched, files_committed_total=3, rows_committed_total=4, schema_changes_total=1)
    shows(watched, schema_changes_total=1, table_version=watched.table.delta().version())


def test_what_waits_and_how_long_is_shown_until_it_is_committed(watched):
    journal = watched.table.journal()
    journal.batch(rows_of(1), rows_of(2))
    journal.batch(rows_of(3), created="2026-01-01T00:00:30+00:00")
    run = watched.run()
    assert run.step()
    # One entry waited for a minute, the other for half of one.
    shows(watched, commit_delay_seconds_count=2, commit_delay_seconds_sum=90)
    # Entries of earlier versions do not say when their files arrived.
    shows(watched, visible_delay_seconds_count=0)
    shows(watched, pending_entries=2, pending_files=3, lag_seconds=60)
    watched.now[0] += 1000
    shows(watched, lag_seconds=1060)
    assert not run.step()
    shows(watched, pending_entries=0, pending_files=0, lag_seconds=0)


def test_the_time_from_the_arrival_of_a_file_to_its_commit_is_shown(watched):
    journal = watched.table.journal()
    file = journal.file(rows_of(1))
    source = SourceRecord(
        source="in", path="a", size=1, etag=None, lines=1, rows=1, modified=_ms(JOURNALED - 30)
    )
    failed = SourceRecord(source="in", path="b", size=1, etag=None, modified=_ms(JOURNALED))
    journal.write(
        journal.entry(files=(replace(file, source_files=("in:a",)),), sources=(source, failed))
    )
    watched.drain()
    shows(watched, visible_delay_seconds_count=1, visible_delay_seconds_sum=90)
    # Rows that are held are not visible.
    gone = journal.file(rows_of(2))
    held = replace(source, path="c")
    journal.write(
        journal.entry(files=(replace(gone, source_files=("in:c",)),), sources=(held, failed))
    )
    (watched.table.root / gone.filename).unlink()
    watched.drain()
    assert watched.value("penguin_held_files", code="file_missing") == 1
    assert watched.value("penguin_visible_delay_seconds_count") == 1


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def test_what_is_held_is_counted_by_its_reason_until_it_goes_in(watched):
    journal = watched.table.journal()
    journal.batch(rows_of(1))
    watched.drain()
    journal.schema = WIDER
    watched.options = {"evolution": Evolution.STRICT}
    journal.batch(rows_of(2), rows_of(3))
    journal.schema = EVENTS
    (gone,) = journal.batch(rows_of(4)).files
    (watched.table.root / gone.filename).unlink()
    watched.drain()
    held = ("schema_refused", 2), ("file_missing", 1), ("document_unreadable", 0)
    for code, count in held:
        assert watched.value("penguin_held_files", code=code) == count
        assert (watched.value("penguin_files_held_total", code=code) or 0) == count
    watched.options = {}
    watched.drain()
    assert watched.value("penguin_held_files", code="schema_refused") == 0
    assert watched.value("penguin_held_files", code="file_missing") == 1
    assert watched.value("penguin_files_released_total") == 2


def test_other_programs_files_are_counted(watched, tmp_path):
    others = Directory(tmp_path / "others")
    watched.table, watched.now[0] = others, others.hands.at
    late, run = others.path(age=30), watched.run()
    others.file(1)
    torn = others.root / others.path()
    torn.write_bytes(b"PAR1")
    while run.step():
        pass
    shows(watched, other_files_left_out=1)
    assert watched.value("penguin_files_left_out_total", code="file_unfit") == 1
    others.file(2, path=late)
    assert run.step()
    shows(watched, other_files_waiting=1)
    assert not run.step()
    shows(watched, other_files_waiting=0)
    assert watched.value("penguin_scans_total", kind="sweep") == 1
    assert (watched.value("penguin_scans_total", kind="poll") or 0) >= 1
    assert (watched.value("penguin_files_listed_total") or 0) >= 3


def test_checkpoints_are_counted(watched):
    watched.options = {"checkpoint_interval": 1}
    journal = watched.table.journal()
    journal.batch(rows_of(1))
    watched.drain()
    assert (watched.value("penguin_checkpoints_written_total") or 0) >= 1
    assert watched.value("penguin_checkpoints_failed_total") == 0

    class Full(WritableTable):
        def checkpoint(self) -> None:
            raise CommitUnconfirmed("no space")

    watched.log = log_of(Full)
    journal.batch(rows_of(2))
    watched.run().step()
    assert watched.value("penguin_checkpoints_failed_total") == 1


def breaks(table: TableDirectory, sequence: int = 1) -> bytes:
    """Break an entry of the journal, and give what it was."""
    path = table.root / journal_entry("events", sequence)
    body = path.read_bytes()
    path.write_bytes(b"{")
    return body


def test_a_stopped_pipeline_makes_its_table_unwell_until_it_is_mended(watched):
    watched.table.journal().batch(rows_of(1))
    body = breaks(watched.table)
    run = watched.run()
    run.step()
    code = run.stopped["events"].error.code
    assert watched.value("penguin_pipeline_stopped", pipeline="events", code=code) == 1
    status, document = watched.pages.health()
    assert status == 503
    assert document["tables"]["events"]["stopped"]["events"]["code"] == code
    (watched.table.root / journal_entry("events", 1)).unlink()
    run.step()
    (watched.table.root / journal_entry("events", 1)).write_bytes(body)
    run.step()
    assert watched.value("penguin_pipeline_stopped", pipeline="events", code=code) == 0
    assert watched.pages.health()[0] == 200


def test_a_pipeline_is_stopped_for_one_reason_at_a_time(watched):
    journal = watched.table.journal()
    journal.batch(rows_of(1))
    run = watched.run()
    run.step()
    journal.batch(rows_of(2))
    breaks(watched.table, 2)
    run.step()
    first = run.stopped["events"].error.code
    entry = journal.entry(sequence=2, previous="0" * 64)
    (watched.table.root / journal_entry("events", 2)).write_bytes(encode(entry))
    while run.step():
        pass
    second = run.stopped["events"].error.code
    assert first != second
    assert watched.value("penguin_pipeline_stopped", pipeline="events", code=first) == 0
    assert watched.value("penguin_pipeline_stopped", pipeline="events", code=second) == 1


def test_a_pipeline_that_was_mended_is_told_of_inline_too(watched):
    watched.table.journal().batch(rows_of(1))
    body = breaks(watched.table)
    commit = InlineCommitter.of(
        watched.table.settings(), "", watched.table.store.options, emit=watched.emit, clock=Clock()
    )
    with pytest.raises(Exception, match="events"):
        commit()
    assert watched.pages.health()[0] == 503
    (watched.table.root / journal_entry("events", 1)).write_bytes(body)
    assert commit() == 1
    assert watched.pages.health()[0] == 200


@dataclass
class Mends:
    """Looks at the health after every step, and mends the store after the first failure."""

    watched: Watched
    stop: Stop = field(default_factory=Stop)
    seen: list[tuple[int, str]] = field(default_factory=list)
    broken: bool = True

    def open_store(self) -> Store:
        return Broken(self.watched.table.store) if self.broken else self.watched.table.store

    def emit(self, event: Event) -> None:
        self.watched.emit(event)
        if isinstance(event, StepFailed | StepFinished):
            status, document = self.watched.pages.health()
            self.seen.append((status, document["tables"]["events"]["status"]))
        if isinstance(event, StepFailed):
            self.broken = False
        if isinstance(event, StepFinished) and not event.found:
            self.stop.request()


class Broken(Store):
    """A store whose folders are gone."""

    def __init__(self, store: Store) -> None:
        super().__init__(str(Path(store.uri) / "elsewhere"), store.options)


def test_health_is_503_while_the_store_is_broken_and_200_once_it_is_mended(watched):
    watched.table.journal().batch(rows_of(1))
    mends = Mends(watched)
    run = watched.run(mends.emit)
    run.open_store = mends.open_store
    error = run_step(
        run.step,
        who="events",
        kind=PartKind.TABLE,
        stop=mends.stop,
        emit=mends.emit,
        once=False,
        interval=lambda: 0.0,
        backoff=Backoff(first_secs=0.0),
    )
    assert error is None
    assert mends.seen == [(503, "failing"), (200, "ok"), (200, "ok")]
    assert watched.value("penguin_step_failures_total", code="object_missing") == 1
    assert watched.value("penguin_commits_total") == 1


def test_the_page_lists_every_metric_with_its_type_and_labels():
    found = re.findall(r"^\| `(penguin_\w+)` \| (\w+) \| ([^|]*) \|", PAGE, flags=re.MULTILINE)
    assert [(name, kind, labels.replace("`", "").strip()) for name, kind, labels in found] == [
        (spec.name, spec.kind.value, ", ".join(spec.labels)) for spec in METRICS
    ]
