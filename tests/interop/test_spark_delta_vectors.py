"""Tables of Spark's with deletion vectors: rows are rewritten and shown without deleted ones."""

import json
from collections.abc import Callable

import pytest

from blizzard.inspect.audit.findings import FindingKind
from tests.support import delta_spark as spark
from tests.support.compactions import Crowded, crowded
from tests.support.erasures import FIELDS
from tests.support.promotions import PRICE

pytestmark = [
    pytest.mark.interop, pytest.mark.timeout(600), pytest.mark.unbalanced("rows_removed"),
]  # fmt: skip
LARGE = 220_000


def is_deleted(one: int) -> bool:
    """Whether a row is deleted: in the large file, by runs, by bitsets and by arrays of places."""
    if one < 70_000:
        return True
    if one < 140_000:
        return one % 2 == 0
    return one % 100 == 0 if one < LARGE else one % 10 == 7


DELETED = (
    f"id < 70000 OR (id < 140000 AND id % 2 = 0) OR (id < {LARGE} AND id % 100 = 0) "
    f"OR (id >= {LARGE} AND id % 10 = 7)"
)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Crowded:
    """A table with a large data file and three small ones, in each of which Spark deletes rows."""
    desk = crowded(tmp_path_factory.mktemp("vectors"), files=0, compact={"min_files": 2})
    half = LARGE // 2
    for part in (0, 1):
        rows = (
            {"id": one, "user": f"u{one % 10}"} for one in range(part * half, part * half + half)
        )
        desk.land(f"large-{part}.ndjson", *rows)
    desk.ingest()
    for part in range(3):
        first = LARGE + 10 * part
        desk.land(
            f"{part}.ndjson", *({"id": first + one, "user": "s", "price": 1} for one in range(10))
        )
        desk.ingest()
    name = f"delta.`{desk.table}`"
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)")
    spark.sql(f"DELETE FROM {name} WHERE {DELETED}")
    assert list(desk.table.rglob("deletion_vector*"))
    return desk


def check(desk: Crowded, keeps: Callable[[int], bool]) -> None:
    """Compare the rows that Spark reads with those that must be left; only Spark has lost any."""
    spark.forget()
    wanted = [one for one in range(LARGE + 30) if not is_deleted(one) and keeps(one)]
    sums = ("count(1)", "count(distinct id)", "sum(id)", "sum(id * id)")
    (found,) = spark.table(desk.table).selectExpr(*sums).collect()
    squares = sum(one * one for one in wanted)
    assert tuple(found) == (len(wanted), len(wanted), sum(wanted), squares)
    audit = desk.audited()
    assert {one.kind for one in audit.differences} <= {FindingKind.ROWS_REMOVED}
    assert audit.active.rows == len(wanted)


def test_every_command_goes_by_the_vectors_of_spark(desk: Crowded) -> None:
    """One table, one step after the other: Spark deletes rows in place in between."""
    name = f"delta.`{desk.table}`"
    check(desk, lambda _one: True)
    shown = desk.cli("trace", "--where", f"id >= {LARGE} AND id < {LARGE + 10}", "--output", "json")
    assert len(shown.stdout.splitlines()) == 9

    # A retraction and an erasure rewrite the large file; the other rows of it keep their places.
    assert sum(desk.take_back("large-0.ndjson").rows.values()) == 20_000
    check(desk, lambda one: one >= LARGE // 2)
    assert desk.forget("id = 210001 OR id = 210100").found.rows == 1
    check(desk, lambda one: one >= LARGE // 2 and one != 210_001)
    # Of so many gaps the journal keeps the first and the last line.
    row = json.loads(desk.cli("trace", "--where", "id = 210002", "--output", "json").stdout)
    first, last = row["records"]
    assert row["source"].endswith("large-1.ndjson")
    assert first <= 210_002 - LARGE // 2 + 1 <= last

    desk.configure({"fields": [*FIELDS["fields"], PRICE]})
    desk.promote("price")
    desk.penguin()
    spark.sql(f"DELETE FROM {name} WHERE id IN ({LARGE + 1}, {LARGE + 11}, 210003)")
    gone = {210_001, 210_003, LARGE + 1, LARGE + 11}
    check(desk, lambda one: one >= LARGE // 2 and one not in gone)
    assert spark.table(desk.table).where("price = 1").count() == 25
    done = desk.tidy()
    assert (done.failed, len(done.replaced)) == ((), 1)
    check(desk, lambda one: one >= LARGE // 2 and one not in gone)
