"""Small data files put together, in one process with the real programs."""

import json

import pytest
from deltalake import DeltaTable

from tests.support.builders import entries
from tests.support.compactions import crowded


@pytest.fixture
def desk(tmp_path):
    return crowded(tmp_path)


def amounts(desk):
    audit = desk.audited()
    assert audit.is_balanced, audit.differences
    return {p.value: amount.rows for p, amount in audit.places.amounts.items() if amount.rows}


def last_version(desk):
    log = desk.table / "_delta_log" / f"{desk.version:020}.json"
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_small_files_become_one_in_one_version_and_the_books_balance(desk):
    before = desk.version
    done = desk.tidy()
    assert done.entry is not None
    assert (len(desk.active), desk.version) == (1, before + 1)
    assert desk.ids() == list(range(10))
    assert amounts(desk) == {"in_table": 10, "replaced": 10}
    assert desk.audited().totals.rows == 10
    last = entries(desk.table)[-1]
    assert (last.kind, last.format, last.left_out, last.files) == ("compact", 6, 0, ())
    (merge,) = last.merged
    assert (len(merge.old), len(merge.new), merge.rows) == (5, 1, 10)
    assert desk.ids(before) == list(range(10))


def test_the_commit_changes_no_data_and_is_an_optimize_in_the_history(desk):
    desk.tidy()
    actions = last_version(desk)
    changes = [
        one[kind]["dataChange"] for one in actions for kind in ("add", "remove") if kind in one
    ]
    assert changes == [False] * 6
    (told,) = DeltaTable(str(desk.table)).history(1)
    assert told["operation"] == "OPTIMIZE"
    assert told["penguin"]["compacted"] == {"files": 5, "into": 1}
