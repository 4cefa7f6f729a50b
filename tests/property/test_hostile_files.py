"""Files that were made to do harm: bounded memory, no hang, and an error that names the file."""

import contextlib
import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blizzard.inspect.audit.log_books import LogBooks
from blizzard.journal import checkpoint
from blizzard.model.settings import Sizing, SnapshotLimits
from lakebed.deltalog.actions import Checkpoint, LogActions, read_actions
from lakebed.deltalog.checkpoint import checkpointed_names
from lakebed.deltalog.search import LogSearch
from lakebed.deltalog.segment import read_checkpoint_hint
from lakebed.deltalog.snapshot import LogReader
from lakebed.deltalog.versions import read_commit
from lakebed.documents.entry import DirectoryProtocol, Receipt, Started, decode, decode_entry
from lakebed.documents.pending_meta import decode_held, decode_meta
from lakebed.documents.reading import parse_json
from lakebed.errors import LakeError
from lakebed.layout import LAST_CHECKPOINT, journal_folder, log_version, snapshot
from lakebed.storage.parquet_tail import footer_of
from lakebed.storage.store import Store
from lakebed.telemetry.events import FaultFound
from lakebed.telemetry.logs import LONGEST_TEXT, log_events
from lakebed.types import LogFormat, LogLevel
from penguin.delta.restore import find_restore
from penguin.foreign.footer import TRIAL, FooterTrial, read_footer
from tests.support.bombs import PARQUET
from tests.support.builders import Bench, ndjson, no_options, pipeline_settings, put, rows
from tests.support.foreign import Directory

ROOT = Path(__file__).parents[2]


def met(folder: Path, *names: str) -> tuple[dict[str, str], int]:
    """Return what a process told of some bombs, and the most memory that it had, in MiB."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.bombs", str(folder), *names],
        cwd=ROOT,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer = json.loads(done.stdout)
    return {name: "\n".join(told) for name, told in answer["told"].items()}, answer["peak_mb"]


def test_a_compressed_gigabyte_is_never_in_memory(tmp_path: Path):
    """HOLES W18: a megabyte of gzip, 32 KB of zstd: both are one line of a gigabyte."""
    told, peak = met(tmp_path, "gzip", "gzip array", "zstd")
    assert all(one.startswith("line_too_long") for one in told.values()), told
    assert peak < 900


def test_a_large_window_and_deep_nesting_are_refused(tmp_path: Path):
    """HOLES W18: a window of 2 GB that a few bytes ask for; 100,000 levels of JSON."""
    told, peak = met(tmp_path, "zstd window", "deep array", "deep object", "deep known")
    assert told.pop("zstd window").startswith("decompress_failed: the zstd frame needs a window of")
    assert all(one.startswith("too_deep") for one in told.values()), told
    assert peak < 500


def test_what_a_footer_or_a_document_claims_costs_nothing(tmp_path: Path):
    """HOLES W18: 4 GB of footer, billions of columns, a meta and an entry of 1 GB."""
    told, peak = met(tmp_path, *PARQUET, "meta", "entry")
    assert peak < 500
    for name in PARQUET:
        assert "16 left out" in told[name]
    assert "huge.meta.json: this object has 1,073,741,824 bytes" in told["meta"]
    assert told["entry"].startswith("document_unreadable: this object has 1,073,741,824 bytes")
    assert "pipeline default stops" in told["entry"]
    assert "journal/00000000000000000001.json" in told["entry"]


@pytest.mark.parametrize("shape", LogFormat)
def test_a_log_line_has_an_end(shape: LogFormat, capsys: pytest.CaptureFixture[str]):
    """A name or a library's message may be of any length, and collectors cut or drop long lines."""
    log_events(LogLevel.INFO, shape)(FaultFound(code="x", error="e" * 1_000_000))
    line = capsys.readouterr().err
    assert len(line) < 3 * LONGEST_TEXT
    assert "(1,000,000 characters)" in line


# ------------------------------------------------------------------------------- damaged at random

DEEP = "[" * 100_000
values: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 10**30, 1.5, "", "x", "../x", "9" * 5000, [], {}, [1], {"a": 1}, [[]], "\0"]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to everything in a document."""
    pairs: Any = enumerate(value) if isinstance(value, list) else ()
    for key, inner in value.items() if isinstance(value, dict) else pairs:
        yield (*path, key)
        yield from places(inner, (*path, key))


@st.composite
def changed(draw: st.DrawFn, bodies: list[bytes]) -> bytes:
    """Draw one of some documents with a few values replaced, or bytes, or cut off."""
    body = draw(st.sampled_from(bodies))
    how = draw(st.sampled_from(["values", "bytes", "cut", "deep"]))
    if how == "deep":
        return DEEP.encode()
    if how == "values":
        lines = [json.loads(line) for line in body.splitlines()] if body[:1] == b"{" else []
        if lines:
            return b"\n".join(json.dumps(each).encode() for each in _replaced(draw, lines))
    if how == "cut":
        return body[: draw(st.integers(0, len(body)))]
    raw = bytearray(body)
    for _ in range(draw(st.integers(1, 8))):
        raw[draw(st.integers(0, len(raw) - 1))] = draw(st.integers(0, 255))
    return bytes(raw)


def _replaced(draw: st.DrawFn, lines: list[Any]) -> list[Any]:
    found = deepcopy(lines)
    for _ in range(draw(st.integers(1, 3))):
        ways = list(places(found))
        *above, last = draw(st.sampled_from(ways))
        holder: Any = found
        for key in above:
            holder = holder[key]
        holder[last] = deepcopy(draw(values))
    return found


@dataclass(frozen=True, repr=False)
class Documents:
    """The documents of a table that both programs wrote."""

    root: Path
    entries: list[bytes]
    small: list[bytes]
    versions: list[bytes]
    footer: bytes


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Documents:
    root = tmp_path_factory.mktemp("documents")
    put(root / "in", "a.ndjson", ndjson(rows(3)))
    put(root / "in", "b.ndjson", b"bad\n")
    at_once = Sizing(snapshots=SnapshotLimits(entries=1))
    bench = Bench(pipeline_settings(root / "in", root / "table", sizing=at_once))
    bench.pipeline().step()
    put(root / "in", "c.ndjson", ndjson(rows(3, 3)))
    bench.again().pipeline().step()
    assert list((root / "table").rglob("snapshot.json"))
    directory = Directory(root / "table")
    directory.penguin().drain()
    meta = directory.meta("x.parquet")
    held = {**json.loads(meta.read_text()), "code": "c", "reasons": ["r"], "held_at": "t"}
    data = next((root / "table").glob("*.parquet"))
    folder = root / "table" / journal_folder("default")
    small = [path.read_bytes() for path in (root / "table/_blizzard").rglob("*.json")]
    return Documents(
        root=root,
        entries=[path.read_bytes() for path in sorted(folder.glob("*.json"))],
        small=[*small, meta.read_bytes(), json.dumps(held).encode()],
        versions=[path.read_bytes() for path in (root / "table/_delta_log").glob("*.json")],
        footer=data.read_bytes(),
    )


def tolerant(examples: int) -> Callable[[Any], Any]:
    quiet = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    return settings(max_examples=examples, suppress_health_check=quiet)


def is_told(*attempts: Callable[[], object]) -> None:
    """See that each is done, or fails with an error of ours; anything else is a crash."""
    for attempt in attempts:
        with contextlib.suppress(LakeError):
            attempt()


@given(data=st.data())
@tolerant(300)
def test_a_damaged_document_is_an_error_that_names_it(documents: Documents, data: st.DataObject):
    """HOLES W23: entries, metas, receipts, protocols, notes: whatever stands in them."""
    body = data.draw(changed([*documents.entries, *documents.small]))
    readers = (decode_entry, decode_meta, decode_held)
    is_told(*(lambda read=read: read(body, "the/path") for read in readers))
    is_told(lambda: decode(Receipt, body, "the/path"))
    is_told(lambda: decode(DirectoryProtocol, body, "the/path"))
    is_told(lambda: decode(Started, body, "the/path"))


@given(data=st.data())
@tolerant(150)
def test_a_damaged_snapshot_is_an_error_and_no_crash(
    documents: Documents, data: st.DataObject, tmp_path: Path
):
    store = Store(str(tmp_path), no_options())
    body = data.draw(changed(documents.small))
    put(tmp_path, snapshot("default"), body)
    is_told(lambda: checkpoint.read_snapshot(store, "default"))
    head = f"{checkpoint.FORMAT} {hashlib.sha256(body).hexdigest()}\n".encode()
    put(tmp_path, snapshot("default"), head + body)
    is_told(lambda: checkpoint.read_snapshot(store, "default"))


@given(data=st.data())
@tolerant(200)
def test_a_damaged_version_of_a_log_is_an_error_and_no_crash(
    documents: Documents, data: st.DataObject, tmp_path: Path
):
    """HOLES W23: other programs write it, and may be wrong."""
    body = data.draw(changed(documents.versions))
    store = Store(str(tmp_path), no_options())
    put(tmp_path, log_version(0), body)
    put(tmp_path, LAST_CHECKPOINT, body)
    search = LogSearch(store=store)
    is_told(
        lambda: read_actions(0, body, "the/path"),
        lambda: LogBooks().take(
            LogActions(version=0, metadata=read_actions(0, body, "the/path").metadata)
        ),
        lambda: read_commit(0, body),
        lambda: find_restore(store, 0),
        lambda: read_checkpoint_hint(store),
        lambda: LogReader(store).newest(),
        lambda: search.follow(["x.parquet"]),
    )


@given(data=st.data())
@tolerant(300)
def test_a_damaged_footer_is_an_error_and_no_crash(
    documents: Documents, data: st.DataObject, tmp_path: Path
):
    """HOLES W18: by the bytes of a real file, a few of them changed."""
    body = data.draw(changed([documents.footer[-2000:]]))
    store = Store(str(tmp_path), no_options())
    put(tmp_path, "a.parquet", body)
    facts = store.head("a.parquet")
    assert facts is not None
    is_told(lambda: footer_of(store, facts), lambda: read_footer(store, facts))


def test_a_footer_that_ends_the_process_of_its_reader_is_left_out(tmp_path: Path):
    """HOLES W18: Arrow aborts over it, and one damaged byte is enough for that."""
    table = Directory(tmp_path / "table")
    path = table.root / table.file(7)
    body = bytearray(path.read_bytes())
    start = len(body) - int.from_bytes(body[-8:-4], "little") - 8
    deadly = (bytes(one) for one in _each_byte_changed(body, start))
    path.write_bytes(next(one for one in deadly if not TRIAL.survives(one[start:])))
    table.file(1)
    visitor = table.penguin().drain()
    assert table.ids() == [1]
    told = "\n".join(event.sentence() for event in visitor.events)
    assert f"{path.name}: the Parquet footer contradicts itself" in told


def _each_byte_changed(body: bytearray, start: int) -> Iterator[bytearray]:
    for place in range(start, len(body) - 8):
        for byte in (30, 65, 70, 89):
            changed_there = bytearray(body)
            changed_there[place] = byte
            yield changed_there


def test_a_trial_that_is_ended_from_outside_says_nothing_of_the_file(tmp_path: Path):
    """HOLES L28: the system ends processes when it has no memory left."""
    program = tmp_path / "killed.py"
    program.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    with pytest.raises(MemoryError):
        FooterTrial(sys.executable, str(program)).survives(b"footer")


def test_a_checkpoint_that_refers_to_itself_is_read_once(tmp_path: Path):
    """HOLES W18: sidecars of sidecars would never end."""
    store = Store(str(tmp_path), no_options())
    row = {"sidecar": {"path": "loop.parquet"}, "add": {"path": "x.parquet"}}
    table = pa.Table.from_pylist([row])
    for path in ("_delta_log/_sidecars/loop.parquet", f"_delta_log/{0:020d}.checkpoint.parquet"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, tmp_path / path)
    put(tmp_path, LAST_CHECKPOINT, b'{"version":0}')
    put(tmp_path, log_version(0), b"")
    facts = store.head(f"_delta_log/{0:020d}.checkpoint.parquet")
    assert facts is not None
    parts = checkpointed_names(store, Checkpoint(version=0, parts=(facts,)))
    assert {path for paths, _ in parts for path in paths} == {"x.parquet"}
    assert list(LogSearch(store=store).follow(["x.parquet"]).active) == ["x.parquet"]


def test_json_that_is_nested_too_deep_is_not_json():
    with pytest.raises(ValueError, match="too deep"):
        parse_json(DEEP)
