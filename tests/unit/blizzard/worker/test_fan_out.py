"""Many partitions or a stalled uploader: few open files, bounded memory, every row in its file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from blizzard.model.event_time import row_partitions
from blizzard.model.settings import RollingPolicy, Sizing
from blizzard.model.work import ClosedFile
from blizzard.worker.output.encoding import SAMPLE_ROWS
from blizzard.worker.output.parquet import RollingWriter, batch_cost
from blizzard.worker.output.partitioner import PartitionedWriter
from lakebed.partition import Template
from lakebed.types import RESCUED
from tests.support.builders import Hands, declared
from tests.support.processes import printed
from tests.unit.blizzard.worker.test_dictionary import open_files

DECLARED = declared(id="int64", ts="timestamp", region="string")
FILE = DECLARED.without(frozenset({"region"})).arrow()
COST = batch_cost(FILE)


def writer(
    folder: Path,
    policy: RollingPolicy | None = None,
    kind: type[RollingWriter] = RollingWriter,
    schema: pa.Schema = FILE,
    batch_size: int = 100,
    **given: Any,
) -> PartitionedWriter:
    by = row_partitions(Template.parse("tenant=%s/region=%s"), DECLARED, "ts")
    assert by is not None
    clock = Hands().clock
    policy = policy or RollingPolicy()

    def for_partition(values, choose):
        return kind(
            schema=schema,
            policy=policy,
            marks={},
            folder=folder,
            clock=clock,
            partition_values=values,
            choose=choose,
        )

    return PartitionedWriter(
        by=by,
        from_path={"tenant": "t"},
        schema=schema,
        policy=policy,
        batch_size_of=lambda _key: batch_size,
        for_partition=for_partition,
        **({"staged_bytes": Sizing().staged_bytes} | given),
    )


def batch(regions: list[str], start: int = 0) -> pa.RecordBatch:
    ids = pa.array(range(start, start + len(regions)), pa.int64())
    none = pa.nulls(len(regions), FILE.field("ts").type)
    return pa.record_batch([ids, none, pa.array(regions)], schema=DECLARED.arrow())


def at_once(folder: Path, *given: Any, **named: Any) -> PartitionedWriter:
    """Return a writer that divides each batch as it comes."""
    return writer(folder, *given, staged_bytes=1, **named)


def rows_of(closed: list[ClosedFile]) -> dict[Any, str | None]:
    return {
        number: file.partition_values["region"]
        for file in closed
        for number in pq.read_table(file.path)["id"].to_pylist()
    }


def test_a_partition_of_many_rows_whose_texts_are_few_is_written(tmp_path):
    """Of which a column is in no file, as long as nothing is rescued."""
    kinds = pa.schema([("kind", pa.string()), (RESCUED, pa.string())])
    rows = 2 * SAMPLE_ROWS
    target = at_once(tmp_path, schema=kinds, batch_size=rows)
    texts = [("read", "write", None)[number % 3] for number in range(rows)]
    ids, times = pa.nulls(rows, pa.int64()), pa.nulls(rows, FILE.field("ts").type)
    where, rescued = pa.array(["x"] * rows), pa.nulls(rows, pa.string())
    given = pa.record_batch(
        [ids, times, where, pa.array(texts), rescued], names=["id", "ts", "region", "kind", RESCUED]
    )

    (closed,) = [*target.write(given, "s:a"), *target.close()]

    found = pq.read_table(closed.path)
    assert found.column_names == ["kind"]
    assert found["kind"].to_pylist() == texts


def tiny_batches(count: int, regions: int) -> Iterator[pa.RecordBatch]:
    for number in range(count):
        yield batch([f"r{place}" for place in range(regions)], number * regions)


def test_open_files_and_memory_stay_within_their_bounds(tmp_path):
    """W18: however many partitions there are."""
    limit = 40 * COST
    seen: list[int] = []
    held: list[int] = []

    class Watched(RollingWriter):
        def _close_row_group(self):
            held.append(target.held)
            super()._close_row_group()
            seen.append(len(open_files(tmp_path)))

    policy = RollingPolicy(row_group_size=limit)
    target = at_once(tmp_path, policy, kind=Watched, max_open_files=5)
    closed: list[ClosedFile] = []
    for each in tiny_batches(4, 100):
        closed += target.write(each, "s:a")
        held.append(target.held)
    closed += target.close()
    assert max(seen) == 5
    assert open_files(tmp_path) == []
    assert limit < max(held) <= limit + each.nbytes + COST
    assert sorted(rows_of(closed)) == list(range(400))
    assert target.held == 0


def test_rows_keep_no_others_in_memory_beside_them(tmp_path):
    """W18: a partition with a row in every batch must not keep all batches."""
    target = at_once(tmp_path, RollingPolicy(row_group_size=50_000, file_size=2_000))
    before = pa.total_allocated_bytes()
    most = 0
    for number in range(300):
        for file in target.write(batch(["big"] * 99 + ["small"], number * 100), "s:a"):
            file.path.unlink()
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < 200_000
    (rest,) = [each for each in target.close() if each.partition_values["region"] == "small"]
    assert rest.rows <= 300


def test_files_of_each_partition_roll_at_the_target_size(tmp_path):
    policy = RollingPolicy(file_size=10_000, row_group_size=10**9)
    target = at_once(tmp_path, policy)
    closed: list[ClosedFile] = []
    for number in range(200):
        closed += target.write(batch(["a", "b"] * 50, number * 100), "s:a")
    closed += target.close()
    assert sorted(rows_of(closed)) == list(range(20_000))
    sizes = [file.size for file in closed if file.partition_values["region"] == "a"]
    assert len(sizes) > 3
    assert all(8_000 < size < 15_000 for size in sizes[:-1])


PROGRAM = """
import json, os, resource, sys, threading, time
from pathlib import Path
from blizzard.model.settings import RollingPolicy, UploadSettings
from blizzard.worker.download import (OpenedStores)
from blizzard.worker.unit import (run_unit)
from lakebed.storage.store import Reader, Store
from tests.support.builders import listed, ndjson, put, rows, unit, work

root, count = Path(sys.argv[1]), int(sys.argv[2])
body = ndjson({"id": n, "name": "x" * 900} for n in range(300))
put(root / "in", "0000.ndjson", body)
for number in range(1, count):
    os.link(root / "in/0000.ndjson", root / f"in/{number:04d}.ndjson")

begun, stalled, go_on = [], threading.Event(), threading.Event()
stream, upload = Reader.stream, Store.upload

def watched(self, path, **how):
    begun.append(path)
    return stream(self, path, **how)

def blocked(self, *given, **how):
    stalled.set()
    go_on.wait()
    return upload(self, *given, **how)

Reader.stream, Store.upload = watched, blocked
given = work(
    root / "in", root / "table",
    rolling=RollingPolicy(file_size=1000),
    upload=UploadSettings(max_concurrent_uploads=2),
)
everything = unit(listed(root / "in"))
done = threading.Thread(target=run_unit, args=(everything, given, OpenedStores(given)))
done.start()
stalled.wait()
before = -1
while before != len(begun):  # until nothing new is begun any more
    before = len(begun)
    time.sleep(0.5)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
told = {"begun": len(begun), "peak": peak * 1024}
print(json.dumps(told), flush=True)
os._exit(0)  # what waits need not be read and uploaded
"""


def test_with_a_stalled_uploader_downloads_stop_and_memory_is_that_of_few_files(tmp_path: Path):
    """W18: 150 waiting source files cost no more than 10."""
    (few,) = printed(PROGRAM, tmp_path / "few", 10)
    (many,) = printed(PROGRAM, tmp_path / "many", 150)

    assert many["begun"] <= 20, "two uploads, eight closed files, four downloads ahead, one in hand"
    assert many["peak"] - few["peak"] < 32 * 1024 * 1024
