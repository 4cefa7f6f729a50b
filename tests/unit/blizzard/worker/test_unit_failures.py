"""Work units whose files, uploads or machine fail: what is lost is told, and nothing else is."""

import errno
import gc
import threading
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from blizzard.model.settings import BLOCK_BYTES, RollingPolicy, Sizing
from blizzard.model.work import UnitOutcome
from blizzard.worker.compression import decompress
from blizzard.worker.download import OpenedStores
from blizzard.worker.output.parquet import RollingWriter
from blizzard.worker.record import failure_of
from lakebed.documents.records import FailureStage
from lakebed.errors import LakeError, StoreDenied, StoreFull, StoreUnavailable
from lakebed.types import Codec
from tests.support.builders import gz, listed, ndjson, put, rows
from tests.support.stores import RefusesUploads
from tests.support.units import BAD, Place, With, failed

TINY_BUDGET = Sizing(decoded_budget=1)
"""Every file with rows is a large one."""


def test_a_bad_line_leaves_nothing_of_its_file_and_the_others_go_on(place):
    """L15: not even the rows that were decoded long before the bad line."""
    many = ndjson(rows(60_000, 100))
    assert len(many) > 2 * BLOCK_BYTES
    put(place.source, "a.ndjson", ndjson(rows(3)))
    put(place.source, "b.ndjson", many + BAD)
    put(place.source, "c.ndjson", ndjson(rows(3, 10)))
    outcome = place.run()
    assert place.ids(outcome) == [0, 1, 2, 10, 11, 12]
    assert [each.path for each in outcome.sources if each.failure] == ["b.ndjson"]
    failure = outcome.sources[1].failure
    assert failure is not None
    assert (failure.stage, failure.line, failure.retryable) == (FailureStage.PARSE, 60_002, False)
    assert "default:b.ndjson" not in outcome.files[0].source_files


def test_a_file_that_fails_gives_its_place_to_the_next_at_once(place):
    """Its error is held by a frame of its own traceback, so only the garbage collector lets it go.

    The next download begins when one is done with, and nobody may have to wait for that.
    """
    put(place.source, "a.ndjson.gz", b"no gzip" * 100_000)
    put(place.source, "b.ndjson.gz", gz(ndjson(rows(3)))[:-9] * 3)
    put(place.source, "c.ndjson", ndjson(rows(3)))
    outcomes: list[UnitOutcome] = []
    task = threading.Thread(
        target=lambda: outcomes.append(place.run(max_concurrent_files=1)), daemon=True
    )
    gc.disable()
    try:
        task.start()
        task.join(300)
    finally:
        gc.enable()

    (outcome,) = outcomes
    assert failed(outcome).keys() == {"a.ndjson.gz", "b.ndjson.gz"}
    assert place.ids(outcome) == [0, 1, 2]


def test_a_large_file_that_fails_forgets_its_own_outputs_only(place):
    """L15, D04: outputs that are in the store already are not named by the outcome."""
    put(place.source, "a.ndjson", ndjson(rows(100)))
    put(place.source, "b.ndjson", ndjson(rows(40_000, 1000)) + BAD)
    put(place.source, "c.ndjson", ndjson(rows(100, 100)))
    policy = RollingPolicy(file_size=20_000, row_group_size=20_000)
    outcome = place.run(rolling=policy, sizing=TINY_BUDGET)
    assert sorted(place.ids(outcome)) == list(range(200))
    assert list(failed(outcome)) == ["b.ndjson"]
    assert len({file.unit for file in outcome.files}) == 2
    left = {path.relative_to(place.table).as_posix() for path in place.table.rglob("*.parquet")}
    assert left > {file.filename for file in outcome.files}


def test_an_upload_that_fails_leaves_the_files_of_other_outputs_alone(place):
    """L03."""
    put(place.source, "a.ndjson", ndjson(rows(10)))
    put(place.source, "b.ndjson", ndjson(rows(10, 10)))
    refuses = RefusesUploads(place.table, StoreDenied("refused"))
    refuses.when = lambda _path, file: 0 in pq.read_table(file).column("id").to_pylist()
    outcome = place.run(stores=lambda shared: With(shared, refuses), sizing=TINY_BUDGET)
    assert list(failed(outcome)) == ["a.ndjson"]
    assert place.ids(outcome) == list(range(10, 20))


def last_refused(place: Place, error: LakeError, **given: Any) -> UnitOutcome:
    """Run a unit of several files whose last upload is refused."""
    for number in range(4):
        put(place.source, f"{number}.ndjson", ndjson(rows(1000, number * 1000)))
    refuses = RefusesUploads(place.table, error)
    refuses.when = lambda _path, file: 3999 in pq.read_table(file).column("id").to_pylist()
    rolling = RollingPolicy(file_size=10_000, row_group_size=10_000)
    outcome = place.run(stores=lambda shared: With(shared, refuses), rolling=rolling, **given)
    assert len(refuses.tried) > 1
    return outcome


def test_the_last_upload_of_several_fails_all_sources_of_the_group(place):
    """L03: rows that are in the store already are not named."""
    outcome = last_refused(place, StoreUnavailable("503"))
    assert outcome.files == ()
    assert set(failed(outcome).values()) == {(FailureStage.UPLOAD, "store_unavailable")}
    assert all(each.failure and each.failure.retryable for each in outcome.sources)


@pytest.mark.parametrize("outbox", [None, "default"])
def test_a_full_store_keeps_nothing_of_what_was_written_in_vain(place, outbox):
    """The next try needs the room."""
    outcome = last_refused(place, StoreFull("no space is left"), outbox=outbox)
    assert outcome.sink_full is not None
    assert [each for each in place.table.rglob("*") if each.is_file()] == []


def test_a_full_local_disk_fails_the_sources_and_says_what_to_do(place, monkeypatch):
    """W16."""

    def full(*_given: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(RollingWriter, "_close_row_group", full)
    put(place.source, "a.ndjson", ndjson(rows(3)))
    outcome = place.run()
    assert failed(outcome) == {"a.ndjson": (FailureStage.UPLOAD, "store_full")}
    assert outcome.sources[0].failure is not None
    assert outcome.sources[0].failure.retryable
    assert "free some" in outcome.sources[0].failure.message


@pytest.mark.parametrize(
    ("error", "code", "retryable"),
    [
        (StoreFull("full"), "store_full", True),
        (OSError(errno.ENOSPC, "No space left on device"), "store_full", True),
        (OSError("IOError: [errno 28] No space left on device"), "store_full", True),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "store_full", True),
        (OSError(errno.EMFILE, "Too many open files"), "machine_trouble", True),
        (OSError(errno.EIO, "Input/output error"), "machine_trouble", True),
        (OSError(errno.EROFS, "Read-only file system"), "machine_trouble", True),
        (FileNotFoundError(errno.ENOENT, "a cleaner took the folder"), "machine_trouble", True),
        (MemoryError(), "machine_trouble", True),
        (pa.ArrowMemoryError("malloc of size 64 failed"), "machine_trouble", True),
        (RuntimeError("can't start new thread"), "machine_trouble", True),
        (RuntimeError("a fault of ours"), "internal_error", False),
        (KeyError("x"), "internal_error", False),
    ],
)
def test_an_error_becomes_a_failure_with_a_stable_code(error, code, retryable):
    """HOLES L28: what the machine could not do says nothing of the file."""
    found = failure_of(error, FailureStage.UPLOAD)
    assert (found.stage, found.code, found.retryable) == (FailureStage.UPLOAD, code, retryable)


def test_a_failure_shows_no_path_of_the_librarys_making():
    """W17: the message stands alone; facts are the record's own."""
    found = failure_of(LakeError("refused", secret="hunter2"))
    assert "hunter2" not in found.message


@pytest.mark.parametrize("trouble", [OSError(errno.EMFILE, "Too many open files"), MemoryError()])
@pytest.mark.parametrize(
    "where", ["read", "decode", "take", "write", "clear away", "folder", "last group"]
)
def test_trouble_of_the_machine_is_no_fault_of_the_files(place, monkeypatch, trouble, where):
    """HOLES L28: wherever it comes, the files are read again later."""

    def fails(*_args, **_named):
        raise trouble

    doors = {
        "read": ("blizzard.worker.download.Reader.stream", fails),
        "decode": ("blizzard.worker.ndjson.lines.without_mark", fails),
        "take": ("blizzard.worker.ndjson.decoder._ShortFiles.add", fails),
        "write": ("blizzard.worker.output.groups.RollingWriter._hold", fails),
        "folder": ("blizzard.worker.unit.tempfile.TemporaryDirectory", fails),
        "last group": ("blizzard.worker.output.groups.OutputGroups.settle", fails),
        "clear away": ("pathlib.Path.unlink", fails),
    }
    put(place.source, "a.ndjson", ndjson(rows(2)))
    put(place.source, "b.ndjson", ndjson(rows(2)))
    files = listed(place.source)
    with monkeypatch.context() as patched:
        patched.setattr(*doors[where])
        if where in ("read", "decode"):
            # As of a remote store: small files that are here do not come this way.
            patched.setattr(
                "blizzard.worker.download.Reader.at_once", lambda *_args, **_named: None
            )
        outcome = place.run(files)

    assert [each.failure and each.failure.retryable for each in outcome.sources] == [True, True]
    assert {each.failure.code for each in outcome.sources if each.failure} == {"machine_trouble"}
    assert outcome.files == ()


def test_a_fault_of_ours_is_no_trouble_of_the_machine(place):
    """The unit fails, and says so: nothing is journaled of it."""

    class Faulty(OpenedStores):
        def sink(self):
            raise KeyError("x")

    put(place.source, "a.ndjson", ndjson(rows(2)))
    with pytest.raises(KeyError):
        place.run(stores=Faulty)


def test_a_decompressor_without_memory_has_found_no_corruption(monkeypatch):
    """HOLES L28: the library has one error for both."""

    class Poor:
        def __init__(self, *_how):
            pass

        def read(self, _size):
            raise OSError("ZSTD decompress failed: Allocation error : not enough memory")

    body = zstandard.ZstdCompressor().compress(ndjson(rows(3)))
    monkeypatch.setattr("blizzard.worker.compression.pa.CompressedInputStream", Poor)
    with pytest.raises(MemoryError):
        list(decompress([body], Codec.ZSTD))
