"""What is read of a log is what the library reads of it, and the removed files beside."""

import time
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.deltalog.files import read_back, read_log
from lakebed.deltalog.log_contents import LONG_AGO, LogContents
from lakebed.deltalog.snapshot import LogReader
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Reader

NAMES = st.sampled_from([f"p=a%2Fb c é/{number}.parquet" for number in range(12)])
STEPS: st.SearchStrategy[Any] = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sets(NAMES, min_size=1, max_size=3)),
        st.tuples(st.just("remove"), st.sets(NAMES, min_size=1, max_size=2)),
        st.tuples(st.just("checkpoint"), st.just(frozenset())),
        st.tuples(st.just("clean"), st.just(frozenset())),
        st.tuples(st.just("look"), st.just(frozenset())),
    ),
    max_size=14,
)
NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


@settings(max_examples=40, deadline=None)
@given(STEPS)
def test_every_file_that_is_or_was_in_the_table_is_known(steps):
    with TemporaryDirectory() as folder:
        create_table_with_add_actions(
            folder,
            Schema.from_arrow(pa.table({"id": [1], "p": ["x"]}).schema),
            [],
            mode="error",
            partition_by=["p"],
            configuration={"delta.logRetentionDuration": "interval 0 seconds"},
        )
        reader = Reader(folder, StorageOptions())
        known: LogContents | None = None
        touched: set[str] = set()
        settled: set[str] = set()
        for step, names in steps:
            table = DeltaTable(folder)
            if step == "checkpoint":
                table.create_checkpoint()
            elif step == "clean":
                table.cleanup_metadata()
            elif step == "look":
                known = looked(reader, known)
            else:
                touched |= names
                settled |= {f"penguin/{name}" for name in names}
                change(table, step, names)
        for found in (looked(reader, known), looked(reader, None)):
            assert found.paths == touched
            assert set(found.transactions) == settled
            read_back(reader, found, LONG_AGO)
            assert found.paths == touched


def looked(reader: Reader, known: LogContents | None) -> LogContents:
    snapshot = LogReader(reader).open()
    assert snapshot is not None
    return read_log(reader, snapshot, known)


def change(table: DeltaTable, step: str, names: set[str]) -> None:
    now = time.time_ns() // 1_000_000
    table.create_write_transaction(
        [
            AddAction(
                path=name,
                size=1,
                partition_values={"p": "a/b c é"},
                modification_time=now,
                data_change=True,
                stats="{}",
            )
            if step == "add"
            else RemoveAction(path=name, data_change=True, deletion_timestamp=now)
            for name in sorted(names)
        ],
        "append",
        table.schema(),
        partition_by=["p"],
        commit_properties=CommitProperties(
            app_transactions=[
                *(Transaction(f"penguin/{name}", 1) for name in sorted(names)),
                Transaction(f"blizzard/{len(names)}", 1),
            ]
        ),
        post_commithook_properties=NO_HOOKS,
    )
