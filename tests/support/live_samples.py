"""What the live page's API says of a lake; all times are relative to a clock."""

import math
import random
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from blizzard.answers.answer import Problem, WayOut
from blizzard.answers.file_counts import Standing
from liveview.headline import overview_of
from liveview.model import (
    CurrentBatch,
    DayVerdict,
    Freshness,
    Overview,
    PipelineSummary,
    Program,
    Stage,
    State,
    TableSummary,
    Unit,
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
        False: "No: 286 of 288 files of {} are in the table; 1 failed and 1 is waiting.",
        None: "Not known: the source cannot be listed by day.",
    }[complete]
    standing: Standing = "complete" if complete else "unknown" if complete is None else "incomplete"
    sentence = words.format(clock.day(1))
    return DayVerdict(day=clock.day(1), complete=complete, sentence=sentence, standing=standing)


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
        next_listing_at=stamp(clock.now + timedelta(seconds=24)),
        waiting_files=0,
        waiting_bytes=0,
        changed_files=0,
        freshness=Freshness(
            median_secs=41.3, worst_secs=188.0, measured_files=288, since=clock.ago(days=1)
        ),
        last_entry=4_812,
        uncommitted_entries=0,
        uncommitted_rows=0,
        behind_secs=0.0,
        failed_files=0,
        held_entries=0,
        quarantined_lines=0,
        last_batch=4_812,
        last_batch_at=clock.ago(seconds=36),
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
        next_listing_at=None,
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
                way_out=WayOut(commands=("blizzard -c lake.yaml --dry-run",)),
                since=clock.ago(minutes=14),
                subject="s3://landing/payments/",
            ),
            Problem(
                severity="warning",
                code="entry_held",
                message="Entry 4790 is held: column amount is decimal(38,9), the table has long.",
                way_out=WayOut(commands=("penguin -c lake.yaml held",)),
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
        last_batch_at=clock.ago(minutes=15),
        yesterday=verdict(clock, complete=False),
    )


def table(clock: Clock, name: str = "orders", **changes: object) -> TableSummary:
    summary = TableSummary(
        name=name,
        uri=f"s3://lake/tables/{name}",
        state="idle",
        health="ok",
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
    return overview_of(
        stamp(clock.now),
        programs(clock, penguin),
        pipelines,
        [table(clock, name) for name in names],
    )


def busy(clock: Clock) -> Overview:
    """Return a lake of eight pipelines: one runs, one fails, one has a warning."""
    calm = [pipeline(clock, name) for name in NAMES if name not in {"clicks", "payments"}]
    late = replace(
        calm[2],
        state="to_read",
        waiting_files=41,
        waiting_bytes=904_118_301,
        oldest_waiting_secs=412.0,
        health="warning",
        problems=[
            Problem(
                severity="warning",
                code="bad_lines",
                message="318 lines of the last hour were quarantined: weight is not a number.",
                way_out=WayOut(commands=("blizzard -c lake.yaml dlq list",)),
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
    states: tuple[State, ...] = ("idle", "idle", "idle", "to_read", "stopped", "unknown")
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
                Problem(
                    severity="error",
                    code=HOSTILE[:20],
                    message=HOSTILE,
                    way_out=WayOut(commands=(HOSTILE,)),
                )
            ],
            yesterday=DayVerdict(day=clock.day(1), complete=None, sentence=HOSTILE),
        )
        for name in names
    ]
    return overview(clock, *odd)
