"""The dead letter queue: every failed file leaves a line that says where and why."""

import itertools
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard
from typer.testing import CliRunner

from blizzard import events
from blizzard.cli.app import app
from blizzard.handoff import dead_letters
from blizzard.handoff.dead_letters import dead_letter_queue
from blizzard.journal import journal
from blizzard.model.files import Location
from blizzard.pipeline import TooManyFailures
from blizzard.worker.stores import OpenedStores
from lakebed.documents.entry import Stage
from lakebed.errors import LakeError, StoreDenied, StoreUnavailable
from lakebed.layout import journal_entry
from lakebed.retry import Backoff
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import AlreadyThere, Created, Reader, Store
from lakebed.types import Compression
from tests.support.builders import (
    NOON,
    Bench,
    failure,
    gz,
    ndjson,
    no_options,
    pipeline_settings,
    put,
    record,
    rows,
    source_settings,
)
from tests.support.readers import parquet_ids
from tests.support.runner import InProcessRunner
from tests.support.stores import LosesAnswers, RefusesUploads

GOOD = ndjson(rows(3))
BAD = b'{"id": "one"}\n'
LONG = ndjson(rows(2000))
HOUR = 3600
MAGIC = zstandard.ZstdCompressor(write_checksum=True)
KEYS = [
    "path",
    "error",
    "stage",
    "timestamp",
    "retry_count",
    "code",
    "line",
    "field",
    "pipeline",
    "source",
    "batch",
    "size",
    "etag",
]


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Let tries follow each other without waiting."""

    class AtOnce(Backoff):
        def wait(self, failures: int, random: object) -> float:
            return 0.0

    monkeypatch.setattr(journal, "Backoff", AtOnce)
    monkeypatch.setattr(dead_letters, "Backoff", AtOnce)
    monkeypatch.setattr("blizzard.worker.upload.BACKOFF", AtOnce())
    monkeypatch.setattr("blizzard.worker.download.BACKOFF", AtOnce())


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


@pytest.fixture
def bench(tmp_path: Path, source: Path) -> Bench:
    return Bench(pipeline_settings(source, tmp_path / "table"))


def drain(bench: Bench) -> Bench:
    pipeline = bench.pipeline()
    while pipeline.step():
        pass
    return bench


def objects(bench: Bench) -> list[Path]:
    folder = bench.table / "_blizzard/default/dlq"
    return sorted(folder.iterdir()) if folder.exists() else []


def lines(bench: Bench) -> list[dict[str, Any]]:
    """Read the lines of every object that an entry names, as another program would."""
    return [
        json.loads(line)
        for entry in bench.entries()
        for uri in entry.dlq
        for line in Path(uri).read_text().splitlines()
    ]


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


def test_a_batch_without_failures_writes_none(bench, source):
    put(source, "a.ndjson", GOOD)
    drain(bench)
    assert objects(bench) == []
    assert [entry.dlq for entry in bench.entries()] == [(), ()]


BROKEN: dict[str, tuple[str, bytes, str, str, int | None, str | None]] = {
    "truncated gzip": (
        "a.ndjson.gz",
        gz(LONG)[:-20],
        "decompress",
        "decompress_failed",
        None,
        None,
    ),
    "gzip without its end": (
        "a.ndjson.gz",
        gz(GOOD)[:-1],
        "decompress",
        "decompress_failed",
        None,
        None,
    ),
    "corrupt gzip": (
        "a.ndjson.gz",
        flipped(gz(LONG)),
        "decompress",
        "decompress_failed",
        None,
        None,
    ),
    "empty gzip": ("a.ndjson.gz", b"", "decompress", "decompress_failed", None, None),
    "no gzip at all": (
        "a.ndjson.gz",
        b"id,name\n1,x\n",
        "decompress",
        "decompress_failed",
        None,
        None,
    ),
    "truncated zstd": (
        "a.ndjson.zst",
        MAGIC.compress(LONG)[:-20],
        "decompress",
        "decompress_failed",
        None,
        None,
    ),
    "corrupt zstd": (
        "a.ndjson.zst",
        flipped(MAGIC.compress(LONG)),
        "decompress",
        "decompress_failed",
        None,
        None,
    ),
    "empty zstd": ("a.ndjson.zst", b"", "decompress", "decompress_failed", None, None),
    "not JSON": ("a.ndjson", GOOD + b"{oops}\n", "parse", "not_json", 4, None),
    "not an object": ("a.ndjson", b"[1]\n", "parse", "not_an_object", 1, None),
    "wrong type": ("a.ndjson", GOOD + b'{"id": 1.5}\n', "parse", "wrong_type", 4, "id"),
    "a required field missing": (
        "a.ndjson.gz",
        gz(b'\n{"name": "x"}\n'),
        "parse",
        "required_field_missing",
        2,
        "id",
    ),
    "invalid UTF-8": (
        "a.ndjson",
        GOOD + b'{"id": 1, "name": "\xff"}\n',
        "parse",
        "not_utf8",
        4,
        None,
    ),
    "zlib in a plain name": ("a.ndjson", zlib.compress(GOOD), "parse", "not_utf8", 1, None),
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


def test_a_path_without_its_partition_is_told_with_the_stage_of_discovery(tmp_path, source):
    put(source, "root.ndjson", GOOD)
    bench = Bench(pipeline_settings(source, tmp_path / "table", template="date=%Y-%m-%d"))
    drain(bench)
    (line,) = lines(bench)
    assert (line["stage"], line["code"]) == ("discover", "partition_unknown")


# ------------------------------------------------------------------------------ files and stores


class Meddling(InProcessRunner):
    """Something happens to the files after they were listed and before they are read."""

    def __init__(self, meddle: Callable[[], object]) -> None:
        super().__init__()
        self.meddle = meddle

    def run(self, units, work):
        self.meddle()
        return super().run(units, work)


def test_a_file_that_vanished_is_told_and_read_when_it_is_back(bench, source):
    """L05, L04."""
    put(source, "a.ndjson", GOOD)
    put(source, "b.ndjson", ndjson(rows(3, 10)))
    away = source.parent / "away"
    moved = Meddling(lambda: (source / "a.ndjson").rename(away))
    drain(replace(bench, runner=moved))
    (line,) = lines(bench)
    assert (line["stage"], line["code"]) == ("download", "object_missing")
    assert parquet_ids(bench.entries(), bench.table) == [10, 11, 12]
    # The very same object again, as it was: size, e-tag and all.
    away.rename(source / "a.ndjson")
    bench.hands.at += HOUR
    drain(bench.again(run_id="run-2"))
    assert parquet_ids(bench.entries(), bench.table) == [0, 1, 2, 10, 11, 12]


def test_a_file_that_is_replaced_while_it_is_read_is_told(bench, source):
    """D17."""
    put(source, "a.ndjson", GOOD)
    replaced = Meddling(lambda: put(source, "a.ndjson", ndjson(rows(5))))
    drain(replace(bench, runner=replaced))
    assert next((line["stage"], line["code"]) for line in lines(bench)) == (
        "download",
        "object_changed",
    )


class Refuses(Reader):
    """Reading one object ends in an error."""

    path = "a.ndjson"
    error: LakeError

    def stream(self, path: str, **given: Any) -> Iterator[bytes]:
        if path == self.path:
            raise self.error
        return super().stream(path, **given)


def refusing(error: LakeError) -> InProcessRunner:
    """Run units over a source that refuses an object, until the error is taken away."""

    class Stores(OpenedStores):
        def source(self, name: str) -> Reader:
            location = self.work.sources[name]
            store = Refuses(location.uri, location.options)
            store.error = error
            return store

    return InProcessRunner(stores=Stores)


@pytest.mark.parametrize("error", [StoreUnavailable("no answer"), StoreDenied("permission denied")])
def test_an_object_that_cannot_be_read_is_told_and_read_once_it_can_be(bench, source, error):
    """L04, W16: a later file succeeds, and the failed one lands too, once."""
    put(source, "a.ndjson", GOOD)
    put(source, "b.ndjson", ndjson(rows(3, 10)))
    drain(replace(bench, runner=refusing(error)))
    bench.hands.at += HOUR
    drain(bench.again(run_id="run-2", runner=refusing(error)))
    assert [(line["stage"], line["code"], line["retry_count"]) for line in lines(bench)] == [
        ("download", error.code, 0),
        ("download", error.code, 1),
    ]
    put(source, "c.ndjson", ndjson(rows(3, 20)))
    drain(bench.again(run_id="run-3"))
    assert parquet_ids(bench.entries(), bench.table) == [10, 11, 12, 20, 21, 22]
    bench.hands.at += HOUR
    drain(bench.again(run_id="run-4"))
    bench.hands.at += HOUR
    drain(bench.again(run_id="run-5"))
    assert parquet_ids(bench.entries(), bench.table) == [0, 1, 2, 10, 11, 12, 20, 21, 22]


def test_a_failed_file_rests_longer_each_time(bench, source):
    """L04."""
    put(source, "a.ndjson", GOOD)
    polling = replace(bench, once=False, runner=refusing(StoreUnavailable("no answer")))
    pipeline = polling.pipeline()
    tried: list[float] = []
    for _ in range(40):
        if pipeline.step():
            tried.append(bench.hands.at)
        bench.hands.at += 30
    waits = [after - before for before, after in itertools.pairwise(tried)]
    assert waits == [30, 60, 120, 240, 480]
    assert [line["retry_count"] for line in lines(polling)] == list(range(6))


def test_a_refused_upload_fails_the_files_of_its_unit_and_they_land_later(bench, source, tmp_path):
    """L03, L04."""
    put(source, "a.ndjson", GOOD)

    class Stores(OpenedStores):
        def sink(self) -> Store:
            return RefusesUploads(tmp_path / "table", StoreDenied("access was refused"))

    drain(replace(bench, runner=InProcessRunner(stores=Stores)))
    (line,) = lines(bench)
    assert (line["stage"], line["code"]) == ("upload", "store_denied")
    bench.hands.at += HOUR
    drain(bench.again(run_id="run-2"))
    assert parquet_ids(bench.entries(), bench.table) == [0, 1, 2]


def test_a_fault_of_our_own_while_lines_are_read_is_no_fault_of_the_download(
    bench, source, monkeypatch
):
    put(source, "a.ndjson", GOOD)

    def broken(*_given: object) -> Any:
        raise RuntimeError("a bug")

    monkeypatch.setattr("blizzard.worker.ndjson.fast.FastPath.read_together", broken)
    drain(bench)
    (line,) = lines(bench)
    assert (line["stage"], line["code"]) == ("parse", "internal_error")


# ------------------------------------------------------------------------------ with the journal


class NoQueue(Store):
    """Everything can be written but the dead letter queue."""

    error: LakeError = StoreDenied("permission denied")

    def create(self, path: str, body: bytes) -> Created | AlreadyThere:
        if "failures-" in path:
            raise self.error
        return super().create(path, body)


def test_a_queue_that_cannot_be_written_is_an_error_and_the_batch_is_done_again(bench, source):
    put(source, "a.ndjson", GOOD)
    put(source, "bad.ndjson", BAD)
    with pytest.raises(StoreDenied):
        replace(bench, store=NoQueue).pipeline().step()
    assert [entry.kind for entry in bench.entries()] == ["open"]
    drain(bench.again(run_id="run-2"))
    assert parquet_ids(bench.entries(), bench.table) == [0, 1, 2]
    assert len(lines(bench)) == 1


def test_a_passing_error_of_the_queue_is_tried_again(bench, source):
    """W01."""
    put(source, "bad.ndjson", BAD)
    failures = iter([StoreUnavailable("503"), StoreUnavailable("503")])

    class Shaky(Store):
        def create(self, path: str, body: bytes) -> Created | AlreadyThere:
            if "failures-" in path and (error := next(failures, None)):
                raise error
            return super().create(path, body)

    drain(replace(bench, store=Shaky))
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

    class DiesAtTheEntry(Store):
        def create(self, path: str, body: bytes) -> Created | AlreadyThere:
            if path.endswith("00000000000000000001.json"):
                raise KeyboardInterrupt
            return super().create(path, body)

    with pytest.raises(KeyboardInterrupt):
        replace(bench, store=DiesAtTheEntry).pipeline().step()
    assert len(objects(bench)) == 1
    drain(bench.again(run_id="run-2"))
    assert len(objects(bench)) == 2
    assert len(queue(bench).letters) == 1


def test_too_many_failures_stop_the_pipeline_after_everything_is_recorded(bench, source):
    put(source, "a.ndjson", GOOD)
    put(source, "bad1.ndjson", BAD)
    put(source, "bad2.ndjson", BAD)
    strict = replace(bench, settings=replace(bench.settings, max_failures=2))
    with pytest.raises(TooManyFailures):
        strict.pipeline().step()
    assert parquet_ids(bench.entries(), bench.table) == [0, 1, 2]
    assert [line["code"] for line in lines(bench)] == ["wrong_type", "wrong_type"]


# ------------------------------------------------------------------------------ the place


def at(uri: str, **options: str) -> Location:
    return Location(uri=uri, options=StorageOptions(options))


@pytest.mark.parametrize(
    ("configured", "uri", "has_options"),
    [
        ("s3://other/dlq", "s3://other/dlq", True),
        ("gs://other/dlq", "gs://other/dlq", False),
        ("/var/dlq", "/var/dlq", False),
    ],
)
def test_a_configured_queue_is_reached_as_the_sink_is_if_it_is_of_its_kind(
    configured, uri, has_options
):
    """W17: the sink's credentials go to no store of another kind."""
    sink = at("s3://bucket/table", AWS_SECRET_ACCESS_KEY="hunter2")
    place = dead_letters.dlq_location("events", sink=sink, configured=configured)
    assert (place.location.uri, place.folder) == (uri, "")
    assert (place.location.options == sink.options) is has_options


def test_a_path_and_a_file_uri_are_of_one_kind():
    assert dead_letters.beside(at("file:///table", A="1"), "/dlq").options == StorageOptions(
        {"A": "1"}
    )


def test_failures_go_to_the_configured_place_and_nowhere_else(bench, source, tmp_path):
    put(source, "bad.ndjson", BAD)
    settings = replace(bench.settings, dlq_path=str(tmp_path / "queue"))
    drain(replace(bench, settings=settings))
    assert objects(bench) == []
    (written,) = (tmp_path / "queue").iterdir()
    assert bench.entries()[-1].dlq == (str(written),)


# ------------------------------------------------------------------------------ reading it back


def queue(bench: Bench) -> dead_letters.Queue:
    return dead_letter_queue(bench.settings, lambda place: Reader(place.uri, place.options))


def test_the_newest_failures_come_first_also_from_an_earlier_place(bench, source, tmp_path):
    """L22: the order is the journal's, whatever the clock did."""
    put(source, "first.ndjson", BAD)
    drain(bench)
    put(source, "second.ndjson", BAD)
    bench.hands.at -= HOUR
    moved = replace(
        bench, settings=replace(bench.settings, dlq_path=str(tmp_path / "queue")), run_id="run-2"
    )
    drain(moved)
    assert [letter.path.rpartition("/")[2] for letter in queue(moved).letters] == [
        "second.ndjson",
        "first.ndjson",
    ]


def test_objects_that_were_cleared_away_are_named_and_no_error(bench, source):
    put(source, "bad.ndjson", BAD)
    drain(bench)
    (written,) = objects(bench)
    written.unlink()
    assert queue(bench).gone == (str(written),)
    written.parent.rmdir()
    assert queue(bench) == dead_letters.Queue(pipeline="default", letters=(), gone=(str(written),))


def test_a_table_that_does_not_exist_yet_has_no_failures(bench):
    assert queue(bench).letters == ()


def test_letters_are_read_as_they_were_written():
    found = dead_letters.letters(
        [record("ü/a b.ndjson", failure=failure(attempts=3)), record("fine.ndjson")],
        pipeline="events",
        batch=7,
        source_uris={"default": "s3://bucket/in/"},
        at=NOON,
    )
    (letter,) = found
    assert (letter.path, letter.retry_count) == ("s3://bucket/in/ü/a b.ndjson", 2)
    assert letter.stage is Stage.PARSE
    assert dead_letters.decode(dead_letters.encode(found), "x") == found


@pytest.mark.parametrize("body", [b"{", b"[]\n", b'{"path": "a"}\n'])
def test_an_object_that_is_no_queue_is_an_error_that_names_it(body):
    with pytest.raises(LakeError, match=r"not an object of a dead letter queue.*dlq/x"):
        dead_letters.decode(body, "dlq/x")


# ------------------------------------------------------------------------------ the command


@pytest.fixture
def configured(tmp_path: Path, source: Path) -> Path:
    file = tmp_path / "pipeline.yaml"
    file.write_text(
        f"source: {{path: {source}}}\n"
        f"sink: {{path: {tmp_path}/table}}\n"
        "schema: {fields: [{name: id, type: int64, nullable: false}, {name: name, type: string}]}\n"
    )
    return file


def listed(file: Path, *arguments: str):
    return CliRunner().invoke(app, ["dlq", "list", "-c", str(file), *arguments])


def test_the_command_shows_a_table_of_eighty_columns(bench, source, configured, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    put(source, f"date=2024-01-01/{'long-name-' * 8}[x].ndjson", BAD)
    put(source, "date=2024-01-02/b.ndjson.gz", b"no gzip")
    drain(bench)
    shown = listed(configured)
    assert shown.exit_code == 0
    header, *body = shown.stdout.splitlines()
    assert header == f"pipeline default: 2 failures, the newest first, below {source}"
    assert max(map(len, body)) <= 80
    assert body[0].split() == ["path", "stage", "code", "line", "message", "retries"]
    together = "".join(shown.stdout.split())
    assert "[x].ndjson" in together
    assert "wrong_type" in together
    assert "decompress_failed" in together


def test_the_command_gives_a_machine_the_lines_as_they_are(bench, source, configured):
    put(source, "bad.ndjson", GOOD + BAD)
    drain(bench)
    shown = listed(configured, "--output", "json")
    assert [json.loads(line) for line in shown.stdout.splitlines()] == lines(bench)


def test_the_command_says_so_where_nothing_failed(configured, source):
    shown = listed(configured)
    assert (shown.exit_code, shown.stdout) == (0, "pipeline default: no failures\n")


def test_the_command_warns_of_what_was_cleared_away(bench, source, configured):
    put(source, "bad.ndjson", BAD)
    drain(bench)
    (written,) = objects(bench)
    written.unlink()
    shown = listed(configured)
    assert shown.exit_code == 0
    assert f"{written} is not there any more" in shown.stderr


def test_the_command_fails_where_the_journal_cannot_be_read(bench, source, configured):
    """D05."""
    put(source, "bad.ndjson", BAD)
    drain(bench)
    (bench.table / journal_entry("default", 1)).write_bytes(b"{")
    shown = listed(configured)
    assert shown.exit_code == 1
    assert "cannot be read" in shown.stderr


def test_the_command_refuses_a_configuration_with_faults(tmp_path):
    (tmp_path / "x.yaml").write_text("sourec: {}\n")
    assert listed(tmp_path / "x.yaml").exit_code == 2
