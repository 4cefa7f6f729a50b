"""Which files are taken, and why the others are not."""

from dataclasses import replace
from datetime import timedelta

import pytest

from blizzard.compression import Codec
from blizzard.discovery import SUFFIXES, Finding, decide, is_source_file, list_source
from blizzard.settings import Compression, SourceSettings
from lake.entry import Stage
from lake.errors import ObjectMissing
from lake.partition import Template, table_schema
from lake.schema import Schema
from lake.storage import ObjectFacts, Reader
from tests.support.builders import (
    ID_AND_NAME,
    NOON,
    facts,
    failure,
    known,
    no_options,
    put,
    record,
    source_settings,
)


def look(
    *listed: ObjectFacts,
    source: SourceSettings | None = None,
    template: str | None = None,
    schema: Schema = ID_AND_NAME,
    before=None,
    tried=(),
    now=NOON,
) -> Finding:
    parsed = Template.parse(template) if template else None
    return decide(
        listed,
        source=source or source_settings(),
        template=parsed,
        partition_fields={field.name: field for field in table_schema(schema, parsed).fields},
        known=(before or {}).get,
        tried=frozenset(tried),
        now=now,
    )


def taken(finding: Finding) -> list[str]:
    return [file.path for file in finding.take]


# ------------------------------------------------------------------------------ listing


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_suffix_of_ndjson_is_a_source_file(suffix):
    """L17."""
    assert is_source_file(f"2024/a{suffix}")


def test_the_suffixes_are_those_that_people_use():
    """L17."""
    assert set(SUFFIXES) >= {".ndjson", ".ndjson.zst", ".ndjson.gz", ".jsonl", ".json.gz"}


@pytest.mark.parametrize(
    "path",
    [
        "a.csv",
        "a.ndjson.tmp",
        "a.gz",
        "_SUCCESS.json",
        ".a.ndjson",
        "_staging/a.ndjson",
        "x/.hidden/a.ndjson",
        "_blizzard/default/journal/00000000000000000001.json",
        "_delta_log/00000000000000000001.json",
    ],
)
def test_somebodys_bookkeeping_is_no_source_file(path):
    assert not is_source_file(path)


def test_files_at_the_root_are_found_beside_partition_folders(tmp_path):
    """L19."""
    for path in ("z.ndjson", "date=2024-01-01/b.ndjson.gz", "date=2024-01-01/h=1/a.jsonl", "x.csv"):
        put(tmp_path, path, b"{}")
    found = list_source(Reader(str(tmp_path), no_options()))
    assert [each.path for each in found] == [
        "date=2024-01-01/b.ndjson.gz",
        "date=2024-01-01/h=1/a.jsonl",
        "z.ndjson",
    ]


def test_a_source_that_is_gone_is_an_error_and_not_empty(tmp_path):
    """L10."""
    (tmp_path / "in").mkdir()
    reader = Reader(str(tmp_path / "in"), no_options())
    (tmp_path / "in").rmdir()
    with pytest.raises(ObjectMissing):
        list_source(reader)


# ------------------------------------------------------------------------------ deciding


def test_a_new_file_is_taken_as_it_was_listed():
    (file,) = look(facts("a.ndjson.gz", size=7, etag="x")).take
    assert (file.key, file.size, file.etag) == ("default:a.ndjson.gz", 7, "x")
    assert file.codec is Codec.GZIP


@pytest.mark.parametrize(
    ("path", "compression", "codec"),
    [
        ("a.ndjson", Compression.AUTO, Codec.NONE),
        ("a.json.gz", Compression.AUTO, Codec.GZIP),
        ("a.jsonl.zst", Compression.AUTO, Codec.ZSTD),
        ("a.ndjson", Compression.GZIP, Codec.GZIP),
        ("a.ndjson.gz", Compression.NONE, Codec.NONE),
    ],
)
def test_the_compression_is_told_by_the_suffix_unless_it_is_configured(path, compression, codec):
    """L17."""
    (file,) = look(facts(path), source=source_settings(compression=compression)).take
    assert file.codec is codec


def test_an_ingested_file_is_not_taken_again():
    """D01."""
    finding = look(facts("a.ndjson"), facts("b.ndjson"), before=known(record("a.ndjson")))
    assert taken(finding) == ["b.ndjson"]
    assert finding.overwritten == ()


@pytest.mark.parametrize("now_is", [facts("a.ndjson", size=11), facts("a.ndjson", etag="e2")])
def test_an_ingested_file_that_is_another_object_now_is_reported_and_not_taken(now_is):
    """D15."""
    finding = look(now_is, before=known(record("a.ndjson")))
    assert finding.take == ()
    assert finding.overwritten == (now_is,)


def test_a_file_that_cannot_succeed_rests_for_good():
    """D04."""
    before = known(record("a.ndjson", failure=failure(retryable=False)))
    finding = look(facts("a.ndjson"), before=before, now=NOON + timedelta(days=365))
    assert finding.take == ()
    assert [each.path for each in finding.resting] == ["a.ndjson"]


@pytest.mark.parametrize(("attempts", "rest"), [(1, 30), (2, 60), (3, 120), (20, 3600)])
def test_a_file_that_may_succeed_rests_longer_each_time_and_is_then_taken_again(attempts, rest):
    """L04."""
    before = known(record("a.ndjson", failure=failure(retryable=True, attempts=attempts)))
    early = look(facts("a.ndjson"), before=before, now=NOON + timedelta(seconds=rest - 1))
    assert (early.take, len(early.resting)) == ((), 1)
    due = look(facts("a.ndjson"), before=before, now=NOON + timedelta(seconds=rest))
    assert taken(due) == ["a.ndjson"]


def test_a_failed_file_that_was_mended_is_taken_again_at_once():
    """L04."""
    before = known(record("a.ndjson", failure=failure(retryable=False)))
    assert taken(look(facts("a.ndjson", etag="mended"), before=before)) == ["a.ndjson"]


def test_a_file_that_this_run_has_tried_is_not_tried_again():
    before = known(record("a.ndjson", failure=failure(retryable=True)))
    finding = look(
        facts("a.ndjson"),
        before=before,
        tried={"default:a.ndjson"},
        now=NOON + timedelta(days=1),
    )
    assert (finding.take, len(finding.resting)) == ((), 1)


def test_two_sources_with_equal_names_are_two_files():
    """D13."""
    before = known(record("a.ndjson", source="x"))
    assert look(facts("a.ndjson"), source=source_settings(name="x"), before=before).take == ()
    assert taken(look(facts("a.ndjson"), source=source_settings(name="y"), before=before)) == [
        "a.ndjson"
    ]


def test_a_batch_takes_no_more_files_than_allowed_and_counts_the_rest():
    source = source_settings(max_files_per_batch=2)
    finding = look(*(facts(f"{number}.ndjson") for number in range(5)), source=source)
    assert taken(finding) == ["0.ndjson", "1.ndjson"]
    assert finding.left_over == 3


def test_a_batch_takes_no_more_bytes_than_allowed_but_always_one_file():
    source = source_settings(max_bytes_per_batch=25)
    many = look(*(facts(f"{number}.ndjson", size=10) for number in range(5)), source=source)
    assert (len(many.take), many.left_over) == (2, 3)
    large = look(facts("large.ndjson", size=1000), facts("z.ndjson"), source=source)
    assert (taken(large), large.left_over) == (["large.ndjson"], 1)


def test_what_is_known_costs_nothing_of_a_batch():
    """L11: files that are done do not keep later ones out."""
    source = source_settings(max_files_per_batch=1)
    finding = look(
        facts("a.ndjson"), facts("b.ndjson"), source=source, before=known(record("a.ndjson"))
    )
    assert taken(finding) == ["b.ndjson"]


def test_a_late_file_that_sorts_before_the_known_ones_is_taken():
    """L07, L08."""
    finding = look(facts("a.ndjson"), facts("z.ndjson"), before=known(record("z.ndjson")))
    assert taken(finding) == ["a.ndjson"]


# ------------------------------------------------------------------------------ partitions


def test_partition_values_come_from_the_folders():
    (file,) = look(
        facts("date=2024-01-01/region=a%2Fb/x.ndjson"), template="region=%s/date=%Y-%m-%d"
    ).take
    assert list(file.partition_values.items()) == [("region", "a/b"), ("date", "2024-01-01")]


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("x.ndjson", "no folder date=… stands in its path"),
        ("date=today/x.ndjson", "partition date"),
        ("date=2024-02-30/x.ndjson", "partition date"),
        ("date=%FF/x.ndjson", "cannot be decoded"),
    ],
)
def test_a_file_whose_partition_cannot_be_told_is_a_failure_and_the_rest_goes_on(path, says):
    """W10, L19."""
    finding = look(facts(path), facts("date=2024-01-01/ok.ndjson"), template="date=%Y-%m-%d")
    assert taken(finding) == ["date=2024-01-01/ok.ndjson"]
    (failed,) = finding.misplaced
    assert failed.failure is not None
    assert (failed.path, failed.failure.stage) == (path, Stage.DISCOVER)
    assert failed.failure.code == "partition_unknown"
    assert says in failed.failure.message


def test_a_misplaced_file_is_recorded_once():
    """W10."""
    (failed,) = look(facts("x.ndjson"), template="date=%Y-%m-%d").misplaced
    again = look(facts("x.ndjson"), template="date=%Y-%m-%d", before=known(replace(failed)))
    assert (again.misplaced, len(again.resting)) == ((), 1)
