"""One work unit over real folders, with the real decoder."""

import errno
import gc
import os
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from blizzard.execute.merge import settle
from blizzard.model.byte_range import cut
from blizzard.model.files import Limits, SourceFile, UnitOutcome, Work
from blizzard.model.settings import RollingPolicy
from blizzard.worker import unit as worker
from blizzard.worker import upload
from blizzard.worker.compression import CorruptStream, decompress
from blizzard.worker.ndjson.lines import BLOCK_BYTES
from blizzard.worker.parquet import RollingWriter
from blizzard.worker.record import Tally, failure_of, record_of
from blizzard.worker.stores import OpenedStores
from blizzard.worker.unit import run_unit
from lakebed.documents.entry import SourceRecord, Stage
from lakebed.errors import LakeError, StoreDenied, StoreFull, StoreUnavailable
from lakebed.storage.store import Reader, Store
from lakebed.types import Codec
from tests.support import builders
from tests.support.builders import gz, listed, ndjson, put, rows, unit
from tests.support.stores import RefusesUploads

BAD = b'{"id": 1, "name": "fine"}\n{"id": 2, "name": \n'


@dataclass
class Place:
    """A source folder and a table folder."""

    source: Path
    table: Path

    def run(self, files: tuple[SourceFile, ...] | None = None, **given) -> UnitOutcome:
        stores = given.pop("stores", OpenedStores)
        shared = builders.work(self.source, self.table, **given)
        chosen = listed(self.source) if files is None else files
        return run_unit(unit(chosen), shared, stores(shared))

    def ids(self, outcome: UnitOutcome) -> list[Any]:
        """Read the rows that the outcome names: whatever else is in the folder does not count."""
        return [
            number
            for file in outcome.files
            for number in pq.read_table(self.table / file.filename).column("id").to_pylist()
        ]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "in").mkdir()
    return Place(tmp_path / "in", tmp_path / "table")


@pytest.fixture(autouse=True)
def balanced(monkeypatch):
    """Hold the books of every outcome to what they promise."""
    real = worker._Unit.run

    def run(self: worker._Unit) -> UnitOutcome:
        outcome = real(self)
        for each in outcome.sources:
            assert each.lines == each.blank + each.quarantined + each.rows
            assert each.failure is None or each.rows == each.lines == 0
        total = sum(each.rows for each in outcome.sources)
        assert total == sum(file.record_count for file in outcome.files)
        assert [each.key for each in outcome.sources] == [each.key for each in self.unit.files]
        return outcome

    monkeypatch.setattr(worker._Unit, "run", run)


@pytest.fixture
def tiny_budget(monkeypatch):
    """Make every file with rows a large one."""
    monkeypatch.setattr(worker, "DECODED_BUDGET", 10)


def failed(outcome: UnitOutcome) -> dict[str, tuple[Stage, str]]:
    return {
        each.path: (each.failure.stage, each.failure.code)
        for each in outcome.sources
        if each.failure is not None
    }


def test_small_files_share_an_output_file(place):
    for number in range(5):
        put(place.source, f"{number}.ndjson", ndjson(rows(10, number * 10)))
    outcome = place.run()
    (file,) = outcome.files
    assert sorted(place.ids(outcome)) == list(range(50))
    assert file.source_file is None
    assert file.source_files == tuple(f"default:{number}.ndjson" for number in range(5))
    assert {each.unit for each in outcome.sources} == {file.unit} == {"7.0"}


def test_a_file_alone_in_its_output_is_named_by_its_uri(place):
    put(place.source, "sub/a.ndjson", ndjson(rows(3)))
    (file,) = place.run().files
    assert file.source_file == f"{place.source}/sub/a.ndjson"


def test_blank_lines_are_counted_and_make_no_rows(place):
    put(place.source, "a.ndjson", b"\n" + ndjson(rows(2)) + b"  \n\r\n")
    (found,) = place.run().sources
    assert (found.lines, found.blank, found.rows) == (5, 3, 2)


def test_a_file_without_rows_is_done_and_gives_no_output(place):
    put(place.source, "empty.ndjson", b"")
    put(place.source, "blank.ndjson", b"\n\n")
    outcome = place.run()
    assert outcome.files == ()
    assert failed(outcome) == {}


def test_fields_that_are_not_declared_are_counted(place):
    """L16."""
    put(place.source, "a.ndjson", b'{"id":1,"new":2}\n{"id":2,"new":3,"other":true}\n')
    (found,) = place.run().sources
    assert found.dropped == {"new": 2, "other": 1}


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
    assert (failure.stage, failure.line, failure.retryable) == (Stage.PARSE, 60_002, False)
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
        task.join(60)
    finally:
        gc.enable()

    (outcome,) = outcomes
    assert failed(outcome).keys() == {"a.ndjson.gz", "b.ndjson.gz"}
    assert place.ids(outcome) == [0, 1, 2]


@pytest.mark.usefixtures("tiny_budget")
def test_large_files_have_outputs_of_their_own(place):
    put(place.source, "a.ndjson", ndjson(rows(3)))
    put(place.source, "b.ndjson", ndjson(rows(3, 10)))
    outcome = place.run()
    assert [file.source_files for file in outcome.files] == [
        ("default:a.ndjson",),
        ("default:b.ndjson",),
    ]
    assert len({file.unit for file in outcome.files}) == 2
    assert [each.unit for each in outcome.sources] == [file.unit for file in outcome.files]


@pytest.mark.usefixtures("tiny_budget")
def test_a_large_file_that_fails_forgets_its_own_outputs_only(place):
    """L15, D04: outputs that are in the store already are not named by the outcome."""
    put(place.source, "a.ndjson", ndjson(rows(100)))
    put(place.source, "b.ndjson", ndjson(rows(40_000, 1000)) + BAD)
    put(place.source, "c.ndjson", ndjson(rows(100, 100)))
    outcome = place.run(rolling=RollingPolicy(file_size=20_000, row_group_size=20_000))
    assert sorted(place.ids(outcome)) == list(range(200))
    assert list(failed(outcome)) == ["b.ndjson"]
    assert len({file.unit for file in outcome.files}) == 2
    left = {path.relative_to(place.table).as_posix() for path in place.table.rglob("*.parquet")}
    assert left > {file.filename for file in outcome.files}


@pytest.mark.parametrize("budget", [10, 10**9])
def test_an_upload_that_fails_fails_every_source_of_its_files(place, monkeypatch, budget):
    """L03."""
    monkeypatch.setattr(worker, "DECODED_BUDGET", budget)
    put(place.source, "a.ndjson", ndjson(rows(10)))
    put(place.source, "b.ndjson", ndjson(rows(10, 10)))
    refuses = RefusesUploads(place.table, StoreDenied("refused"))
    outcome = place.run(stores=lambda shared: With(shared, refuses))
    assert outcome.files == ()
    assert failed(outcome) == dict.fromkeys(
        ("a.ndjson", "b.ndjson"), (Stage.UPLOAD, "store_denied")
    )


@pytest.mark.usefixtures("tiny_budget")
def test_an_upload_that_fails_leaves_the_files_of_other_outputs_alone(place):
    """L03."""
    put(place.source, "a.ndjson", ndjson(rows(10)))
    put(place.source, "b.ndjson", ndjson(rows(10, 10)))
    refuses = RefusesUploads(place.table, StoreDenied("refused"))
    refuses.when = lambda _path, file: 0 in pq.read_table(file).column("id").to_pylist()
    outcome = place.run(stores=lambda shared: With(shared, refuses))
    assert list(failed(outcome)) == ["a.ndjson"]
    assert place.ids(outcome) == list(range(10, 20))


def test_the_last_upload_of_several_fails_all_sources_of_the_group(place, monkeypatch):
    """L03: rows that are in the store already are not named."""
    monkeypatch.setattr(upload, "TRIES", 1)
    for number in range(4):
        put(place.source, f"{number}.ndjson", ndjson(rows(1000, number * 1000)))
    refuses = RefusesUploads(place.table, StoreUnavailable("503"))
    refuses.when = lambda _path, file: 3999 in pq.read_table(file).column("id").to_pylist()
    outcome = place.run(
        stores=lambda shared: With(shared, refuses),
        rolling=RollingPolicy(file_size=10_000, row_group_size=10_000),
    )
    assert len(refuses.tried) > 1
    assert outcome.files == ()
    assert set(failed(outcome).values()) == {(Stage.UPLOAD, "store_unavailable")}
    assert all(each.failure and each.failure.retryable for each in outcome.sources)


def test_a_full_local_disk_fails_the_sources_and_says_what_to_do(place, monkeypatch):
    """W16."""

    def full(*_given: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(RollingWriter, "_close_row_group", full)
    put(place.source, "a.ndjson", ndjson(rows(3)))
    outcome = place.run()
    assert failed(outcome) == {"a.ndjson": (Stage.UPLOAD, "store_full")}
    assert outcome.sources[0].failure is not None
    assert outcome.sources[0].failure.retryable
    assert "free some" in outcome.sources[0].failure.message


def test_concatenated_gzip_is_read_to_its_last_member(place):
    """L13."""
    put(place.source, "a.ndjson.gz", gz(ndjson(rows(10))) + gz(ndjson(rows(10, 10))))
    outcome = place.run()
    assert place.ids(outcome) == list(range(20))
    assert outcome.sources[0].lines == 20


@pytest.mark.parametrize(
    "body",
    [
        gz(ndjson(rows(1000)))[:-4],
        gz(ndjson(rows(1000)))[:200],
        gz(ndjson(rows(1000)))[:100] + b"\0" * 50 + gz(ndjson(rows(1000)))[150:],
        gz(ndjson(rows(10))) + b"garbage",
        b"",
        b"plain text",
    ],
)
def test_gzip_that_is_broken_or_cut_is_a_failure_and_the_others_go_on(place, body):
    """L14."""
    put(place.source, "a.ndjson.gz", body)
    put(place.source, "b.ndjson", ndjson(rows(3)))
    outcome = place.run()
    assert failed(outcome) == {"a.ndjson.gz": (Stage.DECOMPRESS, CorruptStream.code)}
    assert place.ids(outcome) == [0, 1, 2]


def test_a_source_file_that_vanished_is_recorded(place):
    """L05."""
    put(place.source, "a.ndjson", ndjson(rows(3)))
    put(place.source, "b.ndjson", ndjson(rows(3, 3)))
    files = listed(place.source)
    (place.source / "a.ndjson").unlink()
    outcome = place.run(files)
    assert failed(outcome) == {"a.ndjson": (Stage.DOWNLOAD, "object_missing")}
    assert place.ids(outcome) == [3, 4, 5]


def test_a_source_file_that_was_replaced_is_left_whole_for_later(place):
    """D17."""
    put(place.source, "a.ndjson", ndjson(rows(3)))
    files = listed(place.source)
    put(place.source, "a.new", ndjson(rows(3, 5)))
    os.replace(place.source / "a.new", place.source / "a.ndjson")  # noqa: PTH105
    outcome = place.run(files)
    assert failed(outcome) == {"a.ndjson": (Stage.DOWNLOAD, "object_changed")}
    assert outcome.sources[0].failure is not None
    assert outcome.sources[0].failure.retryable
    assert outcome.files == ()


def test_many_small_files_are_read_together_and_each_has_its_own_books(place):
    """L15: a bad one among them is out whole and named, with its line; the others are in."""
    for number in range(300):
        good = ndjson(rows(number % 3, number * 10))
        bad = number % 100 == 50
        put(place.source, f"{number:03}.ndjson", good + (b'{"id": "x"}\n' if bad else b"\n"))
    outcome = place.run()

    assert [
        (each.path, each.failure.line) for each in outcome.sources if each.failure is not None
    ] == [("050.ndjson", 3), ("150.ndjson", 1), ("250.ndjson", 2)]
    read = [each for each in outcome.sources if each.failure is None]
    assert [(each.path, each.lines, each.blank, each.rows) for each in read] == [
        (f"{number:03}.ndjson", number % 3 + 1, 1, number % 3)
        for number in range(300)
        if number % 100 != 50
    ]
    assert place.ids(outcome) == [
        number * 10 + row
        for number in range(300)
        for row in range(number % 3)
        if number % 100 != 50
    ]


def test_no_batch_has_more_rows_than_allowed(place, monkeypatch):
    seen: list[int] = []
    real = RollingWriter.write

    def write(self, batch, source, size):
        seen.append(batch.num_rows)
        return real(self, batch, source, size)

    monkeypatch.setattr(RollingWriter, "write", write)
    put(place.source, "a.ndjson", ndjson(rows(1000)))
    outcome = place.run(batch_size=64)
    assert max(seen) == 64
    assert place.ids(outcome) == list(range(1000))


def test_every_attempt_writes_under_names_of_its_own(place):
    """D03: a second attempt cannot overwrite what the first one wrote."""
    put(place.source, "a.ndjson", ndjson(rows(3)))
    first, second = place.run(), place.run()
    assert first.files[0].filename != second.files[0].filename
    assert len(list(place.table.rglob("*.parquet"))) == 2


def test_nothing_is_left_on_the_local_disk(place, tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    put(place.source, "a.ndjson", ndjson(rows(3)))
    refuses = RefusesUploads(place.table, StoreDenied("refused"))
    assert failed(place.run(stores=lambda shared: With(shared, refuses)))
    assert list(scratch.iterdir()) == []


def test_two_sources_with_equal_names_give_the_rows_of_both(place, tmp_path):
    """D13."""
    other = tmp_path / "other"
    put(place.source, "a.ndjson", ndjson(rows(2)))
    put(other, "a.ndjson", ndjson(rows(2, 10)))
    here = builders.work(place.source, place.table).sources["default"]
    there = builders.work(other, other).sources["default"]
    shared = builders.work(place.source, place.table, sources={"x": here, "y": there})
    files = listed(place.source, source="x") + listed(other, source="y")
    outcome = run_unit(unit(files), shared, OpenedStores(shared))
    assert sorted(place.ids(outcome)) == [0, 1, 10, 11]
    assert [each.key for each in outcome.sources] == ["x:a.ndjson", "y:a.ndjson"]


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
    found = failure_of(error, Stage.UPLOAD)
    assert (found.stage, found.code, found.retryable) == (Stage.UPLOAD, code, retryable)


def test_a_failure_shows_no_path_of_the_librarys_making():
    """W17: the message stands alone; facts are the record's own."""
    found = failure_of(LakeError("refused", secret="hunter2"))
    assert "hunter2" not in found.message


class With:
    """The sources of the batch, and a table of the test's."""

    def __init__(self, shared: Work, sink: Store) -> None:
        self._opened = OpenedStores(shared)
        self._sink = sink

    def source(self, name: str) -> Reader:
        return self._opened.source(name)

    def sink(self) -> Store:
        return self._sink


def test_the_books_of_a_failed_file_are_empty():
    file = builders.source_file()
    found = record_of(file, Tally(lines=5, rows=4, blank=1), failure=builders.failure())
    assert isinstance(found, SourceRecord)
    assert (found.lines, found.rows, found.blank) == (0, 0, 0)


MARK = b"\xef\xbb\xbf"


def outcome_of(place: Place, files: list[SourceFile]) -> tuple[str | None, int | None]:
    """Give why a file, or one of its parts, failed and at which line; its rows if it did not."""
    units = [unit([file], name=str(number)) for number, file in enumerate(files)]
    shared = builders.work(place.source, place.table)
    outcomes = [run_unit(each, shared, OpenedStores(shared)) for each in units]
    (record,) = settle(units, outcomes).sources
    return (record.failure.code, record.failure.line) if record.failure else (None, record.rows)


@pytest.mark.parametrize("parts", [1, 2, 3, 4])
def test_a_mark_in_the_middle_of_a_file_is_refused_however_it_is_cut(place, parts):
    """HOLES W45: only the very first bytes of a file can be a byte order mark."""
    line = b'{"id": 1, "name": "xxxxxxxxxxxxxxx"}\n'
    put(place.source, "a.ndjson", line * 2 + MARK + line + line[: -len(MARK) - 1] + b"\n")
    (file,) = listed(place.source)
    cuts = [replace(file, part=part) for part in cut(file.size, parts)]

    assert outcome_of(place, cuts if parts > 1 else [file]) == ("not_json", 3)


def test_a_mark_after_the_lines_that_were_read_before_is_refused(place):
    """HOLES W45: a file that is gone on with means what it means as a whole."""
    put(place.source, "a.ndjson", b'{"id": 1}\n' + MARK + b'{"id": 2}\n')
    (file,) = listed(place.source)

    assert outcome_of(place, [replace(file, skip=1)]) == ("not_json", 2)


@pytest.mark.parametrize("parts", [1, 2])
def test_the_mark_at_the_start_of_a_file_is_skipped_however_it_is_cut(place, parts):
    """HOLES W45."""
    put(place.source, "a.ndjson", MARK + b'{"id": 1}\n{"id": 2}\n')
    (file,) = listed(place.source)
    cuts = [replace(file, part=part) for part in cut(file.size, parts)]

    assert outcome_of(place, cuts) == (None, 2)


def test_each_source_has_batches_of_its_own_size(place, monkeypatch, tmp_path):
    """HOLES W32: the smallest does not hold for all."""
    seen: list[tuple[str, int]] = []
    write = RollingWriter.write

    def watched(self, batch, source, size=None):
        seen.append((source, batch.num_rows))
        return write(self, batch, source, size)

    monkeypatch.setattr(RollingWriter, "write", watched)
    other = tmp_path / "other"
    put(place.source, "a.ndjson", ndjson(rows(6)))
    put(other, "b.ndjson", ndjson(rows(6)))
    shared = builders.work(place.source, place.table)
    shared = replace(
        shared,
        sources={**shared.sources, "two": replace(shared.sources["default"], uri=str(other))},
        limits={
            "default": Limits(max_concurrent_files=1, batch_size=2),
            "two": Limits(max_concurrent_files=1, batch_size=5),
        },
    )
    run_unit(
        unit([*listed(place.source), *listed(other, source="two")]), shared, OpenedStores(shared)
    )

    assert seen == [("default:a.ndjson", 2)] * 3 + [("two:b.ndjson", 5), ("two:b.ndjson", 1)]


@pytest.mark.parametrize("trouble", [OSError(errno.EMFILE, "Too many open files"), MemoryError()])
@pytest.mark.parametrize("where", ["read", "decode", "write", "clear away", "folder", "last group"])
def test_trouble_of_the_machine_is_no_fault_of_the_files(place, monkeypatch, trouble, where):
    """HOLES L28: wherever it comes, the files are read again later."""

    def fails(*_args, **_named):
        raise trouble

    doors = {
        "read": ("blizzard.worker.stores.Reader.stream", fails),
        "decode": ("blizzard.worker.ndjson.lines._pieces", fails),
        "write": ("blizzard.worker.unit.RollingWriter.take", fails),
        "folder": ("blizzard.worker.unit.tempfile.TemporaryDirectory", fails),
        "last group": ("blizzard.worker.unit._Unit._settle", fails),
        "clear away": ("pathlib.Path.unlink", fails),
    }
    put(place.source, "a.ndjson", ndjson(rows(2)))
    put(place.source, "b.ndjson", ndjson(rows(2)))
    files = listed(place.source)
    with monkeypatch.context() as patched:
        patched.setattr(*doors[where])
        outcome = place.run(files)

    assert [each.failure and each.failure.retryable for each in outcome.sources] == [True, True]
    assert {each.failure.code for each in outcome.sources if each.failure} == {"machine_trouble"}
    assert outcome.files == ()


def test_a_fault_of_ours_is_no_trouble_of_the_machine(place, monkeypatch):
    """The unit fails, and says so: nothing is journaled of it."""

    def fails(_unit):
        raise KeyError("x")

    monkeypatch.setattr("blizzard.worker.unit._Unit.run", fails)
    put(place.source, "a.ndjson", ndjson(rows(2)))
    with pytest.raises(KeyError):
        place.run()


def test_a_decompressor_without_memory_has_found_no_corruption(monkeypatch):
    """HOLES L28: the library has one error for both."""

    class Poor:
        def __init__(self, **_how):
            pass

        def decompressobj(self):
            return self

        def decompress(self, _data):
            raise zstandard.ZstdError("zstd decompress error: Allocation error : not enough memory")

    body = zstandard.ZstdCompressor().compress(ndjson(rows(3)))
    monkeypatch.setattr("blizzard.worker.compression.zstandard.ZstdDecompressor", Poor)
    with pytest.raises(MemoryError):
        list(decompress([body], Codec.ZSTD))
