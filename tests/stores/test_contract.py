"""What both programs and their upkeep need of a store, on a local disk and on servers."""

import multiprocessing
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from deltalake import DeltaTable

from blizzard.pipeline_log import PipelineLog
from blizzard.repair.redo import RedoRequest, redo
from lakebed.clock import Clock
from lakebed.deltalog.segment import whole_segment
from lakebed.deltalog.snapshot import active_files
from lakebed.errors import ObjectChanged, ObjectMissing, StoreMisconfigured
from lakebed.layout import TablePath, file_name
from lakebed.storage.remote import for_delta
from lakebed.storage.store import AlreadyThere, Created, Store, probe
from penguin.upkeep.fsck import FsckFault, check
from penguin.upkeep.repair import RepairOrder
from penguin.upkeep.vacuum import VacuumOrder
from tests.support.dying import Fate
from tests.support.servers_lake import Lake
from tests.support.servers_reached import Contestant

pytestmark = pytest.mark.stores

MB = 1 << 20
WRITERS = 8
RACES = 3

# ------------------------------------------------------------------------------ create-only writes


def test_create_makes_an_object_once_and_leaves_the_one_that_is_there_alone(store: Store) -> None:
    assert store.create("a/b.json", b"first") == Created()
    before = store.head("a/b.json")
    assert store.create("a/b.json", b"second") == AlreadyThere()
    assert store.create("a/b.json", b"first") == AlreadyThere()
    assert (store.get("a/b.json"), store.head("a/b.json")) == (b"first", before)


def test_of_many_threads_that_create_an_object_one_wins(store: Store) -> None:
    """D07: an entry of the journal has one author."""
    with ThreadPoolExecutor(WRITERS) as pool:
        for race in range(RACES):
            create = partial(store.create, f"race/{race}")
            answers = list(pool.map(create, (f"{writer}".encode() for writer in range(WRITERS))))
            (winner,) = (who for who, answer in enumerate(answers) if answer == Created())
            assert store.get(f"race/{race}") == f"{winner}".encode()


def create_in_a_process(reopen: Callable[[], Store], writer: int) -> list[bool]:
    """Create some objects, each of which others create at the same time."""
    store = reopen()
    return [store.create(f"{race}", f"{writer}".encode()) == Created() for race in range(20)]


def reopened(uri: str, options: dict[str, str]) -> Store:
    """Open a store in another process."""
    from lakebed.storage.options import StorageOptions  # noqa: PLC0415 - in the other process

    return Store(uri, StorageOptions(options))


def test_of_several_processes_that_create_an_object_one_wins(contestant: Contestant) -> None:
    """D07: two blizzards are two processes."""
    uri = contestant.fresh()
    store = contestant.open(uri)
    reopen = partial(reopened, uri, contestant.options())
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=fresh) as pool:
        answers = list(pool.map(create_in_a_process, (reopen, reopen), (0, 1)))
    for race, created in enumerate(zip(*answers, strict=True)):
        assert sum(created) == 1
        assert store.get(f"{race}") == f"{created.index(True)}".encode()


def test_the_look_for_create_only_writes_finds_them(store: Store) -> None:
    store.create("protocol.json", b"{}")
    assert probe(store, TablePath("protocol.json"))
    assert store.get("protocol.json") == b"{}"


# ------------------------------------------------------------------------------ whole objects


@pytest.mark.parametrize("size", [0, 1, 100_000])
def test_what_is_written_is_read_with_its_facts(store: Store, size: int) -> None:
    body = os.urandom(size)
    store.replace("a", body)
    facts = store.head("a")
    assert facts is not None
    assert (facts.path, facts.size) == ("a", size)
    assert facts.etag
    assert store.get("a") == body
    assert store.fetch("a") == (body, facts)
    assert list(store.objects()) == [facts]
    assert store.level("") == ([], [facts])
    assert b"".join(store.stream("a", size=size, etag=facts.etag)) == body


def test_replace_writes_over_what_is_there_and_its_e_tag_says_so(store: Store) -> None:
    store.create("a", b"A" * 10)
    before = store.head("a")
    assert before is not None
    store.replace("a", b"B" * 10)
    after = store.head("a")
    assert after is not None
    assert store.get("a") == b"B" * 10
    assert before.etag != after.etag


def test_an_object_that_was_replaced_since_it_was_listed_is_refused(store: Store) -> None:
    """D17."""
    store.create("a", b"A" * 10)
    (listed,) = store.objects()
    store.replace("a", b"B" * 10)
    with pytest.raises(ObjectChanged):
        list(store.stream("a", size=10, etag=listed.etag))
    with pytest.raises(ObjectChanged):
        store.part("a", 2, 4, etag=listed.etag)


def test_delete_removes_an_object_and_one_that_is_gone_is_no_error(store: Store) -> None:
    store.create("a/b", b"1")
    store.create("a/bc", b"2")
    for _again in range(2):
        store.delete("a/b")
        assert store.get("a/b") is None
    assert store.get("a/bc") == b"2"
    assert store.create("a/b", b"3") == Created()
    assert store.get("a/b") == b"3"


# ------------------------------------------------------------------------------ parts of objects


def test_parts_of_an_object_are_read(store: Store) -> None:
    store.create("a", b"0123456789")
    facts = store.head("a")
    assert facts is not None
    assert store.get_range("a", start=2, length=3) == b"234"
    assert store.part("a", 7, 10, etag=facts.etag) == b"789"
    assert b"".join(store.stream("a", size=10, etag=facts.etag, start=7)) == b"789"


def test_a_part_that_the_object_does_not_have_is_never_made_up(store: Store) -> None:
    """L14."""
    store.create("a", b"0123456789")
    facts = store.head("a")
    assert facts is not None
    assert store.get_range("a", start=8, length=5) == b"89"
    with pytest.raises(ObjectChanged):
        store.part("a", 8, 13, etag=facts.etag)
    with pytest.raises(ObjectChanged):
        list(store.stream("a", size=11, etag=facts.etag))


@pytest.mark.parametrize("multipart", [True, False], ids=["parts", "whole"])
def test_a_file_is_uploaded_whole(store: Store, tmp_path: Path, multipart: bool) -> None:
    body = os.urandom(11 * MB + 1)
    (tmp_path / "file").write_bytes(body)
    parts: list[None] = []
    facts = store.upload(
        "date=2024-01-01/x.parquet",
        tmp_path / "file",
        part_size=5 * MB,
        multipart=multipart,
        max_parts=2,
        part_taken=lambda: parts.append(None),
    )
    assert facts.size == len(body)
    assert len(parts) == (3 if multipart else 0)
    assert list(store.objects()) == [facts]
    assert b"".join(store.stream(facts.path, size=facts.size, etag=facts.etag)) == body


# ------------------------------------------------------------------------------ moves


def test_a_moved_object_has_its_new_name_only_and_moving_it_again_changes_nothing(
    store: Store,
) -> None:
    """D02."""
    waiting, final = "outbox/date=2024-01-01/x y", "date=2024-01-01/x y"
    store.create(waiting, b"12")
    assert store.move(waiting, final, size=2) is True
    assert (store.get(waiting), store.get(final)) == (None, b"12")
    assert store.move(waiting, final, size=2) is False
    with pytest.raises(ObjectMissing):
        store.move(waiting, final, size=3)
    with pytest.raises(ObjectMissing):
        store.move("outbox/none", "none", size=2)


def test_a_move_that_was_made_in_part_is_finished(store: Store) -> None:
    """D02: the process died between the copy and the deletion."""
    store.create("outbox/x", b"12")
    store.create("x", b"12")
    assert store.move("outbox/x", "x", size=2) is True
    assert (store.get("outbox/x"), store.get("x")) == (None, b"12")


# ------------------------------------------------------------------------------ what is not there


def test_an_object_that_is_not_there_is_none_and_its_parts_are_an_error(store: Store) -> None:
    """L05."""
    store.create("a/b", b"1")
    for path in ("none", "a", "a/c"):
        assert store.get(path) is None
        assert store.head(path) is None
        assert store.fetch(path) is None
        assert store.get_range(path, start=0, length=1) is None
        with pytest.raises(ObjectMissing):
            list(store.stream(path, size=1, etag="e"))
        with pytest.raises(ObjectMissing):
            store.part(path, 0, 1, etag=None)
    assert list(store.objects("none")) == []
    assert store.level("none") == ([], [])


def test_a_bucket_that_is_not_there_is_an_error_and_not_an_empty_one(remote: Contestant) -> None:
    """L10."""
    store = remote.open(f"{remote.scheme}://no-such-bucket/table")
    for use in (
        lambda: list(store.objects()),
        lambda: list(store.in_order()),
        lambda: store.level("x"),
        lambda: store.create("a", b"1"),
        lambda: store.replace("a", b"1"),
    ):
        with pytest.raises(StoreMisconfigured, match=r"has no (bucket|container) no-such-bucket"):
            use()


A_TICK = 1.5
"""Stores tell times to the second."""


@pytest.fixture
def lake(contestant: Contestant, tmp_path: Path) -> Lake:
    """A table with one data file in each of two partitions."""
    lake = Lake(contestant, tmp_path)
    for day in ("01", "02"):
        lake.land(f"date=2024-01-{day}/a b%.ndjson")
        lake.life(Fate.none())
    return lake


def data(lake: Lake) -> set[str]:
    """Name the data files that are there."""
    return {one.path for one in lake.store("table").objects() if one.path.startswith("date=")}


def opened(lake: Lake) -> DeltaTable:
    access = for_delta(lake.contestant.options(), uri=lake.table)
    return DeltaTable(lake.table, storage_options=access)


def test_only_what_no_version_needs_is_vacuumed(lake: Lake) -> None:
    """Files that wait for their commit stay, whatever their age."""
    store, (settings,) = lake.store("table"), lake.programs.tables
    lake.land("date=2024-01-01/later.ndjson")
    lake.life(Fate.none())
    opened(lake).optimize.compact()
    lake.land("date=2024-01-02/waits.ndjson")
    lake.programs.blizzard(Fate.none())
    there = data(lake)
    named = active(lake)
    time.sleep(A_TICK)
    order = VacuumOrder(settings=settings, older_than=timedelta(0), ignore_retention=True)
    seen = order.plan(store)
    done = order.carry_out(store)
    assert seen is not None
    assert done is not None
    assert (done.files, done.bytes, done.some) == (seen.files, seen.bytes, seen.some)
    left = data(lake)
    assert named <= left
    # The small files that were put together: two in the first partition.
    assert len(there - left) == done.files == 2
    lake.programs.penguin(Fate.none())
    lake.balances()


def test_a_missing_file_is_taken_out_and_its_sources_are_read_again(lake: Lake) -> None:
    store = lake.store("table")
    assert check(store).damaged == ()
    lost = min(active(lake))
    store.delete(lost)
    (one,) = check(store).damaged
    assert (one.path, one.trouble) == (lost, FsckFault.MISSING)
    done = RepairOrder().carry_out(store)
    assert [one.path for one in done.files] == [lost]
    assert check(store).damaged == ()
    (settings,) = lake.programs.pipelines
    wanted = RedoRequest(files=frozenset({file_name(lost)}))
    _, entry = redo(store, settings.name, PipelineLog(settings).fates, clock=Clock(), wanted=wanted)
    assert entry is not None
    for _ in range(2):
        lake.life(Fate.none())
    lake.balances()


def active(lake: Lake) -> set[str]:
    """Name the files of the newest version."""
    store = lake.store("table")
    return {one.path for one in active_files(store, whole_segment(store))}
