"""What a scan of a table directory lists, on an object store."""

from datetime import timedelta

import pytest

from lakebed.clock import uuid7
from lakebed.layout import timed_id
from lakebed.listing.watermark import Windows
from lakebed.storage.lister import IncrementalLister
from penguin.foreign.inspect import Listed, everything, list_files, what_may_be_new
from tests.support.bucket import PAGE, Bucket

START = 1_700_000_000_000
WINDOWS = Windows(late=timedelta(minutes=1), quiet=timedelta(hours=1))
NAMES = [f"{uuid7(START + number, bytes(10))}.parquet" for number in range(3)]
LOG = [f"_delta_log/{number:020d}.json" for number in range(5 * PAGE)]


def listed(store: Bucket, watermarks: dict[str, str] | None = None) -> Listed:
    plan = (
        everything(lambda _path: True, depth=0)
        if watermarks is None
        else what_may_be_new(store, lambda _path: True, watermarks, WINDOWS)
    )
    return list_files(
        IncrementalLister(), store, plan, is_data=lambda path: timed_id(path) is not None
    )


def test_a_poll_of_a_table_without_partitions_does_not_list_its_log():
    store = Bucket([*NAMES, *LOG])
    assert sorted(listed(store, {"": NAMES[1]}).files) == NAMES
    assert store.requests["list"] == 1


@pytest.mark.parametrize("backwards", [False, True])
def test_names_are_told_apart_in_whichever_order_a_store_lists_them(backwards):
    store = Bucket([*(f"a/{name}" for name in NAMES), "_x/1.parquet", "a/b.parquet", "a/readme"])
    store.backwards = backwards
    found = listed(store)
    assert sorted(found.files) == [f"a/{name}" for name in NAMES]
    assert found.ignored == {"a/b.parquet"}
    assert found.unusable == {}


def test_a_new_folder_is_found_before_and_behind_the_known_ones():
    store = Bucket([f"{folder}/{name}" for folder in "abc" for name in NAMES])
    found = listed(store, {"b": NAMES[2]})
    assert len(found.files) == 9
    # The names of the folders, and each of them.
    assert store.requests["list"] == 4
