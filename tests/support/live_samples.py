"""Documents of the live page's API, as a busy lake would give them; all times are relative to `now`."""

import math
import random
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from liveview.model import (
    BadLineGroup,
    Batch,
    BookLine,
    Column,
    CurrentBatch,
    Day,
    DayVerdict,
    FailedFile,
    FileRow,
    Freshness,
    HeldEntry,
    Journey,
    Overview,
    PipelineDetail,
    PipelineSummary,
    Problem,
    Program,
    SchemaChange,
    Series,
    Stage,
    State,
    Step,
    TableDetail,
    TableSummary,
    Unit,
    Version,
)

HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
LONG = "a-pipeline-whose-name-was-made-by-a-generator-" * 5 + "end"
NAMES = ("orders", "clicks", "payments", "inventory", "shipments", "sessions", "refunds", "sensors")
STAGES = ("discover", "plan", "run", "journal", "publish", "commit")


@dataclass(frozen=True)
class Clock:
    """What time it is for a set of documents."""

    now: datetime

    def ago(self, **span: float) -> str:
        """Return a time before now, as documents write it."""
        return stamp(self.now - timedelta(**span))

    def day(self, back: int) -> str:
        """Return a day before today."""
        return str((self.now - timedelta(days=back)).date())


def stamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def waves(points: int, peak: float, seed: int = 7) -> list[float]:
    """Return a day's curve: a night, two humps, and some noise; the same for everybody."""
    dice = random.Random(seed)
    return [
        round(peak * (0.12 + 0.88 * math.sin(math.pi * at / points) ** 2) * dice.uniform(0.72, 1))
        for at in range(points)
    ]


def verdict(clock: Clock, complete: bool | None = True) -> DayVerdict:
    words = {
        True: "Yes: all 288 files that landed on {} are in the table, with 12,406,118 rows.",
        False: "No: 286 of 288 files that landed on {} are in the table; 1 failed and 1 is waiting.",
        None: "Not known: the source cannot be listed by day.",
    }[complete]
    return DayVerdict(day=clock.day(1), complete=complete, sentence=words.format(clock.day(1)))


def pipeline(clock: Clock, name: str = "orders", **changes: object) -> PipelineSummary:
    spark = waves(48, 410_000, seed=len(name) + ord(name[0]))
    summary = PipelineSummary(
        name=name,
        table=name,
        table_uri=f"s3://lake/tables/{name}",
        sources=[f"s3://landing/{name}/"],
        hand_off="journal",
        state="idle",
        health="ok",
        problems=[],
        current_batch=None,
        next_look_at=stamp(clock.now + timedelta(seconds=24)),
        waiting_files=0,
        waiting_bytes=0,
        oldest_waiting_secs=None,
        failed_files=0,
        held_entries=0,
        quarantined_lines=0,
        freshness=Freshness(
            median_secs=41.3, worst_secs=188.0, measured_files=288, since=clock.ago(days=1)
        ),
        last_entry=4_812,
        last_entry_at=clock.ago(seconds=36),
        rows_24h=int(sum(spark)),
        files_24h=288,
        bytes_24h=41_204_118_301,
        spark=spark,
        yesterday=verdict(clock),
    )
    return replace(summary, **changes)  # type: ignore[arg-type]


def running(clock: Clock, name: str = "clicks", share: float = 0.43) -> PipelineSummary:
    """Return a pipeline with a batch under way."""
    units = [
        Unit(
            id=f"u{number:04}",
            files=12,
            state="done" if number < 21 else "running" if number < 25 else "waiting",
            worker=f"10.2.0.{10 + number % 4}" if number < 25 else None,
            read_bytes=int((1 if number < 21 else share if number < 25 else 0) * 134_217_728),
            total_bytes=134_217_728,
            rows=402_118 if number < 21 else 170_413 if number < 25 else 0,
            bad_lines=3 if number == 22 else 0,
            seconds=9.4 if number < 21 else 4.1 if number < 25 else None,
        )
        for number in range(48)
    ]
    read = sum(unit.read_bytes for unit in units)
    batch = CurrentBatch(
        entry=4_813,
        started_at=clock.ago(seconds=52),
        files=576,
        bytes=sum(unit.total_bytes for unit in units),
        read_bytes=read,
        rows=sum(unit.rows for unit in units),
        stages=[
            Stage(
                name=stage,  # type: ignore[arg-type]
                state="done" if at < 2 else "running" if at == 2 else "waiting",
                seconds=(0.8, 0.1, 51.1)[at] if at < 3 else None,
            )
            for at, stage in enumerate(STAGES)
        ],
        units=units,
    )
    return pipeline(
        clock,
        name,
        state="running",
        current_batch=batch,
        waiting_files=576,
        waiting_bytes=batch.bytes,
        oldest_waiting_secs=63.0,
        next_look_at=None,
    )


def failing(clock: Clock, name: str = "payments") -> PipelineSummary:
    """Return a pipeline that needs a person."""
    return pipeline(
        clock,
        name,
        state="failing",
        health="failing",
        problems=[
            Problem(
                severity="error",
                code="store_unavailable",
                message="The source s3://landing/payments/ has not answered for 14 minutes.",
                way_out="See that the endpoint can be reached from this machine; the pipeline "
                "tries again every minute by itself.",
                since=clock.ago(minutes=14),
                subject="s3://landing/payments/",
            ),
            Problem(
                severity="warning",
                code="entry_held",
                message="Entry 4790 is held: column amount is decimal(38,9), the table has long.",
                way_out="Widen the column with `penguin schema promote`, or redo the entry.",
                since=clock.ago(hours=3),
            ),
        ],
        waiting_files=214,
        waiting_bytes=3_104_118_301,
        oldest_waiting_secs=860.0,
        failed_files=2,
        held_entries=1,
        quarantined_lines=1_204,
        freshness=Freshness(
            median_secs=65.0, worst_secs=7_860.0, measured_files=242, since=clock.ago(days=1)
        ),
        last_entry_at=clock.ago(minutes=15),
        yesterday=verdict(clock, complete=False),
    )


def table(clock: Clock, name: str = "orders", **changes: object) -> TableSummary:
    summary = TableSummary(
        name=name,
        uri=f"s3://lake/tables/{name}",
        state="idle",
        health="ok",
        problems=[],
        version=4_806,
        committed_at=clock.ago(seconds=31),
        files=1_204,
        bytes=161_204_118_301,
        rows=2_904_118_301,
        waiting_entries=0,
        pipelines=[name],
    )
    return replace(summary, **changes)  # type: ignore[arg-type]


def programs(clock: Clock, penguin: bool = True) -> list[Program]:
    return [
        Program(
            name="blizzard", version="0.1.0", reachable=True, started_at=clock.ago(days=3, hours=4)
        ),
        Program(
            name="penguin",
            version="0.1.0" if penguin else None,
            reachable=penguin,
            address="http://127.0.0.1:9102",
            note=None if penguin else "No answer from http://127.0.0.1:9102; see `metrics.port`.",
        ),
    ]


def overview(clock: Clock, *pipelines: PipelineSummary, penguin: bool = True) -> Overview:
    names = dict.fromkeys(each.table for each in pipelines if each.table)
    return Overview(
        at=stamp(clock.now),
        programs=programs(clock, penguin),
        pipelines=list(pipelines),
        tables=[table(clock, name) for name in names],
    )


def busy(clock: Clock) -> Overview:
    """Return a lake of eight pipelines: one runs, one fails, one has a warning."""
    calm = [pipeline(clock, name) for name in NAMES if name not in {"clicks", "payments"}]
    late = replace(
        calm[2],
        state="waiting",
        waiting_files=41,
        waiting_bytes=904_118_301,
        oldest_waiting_secs=412.0,
        health="warning",
        problems=[
            Problem(
                severity="warning",
                code="bad_lines",
                message="318 lines of the last hour were set aside: field weight is not a number.",
                way_out="Look at the groups of bad lines; a type for the field is suggested there.",
                since=clock.ago(minutes=51),
            )
        ],
        quarantined_lines=318,
    )
    new = replace(calm[5], yesterday=verdict(clock, None), freshness=Freshness())
    calm[2], calm[5] = late, new
    return overview(clock, *calm, running(clock), failing(clock))


def many(clock: Clock, count: int = 100) -> Overview:
    """Return a lake of so many pipelines, of every state."""
    states: tuple[State, ...] = ("idle", "idle", "idle", "waiting", "stopped", "unknown")
    rest = [
        pipeline(clock, f"{NAMES[at % 8]}-{at:03}", state=states[at % 6], rows_24h=at * 104_118)
        for at in range(count - 2)
    ]
    return overview(clock, *rest, running(clock), failing(clock))


def strange(clock: Clock) -> Overview:
    """Return names that nobody should choose, and somebody will."""
    names = (HOSTILE, LONG, "طلبات-المتجر", "заказы ❄️🐧", "a/b?c=d&e#f%", "עברית mixed עברית")
    odd = [
        replace(
            failing(clock, name),
            sources=[f"s3://landing/{name}/"],
            problems=[
                Problem(severity="error", code=HOSTILE[:20], message=HOSTILE, way_out=HOSTILE)
            ],
            yesterday=DayVerdict(day=clock.day(1), complete=None, sentence=HOSTILE),
        )
        for name in names
    ]
    return overview(clock, *odd)


def batch(clock: Clock, entry: int, back: int, **changes: object) -> Batch:
    rows = 431_204 + 977 * (entry % 31)
    bad = entry % 7 if entry % 5 == 0 else 0
    made = Batch(
        entry=entry,
        kind="batch",
        at=clock.ago(minutes=5 * back, seconds=36),
        seconds=41.2 + entry % 9,
        files=12,
        files_failed=0,
        rows=rows,
        lines=rows + bad,
        bad_lines=bad,
        rescued=0,
        bytes_read=1_404_118_301,
        bytes_written=104_118_301,
        data_files=2,
        committed_version=entry - 6,
        committed_at=clock.ago(minutes=5 * back, seconds=31),
        balanced=True,
        books=[
            BookLine(label="lines read", value=rows + bad),
            BookLine(label="rows written", value=rows),
            BookLine(label="bad lines set aside", value=bad),
        ],
        error=None,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def batches(clock: Clock, first: int = 4_812, count: int = 20) -> list[Batch]:
    made = [batch(clock, first - back, back) for back in range(count)]
    if count > 3:
        made[0] = replace(made[0], committed_version=None, committed_at=None)
        made[2] = replace(made[2], files_failed=1)
        made[3] = replace(made[3], balanced=False)
    return made


def columns(count: int = 8) -> list[Column]:
    known = [
        Column(name="order_id", type="long", nullable=False, since_version=0, partition=False),
        Column(name="customer", type="string", nullable=True, since_version=0, partition=False),
        Column(name="amount", type="decimal(18,2)", nullable=True, since_version=0, partition=False),
        Column(
            name="items",
            type="array<struct<sku: string, quantity: int, price: decimal(18,2)>>",
            nullable=True,
            since_version=0,
            partition=False,
        ),
        Column(name="placed_at", type="timestamp", nullable=True, since_version=0, partition=False),
        Column(name="channel", type="string", nullable=True, since_version=1_204, partition=False),
        Column(name="voucher", type="string", nullable=True, since_version=3_911, partition=False),
        Column(name="day", type="date", nullable=True, since_version=0, partition=True),
    ]
    more = [replace(known[1], name=f"field_{at:03}") for at in range(count - len(known))]
    return [*known[:count], *more]


def detail(clock: Clock, summary: PipelineSummary) -> PipelineDetail:
    troubled = summary.health == "failing"
    path = f"{summary.name}/2026/11/16/part-00017.ndjson.gz"
    return PipelineDetail(
        summary=summary,
        recent_batches=batches(clock) if summary.last_entry else [],
        bad_lines=[
            BadLineGroup(
                code="wrong_type",
                field="amount",
                lines=1_196,
                files=14,
                sample_path=path,
                sample_line=40_118,
                suggested_fix="schema:\n  columns:\n    amount: decimal(18,2)",
                first_at=clock.ago(days=2),
                last_at=clock.ago(minutes=21),
            ),
            BadLineGroup(
                code="not_json",
                field=None,
                lines=8,
                files=1,
                sample_path=path,
                sample_line=7,
                suggested_fix=None,
                first_at=clock.ago(hours=3),
                last_at=clock.ago(hours=3),
            ),
        ]
        if troubled
        else [],
        failed=[
            FailedFile(
                path=path,
                code="corrupt_gzip",
                reason="The file ends in the middle of a gzip member, after 41.2 MiB.",
                way_out="Upload it again under the same name, then run `blizzard redo`.",
                attempts=3,
                next_try_at=stamp(clock.now + timedelta(minutes=4)),
                since=clock.ago(hours=2),
            ),
            FailedFile(
                path=f"{summary.name}/{'deep/' * 20}{'x' * 120}.ndjson",
                code="too_large",
                reason="One line is longer than 64 MiB.",
                way_out=None,
                attempts=1,
                next_try_at=None,
                since=clock.ago(hours=5),
            ),
        ]
        if troubled
        else [],
        held=[
            HeldEntry(
                entry=4_790,
                reason="Column amount is decimal(38,9), and the table has long.",
                way_out="Promote the column with `penguin schema promote`, or redo the entry.",
                since=clock.ago(hours=3),
                files=2,
                rows=431_204,
            )
        ]
        if troubled
        else [],
        schema=columns() if summary.last_entry else [],
    )


def days(clock: Clock, count: int = 31) -> list[Day]:
    made = []
    for back in range(count):
        complete = None if back == 0 else back not in {1, 9, 40, 200}
        made.append(
            Day(
                day=clock.day(back),
                landed=288,
                in_table=288 if complete else 286 if complete is False else 140,
                journaled=0 if back else 12,
                failed=1 if complete is False else 0,
                waiting=1 if complete is False else 0,
                rows=12_406_118,
                bytes=41_204_118_301,
                complete=complete,
            )
        )
    return made


def series(clock: Clock, points: int = 96) -> Series:
    rows = waves(points, 240_000)
    return Series(
        start=clock.ago(days=1),
        step_secs=86_400 / points,
        rows=rows,
        bytes=[each * 410 for each in rows],
        files=[round(each / 40_000) for each in rows],
    )


def files(clock: Clock, name: str, search: str, count: int = 12) -> list[FileRow]:
    states = ("running", "journaled", "failed", "held", "waiting", "retracted", "passed_over")
    return [
        FileRow(
            path=f"{name}/2026/11/16/{search}-{at:05}.ndjson.gz",
            state=states[at] if at < len(states) else "in_table",  # type: ignore[arg-type]
            at=clock.ago(minutes=3 * at),
            bytes=118_301_204 - at * 1_000_003,
            rows=None if at in {0, 2, 4, 6} else 431_204,
            entry=None if at in {0, 4, 6} else 4_812 - at,
            version=4_806 - at if at >= len(states) else None,
            reason="The file ends in the middle of a gzip member." if at == 2 else None,
        )
        for at in range(count)
    ]


def journey(clock: Clock, path: str) -> Journey:
    if "failed" in path or "00017" in path:
        return Journey(
            path=path,
            answer="The file failed 3 times: it ends in the middle of a gzip member, after "
            "41.2 MiB. Nothing of it is in the table.",
            state="failed",
            way_out="Upload it again under the same name, then run `blizzard redo`.",
            steps=[
                Step(at=clock.ago(hours=3), what="Landed in the source", detail="112.8 MiB", state="done"),
                Step(at=clock.ago(hours=2), what="Read", detail="corrupt_gzip, 3 attempts", state="bad"),
                Step(at=None, what="Written to Parquet", detail=None, state="next"),
                Step(at=None, what="Committed to the table", detail=None, state="next"),
            ],
            rows=None,
            bad_lines=None,
        )
    return Journey(
        path=path,
        answer="The file is in the table since version 4,806: 431,204 rows, and 3 lines were set "
        "aside as bad.",
        state="in_table",
        way_out=None,
        steps=[
            Step(at=clock.ago(minutes=4), what="Landed in the source", detail="112.8 MiB, gzip", state="done"),
            Step(at=clock.ago(minutes=3), what="Read in batch 4812", detail="unit u0022, 9.4 s", state="done"),
            Step(at=clock.ago(minutes=2.8), what="Journaled", detail="entry 4812, 2 data files", state="done"),
            Step(at=clock.ago(minutes=2.7), what="Committed to the table", detail="version 4806, 41 s after it landed", state="done"),
        ],
        rows=431_204,
        bad_lines=3,
    )


def version(clock: Clock, number: int, back: int, pipeline: str) -> Version:
    optimize = number % 9 == 0
    return Version(
        version=number,
        at=clock.ago(minutes=5 * back, seconds=31),
        operation="OPTIMIZE" if optimize else "WRITE",
        by="Apache-Spark/4.2.0 Delta-Lake/4.2.0" if optimize else "penguin 0.1.0",
        files_added=1 if optimize else 2,
        files_removed=18 if optimize else 0,
        rows_added=None if optimize else 431_204,
        bytes_added=104_118_301,
        entry=None if optimize else number + 6,
        pipeline=None if optimize else pipeline,
    )


def table_detail(clock: Clock, summary: TableSummary) -> TableDetail:
    name = summary.pipelines[0] if summary.pipelines else "orders"
    return TableDetail(
        summary=summary,
        columns=columns(),
        partition_columns=["day"],
        schema_changes=[
            SchemaChange(version=3_911, at=clock.ago(days=3), what="added column voucher: string"),
            SchemaChange(version=1_204, at=clock.ago(days=40), what="added column channel: string"),
            SchemaChange(version=610, at=clock.ago(days=400), what="amount: long to decimal(18,2)"),
        ],
        recent_versions=[version(clock, 4_806 - back, back, name) for back in range(20)],
        properties={
            "delta.enableChangeDataFeed": "false",
            "delta.logRetentionDuration": "interval 30 days",
            "delta.deletedFileRetentionDuration": "interval 7 days",
            "delta.checkpointInterval": "10",
        },
        features=["appendOnly", "invariants", "typeWidening", "v2Checkpoint"],
    )
