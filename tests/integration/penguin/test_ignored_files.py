"""Parquet files that are not committed because of their names, or of how a table is handed off."""

import json
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakebed.clock import uuid7
from lakebed.layout import timed_id
from lakebed.listing.watermark import list_after
from lakebed.types import DiscoverBy
from penguin.events.backlog import FilesIgnored, ForeignFilesSearched
from tests.support.builders import NOON
from tests.support.foreign import DAY, Directory
from tests.support.penguin_commands import penguin

SEED = "019234ab-cdef-7890-1234-567890abcdef.parquet"
"""A name as the first documents of this system write it; its variant is not that of RFC 9562."""


@pytest.fixture
def table(tmp_path: Path) -> Directory:
    return Directory(tmp_path / "table")


@pytest.fixture
def run(tmp_path):
    return partial(penguin, tmp_path / "table")


# ------------------------------------------------------------------------------ the seeds' names


def test_the_names_that_the_first_documents_write_are_taken(table):
    """HOLES L34: the variant of a UUIDv7 is not looked at; its time and its version are."""
    table.file(1, path=f"date=2024-01-01/{SEED}")
    table.file(2, path="date=2024-01-01/019234ab-cdef-7890-f234-567890abcdef.parquet")
    table.file(9, path="date=2024-01-01/019234ab-cdef-4890-8234-567890abcdef.parquet")
    table.penguin().drain()
    assert table.ids() == [1, 2]
    table.delta().optimize.compact()
    table.penguin().drain()
    assert table.ids() == [1, 2]


def test_a_meta_commits_the_short_name_of_the_first_documents(table):
    """HOLES L34: `019234ab-cdef-7890.parquet` is no UUID, and a meta asks for it by name."""
    path = table.file(1, path="date=2024-01-01/019234ab-cdef-7890.parquet")
    table.meta(path)
    table.penguin().drain()
    assert table.ids() == [1]
    assert table.metas() == []


def test_names_of_every_variant_move_the_watermark_and_are_found_below_it(table):
    """HOLES L34: a poll after the first lists from the mark on, as for any UUIDv7."""
    names = []
    visitor = table.penguin()
    for number, variant in enumerate("18f0"):
        given = str(uuid7(int(table.hands.at * 1000), number.to_bytes(10, "big")))
        names.append(f"{DAY}/{given[:19]}{variant}{given[20:]}.parquet")
        table.file(number, path=names[-1])
        table.hands.at += 1
        visitor.drain()
    assert table.ids() == [0, 1, 2, 3]
    assert [one.sweep for one in visitor.told(ForeignFilesSearched)].count(False) > 0
    assert all(timed_id(name) for name in names)


def test_the_late_window_begins_below_every_name_of_its_millisecond():
    """HOLES L34: also below names of another variant."""
    at = int(NOON.timestamp() * 1000)
    lowest = f"{uuid7(at, bytes(10))}"
    odd = f"{lowest[:14]}7000-0000-000000000000.parquet"
    start = list_after(f"{lowest}.parquet", NOON - NOON)
    assert start is not None
    assert start < odd


# ------------------------------------------------------------------------------ what a scan says


def test_every_parquet_file_that_a_scan_ignores_is_counted_and_named(table, run):
    """HOLES L34: D10 keeps unfinished files of other engines out, and silence lost the others."""
    odd = sorted(table.file(9, path=f"{DAY}/part-{number:05}.parquet") for number in range(12))
    table.file(9, path=f"{DAY}/UPPER.PARQUET")
    table.file(9, path="_temporary/0/part-0.parquet")
    table.file(9, path=f"{DAY}/.part-0.parquet")
    (table.root / DAY / "notes.txt").write_text("x")
    answer = run("status", "--output", "json")
    ignored = json.loads(answer.stdout)["others"]["ignored"]
    assert ignored["files"] == 13
    assert ignored["some"] == [f"{DAY}/UPPER.PARQUET", *odd[:9]]
    assert "file_pattern" in ignored["reason"]
    assert answer.exit_code == 0
    text = run("status").stdout
    assert "13 Parquet files are ignored" in text
    assert odd[0] in text
    assert "and 3 more" in text
    assert "blizzard has not written" not in text
    assert "no file in" in text

    visitor = table.penguin().drain()
    (told,) = visitor.told(FilesIgnored)
    assert told.files == 13
    assert odd[0] in told.sentence()
    assert "file_pattern" in told.sentence()
    assert visitor.told(ForeignFilesSearched)[-1].ignored == 13
    table.hands.at += 7200
    visitor.drain()
    assert len(visitor.told(FilesIgnored)) == 1
    table.file(9, path=f"{DAY}/one-more.parquet")
    table.hands.at += 7200
    visitor.drain()
    assert [one.files for one in visitor.told(FilesIgnored)] == [13, 14]

    seen = run("status", "--output", "json", file_pattern="'*.[pP][aA]*'")
    others = json.loads(seen.stdout)["others"]
    assert (others["pending_files"], others["ignored"]["files"]) == (14, 0)


def test_what_the_log_knows_or_a_meta_asks_for_is_not_ignored(table, run):
    """HOLES L34: another engine's own files have names of all kinds, and are in the table."""
    table.file(1)
    table.penguin().drain()
    again = pa.table(table.delta().scan().read_all())
    write_deltalake(str(table.root), again, mode="append")
    table.delta().optimize.compact()
    asked = table.file(3, path=f"{DAY}/named-by-a-meta.parquet")
    table.meta(asked)
    assert json.loads(run("status", "--output", "json").stdout)["others"]["ignored"] == {
        "files": 0,
        "some": [],
        "reason": "",
    }


def test_an_empty_directory_says_that_nothing_was_written(table, run):
    assert "there is no table and no journal at" in run("status").stdout
    table.file(1)
    assert "the first commit creates it" in run("status").stdout


def test_where_folders_are_not_searched_nothing_is_said_of_them(table, run):
    table.file(1)
    seen = run("status", "--output", "json", discovery=DiscoverBy.JOURNAL.value)
    assert json.loads(seen.stdout)["others"]["ignored"] is None
