"""How a failure ends: the file is mended, the settings are, somebody asks, or the file is gone."""

import hashlib
import json
from dataclasses import replace

import pytest

from blizzard import service
from blizzard.discover.lister import SourceLister
from blizzard.discover.retry import is_due, next_try
from blizzard.events import NothingNew, SourceFilesGone, SourcesListed
from blizzard.journal import snapshot
from blizzard.journal.compaction import SnapshotWriter
from blizzard.journal.state import Before, History, read_history
from blizzard.maintain.retry import look, retry
from blizzard.model.failure_basis import bases_of
from blizzard.model.source_glob import Pattern
from lakebed.clock import Clock
from lakebed.documents.entry import Entry, Stage, decode_entry, digest, encode
from lakebed.errors import StoreUnavailable
from lakebed.partition import Template
from lakebed.schema import Field, Schema
from lakebed.storage.store import Reader, Store
from lakebed.types import Compression, FieldType, Handoff
from tests.support.builders import (
    ID_AND_NAME,
    NOON,
    Bench,
    entries,
    facts,
    failure,
    known,
    ndjson,
    no_options,
    put,
    record,
    rows,
    source_settings,
)
from tests.support.commands import Desk, told
from tests.support.desk import Desk as Both
from tests.support.readers import ids as table_ids
from tests.support.runner import InProcessRunner

BAD = b'{"id": "x", "name": "a"}\n'
NEEDS_STRING = Schema(
    (
        Field(name="id", type=FieldType.STRING, nullable=False),
        Field(name="name", type=FieldType.STRING),
    )
)
HOUR = 3600.0


@pytest.fixture
def desk(tmp_path):
    (tmp_path / "in").mkdir()
    return Desk(tmp_path)


@pytest.fixture
def bench(desk):
    return desk.bench()


def drain(bench):
    """Run once, and give the statistics of the run."""
    pipeline = bench.pipeline()
    while pipeline.step():
        pass
    return pipeline.statistics


def polls(running, bench):
    """Let a blizzard that runs for ever take some steps, with time enough for a batch."""
    for _ in range(3):
        running.step()
        bench.hands.at += 400


def declared(bench, schema=NEEDS_STRING):
    return bench.again(settings=replace(bench.settings, schema=schema), run_id="run-2")


def last_sources(bench):
    return {each.path: each for each in bench.entries()[-1].sources}


# ------------------------------------------------------------------------------ other settings


def test_a_corrected_schema_brings_a_failed_file_back(bench, desk):
    """HOLES L33: before, only `touch` helped, whatever the page on errors said."""
    put(desk.landing, "a.ndjson", BAD)
    assert drain(bench).files_failed == 1
    assert drain(bench.again(run_id="again")).checkpoints_saved == 0
    done = drain(declared(bench))
    assert (done.files_processed, done.files_still_failed) == (1, 0)
    assert last_sources(bench)["a.ndjson"].rows == 1


def test_under_the_same_settings_it_is_tried_once(bench, desk):
    """HOLES L33: also where it fails under the new settings as well."""
    put(desk.landing, "a.ndjson", b"{nope\n")
    drain(bench)
    second = declared(bench)
    assert drain(second).files_failed == 1
    entries = len(bench.entries())
    again = drain(second.again(run_id="run-3"))
    assert (len(bench.entries()), again.files_failed, again.files_still_failed) == (entries, 0, 1)
    assert last_sources(bench)["a.ndjson"].failure.attempts == 2


def test_a_running_blizzard_is_not_meant_by_a_change_in_a_file(bench, desk):
    """The settings are those of the start; a poll tries nothing again by itself."""
    put(desk.landing, "a.ndjson", BAD)
    running = replace(bench, once=False).pipeline()
    polls(running, bench)
    entries = len(bench.entries())
    bench.hands.at += 10 * HOUR
    polls(running, bench)
    assert (entries, len(bench.entries())) == (2, 2)


def change(settings, *, compression=None, template=None, schema=None, timestamp_field=None):
    (source,) = settings.sources
    sink = settings.sink
    return replace(
        settings,
        sources=(replace(source, compression=compression or source.compression),),
        sink=replace(
            sink,
            template=Template.parse(template) if template else sink.template,
            timestamp_field=timestamp_field or sink.timestamp_field,
        ),
        schema=schema or settings.schema,
    )


@pytest.mark.parametrize(
    ("changed", "stages"),
    [
        ({"compression": Compression.GZIP}, {Stage.DECOMPRESS, Stage.PARSE}),
        ({"schema": NEEDS_STRING}, {Stage.PARSE}),
        ({"template": "date=%Y-%m-%d"}, {Stage.DISCOVER, Stage.PARSE}),
        ({"timestamp_field": "name"}, {Stage.DISCOVER, Stage.PARSE}),
    ],
)
def test_only_what_bears_on_a_stage_makes_its_failures_due(desk, changed, stages):
    """HOLES L33."""
    before = desk.settings()
    after = change(before, **changed)
    old, new = (bases_of(each, each.sources[0]) for each in (before, after))
    assert {stage for stage in old if old[stage] != new[stage]} == stages
    assert Stage.UPLOAD not in old


def test_the_order_of_declared_fields_and_the_names_of_sources_are_no_reason(desk):
    """HOLES L33: what is not looked at when a file is read does not make it due."""
    settings = desk.settings()
    (source,) = settings.sources
    other = replace(settings, sources=(replace(source, poll_interval=1.0),), max_failures=3)
    assert bases_of(other, other.sources[0]) == bases_of(settings, source)


def test_a_record_of_an_older_version_is_tried_once():
    """HOLES L33: nobody knows under which settings it failed."""
    ((_key, old),) = known(record(failure=failure())).items()
    assert next_try(old) is None
    bases = {Stage.PARSE: "now"}
    assert is_due(old, NOON, bases)
    ((_key, new),) = known(record(failure=replace(failure(), basis="now"))).items()
    assert next_try(new, bases) is None
    assert next_try(new, {Stage.PARSE: "then"}) == NOON


def test_an_entry_of_an_older_version_is_read_as_before(bench, desk):
    """Nothing that is on a disk becomes unreadable."""
    put(desk.landing, "a.ndjson", BAD)
    drain(bench)
    entry = json.loads(encode(bench.entries()[-1]))
    for one in entry["sources"]:
        del one["retry"], one["gone"], one["failure"]["basis"]
    (read,) = decode_entry(json.dumps(entry).encode(), "x").sources
    assert read.failure is not None
    assert (read.retry, read.gone, read.failure.basis) == (False, False, None)


def test_status_says_that_it_is_tried_again(bench, desk):
    """HOLES L33, W38: `dry-run` takes it, too."""
    put(desk.landing, "a.ndjson", BAD)
    drain(bench)
    assert "not tried again: fix the file or the schema" in desk.run("status").stdout
    file = desk.config()
    file.write_text(file.read_text().replace("int64", "string"))
    assert "tried again with the next batch" in desk.run("status", config=file).stdout
    (plan,) = told(desk.run("--dry-run", "--output", "json", config=file))
    assert plan["files"] == 1


# ------------------------------------------------------------------------------ by order


def test_what_failed_is_read_again_at_once_if_somebody_asks(bench, desk):
    """HOLES L33."""
    put(desk.landing, "a.ndjson", BAD)
    put(desk.landing, "b.ndjson", BAD)
    drain(bench)
    done = desk.run("dlq", "retry", "--file", "a.ndjson")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "the next batch reads 1 source file again (entry 2)" in done.stdout
    (asked,) = bench.entries()[-1].sources
    assert (bench.entries()[-1].kind, asked.path, asked.retry) == ("retry", "a.ndjson", True)
    drain(bench.again(run_id="run-2"))
    (again,) = bench.entries()[-1].sources
    assert (again.path, again.retry, again.failure.attempts) == ("a.ndjson", False, 2)
    entries = len(bench.entries())
    drain(bench.again(run_id="run-3"))
    assert len(bench.entries()) == entries  # Once.
    assert told(desk.run("dlq", "retry", "--all", "--output", "json"))[0]["files"] == [
        "default:a.ndjson",
        "default:b.ndjson",
    ]


def test_a_running_blizzard_hears_of_it_at_its_next_look(bench, desk):
    """HOLES L33: though its source is quiet."""
    put(desk.landing, "a.ndjson", BAD)
    running = replace(bench, once=False).pipeline()
    polls(running, bench)
    assert last_sources(bench)["a.ndjson"].failure.attempts == 1
    retry(Store(str(desk.table), no_options()), "default", None, clock=bench.hands.clock)
    polls(running, bench)
    assert any(
        each.path == "a.ndjson" and each.failure and each.failure.attempts == 2
        for entry in bench.entries()
        for each in entry.sources
    )


def test_what_has_not_failed_is_an_error(bench, desk):
    put(desk.landing, "a.ndjson", ndjson(rows(1)))
    drain(bench)
    said = desk.run("dlq", "retry", "--file", "a.ndjson")
    assert (said.exit_code, len(bench.entries())) == (1, 2)
    assert "has not failed: a.ndjson" in said.stderr
    assert "no source file has failed" in desk.run("dlq", "retry", "--all").stdout
    assert desk.run("dlq", "retry").exit_code == 2


def test_a_retry_that_a_batch_overtakes_looks_again(bench, desk):
    """HOLES L33: it never names a file that was read in between."""
    put(desk.landing, "a.ndjson", BAD)
    drain(bench)

    class Overtaken(Store):
        def create(self, path, body):
            if not entered:
                entered.append(path)
                drain(declared(bench))
            return super().create(path, body)

    entered = []
    found, entry = retry(Overtaken(str(desk.table), no_options()), "default", None, clock=Clock())
    assert (found.records, entry) == ((), None)
    assert [each.kind for each in bench.entries()] == ["open", "batch", "batch"]


def test_a_batch_that_a_retry_overtakes_goes_after_it(bench, desk):
    """HOLES L33: an operator's entry stops no run."""
    put(desk.landing, "a.ndjson", BAD)
    drain(bench)
    put(desk.landing, "b.ndjson", ndjson(rows(2)))

    class Overtaken(Store):
        def create(self, path, body):
            if path.endswith("2.json") and not isinstance(self, Plain):
                Plain(str(desk.table), no_options())
                retry(Plain(str(desk.table), no_options()), "default", None, clock=Clock())
            return super().create(path, body)

    class Plain(Overtaken):
        pass

    drain(bench.again(run_id="run-2", store=Overtaken))
    assert [each.kind for each in bench.entries()][:4] == ["open", "batch", "retry", "batch"]
    assert drain(bench.again(run_id="run-3")).files_still_failed == 1


# ------------------------------------------------------------------------------ gone


def test_a_file_that_was_moved_ends_as_gone(bench, desk):
    """HOLES W38: before, it was failed for ever, and the file under its new name was ingested."""
    put(desk.landing, "a.ndjson", BAD)
    assert drain(bench).files_still_failed == 1
    (desk.landing / "a.ndjson").unlink()
    put(desk.landing, "mended.ndjson", ndjson(rows(1)))
    second = bench.again(run_id="run-2")
    done = drain(second)
    assert (done.files_failed, done.files_still_failed, done.files_processed) == (0, 0, 1)
    left = last_sources(bench)["a.ndjson"]
    assert (left.gone, left.failure.code) == (True, "wrong_type")
    (said,) = second.said(SourceFilesGone)
    assert (said.files, said.example) == (1, "a.ndjson")
    assert bench.entries()[-1].dlq == ()
    (source,) = told(desk.run("status", "--output", "json"))[0]["sources"]
    assert (source["failed_files"], source["failures"]) == (0, [])
    assert "gone from its source" in desk.run("journal", "2").stdout
    entries = len(bench.entries())
    drain(bench.again(run_id="run-3"))
    assert len(bench.entries()) == entries


def test_of_files_that_are_gone_alone_there_is_an_entry(bench, desk):
    """HOLES W38: nothing else needs to arrive."""
    put(desk.landing, "a.ndjson", BAD)
    drain(bench)
    (desk.landing / "a.ndjson").unlink()
    assert drain(bench.again(run_id="run-2")).files_still_failed == 0
    assert last_sources(bench)["a.ndjson"].gone


def test_a_file_that_comes_back_is_a_new_one(bench, desk):
    """HOLES W38: the very same object, too; to be taken for gone by mistake costs one try."""
    put(desk.landing, "a.ndjson", BAD)
    drain(bench)
    (desk.landing / "a.ndjson").rename(desk.root / "aside")
    drain(bench.again(run_id="run-2"))
    (desk.root / "aside").rename(desk.landing / "a.ndjson")
    third = bench.again(run_id="run-3")
    assert drain(third).files_failed == 1
    assert last_sources(bench)["a.ndjson"].failure.attempts == 1


def test_what_is_in_the_table_of_a_file_that_is_gone_is_not_read_again(bench, desk):
    """HOLES W38: its first lines were journaled by a stop; it comes back, and its rest is read."""
    put(desk.landing, "a.ndjson", ndjson(rows(3)))
    drain(bench)
    entry = bench.entries()[-1]
    half = replace(entry.sources[0], complete=False)
    path = desk.table / f"_blizzard/default/journal/{entry.sequence:020d}.json"
    path.write_bytes(encode(replace(entry, sources=(half,))))
    body = (desk.landing / "a.ndjson").rename(desk.root / "aside")
    drain(bench.again(run_id="run-2"))
    left = last_sources(bench)["a.ndjson"]
    assert (left.gone, left.skipped, left.rows) == (False, 3, 0)
    assert left.failure.code == "gone_part_way"
    body.rename(desk.landing / "a.ndjson")
    drain(bench.again(run_id="run-3"))
    (rest,) = bench.entries()[-1].sources
    assert (rest.skipped, rest.lines, rest.complete) == (3, 0, True)


def test_a_file_whose_rows_were_given_up_stays_one_that_is_not_done():
    """HOLES L04: gone and back, it is read again, though it was ingested once."""
    done, lost = record(), replace(record(failure=failure(retryable=True)), redo=True)
    history = read_history_of([done], [lost], [replace(lost, gone=True)])
    (left,) = history.unfinished.values()
    assert (left.record.redo, left.record.gone) == (True, True)
    assert history.lookup(None, "default")(done.key).finished is None


def read_history_of(*sources):
    """Learn a journal whose entries have these sources."""
    history = History()
    for number, each in enumerate(sources):
        entry = Entry(
            kind="batch",
            pipeline="default",
            journal="j",
            sequence=number,
            run="r",
            created=NOON.isoformat(),
            previous=history.digest,
            handoff=Handoff.JOURNAL,
            source_uris={"default": "/in"},
            table_schema=ID_AND_NAME.delta(),
            partition_columns=(),
            sources=tuple(each),
        )
        history.learn(entry, encode(entry))
        assert history.digest == digest(encode(entry))
    return history


def test_a_quick_look_never_takes_a_file_for_gone(desk):
    """HOLES W38: only a sweep has seen the whole source."""
    put(desk.landing, "b.ndjson", ndjson(rows(1)))
    before = known(record("a.ndjson", failure=failure()))
    lister = SourceLister(source=source_settings(desk.landing), template=None, partition_fields={})

    def gone():
        found = lister.look(
            Reader(str(desk.landing), no_options()),
            lambda key: Before(unfinished=before.get(key)),
            unfinished=before,
            since=None,
            tried=frozenset(),
            now=NOON,
        )
        return found.swept, [each.path for each in found.gone], found.resting

    assert gone() == (True, ["a.ndjson"], 0)
    lister._cursor.pages = 1000  # As if the source were large: the next look is a quick one.
    assert gone() == (False, [], 1)


def test_a_listing_that_breaks_off_takes_nothing_for_gone(bench, desk):
    """HOLES W38: nor does one that fails."""
    put(desk.landing, "a.ndjson", BAD)
    put(desk.landing, "z.ndjson", ndjson(rows(1)))
    drain(bench)

    class Broken(Reader):
        def in_order(self, prefix="", *, after="", guide=None):
            yield facts("a.ndjson")
            raise StoreUnavailable("half-way", path=prefix)

    second = bench.again(run_id="run-2")
    pipeline = second.pipeline()
    pipeline.open_source = lambda place: Broken(place.uri, place.options)
    pipeline.__post_init__()
    with pytest.raises(StoreUnavailable):
        pipeline.step()
    assert len(bench.entries()) == 2


@pytest.mark.parametrize("path", ["c/a.ndjson", "a.ndjson"])
def test_what_a_sweep_does_not_come_by_is_not_gone(bench, desk, path):
    """HOLES W38: a pattern that was narrowed, and so is not listed, decides nothing."""
    put(desk.landing, path, BAD)
    drain(bench)
    (source,) = bench.settings.sources
    narrow = replace(source, pattern=Pattern("b/*.ndjson"))
    second = bench.again(settings=replace(bench.settings, sources=(narrow,)), run_id="run-2")
    assert drain(second).files_still_failed == 1
    assert len(bench.entries()) == 2


# ------------------------------------------------------------------------------ what is told


def test_the_gauge_counts_every_file_that_is_failed(bench, desk):
    """HOLES W38: also between two sweeps, and none that is gone."""
    put(desk.landing, "a.ndjson", BAD)
    running = replace(bench, once=False).pipeline()
    polls(running, bench)
    assert bench.said(SourcesListed)[-1].resting == 1
    assert bench.said(NothingNew)[-1].resting == 1
    (desk.landing / "a.ndjson").unlink()
    bench.hands.at += 2 * HOUR
    polls(running, bench)
    assert bench.said(SourcesListed)[-1].resting == 0


def test_the_queue_shows_what_is_failed_now_and_all_of_it_if_asked(bench, desk):
    """HOLES W38: ingested since, gone since, failed again."""
    for name in ("back", "gone", "stays"):
        put(desk.landing, f"{name}.ndjson", BAD)
    drain(bench)
    (desk.landing / "gone.ndjson").unlink()
    put(desk.landing, "back.ndjson", ndjson(rows(1)))
    retry(
        Store(str(desk.table), no_options()),
        "default",
        frozenset({"stays.ndjson"}),
        clock=bench.hands.clock,
    )
    asked_for = told(desk.run("dlq", "list", "--output", "json"))
    assert len(asked_for) == 3  # Nothing was read yet.
    drain(bench.again(run_id="run-2"))
    current = told(desk.run("dlq", "list", "--output", "json"))
    assert [(one["path"].rpartition("/")[2], one["retry_count"]) for one in current] == [
        ("stays.ndjson", 1)
    ]
    shown = desk.run("dlq", "list").stdout
    assert "1 failure, the newest first" in shown
    assert "3 more are over, --all shows them" in shown
    everything = desk.run("dlq", "list", "--all")
    assert len(told(desk.run("dlq", "list", "--all", "--output", "json"))) == 4
    for state in ("ingested", "gone", "failed again"):
        assert state in " ".join(everything.stdout.split())
    (desk.landing / "stays.ndjson").unlink()
    drain(bench.again(run_id="run-3"))
    assert "no file is in a failed state now; 4 more are over" in desk.run("dlq", "list").stdout


def test_a_misplaced_file_is_told_the_way_out(desk):
    """HOLES W38: to change the file does not help, to move it does."""
    desk.sink = 'partition_by: {prefix_template: "date=%Y-%m-%d"}'
    put(desk.landing, "a.ndjson", ndjson(rows(1)))
    settings = change(desk.settings(), template="date=%Y-%m-%d")
    bench = Bench(settings)
    drain(bench)
    assert "move it into the folders of its partition" in desk.run("status").stdout
    (desk.landing / "date=2024-01-01").mkdir()
    (desk.landing / "a.ndjson").rename(desk.landing / "date=2024-01-01/a.ndjson")
    done = drain(bench.again(run_id="run-2"))
    assert (done.files_processed, done.files_still_failed) == (1, 0)


def test_the_field_is_told_wherever_a_failure_is(bench, desk):
    """HOLES W44: in the views for people, too."""
    put(desk.landing, "a.ndjson", BAD)
    drain(bench)
    assert "wrong_type (parse, line 1, field id)" in desk.run("status").stdout
    journal = "".join(desk.run("journal", "1").stdout.split())
    assert "wrong_type(parse,line1,fieldid)" in journal
    assert "id: found" in " ".join(desk.run("dlq", "list").stdout.split())
    (source,) = told(desk.run("status", "--output", "json"))[0]["sources"]
    assert source["failures"][0]["field"] == "id"


def test_the_summary_of_a_run_that_reads_nothing_counts_what_is_still_failed(
    bench, desk, monkeypatch
):
    """HOLES W38: `files_failed: 0` with exit code 0 no longer means that all is well."""

    class Inside(InProcessRunner):
        def __init__(self, *_given, **_named):
            super().__init__()

        def stop(self):
            pass

        def make_next_start_faster(self):
            return False

    monkeypatch.setattr(service, "SparkRunner", Inside)
    put(desk.landing, "a.ndjson", BAD)
    drain(bench)
    done = desk.run("--once", "--output", "json")
    (row,) = told(done)
    assert (done.exit_code, row["files_processed"], row["files_failed"]) == (0, 0, 0)
    assert row["files_still_failed"] == 1


def test_a_snapshot_of_another_version_is_believed(bench, desk):
    """A field more or less in it is no damage: an upgrade reads no entry again for it."""
    put(desk.landing, "a.ndjson", BAD)
    drain(bench)
    store = Store(str(desk.table), no_options())
    SnapshotWriter(store=store, pipeline="default", clock=Clock()).write(
        read_history(store, "default")
    )
    (path,) = (desk.table / "_blizzard/default/journal").glob("*.snapshot.json")
    text = path.read_text().replace(',"gone":false', "").replace(',"retry":false', "")
    whole = json.loads(text)
    bare = text.replace(f'"check":"{whole["check"]}"', '"check":""').rstrip("\n")
    check = hashlib.sha256(bare.encode()).hexdigest()
    path.write_text(bare.replace('"check":""', f'"check":"{check}"') + "\n")
    found = snapshot.read_latest(store, "default")
    assert found is not None
    assert found.unfinished[0].record.gone is False
    path.write_text(path.read_text().replace("wrong_type", "wrong_typo"))
    with pytest.raises(snapshot.SnapshotBroken):
        snapshot.read_latest(store, "default")


def test_what_is_looked_for_is_what_has_failed(bench, desk):
    put(desk.landing, "a.ndjson", BAD)
    drain(bench)
    store = Reader(str(desk.table), no_options())
    for name in ("a.ndjson", "default:a.ndjson", f"{desk.landing}/a.ndjson"):
        assert [each.path for each in look(store, "default", frozenset({name})).records] == [
            "a.ndjson"
        ]
    assert look(store, "default", frozenset({"b"})).unknown == {"b"}


def test_penguin_goes_past_what_says_how_failures_end(tmp_path):
    """HOLES L33, W38: such entries have no file, and their books balance."""
    both = Both(tmp_path)
    both.landing.land("a.ndjson", 3)
    both.landing.write("bad.ndjson", b"{nope\n")
    both.landing.write("moved.ndjson", b"{nope\n")
    both.blizzard()
    assert both.cli("dlq", "retry", "--file", "bad.ndjson").exit_code == 0
    (both.landing.folder / "moved.ndjson").unlink()
    both.blizzard(later=60)
    both.penguin()
    (row,) = told(both.order("status", "--output", "json"))
    assert (row["pending_entries"], row["stopped"]) == (0, 0)
    kinds = [(entry.kind, len(entry.sources)) for entry in entries(both.table)]
    assert kinds == [("open", 0), ("batch", 3), ("retry", 1), ("batch", 2)]
    assert table_ids(both.table) == both.landing.ids
