"""The dead letter queue: every failed file leaves a line that says where and why."""

import zlib
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard

from blizzard import events
from blizzard.handoff import dead_letters
from lakebed.errors import StoreDenied, StoreUnavailable
from lakebed.storage.store import AlreadyThere, Created, Store
from lakebed.types import Compression
from tests.support.builders import (
    NOON,
    Bench,
    gz,
    ndjson,
    no_options,
    pipeline_settings,
    put,
    rows,
    source_settings,
)
from tests.support.dead_letters import drain, lines, objects, queue
from tests.support.readers import parquet_ids
from tests.support.stores import LosesAnswers, refusing

GOOD = ndjson(rows(3))
BAD = b'{"id": "one"}\n'
LONG = ndjson(rows(2000))
MISSING = "required_field_missing"
MAGIC = zstandard.ZstdCompressor(write_checksum=True)
KEYS = [
    *("path", "error", "stage", "timestamp", "retry_count", "code", "line", "field"),
    *("pipeline", "source", "batch", "size", "etag"),
]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


@pytest.fixture
def bench(tmp_path: Path, source: Path) -> Bench:
    return Bench(pipeline_settings(source, tmp_path / "table"))


def flipped(body: bytes) -> bytes:
    """Damage a byte in the middle."""
    middle = len(body) // 2
    return body[:middle] + bytes([body[middle] ^ 0xFF]) + body[middle + 1 :]


# ------------------------------------------------------------------------------ one line per file


def test_a_failed_file_leaves_a_line_with_everything_about_it(bench, source):
    put(source, "a.ndjson", GOOD)
    put(source, "date=1/bad.ndjson", GOOD + BAD)
    drain(bench)
    (line,) = lines(bench)
    assert list(line) == KEYS
    (failed,) = [each for each in bench.entries()[-1].sources if each.failure]
    assert line == {
        "path": f"{source}/date=1/bad.ndjson",
        "error": failed.failure and failed.failure.message,
        "stage": "parse",
        "timestamp": NOON.isoformat(),
        "retry_count": 0,
        "code": "wrong_type",
        "line": 4,
        "field": "id",
        "pipeline": "default",
        "source": "default",
        "batch": 1,
        "size": len(GOOD + BAD),
        "etag": failed.etag,
    }


def test_a_batch_writes_one_object_and_its_entry_names_it_by_its_uri(bench, source):
    put(source, "bad1.ndjson", BAD)
    put(source, "bad2.ndjson", BAD)
    drain(bench)
    (written,) = objects(bench)
    assert bench.entries()[-1].dlq == (str(written),)
    assert written.name.startswith("failures-20240101-120000-")
    assert [line["path"].rpartition("/")[2] for line in lines(bench)] == [
        "bad1.ndjson",
        "bad2.ndjson",
    ]
    (told,) = bench.said(events.FailuresRecorded)
    assert str(written) in told.sentence()


NOT_COMPRESSED: dict[str, tuple[str, bytes]] = {
    "truncated gzip": ("a.ndjson.gz", gz(LONG)[:-20]),
    "empty gzip": ("a.ndjson.gz", b""),
    "no gzip at all": ("a.ndjson.gz", b"id,name\n1,x\n"),
    "corrupt zstd": ("a.ndjson.zst", flipped(MAGIC.compress(LONG))),
}
NOT_PARSED: dict[str, tuple[str, bytes, str, int, str | None]] = {
    "not JSON": ("a.ndjson", GOOD + b"{oops}\n", "not_json", 4, None),
    "not an object": ("a.ndjson", b"[1]\n", "not_an_object", 1, None),
    "wrong type": ("a.ndjson", GOOD + b'{"id": 1.5}\n', "wrong_type", 4, "id"),
    "a required field missing": ("a.ndjson.gz", gz(b'\n{"name": "x"}\n'), MISSING, 2, "id"),
    "invalid UTF-8": ("a.ndjson", GOOD + b'{"id": 1, "name": "\xff"}\n', "not_utf8", 4, None),
    "zlib in a plain name": ("a.ndjson", zlib.compress(GOOD), "not_utf8", 1, None),
}
BROKEN: dict[str, tuple[str, bytes, str, str, int | None, str | None]] = {
    **{
        case: (name, body, "decompress", "decompress_failed", None, None)
        for case, (name, body) in NOT_COMPRESSED.items()
    },
    **{
        case: (name, body, "parse", code, line, field)
        for case, (name, body, code, line, field) in NOT_PARSED.items()
    },
}


@pytest.mark.parametrize("case", BROKEN)
def test_the_line_of_a_broken_file_tells_stage_code_line_and_field(bench, source, case):
    """L14, L15: nothing of it is in the table, the others are."""
    name, body, stage, code, line_number, field = BROKEN[case]
    put(source, name, body)
    put(source, "good.ndjson", ndjson(rows(3, 10)))
    drain(bench)
    (line,) = lines(bench)
    assert (line["stage"], line["code"]) == (stage, code), line["error"]
    assert (line["line"], line["field"]) == (line_number, field)
    assert line["path"] == f"{source}/{name}"
    assert parquet_ids(bench.entries(), bench.table) == [10, 11, 12]


@pytest.mark.parametrize(
    ("declared", "name", "body", "stage"),
    [
        (Compression.GZIP, "a.ndjson", GOOD, "decompress"),
        (Compression.ZSTD, "a.ndjson.gz", gz(GOOD), "decompress"),
        (Compression.NONE, "a.ndjson.gz", gz(GOOD), "parse"),
    ],
)
def test_a_wrong_compression_in_the_configuration_is_told(
    bench, source, declared, name, body, stage
):
    put(source, name, body)
    settings = replace(bench.settings, sources=(source_settings(source, compression=declared),))
    drain(replace(bench, settings=settings))
    (line,) = lines(bench)
    assert line["stage"] == stage


# ------------------------------------------------------------------------------ with the journal


def test_a_queue_that_cannot_be_written_is_an_error_and_the_batch_is_done_again(bench, source):
    put(source, "a.ndjson", GOOD)
    put(source, "bad.ndjson", BAD)
    with pytest.raises(StoreDenied):
        replace(bench, store=refusing("failures-", StoreDenied("no"))).pipeline().step()
    assert [entry.kind for entry in bench.entries()] == ["open"]
    drain(bench.again(run_id="run-2"))
    assert parquet_ids(bench.entries(), bench.table) == [0, 1, 2]
    assert len(lines(bench)) == 1


def test_a_passing_error_of_the_queue_is_tried_again(bench, source):
    """W01."""
    put(source, "bad.ndjson", BAD)
    drain(replace(bench, store=refusing("failures-", StoreUnavailable("503"), times=2)))
    assert len(objects(bench)) == len(lines(bench)) == 1


def test_a_lost_answer_of_the_queue_leaves_one_object_that_counts(bench, source):
    """L24."""
    put(source, "bad.ndjson", BAD)

    class Loses(LosesAnswers):
        only = "failures-"

    drain(replace(bench, store=Loses))
    assert len(bench.entries()[-1].dlq) == 1
    assert len(lines(bench)) == 1


def test_a_fresh_name_that_is_taken_by_others_is_never_overwritten(tmp_path):
    taken: list[str] = []

    class Taken(Store):
        def create(self, path: str, body: bytes) -> Created | AlreadyThere:
            if not taken:
                taken.append(path)
                super().create(path, b"theirs")
            return super().create(path, body)

    hands = Bench(pipeline_settings(tmp_path, tmp_path)).hands
    store = Taken(str(tmp_path / "dlq"), no_options(), make_folder=True)
    uri = dead_letters.write(store, "", b"ours\n", clock=hands.clock)
    assert (tmp_path / "dlq" / taken[0]).read_bytes() == b"theirs"
    assert Path(uri).read_bytes() == b"ours\n"


def test_an_object_that_no_entry_names_does_not_count(bench, source):
    """D02: a crash between the queue and the journal."""
    put(source, "bad.ndjson", BAD)
    dies = refusing("00000000000000000001.json", KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        replace(bench, store=dies).pipeline().step()
    assert len(objects(bench)) == 1
    drain(bench.again(run_id="run-2"))
    assert len(objects(bench)) == 2
    assert len(queue(bench).letters) == 1
