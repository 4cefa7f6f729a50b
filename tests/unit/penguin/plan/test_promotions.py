"""A promotion in the plan of a commit: every file takes its place, or none does."""

from dataclasses import replace

import pytest

from lakebed.columns.schema import Field, Schema
from lakebed.deltalog.delta_types import TableFacts
from lakebed.documents.data_file import Replacement
from lakebed.layout import file_name, held_transaction
from lakebed.types import FieldType, Handoff
from penguin.model.commit import HeldState
from penguin.plan.commit import plan_commit
from tests.unit.penguin.plan.test_commit import PARTS, RULES, SCHEMA, backlog, file, ready, table

NEW = Field(name="price", type=FieldType.INT64)
WIDER = Schema((*SCHEMA.fields, NEW))
OLD = file("old").filename


def promotion(sequence=1, *pairs, pipeline="p", **changes):
    pairs = pairs or (("old", "new"),)
    replaced = tuple(
        Replacement(old=file(old).filename, old_size=7, new=file(new)) for old, new in pairs
    )
    return ready(
        sequence,
        pipeline=pipeline,
        **{
            "kind": "promote",
            "replaced": replaced,
            "sources": (),
            "table_schema": WIDER.delta(),
            **changes,
        },
    )


def planned(*backlogs, active=(OLD,), facts="table", **more):
    rules = replace(
        RULES,
        why_not_replaced=lambda files: (
            None if {one.filename for one in files} <= {*active} else "one is gone"
        ),
    )
    return plan_commit(table() if facts == "table" else facts, backlogs, rules, **more)


def test_a_promotion_removes_and_adds_and_brings_its_column():
    commit = planned(backlog(promotion())).commit
    assert [add.path for add in commit.adds] == [file("new").filename]
    assert [(one.filename, one.size) for one in commit.removes] == [(OLD, 7)]
    assert commit.changes.added == ("price",)
    assert commit.after.schema == WIDER.delta()
    assert commit.not_promoted == ()


def test_its_rows_were_in_the_table_before():
    assert planned(backlog(promotion())).commit.rows == 0
    assert planned(backlog(promotion(), ready(2, file("b", rows=5)))).commit.rows == 5


def test_its_files_have_their_names_whatever_the_hand_off_is():
    (add,) = planned(backlog(promotion(handoff=Handoff.DIRECT))).commit.adds
    assert add.outbox is None


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"active": ()}, "one is gone"),
        ({"lacking": {file("new").filename: "the file is gone"}}, "the file is gone"),
        (
            {
                "facts": TableFacts(
                    version=7,
                    schema=Schema(
                        (*SCHEMA.fields, Field(name="price", type=FieldType.STRING))
                    ).delta(),
                    partition_columns=PARTS,
                    configuration={},
                )
            },
            "price",
        ),
    ],
)
def test_one_that_cannot_be_applied_is_settled_and_changes_nothing(options, says):
    commit = planned(backlog(promotion(), ready(2, file("b"))), **options).commit
    assert [add.path for add in commit.adds] == [file("b").filename]
    assert (commit.removes, commit.holds, commit.entries) == ((), (), 2)
    assert commit.after.shape() == commit.table.shape()
    (one,) = commit.not_promoted
    assert (one.entry.pipeline, one.entry.sequence) == ("p", 1)
    assert says in one.reasons[0]
    assert says in commit.metadata()["not_promoted"]["p/1"][0]


def test_one_file_that_is_gone_keeps_all_in_their_places():
    pairs = (("old", "new"), ("away", "other"))
    commit = planned(backlog(promotion(1, *pairs))).commit
    assert (commit.adds, commit.removes) == ((), ())


def test_of_two_pipelines_that_replace_the_same_file_one_is_passed_over():
    """Each journal takes its entry: only the plan sees both."""
    second = promotion(1, ("old", "other"), pipeline="q")
    commit = planned(backlog(promotion()), backlog(second)).commit
    assert [add.path for add in commit.adds] == [file("new").filename]
    (one,) = commit.not_promoted
    assert one.entry.pipeline == "q"
    assert "another entry in the same commit" in one.reasons[0]


def test_the_log_marks_one_file_of_a_promotion_that_is_passed_over():
    """All of its files are given up with it."""
    pairs = (("old", "new"), ("away", "other"))
    commit = planned(backlog(promotion(1, *pairs))).commit
    marks = dict(commit.transactions())
    assert marks[held_transaction(file_name(file("new").filename))] == HeldState.GONE
    assert held_transaction(file_name(file("other").filename)) not in marks
    applied = planned(backlog(promotion())).commit
    assert not [app_id for app_id, _state in applied.transactions() if "held" in app_id]


def test_a_file_of_this_very_commit_is_replaced_by_the_next():
    """It is so only where a log has lost what it had."""
    found = planned(backlog(ready(1, file("old")), promotion(2), ready(3, file("b"))), active=())
    assert found.commit.entries == 1
    assert [add.path for add in found.commit.adds] == [OLD]


def test_a_file_that_is_replaced_twice_stops_the_pipeline():
    found = planned(backlog(promotion(1, ("old", "new"), ("old", "other"))))
    assert found.commit is None
    assert "is replaced twice" in str(found.stopped[0].error)


def test_a_new_file_with_partition_values_of_another_table_stops_the_pipeline():
    entry = promotion().entry
    (one,) = entry.replaced
    odd = replace(one, new=replace(one.new, partition_values={}))
    found = planned(backlog(replace(promotion(), entry=replace(entry, replaced=(odd,)))))
    assert found.commit is None
    assert "partition values" in str(found.stopped[0].error)


def test_a_log_without_a_table_settles_a_promotion():
    commit = planned(backlog(promotion()), active=(), facts=None).commit
    assert (commit.adds, commit.removes, commit.entries) == ((), (), 1)
