"""The origins of rows in files that took the place of others, whatever order entries come in."""

from dataclasses import replace
from itertools import permutations

import pytest

from blizzard.answers.entries import RowOrigins
from lakebed.documents.entry import decode_entry
from lakebed.documents.records import Run
from lakebed.layout import TablePath
from tests.support.builders import entry_body, finished_file, rewrite

ENTRY = decode_entry(entry_body(1), "1")
FIRST = replace(finished_file("first.parquet"), runs=(Run(0, 1, 3, 3),))
FILLED = replace(FIRST, filename=TablePath("filled.parquet"))
LEFT = replace(FIRST, filename=TablePath("left.parquet"), record_count=2, runs=(Run(0, 2, 2, 2),))
ENTRIES = (
    replace(ENTRY, files=(FIRST,)),
    replace(ENTRY, kind="promote", sequence=2, rewrites=(rewrite("first.parquet", FILLED),)),
    replace(
        ENTRY, kind="erase", sequence=3, rewrites=(rewrite("filled.parquet", LEFT, left_out=1),)
    ),
)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_rows_are_followed_to_the_entry_that_has_read_them(order):
    origins = RowOrigins()
    for place in order:
        origins.take(ENTRIES[place])
    found = origins.find("left.parquet")
    assert found is not None
    assert (found.entry.sequence, found.file) == (1, LEFT)
    assert origins.first("left.parquet") == "first.parquet"


def test_a_file_of_no_interest_is_told_but_its_origins_are_not_kept():
    origins = RowOrigins(keeps=lambda _entry, _file: False)
    for entry in ENTRIES:
        origins.take(entry)
    assert origins.is_traced("left.parquet")
    assert origins.find("left.parquet") is None
