from dataclasses import replace
from pathlib import Path

import pytest

from lakebed.columns.schema import Field, Schema
from lakebed.deltalog.delta_types import TableFacts
from lakebed.documents.data_file import FinishedFile
from lakebed.documents.entry import Entry, digest_number
from lakebed.documents.source_record import Failure, SourceRecord, Stage
from lakebed.layout import TablePath
from lakebed.types import FieldType, Handoff
from penguin.model.backlog import Backlog, Position, ReadyEntry
from penguin.model.commit import Releasable
from penguin.model.settings import TableSettings
from penguin.model.table import Refused
from penguin.plan.commit import Rules, plan_commit
from penguin.plan.draft import CREATED_WITH, decide, file_statistics, new_table

SCHEMA = Schema(
    (
        Field(name="id", type=FieldType.INT64),
        Field(name="date", type=FieldType.DATE),
        Field(name="n", type=FieldType.INT32, nullable=False),
    )
)
PARTS = ("date", "n")


def table():
    return TableFacts(version=7, schema=SCHEMA.delta(), partition_columns=PARTS, configuration={})


def file(name="a.parquet", rows=2, **changes):
    made = FinishedFile(
        filename=TablePath(f"date=2026-01-01/n=1/{name}"),
        size=10,
        record_count=rows,
        partition_values={"date": "2026-01-01", "n": "1"},
        source_file=None,
        unit="u",
        modification_time=0,
    )
    return replace(made, **changes)


def ready(sequence, *files, pipeline="p", schema=SCHEMA, parts=PARTS, **changes):
    rows = sum(one.record_count for one in files)
    entry = Entry(
        kind="batch",
        pipeline=pipeline,
        journal=f"journal-{pipeline}",
        sequence=sequence,
        run="r",
        created="2026-01-01",
        previous="0" * 64,
        handoff=Handoff.JOURNAL,
        source_uris={},
        table_schema=schema.delta(),
        partition_columns=parts,
        sources=(source(lines=rows, rows=rows),),
        files=files,
    )
    body = f"{sequence:x}"
    return ReadyEntry(entry=replace(entry, **changes), digest=body.rjust(64, "f"), path="j")


def source(**changes):
    return SourceRecord(**{"source": "in", "path": "x", "size": 1, "etag": None, **changes})


def backlog(*entries, pipeline="p"):
    return Backlog(
        position=Position(
            pipeline=pipeline, journal=f"journal-{pipeline}", sequence=None, digest=None
        ),
        entries=entries,
    )


SETTINGS = TableSettings(name="t", table_uri="/t")
RULES = Rules(
    decide=lambda table, entry: decide(table, entry, SETTINGS),
    new_table=lambda entry: new_table(entry, SETTINGS),
    statistics=file_statistics,
    partition_columns=None,
    max_files=100,
)


def planned(*backlogs, facts="table", max_files=100, partition_columns=None, **more):
    rules = replace(RULES, max_files=max_files, partition_columns=partition_columns)
    return plan_commit(table() if facts == "table" else facts, backlogs, rules, **more)


def refusal(*entries, **options):
    found = planned(backlog(*entries), **options)
    assert found.commit is None
    (stopped,) = found.stopped
    return str(stopped.error)


def test_entries_of_several_pipelines_share_one_commit():
    found = planned(
        backlog(ready(1, file("a")), ready(2, file("b"))),
        backlog(ready(1, file("c"), pipeline="q"), pipeline="q"),
    )
    commit = found.commit
    assert [add.path.rpartition("/")[2] for add in commit.adds] == ["a", "c", "b"]
    last = ready(2, file("b"))
    assert commit.transactions()[:3] == (
        ("blizzard/p/journal-p", 2),
        ("blizzard/p/journal-p/digest", digest_number(last.digest)),
        ("blizzard/p", 2),
    )
    assert commit.settled()["p"] == {"journal": "journal-p", "first": 1, "last": 2}
    assert (commit.entries, commit.rows) == (3, 6)


def test_a_commit_holds_no_more_files_than_it_may_and_no_entry_is_split():
    entries = [ready(n, file(f"{n}a"), file(f"{n}b")) for n in (1, 2, 3)]
    assert planned(backlog(*entries), max_files=5).commit.entries == 2
    assert planned(backlog(*entries), max_files=1).commit.entries == 1


def test_pipelines_take_turns_when_a_commit_is_full():
    first = backlog(*(ready(n, file(f"p{n}")) for n in (1, 2, 3)))
    other = backlog(ready(1, file("q1"), pipeline="q"), pipeline="q")
    commit = planned(first, other, max_files=2).commit
    assert {part.before.pipeline for part in commit.advances} == {"p", "q"}


def test_a_bad_entry_stops_its_pipeline_there_and_nothing_else():
    bad = ready(2, file("bad", size=0))
    found = planned(
        backlog(ready(1, file("good")), bad, ready(3, file("later"))),
        backlog(ready(1, file("q1"), pipeline="q"), pipeline="q"),
    )
    assert [add.path.rpartition("/")[2] for add in found.commit.adds] == ["good", "q1"]
    assert [(one.pipeline, one.sequence) for one in found.stopped] == [("p", 2)]


def test_an_entry_without_files_still_advances_its_pipeline():
    commit = planned(backlog(ready(1))).commit
    assert commit.adds == ()
    assert commit.advances[0].after.sequence == 1


def test_a_file_named_twice_is_refused():
    assert "named twice" in refusal(ready(1, file("a"), file("a")))


def test_a_file_named_by_two_pipelines_is_refused_for_the_second():
    found = planned(
        backlog(ready(1, file("a"))),
        backlog(ready(1, file("a"), pipeline="q"), pipeline="q"),
    )
    assert [one.pipeline for one in found.stopped] == ["q"]


@pytest.mark.parametrize(
    "path", ["/abs.parquet", "a//b.parquet", "../x", "a/./b", "_delta_log/x", "_blizzard/x", ""]
)
def test_a_path_that_is_no_data_file_of_the_table_is_refused(path):
    assert "not the name of a data file" in refusal(ready(1, file(filename=TablePath(path))))


@pytest.mark.parametrize(
    "values",
    [
        {"date": "not-a-date", "n": "1"},
        {"date": "2026-1-1", "n": "1"},
        {"date": "2026-01-01", "n": "x"},
        {"date": "2026-01-01", "n": "2147483648"},
        {"date": "2026-01-01", "n": None},
        {"date": "2026-01-01", "n": ""},
        {"date": "2026-01-01"},
        {},
        {"date": "2026-01-01", "n": "1", "x": "1"},
    ],
)
def test_partition_values_that_the_table_cannot_hold_are_refused(values):
    """W10: committed, such a value would make the table unreadable."""
    assert "partition" in refusal(ready(1, file(partition_values=values)))


def test_an_empty_partition_value_is_a_null():
    """W09."""
    one = ready(1, file(partition_values={"date": "", "n": "1"}))
    assert planned(backlog(one)).commit.adds[0].partition_values == {"date": None, "n": "1"}


@pytest.mark.parametrize(
    "sources",
    [
        (),
        (source(lines=3, rows=3),),
        (source(lines=5, rows=2),),
        (source(lines=2, rows=2, blank=1),),
        (source(lines=2, rows=2, filtered=1),),
        (
            source(
                rows=2,
                failure=Failure(stage=Stage.PARSE, code="bad_json", message="no"),
            ),
        ),
    ],
)
def test_books_that_do_not_balance_are_refused(sources):
    assert "do not add up" in refusal(ready(1, file(rows=2), sources=sources))


def test_blank_filtered_and_quarantined_lines_and_failed_files_are_in_the_books():
    sources = (
        source(lines=8, rows=2, blank=1, filtered=3, quarantined=2),
        source(lines=9, failure=Failure(stage=Stage.PARSE, code="bad_json", message="no")),
    )
    assert planned(backlog(ready(1, file(rows=2), sources=sources))).commit is not None


def test_a_new_table_is_what_its_first_entry_says():
    commit = planned(backlog(ready(1, file())), facts=None).commit
    assert commit.table.version is None
    assert commit.table.partition_columns == PARTS
    assert commit.table.configuration["delta.dataSkippingStatsColumns"] == "id"
    assert "delta.setTransactionRetentionDuration" not in commit.table.configuration


def test_a_column_that_a_later_entry_brings_is_added_with_the_commit():
    wider = Schema((*SCHEMA.fields, Field(name="extra", type=FieldType.STRING)))
    commit = planned(backlog(ready(1, file("a")), ready(2, file("b"), schema=wider))).commit
    assert commit.changes.added == ("extra",)
    assert commit.after.schema["fields"][-1]["name"] == "extra"


def test_two_pipelines_that_disagree_on_a_new_column_do_not_both_get_it():
    def bringing(kind):
        return Schema((*SCHEMA.fields, Field(name="extra", type=kind)))

    found = planned(
        backlog(ready(1, file("a"), schema=bringing(FieldType.STRING))),
        backlog(ready(1, file("b"), schema=bringing(FieldType.DATE), pipeline="q"), pipeline="q"),
    )
    assert found.commit.after.schema["fields"][-1]["type"] == "string"
    (hold,) = found.commit.holds
    assert (hold.entry.pipeline, hold.code) == ("q", "schema_refused")
    assert "extra" in hold.reasons[0]


def test_partition_columns_unlike_the_configured_ones_are_refused():
    assert "partition_by" in refusal(ready(1, file()), partition_columns=("date",))


def test_an_entry_that_does_not_fit_is_held_and_its_pipeline_goes_on():
    """W07: its files are left out, with a mark each; what comes after it is committed."""
    other = Schema((Field(name="id", type=FieldType.STRING), *SCHEMA.fields[1:]))
    found = planned(
        backlog(ready(1, file("a")), ready(2, file("b"), schema=other), ready(3, file("c")))
    )
    assert found.stopped == ()
    assert [add.path.rpartition("/")[2] for add in found.commit.adds] == ["a", "c"]
    assert found.commit.advances[0].after.sequence == 3
    assert ("penguin/held/b", 0) in found.commit.transactions()
    assert found.commit.rows == 4


def test_what_does_not_fit_a_table_that_is_not_there_yet_stops_its_pipeline():
    """There is no log to write down that a file is held."""
    found = plan_commit(
        None,
        (backlog(ready(1, file())),),
        replace(RULES, decide=lambda _table, _entry: Refused(("no",))),
    )
    assert found.commit is None
    assert "no" in str(found.stopped[0].error)


def test_a_file_that_is_gone_takes_the_outputs_of_its_unit_with_it():
    """W21: the unit's sources are read again as a whole; other units are committed."""
    gone, beside = file("gone", unit="1"), file("beside", unit="1")
    entry = ready(1, gone, beside, file("other", unit="2"))
    found = planned(backlog(entry), lacking={gone.filename: "the file is gone"})
    assert [add.path.rpartition("/")[2] for add in found.commit.adds] == ["other"]
    assert {hold.name for hold in found.commit.holds} == {"gone", "beside"}
    assert {hold.code for hold in found.commit.holds} == {"file_missing"}
    assert all("gone" in hold.reasons[0] for hold in found.commit.holds)


def held(*names, **changes):
    files = tuple(file(name) for name in names)
    return Releasable(files=files, ready=ready(1, *files, **changes))


def test_a_held_file_goes_in_once_it_fits():
    found = planned(releasable=(held("a"), held("b")))
    assert found.commit.released == ("a", "b")
    assert found.commit.advances == ()
    assert found.commit.transactions() == (("penguin/held/a", 1), ("penguin/held/b", 1))
    assert found.commit.rows == 4


def test_a_held_file_that_still_does_not_fit_or_is_gone_stays_held():
    other = Schema((Field(name="id", type=FieldType.STRING), *SCHEMA.fields[1:]))
    assert planned(releasable=(held("a", schema=other),)).commit is None
    gone = {file("a").filename: "the file is gone"}
    assert planned(releasable=(held("a", "b"),), lacking=gone).commit is None


def test_a_held_file_with_a_wrong_partition_value_stays_held():
    """W10: what was never checked when it was held is checked when it goes in."""
    wrong = file(partition_values={"date": "never", "n": "1"})
    assert planned(releasable=(Releasable(files=(wrong,), ready=ready(1)),)).commit is None


def test_a_commit_releases_no_more_files_than_it_may_hold():
    found = planned(backlog(ready(1, file("a"))), releasable=(held("b"), held("c")), max_files=2)
    assert found.commit.released == ("b",)


@pytest.mark.parametrize("gone", [True, False])
def test_an_entry_that_gives_up_files_of_the_same_commit_comes_with_the_next(gone):
    """D18: the log has yet to say what becomes of them, so this is no trouble of the entry's."""
    lacking = {file("a").filename: "the file is gone"} if gone else {}
    again = ready(2, kind="redo", redone=("a",))
    found = planned(backlog(ready(1, file("a")), again, ready(3, file("b"))), lacking=lacking)
    assert found.stopped == ()
    assert found.commit.settled()["p"]["last"] == 1


def test_properties_of_a_new_table_are_on_the_page():
    page = Path("docs/penguin.md").read_text()
    missing = [f"| `{key}` | `{value}` |" for key, value in CREATED_WITH.items()]
    assert [row for row in missing if row not in page] == []
