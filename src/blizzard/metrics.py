"""Every metric of blizzard. An event may move these and no others."""

from lake.telemetry.measures import LONG, QUICK, Kind, Spec

PIPELINE = ("pipeline",)


def _counter(name: str, text: str, *more: str) -> Spec:
    return Spec(name=name, kind=Kind.COUNTER, help=text, labels=PIPELINE + more)


def _gauge(name: str, text: str) -> Spec:
    return Spec(name=name, kind=Kind.GAUGE, help=text, labels=PIPELINE)


def _seconds(name: str, text: str, *more: str, buckets: tuple[float, ...]) -> Spec:
    labels = PIPELINE + more
    return Spec(name=name, kind=Kind.HISTOGRAM, help=text, labels=labels, buckets=buckets)


METRICS = (
    _counter("blizzard_bytes_written_total", "Bytes of journaled Parquet files."),
    _counter("blizzard_parquet_files_written_total", "Journaled Parquet files."),
    _counter("blizzard_staging_file_written_total", "Parquet files handed off, in every mode."),
    _counter("blizzard_multipart_uploads_total", "Journaled files that were uploaded in parts."),
    _gauge("blizzard_active_uploads", "Files that are being uploaded."),
    _gauge("blizzard_active_multipart_parts", "Parts that are being uploaded, at most."),
    _seconds(
        "blizzard_parquet_write_duration_seconds",
        "Time to encode and write one Parquet file, without its upload.",
        buckets=QUICK,
    ),
    _counter("blizzard_source_files_total", "Source files in the journal.", "outcome"),
    _counter("blizzard_source_bytes_total", "Bytes of source files in the journal.", "outcome"),
    _counter("blizzard_records_total", "Lines of source files in the journal.", "outcome"),
    _counter("blizzard_source_file_failures_total", "Source files that failed.", "stage", "code"),
    _counter(
        "blizzard_source_files_gone_total", "Failed source files that are gone from their source."
    ),
    _counter("blizzard_retries_total", "Calls of a store that were made again.", "stage"),
    _counter("blizzard_values_dropped_total", "Values of fields that the schema does not declare."),
    _counter("blizzard_rows_without_time_total", "Rows in the partition of a null timestamp."),
    _counter(
        "blizzard_source_files_overwritten_total",
        "Source files that changed after they were ingested.",
    ),
    _counter("blizzard_late_files_total", "Files that a bare watermark would have missed."),
    _counter("blizzard_history_rebuilt_total", "Times that every journal entry was read again."),
    _counter("blizzard_snapshot_failures_total", "Snapshots that could not be written."),
    _counter("blizzard_jobs_split_total", "Spark jobs run again in halves: workers died."),
    _counter("blizzard_step_failures_total", "Steps of a pipeline that failed.", "code"),
    _gauge("blizzard_pending_files", "Source files that wait to be read."),
    _gauge("blizzard_oldest_pending_file_age_seconds", "Age of the oldest file of the next batch."),
    _gauge("blizzard_resting_files", "Source files that failed and are not read now."),
    _gauge("blizzard_journal_entry", "Number of the last journal entry."),
    _seconds(
        "blizzard_batch_duration_seconds", "Time from plan to journal of a batch.", buckets=LONG
    ),
    _seconds(
        "blizzard_stage_duration_seconds",
        "Time that a part of a batch took at the driver.",
        "stage",
        buckets=LONG,
    ),
)
