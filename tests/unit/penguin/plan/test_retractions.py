"""A retraction in the plan of a commit: all of its files go, or none does."""

from dataclasses import replace

import pytest

from lakebed.documents.data_file import Replacement
from lakebed.documents.source_record import SourceRecord
from lakebed.layout import file_name, held_transaction
from penguin.model.commit import HeldState
from tests.unit.penguin.plan.test_commit import backlog, file, ready
from tests.unit.penguin.plan.test_promotions import OLD, planned

WHOLE = file("whole").filename


def retraction(sequence=1, *, rows=5, taken=5):
    source = SourceRecord(
        source="in", path="a", size=1, etag=None, lines=taken, rows=taken, retracted=True
    )
    replaced = (
        Replacement(old=OLD, old_size=7, new=file("new", rows=3), left_out=rows - 4),
        Replacement(
            old=WHOLE,
            old_size=9,
            left_out=4,
            partition_values=file("whole").partition_values,
        ),
    )
    return ready(sequence, kind="retract", sources=(source,), replaced=replaced)


def test_it_removes_and_adds_in_one_commit_and_counts_what_leaves():
    commit = planned(backlog(retraction()), active=(OLD, WHOLE)).commit
    assert [add.path for add in commit.adds] == [file("new").filename]
    assert [(one.filename, one.size, one.record_count) for one in commit.removes] == [
        (OLD, 7, 4),
        (WHOLE, 9, 4),
    ]
    assert (commit.left_out, commit.rewritten_rows, commit.rows) == (5, 3, 0)
    assert commit.metadata()["retracted"] == {"rows": 5}
    assert not commit.changes.added


def test_rows_of_other_entries_in_the_commit_are_counted_as_they_are():
    commit = planned(backlog(retraction(), ready(2, file("b", rows=6))), active=(OLD, WHOLE)).commit
    assert commit.rows == 6


def test_where_one_of_its_files_is_gone_nothing_is_done():
    commit = planned(backlog(retraction()), active=(OLD,)).commit
    assert (commit.adds, commit.removes, commit.left_out) == ((), (), 0)
    (passed,) = commit.not_promoted
    assert (passed.kind, passed.reasons) == ("retract", ("one is gone",))
    mark = held_transaction(passed.mark)
    assert (mark, HeldState.GONE.value) in commit.transactions()


@pytest.mark.parametrize("taken", [4, 6])
def test_one_whose_rows_do_not_add_up_stops_its_pipeline(taken):
    found = planned(backlog(retraction(taken=taken)), active=(OLD, WHOLE))
    assert found.commit is None
    assert "do not add up" in str(found.stopped[0].error)


def erasure(*, erased):
    replaced = retraction().entry.replaced
    return ready(1, kind="erase", replaced=replaced, erased=erased, reason="why")


@pytest.mark.parametrize("erased", [{}, {"s3://in/a": 2}, {"s3://in/a": 2, "s3://in/b": 3}])
def test_of_erased_rows_some_may_be_of_unknown_source_files(erased):
    commit = planned(backlog(erasure(erased=erased)), active=(OLD, WHOLE)).commit
    assert commit.left_out == 5
    assert "why" not in str(commit.metadata())


def test_an_erasure_of_more_rows_than_its_files_lose_stops_its_pipeline():
    assert planned(backlog(erasure(erased={"s3://in/a": 6})), active=(OLD, WHOLE)).commit is None


def test_an_erasure_of_which_a_file_is_gone_leaves_the_table_as_it_is():
    commit = planned(backlog(erasure(erased={})), active=(OLD,)).commit
    assert (commit.removes, [one.kind for one in commit.not_promoted]) == ((), ["erase"])


def exchange(*, rows=2, new_rows=2):
    plain = retraction()
    new = SourceRecord(source="in", path="a", size=2, etag="2", lines=rows, rows=rows, unit="u")
    entry = replace(
        plain.entry,
        sources=(*plain.entry.sources, new),
        files=(file("content", rows=new_rows),),
    )
    return replace(plain, entry=entry)


def test_new_content_comes_with_the_very_commit_that_takes_the_old_out():
    commit = planned(backlog(exchange()), active=(OLD, WHOLE)).commit
    assert {add.path for add in commit.adds} == {file("content").filename, file("new").filename}
    assert {one.filename for one in commit.removes} == {OLD, WHOLE}
    assert (commit.left_out, commit.rewritten_rows, commit.rows) == (5, 3, 2)


def test_where_the_old_cannot_go_the_new_content_is_given_up_and_never_added():
    commit = planned(backlog(exchange()), active=(OLD,)).commit
    assert (commit.adds, commit.removes, commit.holds) == ((), (), ())
    name = file_name(file("content").filename)
    assert commit.discarded == {name: None}
    assert (held_transaction(name), HeldState.GONE.value) in commit.transactions()


def test_new_content_whose_rows_do_not_add_up_stops_its_pipeline():
    found = planned(backlog(exchange(new_rows=3)), active=(OLD, WHOLE))
    assert found.commit is None
    assert "gave 2 rows, but its data files hold 3" in str(found.stopped[0].error)
