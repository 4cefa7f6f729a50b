"""Overviews of the live page, made up for what draws them."""

from dataclasses import replace

from liveview.model import (
    CurrentBatch,
    Freshness,
    Overview,
    PipelineSummary,
    Problem,
    Program,
    Stage,
    TableSummary,
    Unit,
)
from liveview.over_time import DayVerdict

AT = "2026-03-14T12:00:00Z"

BOTH = [
    Program(name="blizzard", version="1.2.3", reachable=True, started_at=AT),
    Program(name="penguin", version="1.2.3", reachable=True, started_at=AT),
]

PROBLEM = Problem(
    severity="error",
    code="store_unavailable",
    message="the bucket lake does not answer at http://127.0.0.1:9000 (connection refused)",
    way_out="start the store, or set source.storage_options.endpoint to where it listens",
)

BATCH = CurrentBatch(
    entry=1205,
    started_at="2026-03-14T11:59:12Z",
    files=40,
    bytes=2_000_000_000,
    read_bytes=1_230_000_000,
    rows=3_210_000,
    stages=[
        Stage(name="discover", state="done", seconds=0.2),
        Stage(name="plan", state="done", seconds=0.1),
        Stage(name="run", state="running", seconds=41.0),
        Stage(name="journal", state="waiting"),
        Stage(name="publish", state="waiting"),
        Stage(name="commit", state="waiting"),
    ],
    units=[
        Unit(
            id="1205-00",
            files=20,
            state="running",
            worker="10.0.0.7",
            read_bytes=700_000_000,
            total_bytes=1_000_000_000,
            rows=1_800_000,
            bad_lines=3,
            seconds=41.0,
        ),
        Unit(id="1205-01", files=20, state="waiting", total_bytes=1_000_000_000),
    ],
)


def a_pipeline(name: str = "orders") -> PipelineSummary:
    """Return a pipeline that is well and has nothing to do."""
    return PipelineSummary(
        name=name,
        table=f"lake_{name}",
        table_uri=f"s3://lake/tables/{name}",
        sources=[f"s3://lake/landing/{name}"],
        hand_off="journal",
        state="idle",
        health="ok",
        problems=[],
        current_batch=None,
        next_look_at="2026-03-14T12:00:07Z",
        waiting_files=12,
        waiting_bytes=3_400_000,
        oldest_waiting_secs=41.0,
        failed_files=0,
        changed_files=0,
        held_entries=0,
        quarantined_lines=0,
        freshness=Freshness(median_secs=12.3, worst_secs=48.0, measured_files=880, since=AT),
        last_entry=1204,
        last_entry_at="2026-03-14T11:58:00Z",
        rows_24h=1_234_567,
        files_24h=880,
        bytes_24h=12_000_000_000,
        spark=[float(each % 7) for each in range(48)],
        yesterday=DayVerdict(
            day="2026-03-13", complete=True, sentence="Everything of 2026-03-13 is in the table."
        ),
    )


def failing(pipeline: PipelineSummary) -> PipelineSummary:
    """Return the pipeline in trouble."""
    return replace(
        pipeline, state="failing", health="failing", problems=[PROBLEM], quarantined_lines=17
    )


def running(pipeline: PipelineSummary) -> PipelineSummary:
    """Return the pipeline in the middle of a batch."""
    return replace(pipeline, state="running", current_batch=BATCH, next_look_at=None)


def a_table(name: str = "lake_orders", *pipelines: str) -> TableSummary:
    """Return a table that is well."""
    return TableSummary(
        name=name,
        uri=f"s3://lake/tables/{name}",
        state="idle",
        health="ok",
        problems=[],
        version=1203,
        committed_at="2026-03-14T11:58:02Z",
        files=3201,
        bytes=12_400_000_000,
        rows=99_000_000,
        size_version=None,
        size_at=None,
        waiting_entries=1,
        pipelines=list(pipelines),
    )


def an_overview(*pipelines: PipelineSummary) -> Overview:
    """Return an overview of pipelines, each with a table of its own."""
    return Overview(
        at=AT,
        programs=BOTH,
        pipelines=list(pipelines),
        tables=[a_table(f"lake_{each.name}", each.name) for each in pipelines],
    )
