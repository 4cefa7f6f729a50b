"""Hard cases that once went wrong: each is a sentence of the design."""

import errno
import gc
import io
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from blizzard.cli.run.dry_run import NextBatch, batch_lines
from blizzard.discover.finding import Finding
from blizzard.handoff.publish import Publisher
from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.journal import Journal
from blizzard.model.settings import RollingPolicy
from blizzard.outcomes import TooManyFailures
from blizzard.worker.output.parquet import RollingWriter
from lakebed import layout
from lakebed.clock import Clock
from lakebed.documents.entry import Receipt, digest, encode
from lakebed.errors import DocumentUnreadable, LakeError, NoExclusiveCreate, StoreUnavailable
from lakebed.polling import Stop, run_step
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Reader
from lakebed.telemetry.events import StopRequested
from lakebed.telemetry.logs import log_events
from lakebed.terminal.console import print_text
from lakebed.types import LogFormat, LogLevel
from tests.support.builders import (
    ID_AND_NAME,
    Hands,
    identity,
    ndjson,
    no_options,
    put,
    record,
    rows,
    source_file,
    unit,
)
from tests.support.stores import DropsWrites, Overwrites, local

BAD = b'{"id": "one"}\n'


def writer(folder: Path, policy: RollingPolicy) -> RollingWriter:
    return RollingWriter(
        schema=ID_AND_NAME.arrow(),
        policy=policy,
        marks={"pipeline": "events", "journal": "j-1"},
        folder=folder,
        clock=Clock(),
    )


def batch() -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows(100), schema=ID_AND_NAME.arrow())


SHORTENED = """
import os, sys
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Reader
store = Reader(sys.argv[1], StorageOptions())
facts = store.head("a.ndjson")
pieces = store.stream("a.ndjson", size=facts.size, etag=facts.etag)
next(pieces)
os.truncate(sys.argv[1] + "/a.ndjson", 1)
try:
    list(pieces)
except Exception as error:
    print(type(error).__name__)
"""


def test_a_file_that_is_shortened_while_it_is_read_is_refused(tmp_path):
    """D17, L14: `logrotate copytruncate` on a local source hangs the worker for ever."""
    put(tmp_path, "a.ndjson", b"A" * 30_000_000)
    done = subprocess.run(
        [sys.executable, "-c", SHORTENED, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout.strip() in ("ObjectChanged", "StoreUnavailable")


def test_a_store_without_create_only_writes_is_refused_at_every_start(tmp_path):
    """D07: the probe's own document makes the second start skip the probe."""
    for run in ("first", "second"):
        store = Overwrites(str(tmp_path), no_options(), make_folder=True)
        opening = Journal(
            store, identity(run=run), read_ledger(store, "default"), Hands().clock, lambda _: None
        )
        with pytest.raises(NoExclusiveCreate):
            opening.open_with(lambda: False)


def test_max_failures_stops_the_pipeline_although_the_hand_off_had_to_be_repeated(bench, source):
    """A limit that is reached means exit 1, whatever happens to the hand-off."""
    put(source, "bad.ndjson", BAD)
    calls: list[int] = []

    def commit() -> int:
        calls.append(1)
        if len(calls) == 2:
            raise StoreUnavailable("no answer")
        return 0

    strict = replace(
        bench, settings=replace(bench.settings, max_failures=1), publisher=Publisher(commit=commit)
    )
    pipeline = strict.pipeline()
    with pytest.raises(StoreUnavailable):
        pipeline.step()
    with pytest.raises(TooManyFailures):
        pipeline.step()


def test_an_emitter_never_raises():
    """A closed standard error must not fail a batch that is journaled."""

    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    log_events(LogLevel.INFO, LogFormat.TEXT, Closed())(StopRequested(signal="SIGTERM"))


@pytest.mark.parametrize("path", ["a[/b].ndjson", "x[bold]y.ndjson", "a:fire:.ndjson"])
def test_a_plan_shows_a_path_as_it_is(capsys, path):
    """Rich takes brackets for markup: the first path ends the dry run with a traceback."""
    finding = Finding()
    plan = NextBatch(
        pipeline="p",
        table_uri="/t",
        entry=1,
        findings={"default": finding},
        units=(unit([source_file(path)]),),
    )
    print_text(batch_lines(plan))
    assert path in capsys.readouterr().out


def test_a_secret_that_holds_another_option_is_blanked_whole():
    """W17: the shorter value is replaced first, and the rest of the longer one stays."""
    options = StorageOptions(
        {"ACCOUNT_NAME": "mystore", "CONNECTION_STRING": "AccountName=mystore;Key=hunter2"}
    )
    assert "hunter2" not in options.redact("cannot use AccountName=mystore;Key=hunter2")


@pytest.mark.parametrize("uri", ["s3://b ucket/in", "s3://[x/in"])
def test_a_uri_that_cannot_be_parsed_is_an_error_of_the_user(uri):
    with pytest.raises(LakeError):
        Reader(uri, StorageOptions({"AWS_REGION": "x"}))


def test_an_abandoned_file_makes_no_noise(tmp_path):
    """ParquetWriter.__del__ closes what is closed: "Exception ignored in" on standard error."""
    target = writer(tmp_path, RollingPolicy(row_group_size=1000))
    list(target.write(batch(), "s:a"))
    target.abandon()
    del target
    gc.collect()


def test_a_stop_while_a_failed_step_waits_does_not_hide_the_failure():
    """W01: the exit code tells the truth."""
    stop = Stop()
    error = StoreUnavailable("the journal had no answer")

    def step() -> bool:
        stop.request()
        raise error

    found = run_step(
        step, who="p", stop=stop, emit=lambda _: None, once=False, interval=lambda: 0.0
    )
    assert found is error


def test_an_entry_whose_time_cannot_be_read_is_unreadable_by_name(tmp_path):
    """D05: a bare ValueError is retried for ever."""
    store = local(tmp_path)
    journal_ = Journal(store, identity(), read_ledger(store, "default"), Hands().clock)
    journal_.open_with(lambda: False)
    path = tmp_path / layout.journal_entry("default", 0)
    path.write_bytes(path.read_bytes().replace(b"2024-01-01T", b"yesterday T"))
    with pytest.raises(DocumentUnreadable, match=path.name):
        read_ledger(store, "default")


def test_a_last_entry_that_was_patched_after_its_commit_is_noticed_by_the_receipt(tmp_path):
    """L21: the receipt's digest is never compared."""
    store = local(tmp_path)
    first = Journal(store, identity(), read_ledger(store, "default"), Hands().clock)
    first.open_with(lambda: False)
    first.append((record("a"),), ())
    path = tmp_path / layout.journal_entry("default", 1)
    found = Receipt(journal=first.id, sequence=1, digest=digest(path.read_bytes()))
    store.replace(layout.receipt("default"), encode(found))
    path.write_bytes(path.read_bytes().replace(b'"path":"a"', b'"path":"z"'))
    second = Journal(store, identity(run="r2"), read_ledger(store, "default"), Hands().clock)
    with pytest.raises(LakeError):
        second.open_with(lambda: False)


def test_one_run_never_tries_two_bodies_for_the_first_entry_either(bench, source):
    """L24: after a failed opening the next step draws another journal id."""
    put(source, "a.ndjson", ndjson(rows(3)))
    stores: list[DropsWrites] = []

    class Drops(DropsWrites):
        only = "00000000000000000000.json"
        dropped = 6

        def __init__(self, *given, **named) -> None:
            super().__init__(*given, **named)
            self.dropped = 0 if stores else 6
            stores.append(self)

    pipeline = replace(bench, store=Drops).pipeline()
    with pytest.raises(StoreUnavailable):
        pipeline.step()
    pipeline.step()
    bodies = {body for store in stores for path, body in store.bodies if path.endswith("0.json")}
    assert len(bodies) == 1


def test_a_signal_while_a_line_is_written_does_not_block():
    """The handler emits under the lock that the interrupted thread holds."""
    script = """
import io, signal, sys
from lakebed.polling import Stop, stop_on_signals
from lakebed.telemetry.events import MetricsServed
from lakebed.types import LogFormat, LogLevel
from lakebed.telemetry.logs import log_events
class Raises(io.StringIO):
    first = True
    def write(self, text):
        if Raises.first:
            Raises.first = False
            signal.raise_signal(signal.SIGTERM)
        return super().write(text)
emit = log_events(LogLevel.INFO, LogFormat.TEXT, Raises())
stop_on_signals(Stop(), emit)
emit(MetricsServed(url="x"))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0
