"""Which files are taken, and why the others are not."""

from dataclasses import replace
from datetime import timedelta

import pytest

from blizzard.discover.filter import Decision, FileFilter
from blizzard.discover.finding import FEW, MOST_NAMED, Finding, Reason
from blizzard.model.settings import SourceSettings
from blizzard.model.source.file import IngestedFile, Recorded, UnfinishedFile
from blizzard.model.source.form import SourcePattern
from lakebed.columns.schema import Schema
from lakebed.documents.records import FailureStage, SourceRecord
from lakebed.partition import Template, table_schema
from lakebed.storage.options import ObjectFacts
from lakebed.types import OnChange
from tests.support.builders import ID_AND_NAME, NOON, facts, failure, known, record, source_settings


def before_of(records: dict[str, UnfinishedFile]) -> dict[str, Recorded]:
    """Return for each record what a journal with it says."""
    return {
        key: Recorded(
            finished=IngestedFile(
                key=key, size=each.record.size, etag=each.record.etag, empty=each.record.gave_no_row
            )
            if each.record.failure is None and each.record.complete
            else None,
            unfinished=None if each.record.failure is None and each.record.complete else each,
        )
        for key, each in records.items()
    }


def file_filter(
    *,
    source: SourceSettings | None = None,
    template: str | None = None,
    schema: Schema = ID_AND_NAME,
    **given,
) -> FileFilter:
    parsed = Template.parse(template) if template else None
    usual = {
        "source": source or source_settings(),
        "template": parsed,
        "partition_fields": {each.name: each for each in table_schema(schema, parsed).fields},
        "now": NOON,
    }
    return FileFilter(**(usual | given))


def look(*listed: ObjectFacts, before=None, tried=(), now=NOON, **given) -> Finding:
    filtering = file_filter(tried=frozenset(tried), now=now, **given)
    books = before_of(dict(before or {}))
    for each in listed:
        if filtering.is_ours(each):
            filtering.consider(each, books.get(f"{filtering.source.name}:{each.path}", Recorded()))
    return filtering.finding()


def taken(finding: Finding) -> list[str]:
    return [file.path for file in finding.take]


# ------------------------------------------------------------------------------ listing


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("a.csv", Reason.NOT_NDJSON),
        ("a.gz", Reason.NOT_NDJSON),
        ("a.ndjson.tmp", Reason.TEMPORARY),
        ("a.ndjson.part", Reason.TEMPORARY),
        ("a.ndjson.partial", Reason.TEMPORARY),
        ("a.ndjson.gz.crdownload", Reason.TEMPORARY),
        ("a.ndjson.inprogress", Reason.TEMPORARY),
        ("a.ndjson.filepart", Reason.TEMPORARY),
        ("a.ndjson._COPYING_", Reason.TEMPORARY),
        ("_SUCCESS.json", Reason.HIDDEN),
        (".a.ndjson", Reason.HIDDEN),
        ("_staging/a.ndjson", Reason.HIDDEN),
        ("x/.hidden/a.ndjson", Reason.HIDDEN),
        ("_blizzard/default/journal/00000000000000000001.json", Reason.HIDDEN),
        ("_delta_log/00000000000000000001.json", Reason.HIDDEN),
    ],
)
def test_what_is_unfinished_or_somebodys_bookkeeping_is_not_taken_and_told_why(path, reason):
    finding = look(facts(path), facts("ok.ndjson"))
    assert taken(finding) == ["ok.ndjson"]
    assert [(one.reason, one.files, one.some) for one in finding.not_taken] == [
        (reason, 1, (path,))
    ]


def test_reasons_are_all_counted_and_some_files_are_named():
    finding = look(*(facts(f"{number:05}.csv", size=2) for number in range(3 * MOST_NAMED)))
    (one,) = finding.not_taken
    assert (one.files, one.bytes, len(one.some)) == (3 * MOST_NAMED, 6 * MOST_NAMED, FEW)
    assert len(finding.passed) == MOST_NAMED


@pytest.mark.parametrize(
    ("pattern", "path", "is_meant"),
    [
        ("app-*", "app-1.ndjson", True),
        ("app-*", "web-1.ndjson", False),
        ("app-*", "app-1/x.ndjson", False),
        ("app-**", "app-1/x.ndjson", True),
        ("*/events-*.ndjson.gz", "2024/events-7.ndjson.gz", True),
        ("*/events-*.ndjson.gz", "2024/01/events-7.ndjson.gz", False),
        ("**/events-?.ndjson", "events-7.ndjson", True),
        ("**/events-?.ndjson", "a/b/events-7.ndjson", True),
        ("**/events-?.ndjson", "a/b/events-77.ndjson", False),
        ("day=0[1-3]/*", "day=02/x.ndjson", True),
        ("day=0[1-3]/*", "day=04/x.ndjson", False),
        ("day=0[!1-3]/*", "day=04/x.ndjson", True),
        ("a.b*", "a.b.ndjson", True),
        ("a.b*", "aXb.ndjson", False),
    ],
)
def test_a_pattern_means_some_names_and_no_others(pattern, path, is_meant):
    finding = look(facts(path), source=source_settings(pattern=SourcePattern(pattern)))
    assert (taken(finding) == [path]) is is_meant
    assert finding.count(Reason.NOT_MATCHED) == (not is_meant)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.log", "app.log"),
        ("**/*.txt", "a/b/app.txt"),
        ("app-*.geojsonl", "app-1.geojsonl"),
        ("*.log.bz2", "app.log.bz2"),
        ("*/events.log", "a/events.log"),
        ("app-[0-9].log", "app-1.log"),
        ("*.lo[g]", "app.log"),
        ("*.l?g", "app.log"),
        ("*.part", "app.part"),
        ("part-*", "part-00000"),
        ("*/firehose-**", "2024/firehose-1-2024-01-01"),
        ("events", "events"),
    ],
)
def test_a_pattern_that_names_a_suffix_or_files_without_one_means_them(pattern, path):
    """L36."""
    source = source_settings(pattern=SourcePattern(pattern))
    assert taken(look(facts(path), source=source)) == [path]
    assert look(facts(path)).take == ()


@pytest.mark.parametrize(
    ("pattern", "path", "reason"),
    [
        ("app-*", "app-1.log", Reason.NOT_NDJSON),
        ("v1.5-*", "v1.5-1.log", Reason.NOT_NDJSON),
        ("a.b/*", "a.b/1.log", Reason.NOT_NDJSON),
        ("*", "part-00000", Reason.NOT_NDJSON),
        ("**", "a/part-00000", Reason.NOT_NDJSON),
        ("part-*", "part-00000.crc", Reason.NOT_NDJSON),
        ("app-*", "app-1.ndjson.tmp", Reason.TEMPORARY),
        ("*.log", "_app.log", Reason.HIDDEN),
        (".*.log", ".app.log", Reason.HIDDEN),
    ],
)
def test_a_pattern_that_names_no_suffix_means_ndjson(pattern, path, reason):
    """L36."""
    finding = look(facts(path), source=source_settings(pattern=SourcePattern(pattern)))
    assert (finding.take, finding.count(reason)) == ((), 1)


# ------------------------------------------------------------------------------ deciding


@pytest.mark.parametrize("now_is", [facts("a.ndjson", size=11), facts("a.ndjson", etag="e2")])
def test_an_ingested_file_that_is_another_object_now_is_reported_and_not_taken(now_is):
    """D15."""
    finding = look(now_is, before=known(record("a.ndjson")))
    assert finding.take == ()
    assert finding.changed == (now_is,)
    assert finding.count(Reason.CHANGED) == 1


NOTHING = SourceRecord(source="default", path="a.ndjson", size=0, etag="e1")


@pytest.mark.parametrize("on_change", list(OnChange))
@pytest.mark.parametrize(
    "before",
    [NOTHING, replace(NOTHING, size=20), replace(NOTHING, size=3, lines=3, blank=3)],
    ids=["no bytes", "a gzip stream of nothing", "blank lines"],
)
def test_a_file_that_gave_no_row_is_read_when_it_has_other_content(before, on_change):
    """L27: whatever on_change says, as none of its rows is in the table."""
    source = source_settings(on_change=on_change)
    finding = look(facts("a.ndjson", size=90, etag="e2"), before=known(before), source=source)
    assert taken(finding) == ["a.ndjson"]
    assert (finding.again, finding.changed) == (frozenset(), ())
    same = facts("a.ndjson", size=before.size)
    assert look(same, before=known(before), source=source).take == ()


def test_a_file_that_gave_no_row_when_it_was_taken_again_is_still_one_with_rows_in_the_table():
    """L27, D15: the rows of its first content are."""
    before = known(replace(NOTHING, reingested=True))
    finding = look(facts("a.ndjson", size=90, etag="e2"), before=before)
    assert (finding.take, finding.count(Reason.CHANGED)) == ((), 1)


def test_a_part_of_a_file_that_was_read_does_not_count_for_another_object():
    """D15: the lines that were read are not those of the new object."""
    half = SourceRecord(
        source="default", path="a.ndjson", size=10, etag="e1", lines=7, rows=7, complete=False
    )
    source = source_settings(on_change=OnChange.REINGEST)
    (file,) = look(facts("a.ndjson", etag="e2"), before=known(half), source=source).take
    assert file.skip == 0
    (file,) = look(facts("a.ndjson"), before=known(half), source=source).take
    assert file.skip == 7


@pytest.mark.parametrize("on_change", list(OnChange))
def test_the_rest_of_an_object_that_was_taken_again_is_read_and_its_first_lines_are_not(on_change):
    """D01, D15: a stop came while the new object was read; its first lines are in the table."""
    half = SourceRecord(
        source="default", path="a.ndjson", size=10, etag="e2", lines=7, rows=7, complete=False
    )
    before = Recorded(
        finished=IngestedFile(key="default:a.ndjson", size=10, etag="e1"),
        unfinished=UnfinishedFile(record=half, at=NOON),
    )
    filtering = file_filter(source=source_settings(on_change=on_change))
    assert filtering.consider(facts("a.ndjson", etag="e2"), before) is Decision.TAKE
    finding = filtering.finding()
    assert [file.skip for file in finding.take] == [7]
    assert finding.again == {"default:a.ndjson"}


def test_an_object_that_failed_when_it_was_taken_again_and_is_the_old_one_now_is_done():
    """D15: its rows are in the table already."""
    before = Recorded(
        finished=IngestedFile(key="default:a.ndjson", size=10, etag="e1"),
        unfinished=UnfinishedFile(record=record("a.ndjson", etag="e2", failure=failure()), at=NOON),
    )
    filtering = file_filter(source=source_settings(on_change=OnChange.REINGEST))
    assert filtering.consider(facts("a.ndjson"), before) is Decision.DONE


@pytest.mark.parametrize(("attempts", "rest"), [(1, 30), (2, 60), (3, 120), (20, 3600)])
def test_a_file_that_may_succeed_rests_longer_each_time_and_is_then_taken_again(attempts, rest):
    """L04."""
    before = known(record("a.ndjson", failure=failure(retryable=True, attempts=attempts)))
    early = look(facts("a.ndjson"), before=before, now=NOON + timedelta(seconds=rest - 1))
    assert (early.take, early.count(Reason.RESTING)) == ((), 1)
    due = look(facts("a.ndjson"), before=before, now=NOON + timedelta(seconds=rest))
    assert taken(due) == ["a.ndjson"]


def test_a_file_that_this_run_has_tried_is_not_tried_again():
    before = known(record("a.ndjson", failure=failure(retryable=True)))
    finding = look(
        facts("a.ndjson"), before=before, tried={"default:a.ndjson"}, now=NOON + timedelta(days=1)
    )
    assert (finding.take, finding.count(Reason.FAILED)) == ((), 1)


def test_a_batch_takes_no_more_bytes_than_allowed_but_always_one_file():
    source = source_settings(max_bytes_per_batch=25)
    many = look(*(facts(f"{number}.ndjson", size=10) for number in range(5)), source=source)
    assert (len(many.take), many.left_over) == (2, 3)
    large = look(facts("large.ndjson", size=1000), facts("z.ndjson"), source=source)
    assert (taken(large), large.left_over) == (["large.ndjson"], 1)


# ------------------------------------------------------------------------------ partitions


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("x.ndjson", "its path contains no date=… folder"),
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
    assert (failed.path, failed.failure.stage) == (path, FailureStage.DISCOVER)
    assert failed.failure.code == "partition_unknown"
    assert says in failed.failure.message


def test_a_misplaced_file_is_recorded_once():
    """W10."""
    (failed,) = look(facts("x.ndjson"), template="date=%Y-%m-%d").misplaced
    again = look(facts("x.ndjson"), template="date=%Y-%m-%d", before=known(replace(failed)))
    assert (again.misplaced, again.count(Reason.FAILED)) == ((), 1)


def test_a_half_read_file_that_is_misplaced_meanwhile_goes_on_where_it_was():
    """D25: its first lines are in the table; they must not be read a second time."""
    half = SourceRecord(
        source="default", path="x.ndjson", size=10, etag="e1", lines=4, rows=4, skipped=3,
        unit="0.0", complete=False,
    )  # fmt: skip
    (failed,) = look(facts("x.ndjson"), template="date=%Y-%m-%d", before=known(half)).misplaced
    assert (failed.skipped, failed.lines, failed.rows, failed.unit) == (7, 0, 0, None)
    assert failed.failure is not None
    assert "its lines 1 to 7 are in the table" in failed.failure.message
    later = known(replace(failed, failure=replace(failed.failure, retryable=True)))
    (file,) = look(facts("x.ndjson"), before=later, now=NOON + timedelta(days=1)).take
    assert file.skip == 7
    other = known(replace(half, etag="e0"))
    source = source_settings(on_change=OnChange.REINGEST)
    (failed,) = look(
        facts("x.ndjson"), template="date=%Y-%m-%d", before=other, source=source
    ).misplaced
    assert failed.skipped == 0


def test_misplaced_files_are_bounded_like_those_that_are_taken():
    source = source_settings(max_files_per_batch=2)
    listed = [facts(f"{number}.ndjson") for number in range(5)]
    finding = look(*listed, template="date=%Y-%m-%d", source=source)
    assert (len(finding.misplaced), finding.left_over) == (2, 3)


# ------------------------------------------------------------------------------ age


def aged(seconds: float, *, etag: str = "e1") -> ObjectFacts:
    return replace(facts("a.ndjson", etag=etag), modified=NOON - timedelta(seconds=seconds))


def test_a_file_is_old_enough_once_we_have_seen_it_unchanged_for_so_long():
    """L22: the store's clock is an hour ahead."""
    source = source_settings(min_age=60)
    first = file_filter(source=source)
    assert first.consider(aged(-3600), Recorded()) is Decision.WAIT
    at = NOON + timedelta(seconds=60)
    later = file_filter(source=source, first_seen=first.young, now=at)
    assert later.consider(aged(-3600), Recorded()) is Decision.TAKE
    grown = file_filter(source=source, first_seen=first.young, now=at)
    assert grown.consider(aged(-3600, etag="grown"), Recorded()) is Decision.WAIT
    set_back = file_filter(source=source, first_seen=first.young, now=NOON - timedelta(hours=1))
    assert set_back.consider(aged(-3600), Recorded()) is Decision.WAIT
