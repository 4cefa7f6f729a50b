"""One work unit whose rows give their partitions: all in or all out, and the books balance."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from blizzard.events import RowsWithoutTime
from blizzard.model.event_time import row_partitions
from blizzard.model.settings import RollingPolicy, Sizing
from blizzard.model.source.form import Form, SkipRule
from blizzard.model.work import UnitOutcome
from blizzard.worker.download import OpenedStores
from blizzard.worker.unit import run_unit
from lakebed.columns.schema import Field, Schema
from lakebed.documents.records import FailureStage
from lakebed.errors import StoreDenied
from lakebed.partition import Template
from lakebed.telemetry.measures import Count
from lakebed.types import FieldType
from tests.support import builders
from tests.support.builders import Bench, declared, listed, ndjson, pipeline_settings, put, unit
from tests.support.processes import printed
from tests.support.stores import RefusesUploads
from tests.support.units import BAD, With

DECLARED = declared(id="int64!", ts="timestamp", region="string")
TEMPLATE = Template.parse("date=%Y-%m-%d/region=%s")


@dataclass
class Place:
    """A source folder and a table folder, partitioned by event time and region."""

    source: Path
    table: Path
    declared: Schema = DECLARED

    def run(self, **given: Any) -> UnitOutcome:
        stores = given.pop("stores", OpenedStores)
        form = given.pop("form", Form())
        shared = builders.work(
            self.source,
            self.table,
            file_schema=self.declared.without(frozenset(TEMPLATE.keys)),
            row_partitions=row_partitions(TEMPLATE, self.declared, "ts"),
            **given,
        )
        files = [replace(file, form=form) for file in listed(self.source)]
        outcome = run_unit(unit(files), shared, stores(shared))
        for each in outcome.sources:
            assert each.lines == each.blank + each.filtered + each.quarantined + each.rows
        rows = sum(each.rows for each in outcome.sources)
        assert rows == sum(file.record_count for file in outcome.files)
        return outcome

    def ids(self, outcome: UnitOutcome) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for file in outcome.files:
            folder = file.filename.rpartition("/")[0]
            ids = pq.read_table(self.table / file.filename).column("id").to_pylist()
            found.setdefault(folder, []).extend(n for n in ids if isinstance(n, int))
        return {folder: sorted(ids) for folder, ids in found.items()}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "in").mkdir()
    return Place(tmp_path / "in", tmp_path / "table")


def row(number: int, day: int = 1, region: str | None = "eu") -> dict[str, Any]:
    return {"id": number, "ts": f"2024-01-{day:02}T12:00:00Z", "region": region}


def test_the_timestamp_stays_in_the_file_and_the_partition_column_does_not(place):
    put(place.source, "a.ndjson", ndjson([row(1)]))
    (file,) = place.run().files
    # As its own schema: a reader of the folder would add the folder's columns.
    assert pq.ParquetFile(place.table / file.filename).schema_arrow.names == ["id", "ts"]


@pytest.mark.parametrize("budget", [10, 10**9])
def test_a_file_that_fails_leaves_nothing_in_any_partition(place, budget):
    """L15: small ones are not written before their last line, large ones are forgotten."""
    put(place.source, "a.ndjson", ndjson([row(1), row(2, 2)]))
    many = (row(n, 1 + n % 28) for n in range(100, 40_000))
    put(place.source, "b.ndjson", ndjson(many) + BAD)
    put(place.source, "c.ndjson", ndjson([row(3, 3)]))
    outcome = place.run(
        rolling=RollingPolicy(file_size=4_000, row_group_size=100_000),
        sizing=Sizing(decoded_budget=budget, staged_bytes=1),
    )
    assert sorted(n for ids in place.ids(outcome).values() for n in ids) == [1, 2, 3]
    assert [each.path for each in outcome.sources if each.failure] == ["b.ndjson"]
    uploaded = {path.relative_to(place.table).as_posix() for path in place.table.rglob("*.parquet")}
    assert (uploaded > {file.filename for file in outcome.files}) == (budget == 10)


@pytest.mark.parametrize("budget", [10, 10**9])
def test_an_upload_that_fails_in_one_partition_fails_its_sources_in_all(place, budget):
    """L03."""
    put(place.source, "a.ndjson", ndjson([row(1), row(2, 2), row(3, 3)]))
    refuses = RefusesUploads(place.table, StoreDenied("refused"))
    refuses.when = lambda path, _file: "date=2024-01-02" in path
    outcome = place.run(
        stores=lambda shared: With(shared, refuses), sizing=Sizing(decoded_budget=budget)
    )
    assert outcome.files == ()
    (record,) = outcome.sources
    assert record.failure is not None
    assert (record.failure.stage, record.rows) == (FailureStage.UPLOAD, 0)


@pytest.mark.parametrize(
    ("bad", "code", "field"),
    [
        (row(2, 1, "x" * 300), "partition_value_too_long", "region"),
        (row(2, 1, ""), "required_field_missing", "region"),
        (row(2, 1, None), "required_field_missing", "region"),
    ],
)
def test_a_row_without_a_possible_partition_fails_its_file_by_line_and_the_others_go_on(
    place, bad, code, field
):
    """W09, L15."""
    required = Field(name="region", type=FieldType.STRING, nullable=False)
    place.declared = Schema((*DECLARED.fields[:2], required))
    put(place.source, "a.ndjson", ndjson([row(1), bad]))
    put(place.source, "b.ndjson", ndjson([row(3)]))
    outcome = place.run()
    assert place.ids(outcome) == {"date=2024-01-01/region=eu": [3]}
    failure = outcome.sources[0].failure
    assert failure is not None
    assert (failure.stage, failure.code, failure.field, failure.line) == (
        FailureStage.PARSE, code, field, 2,
    )  # fmt: skip


def test_the_line_is_known_where_records_were_skipped_before_it(place):
    put(place.source, "a.ndjson", ndjson([{"index": 1}, row(1), row(2, 1, "x" * 300)]))
    failure = place.run(form=Form(skip=SkipRule(only_key=("index",)))).sources[0].failure
    assert failure is not None
    assert (failure.code, failure.line) == ("partition_value_too_long", 3)


def run_by(root: Path, template: str) -> Bench:
    """Run one batch whose rows give their partitions by a template."""
    settings = pipeline_settings(
        root / "in", root / "table", template=template, timestamp_field="ts", schema=DECLARED
    )
    bench = Bench(settings)
    assert bench.pipeline().step()
    return bench


def test_of_a_template_the_rows_give_what_they_can_and_the_path_the_rest(tmp_path):
    """L08, L18: late rows go to their own day, whatever folder their file came in."""
    body = ndjson([row(1, 9), row(2, 1)])
    put(tmp_path / "in", "tenant=a%2Fb/date=2024-01-09/x.ndjson", body)
    bench = run_by(tmp_path, "date=%Y-%m-%d/tenant=%s/region=%s")
    entry = bench.entries()[-1]
    assert entry.partition_columns == ("date", "tenant", "region")
    assert sorted(file.filename.rpartition("/")[0] for file in entry.files) == [
        "date=2024-01-01/tenant=a%2Fb/region=eu",
        "date=2024-01-09/tenant=a%2Fb/region=eu",
    ]


def test_files_of_all_folders_share_a_unit_where_only_rows_give_partitions(tmp_path):
    for day in range(1, 6):
        put(tmp_path / "in", f"date=2024-01-{day:02}/x.ndjson", ndjson([row(day, 1)]))
    bench = run_by(tmp_path, "date=%Y-%m-%d")
    (file,) = bench.entries()[-1].files
    assert (file.record_count, dict(file.partition_values)) == (5, {"date": "2024-01-01"})


def test_rows_without_a_timestamp_are_kept_and_told(tmp_path):
    put(tmp_path / "in", "x.ndjson", ndjson([row(1), {"id": 2}, {"id": 3, "ts": None}]))
    bench = run_by(tmp_path, "date=%Y-%m-%d/hour=%H")
    (told,) = (event for event in bench.events if isinstance(event, RowsWithoutTime))
    assert told == RowsWithoutTime(pipeline="default", entry=1, field="ts", rows=2)
    assert told.sentence() == "default: batch 1: 2 rows without ts went into the null partition"
    labels = {"pipeline": "default"}
    assert list(told.measures()) == [Count("blizzard_rows_without_time_total", 2, labels)]
    assert sum(file.record_count for file in bench.entries()[-1].files) == 3


PROGRAM = """
import json, os, resource, sys
from pathlib import Path
from blizzard.model.event_time import row_partitions
from blizzard.model.settings import RollingPolicy
from blizzard.worker.download import OpenedStores
from blizzard.worker.unit import run_unit
from blizzard.worker.output.parquet import RollingWriter
from lakebed.partition import Template
from lakebed.columns.schema import Field, Schema
from lakebed.types import FieldType
from lakebed.storage.store import ObjectFacts, Store
from tests.support.builders import NOON, listed, ndjson, put, unit, work

declared = Schema((
    Field(name="id", type=FieldType.INT64),
    Field(name="ts", type=FieldType.TIMESTAMP),
    Field(name="part", type=FieldType.INT32),
    Field(name="name", type=FieldType.STRING),
))
most, real = 0, RollingWriter._close_row_group

def counted(self):
    global most
    real(self)
    most = max(most, len(os.listdir("/proc/self/fd")))

def taken(self, name, file, **how):  # the store's own work is no subject here
    return ObjectFacts(path=name, size=file.stat().st_size, etag=None, modified=NOON)

RollingWriter._close_row_group, Store.upload = counted, taken
for count in (1, 1_000):  # the peak of the second is that of both, if it takes more at all
    root = Path(sys.argv[1]) / str(count)
    put(root / "in", "a.ndjson", ndjson(
        {"id": n, "part": n * 7919 % count, "name": "x" * 200} for n in range(5_000)
    ))
    given = work(
        root / "in", root / "table",
        file_schema=declared.without(frozenset({"part"})),
        row_partitions=row_partitions(Template.parse("part=%s"), declared, "ts"),
        rolling=RollingPolicy(row_group_size=8 * 1024 * 1024),
    )
    outcome = run_unit(unit(listed(root / "in")), given, OpenedStores(given))
    print(json.dumps({
        "rows": sum(file.record_count for file in outcome.files),
        "partitions": len({file.partition_values["part"] for file in outcome.files}),
        "descriptors": most,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }))
"""


def test_a_thousand_partitions_in_one_batch_take_little_more_memory_than_one(tmp_path: Path):
    """W18."""
    one, many = printed(PROGRAM, tmp_path)

    assert (one["rows"], one["partitions"]) == (5_000, 1)
    assert (many["rows"], many["partitions"]) == (5_000, 1_000)
    assert many["descriptors"] - one["descriptors"] < 100
    assert many["peak"] - one["peak"] < 48 * 1024 * 1024
