"""Telemetry of penguin: its metrics, and spans of its commits.

Events move these metrics and no others. A commit has spans in the traces of the batches whose rows
it makes visible: each of those batches has a span for penguin's part, below its own, with the
inspection of the table, the reading of what was found, and the commit. An inspection without work
makes no trace.
"""

import threading
from collections.abc import Callable
from functools import partial

import lakebed.errors
import penguin.model.settings
from lakebed.errors import codes_in
from lakebed.telemetry.events import Event
from lakebed.telemetry.export import BATCH, Span, TracedBatch
from lakebed.telemetry.measures import DELAY, QUICK, MetricKind, Specs
from lakebed.terminal.console import picked
from penguin.events.backlog import BacklogSeen
from penguin.events.commits import REJECTED, EntriesCommitted
from penguin.model.commit import HoldCode

LEFT_OUT = (
    "file_missing",
    "file_name_taken",
    "file_of_blizzard",
    "file_too_old",
    "file_unfit",
    "meta_left_alone",
    "name_unusable",
    "schema_refused",
    "store_denied",
)
"""Why files of other programs are not committed."""
CATALOG_ERRORS = ("catalog_conflict", "catalog_denied", "catalog_missing", "catalog_unavailable")
"""Why a table is not registered in its catalog."""
STEP_FAILURES = tuple(
    sorted({*codes_in(vars(lakebed.errors)), *codes_in(vars(penguin.model.settings))})
)
"""Codes of failed steps: each is a series from the start."""


SPECS = Specs("penguin", "table")
_counter = partial(SPECS.declare, MetricKind.COUNTER)
_gauge = partial(SPECS.declare, MetricKind.GAUGE)
_seconds = partial(SPECS.declare, MetricKind.HISTOGRAM)


METRICS = (
    *SPECS.common(),
    _counter("penguin_commits_total", "Delta commits made."),
    _seconds(
        "penguin_commit_duration_seconds",
        "Time a Delta commit took, including failed attempts.",
        buckets=QUICK,
    ),
    _seconds(
        "penguin_commit_delay_seconds",
        "Time from a journal entry to the Delta commit that has it.",
        buckets=DELAY,
    ),
    _seconds(
        "penguin_visible_delay_seconds",
        "Time from the arrival of a source file to the Delta commit that has its rows.",
        buckets=DELAY,
    ),
    _counter("penguin_entries_committed_total", "Journal entries committed."),
    _counter("penguin_files_committed_total", "Parquet files committed."),
    _counter("penguin_rows_committed_total", "Rows committed."),
    _counter("penguin_files_held_total", "Files held.", code=HoldCode),
    _counter("penguin_files_released_total", "Held files that were committed."),
    _counter(
        "penguin_entries_rejected_total",
        "Promotions, compactions, retractions and erasures settled without effect.",
        kind=tuple(REJECTED),
    ),
    _counter("penguin_schema_changes_total", "Commits that changed the table's schema."),
    _counter(
        "penguin_conflicts_total",
        "Commits made or invalidated by another writer.",
        outcome=("committed_by_other", "superseded"),
    ),
    _counter("penguin_step_failures_total", "Steps of a table that failed.", code=STEP_FAILURES),
    _counter("penguin_checkpoints_written_total", "Delta checkpoints written."),
    _counter("penguin_checkpoints_failed_total", "Delta checkpoints that could not be written."),
    _counter("penguin_log_clean_ups_failed_total", "Times old versions could not be removed."),
    _counter(
        "penguin_scans_total",
        "Searches of the folders for other programs' files.",
        kind=("poll", "sweep"),
    ),
    _counter("penguin_files_listed_total", "Data files listed by those searches."),
    _counter(
        "penguin_files_left_out_total",
        "Files of other programs found but not committed.",
        code=LEFT_OUT,
    ),
    _gauge("penguin_other_files_waiting", "Files of other programs waiting to be committed."),
    _gauge("penguin_other_files_left_out", "Files of other programs that are not committed."),
    _gauge("penguin_other_files_ignored", "Parquet files that a scan does not take."),
    _gauge("penguin_table_version", "Version of the Delta table, as last seen."),
    _gauge("penguin_pending_entries", "Journal entries waiting, up to one commit's worth."),
    _gauge("penguin_pending_files", "Files of those entries."),
    _gauge("penguin_held_files", "Files held at present.", code=HoldCode),
    _gauge(
        "penguin_files_in_danger", "1 while files have waited so long that VACUUM may delete them."
    ),
    _gauge("penguin_lag_seconds", "Age of the oldest entry journaled but not committed."),
    _gauge("penguin_catalog_registered", "1 if the catalog has the table as it is.", series=()),
    _counter("penguin_catalog_updates_total", "Registrations and updates in a catalog."),
    _counter(
        "penguin_catalog_failures_total",
        "Times a table could not be registered in its catalog.",
        code=CATALOG_ERRORS,
    ),
    _gauge(
        "penguin_pipeline_stopped",
        "1 while a pipeline's commits are stopped.",
        pipeline=(),
        code=(),
    ),
)


MOST_ENTRIES = 100
"""The most entries of one commit with spans of their own."""
PART = "penguin"


class CommitTracer:
    """Listens to the events of every table."""

    def __init__(self, put: Callable[[Span], None], seconds: Callable[[], float]) -> None:
        self._put, self._seconds = put, seconds
        self._lock = threading.Lock()
        self._inspections: dict[str, tuple[float, float]] = {}

    def __call__(self, event: Event) -> None:
        """Handle an event."""
        now = self._seconds()
        with self._lock:
            match event:
                case BacklogSeen():
                    self._inspections[event.table] = now - event.seconds, now
                case EntriesCommitted():
                    self._committed(event, now)
                case _:
                    pass

    def _committed(self, event: EntriesCommitted, now: float) -> None:
        commit = now - event.seconds
        began, ended = self._inspections.pop(event.table, (commit, commit))
        table_facts = picked(event, "table version")
        sums = picked(event, "entries files rows")
        for settled in event.settled[-MOST_ENTRIES:]:
            batch = TracedBatch(
                pipeline=settled.pipeline, journal=settled.journal, entry=settled.entry
            )
            for name, below, took, facts in (
                (PART, BATCH, (began, now), table_facts),
                ("poll", PART, (began, ended), table_facts),
                ("read", PART, (ended, commit), table_facts),
                ("commit", PART, (commit, now), table_facts | sums),
            ):
                self._put(batch.part(name, below=below, took=took, attributes=facts))
