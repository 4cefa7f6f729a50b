"""How a failure ends: the file is mended, the settings are, somebody asks, or the file is gone."""

import json
from dataclasses import replace

import pytest

from blizzard.discover.filter import bases_of, is_due, next_try
from lakebed.clock import Clock
from lakebed.documents.entry import Entry, decode_entry
from lakebed.documents.reading import adapter_of
from lakebed.documents.records import FailureStage
from lakebed.storage.store import Store
from lakebed.types import Compression
from tests.support.builders import NOON, failure, known, ndjson, no_options, put, record, rows
from tests.support.commands import told
from tests.support.failed import (
    BAD,
    HOUR,
    NEEDS_STRING,
    change,
    declared,
    drain,
    last_sources,
    polls,
    retry,
)


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


@pytest.mark.parametrize(
    ("changed", "stages"),
    [
        ({"compression": Compression.GZIP}, {FailureStage.DECOMPRESS, FailureStage.PARSE}),
        ({"schema": NEEDS_STRING}, {FailureStage.PARSE}),
        ({"template": "date=%Y-%m-%d"}, {FailureStage.DISCOVER, FailureStage.PARSE}),
        ({"timestamp_field": "name"}, {FailureStage.DISCOVER, FailureStage.PARSE}),
    ],
)
def test_only_what_bears_on_a_stage_makes_its_failures_due(desk, changed, stages):
    """HOLES L33."""
    before = desk.settings()
    after = change(before, **changed)
    old, new = (bases_of(each, each.sources[0]) for each in (before, after))
    assert {stage for stage in old if old[stage] != new[stage]} == stages
    assert FailureStage.UPLOAD not in old


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
    bases = {FailureStage.PARSE: "now"}
    assert is_due(old, NOON, bases)
    ((_key, new),) = known(record(failure=replace(failure(), basis="now"))).items()
    assert next_try(new, bases) is None
    assert next_try(new, {FailureStage.PARSE: "then"}) == NOON


def test_an_entry_of_an_older_version_is_read_as_before(bench, desk):
    """Nothing that is on a disk becomes unreadable."""
    put(desk.landing, "a.ndjson", BAD)
    drain(bench)
    entry = json.loads(adapter_of(Entry).dump_json(bench.entries()[-1]))
    for one in entry["sources"]:
        del one["retry"], one["gone"], one["failure"]["basis"]
    (read,) = decode_entry(json.dumps(entry).encode(), "x").sources
    assert read.failure is not None
    assert (read.retry, read.gone, read.failure.basis) == (False, False, None)


def test_status_says_that_it_is_tried_again(bench, desk):
    """HOLES L33, W38: `dry-run` takes it, too."""
    put(desk.landing, "a.ndjson", BAD)
    drain(bench)
    assert "Fix the file or the schema" in desk.run("status").stdout
    file = desk.config()
    file.write_text(file.read_text().replace("int64", "string"))
    assert "tried again with the next batch" in desk.run("status", config=file).stdout
    (plan,) = told(desk.run("--dry-run", "--output", "json", config=file))
    assert plan["files"] == 1


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
    retry(desk.store, "default", None, clock=bench.hands.clock)
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
    assert "not among the failed files: a.ndjson" in said.stderr
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
