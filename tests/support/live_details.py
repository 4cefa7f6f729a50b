"""Documents about one pipeline, file or table, as a busy lake would give them."""

from dataclasses import replace
from datetime import datetime, timedelta

from blizzard.answers.answer import Answer, FailedSource, FileState, Read, Resolution, WayOut
from blizzard.answers.file_counts import DayOrPartition, Standing
from lakebed.storage.options import ObjectFacts
from liveview.details import (
    BadLineGroup,
    Batch,
    BookLine,
    Column,
    FailedFile,
    FileRow,
    FreshnessSeries,
    HeldEntry,
    PipelineDetail,
    SchemaChange,
    Series,
    TableDetail,
    Version,
)
from liveview.model import PipelineSummary, TableSummary
from tests.support.live_samples import Clock, stamp, waves


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
            BookLine(label="bad lines in quarantine", value=bad),
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


def column(name: str, kind: str) -> Column:
    return Column(name=name, type=kind, nullable=True, partition=False)


def columns(count: int = 8) -> list[Column]:
    known = [
        replace(column("order_id", "long"), nullable=False),
        column("customer", "string"),
        column("amount", "decimal(18,2)"),
        column("items", "array<struct<sku: string, quantity: int, price: decimal(18,2)>>"),
        column("placed_at", "timestamp"),
        column("channel", "string"),
        column("voucher", "string"),
        replace(column("day", "date"), partition=True),
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
                way_out=WayOut(
                    advice="This change lets them in; then replay them.",
                    yaml="schema:\n  on_mismatch: rescue",
                    commands=("blizzard -c lake.yaml dlq replay wrong_type-amount",),
                ),
            ),
            BadLineGroup(
                code="not_json",
                field=None,
                lines=8,
                files=1,
                sample_path=path,
                sample_line=7,
                way_out=WayOut(
                    advice="No setting lets them in.",
                    commands=("blizzard -c lake.yaml dlq show not_json",),
                ),
            ),
        ]
        if troubled
        else [],
        failed=[
            FailedFile(
                path=path,
                code="corrupt_gzip",
                reason="The file ends in the middle of a gzip member, after 41.2 MiB.",
                way_out=WayOut(
                    advice="Upload it again, complete; it is taken when it changes.",
                    commands=(f"blizzard -c lake.yaml dlq retry --file {path}",),
                ),
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
                way_out=WayOut(commands=("penguin -c lake.yaml held",)),
                since=clock.ago(hours=3),
                files=2,
                rows=431_204,
            )
        ]
        if troubled
        else [],
    )


def days(clock: Clock, count: int = 31) -> list[DayOrPartition]:
    made = []
    for back in range(count):
        complete = None if back == 0 else back not in {1, 9, 40, 200}
        standing: Standing = "complete" if complete else "not_over" if back == 0 else "incomplete"
        made.append(
            DayOrPartition(
                name=clock.day(back),
                landed=288,
                in_table=288 if complete else 286 if complete is False else 140,
                journaled=0 if back else 12,
                held=0,
                failed=1 if complete is False else 0,
                waiting=1 if complete is False else 0,
                changed=0,
                retracted=0,
                discarded=0,
                removed=0,
                lost=1 if back == 9 else 0,
                deleted=1 if back == 9 else 0,
                overwritten=1 if back == 3 else 0,
                quarantined_lines=0,
                rows=12_406_118,
                bytes=41_204_118_301,
                complete=complete,
                standing=standing,
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


def freshness(clock: Clock, points: int = 96) -> FreshnessSeries:
    median: list[float | None] = [None if at % 8 == 7 else 30.0 + at % 5 for at in range(points)]
    return FreshnessSeries(
        start=clock.ago(days=1),
        step_secs=86_400 / points,
        median_secs=median,
        worst_secs=[None if each is None else 188.0 - at for at, each in enumerate(median)],
        files=[0 if each is None else 3 for each in median],
    )


def files(clock: Clock, name: str, search: str, count: int = 12) -> list[FileRow]:
    states = (*map(FileState, ("skipped", "journaled", "failed", "held", "waiting", "retracted")),)
    states += (FileState.CHANGED,)
    return [
        FileRow(
            path=f"{name}/2026/11/16/{search}-{at:05}.ndjson.gz",
            state=states[at] if at < len(states) else FileState.IN_TABLE,
            at=clock.ago(minutes=3 * at),
            bytes=118_301_204 - at * 1_000_003,
            rows=None if at in {0, 2, 4, 6} else 431_204,
            entry=None if at in {0, 4, 6} else 4_812 - at,
            version=4_806 - at if at >= len(states) else None,
            reason="The file ends in the middle of a gzip member." if at == 2 else None,
        )
        for at in range(count)
    ]


def journey(clock: Clock, path: str) -> Answer:
    def at(**span: float) -> datetime:
        return datetime.fromisoformat(clock.ago(**span))

    stored = ObjectFacts(path=path, size=118_279_372, etag="e", modified=at(hours=3))
    answer = Answer(kind="source", state=FileState.IN_TABLE, uri=path, answer="", stored=stored)
    if "failed" in path or "00017" in path:
        return replace(
            answer,
            answer="The file failed 3 times: it ends in the middle of a gzip member, after "
            "41.2 MiB. Nothing of it is in the table.",
            state=FileState.FAILED,
            next=(
                WayOut(
                    advice="Upload it again under the same name.",
                    commands=(f"blizzard -c lake.yaml dlq retry --file {path}",),
                ),
            ),
            failure=FailedSource(
                path=path,
                stage="decompress",
                code="corrupt_gzip",
                message="the member is cut off",
                line=None,
                field=None,
                attempts=3,
                since=at(hours=3),
                failed_at=at(hours=2),
                entry=4_811,
                next_try=None,
            ),
        )
    read = Read(
        entry=4_812,
        at=at(minutes=3),
        lines=431_207,
        blank=0,
        filtered=0,
        quarantined=3,
        rescued=0,
        dropped=0,
        rows=431_204,
        version=4_806,
        committed=True,
        committed_at=at(minutes=2.7),
    )
    replay = Resolution(
        entry=4_813,
        kind="replay",
        at=at(minutes=1),
        lines=1,
        filtered=0,
        rows=1,
        version=None,
        committed=False,
    )
    return replace(
        answer,
        answer="The file is in the table since version 4,806: 431,204 rows, and 3 lines were set "
        "aside as bad.",
        state=FileState.ALTERED if "altered" in path else FileState.IN_TABLE,
        read=(read,),
        resolved=(replay,),
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
    if summary.version is None:
        return TableDetail(
            summary=summary,
            columns=[],
            partition_columns=[],
            schema_changes=[],
            recent_versions=[],
            properties={},
            features=[],
        )
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
