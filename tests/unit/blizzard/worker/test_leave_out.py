"""Rows left out of a data file, and where the others came from."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from blizzard.model.predicate import parse
from blizzard.model.rewriting import ActiveFile, RowRanges, RowsWhere
from blizzard.worker.output.origins import MOST_STRETCHES, runs_without
from blizzard.worker.transform import LeavingOut
from lakebed.columns.schema import Field, Schema
from lakebed.documents.data_file import Run
from lakebed.layout import TablePath
from lakebed.types import FieldType

COLUMNS = Schema(
    (Field(name="id", type=FieldType.INT64), Field(name="day", type=FieldType.STRING)),
)


def active(without, runs=(), names=(), **values):
    return ActiveFile(
        path=TablePath("x.parquet"),
        size=1,
        rows=None,
        partition_values=values,
        without=without,
        source_files=names,
        runs=runs,
    )


def left(file, *tables):
    leaving = LeavingOut(file, COLUMNS)
    kept = [leaving.leave_out(pa.table({"id": ids})).column("id").to_pylist() for ids in tables]
    return kept, leaving


def test_ranges_are_counted_over_row_groups():
    file = active(RowRanges(((1, 4), (5, 6))))
    kept, leaving = left(file, [0, 1, 2], [3, 4, 5, 6])
    assert kept == [[0], [4, 6]]
    assert leaving.removed == 4


def test_a_condition_that_depends_on_a_null_keeps_the_row():
    kept, leaving = left(active(RowsWhere(parse("id > 1"))), [1, 2, None], [3])
    assert kept == [[1, None], []]
    assert leaving.removed == 2


def test_a_condition_may_ask_for_a_partition_column():
    file = active(RowsWhere(parse("day = 'x' and id = 1")), day="x")
    assert left(file, [1, 2])[0] == [[2]]
    assert left(active(file.without, day="y"), [1, 2])[0] == [[1, 2]]


def test_rows_are_counted_by_the_files_that_they_name():
    leaving = LeavingOut(active(RowsWhere(parse("_file = 'a' or _file = 'b'"))), COLUMNS)
    names = pa.array(["a", "b", None, "a", "c"]).dictionary_encode()
    leaving.leave_out(pa.table({"id": [1, 2, 3, 4, 5], "_file": names.cast(pa.string())}))
    assert leaving.removed_from == {"a": 2, "b": 1}


def test_the_origins_of_the_rest_are_those_that_they_were():
    runs = (Run(0, 1, 3, 3), Run(1, 5, 2, 4), Run(2, None, 2, 2, 100, 1))
    file = active(RowRanges(((0, 1), (3, 4), (5, 6))), runs, ("a", "b", "c"))
    _kept, leaving = left(file, list(range(7)))
    assert leaving.origins() == (
        ("a", "b", "c"),
        (Run(0, 2, 2, 2), Run(1, 5, 1, 4), Run(2, None, 1, 1, 100, 2)),
    )
    assert runs_without(("a", "b"), runs[:2], [(0, 3)]) == (("b",), (Run(0, 5, 2, 4),))
    assert runs_without(("a", "b"), (), [(0, 3)]) == (("a", "b"), ())


@given(
    rows=st.lists(st.integers(1, 5), min_size=1, max_size=6),
    gone=st.sets(st.integers(0, 29)),
)
def test_each_row_that_is_left_has_the_record_that_it_had(rows, gone):
    runs = tuple(Run(place % 2, 100 * place, count, count) for place, count in enumerate(rows))
    total = sum(rows)
    mask = np.array([place in gone for place in range(total)])
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])))).reshape(-1, 2)
    names, found = runs_without(("a", "b"), runs, [(first, last) for first, last in edges.tolist()])
    before = [("ab"[run.source], (run.first or 0) + n) for run in runs for n in range(run.rows)]
    after = [(names[run.source], (run.first or 0) + n) for run in found for n in range(run.rows)]
    assert after == [one for place, one in enumerate(before) if place not in gone]


def test_very_many_holes_make_one_run_that_says_less():
    rows = 4 * MOST_STRETCHES
    gone = [(place, place + 1) for place in range(0, rows, 2)]
    _names, found = runs_without(("a",), (Run(0, 1, rows, rows),), gone)
    assert len(found) == MOST_STRETCHES
    assert sum(run.rows for run in found) == rows // 2
    assert not found[-1].is_exact
    assert (found[-1].first or 0) + found[-1].records == rows + 1
