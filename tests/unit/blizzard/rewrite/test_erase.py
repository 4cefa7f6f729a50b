"""What is known of rows that are erased, and which bad lines a condition finds."""

import pytest

from blizzard.model.predicate import parse
from blizzard.model.rewriting import ActiveFile, RowsWhere
from blizzard.rewrite.erase import with_rows
from blizzard.rewrite.line_search import Counted, Line, LineSearch, values_in
from blizzard.rewrite.transaction import Origins
from blizzard.worker.find_rows import RowsInFile
from lakebed.documents.data_file import Run
from lakebed.layout import TablePath
from tests.support.builders import ID_AND_NAME

X = parse("name = 'x'")
FILE = ActiveFile(path=TablePath("f.parquet"), size=9, rows=None, partition_values={})
ORIGINS = Origins(
    source_files=("in:a", "in:b"),
    uris=("/in/a", "/in/b"),
    runs=(Run(0, 1, 2, 2), Run(1, 1, 3, 3), Run(0, 3, 1, 1)),
)


def inside(*places, rows=6, by_column=None):
    return RowsInFile(rows=rows, places=places, by_column=by_column or {})


def test_rows_are_counted_by_the_runs_in_which_they_stand():
    one = with_rows(FILE, inside(0, 2, 4, 5), ORIGINS, X)
    assert (one.rows, one.sources, one.is_whole) == (4, {"/in/a": 2, "/in/b": 2}, False)
    assert (one.file.source_files, one.file.runs) == (ORIGINS.source_files, ORIGINS.runs)
    assert one.file.without == RowsWhere(X)


def test_runs_of_another_number_of_rows_are_not_believed():
    one = with_rows(FILE, inside(0, rows=7, by_column={"/in/c": 1}), ORIGINS, X)
    assert (one.sources, one.file.runs) == ({"/in/c": 1}, ())


def test_of_a_file_that_no_journal_names_the_column_says_it_or_nothing():
    assert with_rows(FILE, inside(0, by_column={"/in/c": 1}), None, X).sources == {"/in/c": 1}
    assert with_rows(FILE, inside(0), None, X).sources == {}
    assert with_rows(FILE, inside(*range(6)), None, X).is_whole


def counted(condition, *lines):
    search = LineSearch(parse(condition), ID_AND_NAME)
    return search.count(Line("in:a", line.encode()) for line in lines).get("in:a", Counted())


def test_a_bad_line_is_meant_by_the_values_that_can_be_read():
    found = counted("name = 'x'", '{"id":"no","name":"x"}', '{"id":"no","name":"y"}')
    assert found == Counted(lines=1)


@pytest.mark.parametrize(
    "line",
    ['{"id":1,"name":"x', '{"id":1,"other":"x"}', '[1,"x"]', "x,1,2", '{"id":1,"name":["x"]}'],
)
def test_where_a_value_stands_somewhere_else_a_line_may_be_meant(line):
    assert counted("name = 'x'", line) == Counted(maybe=1)
    assert counted("name = 'q'", line) == Counted()


def test_values_are_found_however_json_writes_them():
    found = values_in(parse("name = 'Zoë \"q\"'"))
    assert found is not None
    for text in ('Zoë "q"', 'Zo\\u00eb \\"q\\"', 'Zoë \\"q\\"'):
        assert found.search(text.encode())


def test_a_number_is_not_found_inside_of_another():
    assert counted("id = 12", '{"id":12,', '{"id":123,', '{"id":1.12,') == Counted(maybe=1)


def test_a_condition_without_a_value_may_mean_every_line_that_cannot_be_read():
    assert values_in(parse("id > 5 or name is null or id != 3")) is None
    assert counted("id > 5", '{"id":', '{"id":7,"name":5}', '{"id":1}') == Counted(1, 1)
