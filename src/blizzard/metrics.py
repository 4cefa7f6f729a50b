"""Every metric of blizzard; events may change only these."""

from collections.abc import Mapping
from functools import partial

import lakebed.errors
import penguin.model.settings
from blizzard.discover.finding import AMISS
from blizzard.events import BatchStep
from blizzard.model.notices import NoticeKind
from blizzard.notices.queue import QUEUE_ERRORS
from lakebed.documents.records import FailureStage
from lakebed.errors import codes_in
from lakebed.telemetry.measures import DELAY, LONG, QUICK, MetricKind, Specs

STORE = (
    "library_panicked",
    "object_changed",
    "object_missing",
    "store_denied",
    "store_full",
    "store_unavailable",
)
FAILURES: Mapping[FailureStage, tuple[str, ...]] = {
    FailureStage.DISCOVER: ("partial_file_changed", "partial_file_gone", "partition_unknown"),
    FailureStage.DOWNLOAD: STORE,
    FailureStage.DECOMPRESS: ("decompress_failed",),
    FailureStage.PARSE: (
        "duplicate_field",
        "internal_error",
        "line_too_long",
        "lines_miscounted",
        "not_an_object",
        "not_json",
        "not_utf8",
        "out_of_range",
        "partition_value_too_long",
        "required_field_missing",
        "too_deep",
        "too_many_bad_lines",
        "unknown_field",
        "worker_died",
        "wrong_type",
    ),
    FailureStage.UPLOAD: (*STORE, "internal_error"),
}
"""The failure codes of source files, whose series exist from the start."""

STEP_FAILURES = tuple(
    sorted(
        {
            *codes_in(vars(lakebed.errors)),
            *codes_in(vars(penguin.model.settings)),
            "commits_behind",
            "deletion_vector_unreadable",
            "executors_unfit",
            "max_failures_reached",
            "run_failed",
        }
    )
)
"""The failure codes of steps; penguin's are for inline commits."""

QUEUE_FAILURES = tuple(sorted({*(error.code for error in QUEUE_ERRORS), "internal_error"}))
"""The failure codes of notification queues, which fail no step."""


SPECS = Specs("blizzard", "pipeline")
_counter = partial(SPECS.declare, MetricKind.COUNTER)
_gauge = partial(SPECS.declare, MetricKind.GAUGE)
_seconds = partial(SPECS.declare, MetricKind.HISTOGRAM)


SOURCE_OUTCOMES = ("ingested", "failed")
RECORD_OUTCOMES = ("ingested", "blank", "filtered", "quarantined")


METRICS = (
    *SPECS.common("pyspark"),
    _counter("blizzard_bytes_written_total", "Bytes of the Parquet files written."),
    _counter("blizzard_parquet_files_written_total", "Parquet files written."),
    _counter("blizzard_staging_file_written_total", "Parquet files handed off, in every mode."),
    _counter("blizzard_multipart_uploads_total", "Parquet files uploaded in parts."),
    _gauge("blizzard_batch_bytes_read", "Bytes that the running batch has read."),
    _gauge("blizzard_active_uploads", "Files being uploaded."),
    _gauge("blizzard_active_multipart_parts", "Parts being uploaded, at most."),
    _seconds(
        "blizzard_parquet_write_duration_seconds",
        "Time to encode and write a Parquet file, not including its upload.",
        buckets=QUICK,
    ),
    _counter(
        "blizzard_source_files_total",
        "Source files that were read or failed.",
        outcome=SOURCE_OUTCOMES,
    ),
    _counter(
        "blizzard_source_bytes_total", "Bytes of those source files.", outcome=SOURCE_OUTCOMES
    ),
    _counter("blizzard_records_total", "Lines read from source files.", outcome=RECORD_OUTCOMES),
    _counter(
        "blizzard_source_file_failures_total",
        "Source files that failed.",
        stage=(),
        code=(),
        series=tuple((stage.value, code) for stage, codes in FAILURES.items() for code in codes),
    ),
    _counter(
        "blizzard_source_files_gone_total",
        "Failed source files that disappeared from their source.",
    ),
    _counter(
        "blizzard_retries_total",
        "Requests to a store that were retried.",
        stage=("download", "upload"),
    ),
    _counter("blizzard_values_dropped_total", "Values of fields not declared in the schema."),
    _counter("blizzard_values_rescued_total", "Values that no column takes, kept in _rescued."),
    _counter(
        "blizzard_rows_without_time_total",
        "Rows put into the null partition for lack of a timestamp.",
    ),
    _counter(
        "blizzard_source_files_overwritten_total", "Source files that changed after being ingested."
    ),
    _counter(
        "blizzard_source_files_replaced_total",
        "Source files whose new content superseded the old.",
    ),
    _counter("blizzard_compactions_total", "Entries that merged small data files."),
    _counter("blizzard_files_compacted_total", "Data files merged by compactions."),
    _counter("blizzard_compacted_bytes_total", "Bytes of the data files that they wrote."),
    _counter("blizzard_compaction_conflicts_total", "Compactions abandoned for another writer."),
    _counter("blizzard_compaction_failures_total", "Compactions that failed."),
    _counter("blizzard_notices_total", "Settled notices of new files.", kind=NoticeKind),
    _counter(
        "blizzard_queue_failures_total",
        "Failed requests to a notification queue.",
        code=QUEUE_FAILURES,
    ),
    _counter("blizzard_history_rebuilt_total", "Times every journal entry was read again."),
    _counter("blizzard_snapshot_failures_total", "Snapshots that could not be written."),
    _counter("blizzard_jobs_split_total", "Spark jobs run again in halves because workers died."),
    _counter(
        "blizzard_step_failures_total", "Steps of a pipeline that failed.", code=STEP_FAILURES
    ),
    _gauge("blizzard_pending_files", "Source files waiting to be read."),
    _gauge("blizzard_oldest_pending_file_age_seconds", "Age of the oldest file of the next batch."),
    _gauge("blizzard_quarantined_lines", "Bad lines waiting in quarantine."),
    _gauge("blizzard_resting_files", "Source files that failed and are not being retried now."),
    _gauge("blizzard_names_skipped", "Names in sources that cannot be read.", reason=AMISS),
    _gauge("blizzard_journal_entry", "Number of the last journal entry."),
    _seconds(
        "blizzard_ingest_delay_seconds",
        "Time from the arrival of a source file to the journal entry that has it.",
        buckets=DELAY,
    ),
    _seconds(
        "blizzard_batch_duration_seconds", "Time a batch took from plan to journal.", buckets=LONG
    ),
    _seconds(
        "blizzard_stage_duration_seconds",
        "Time a part of a batch took on the driver.",
        buckets=LONG,
        stage=BatchStep,
    ),
)
