"""Names that no store's library can bear: told, left out, and everything else goes on."""

from datetime import timedelta
from pathlib import Path

import pytest

from lakebed.listing.lookback import Window
from penguin.events.backlog import FilesLeftOut, MetasSkipped
from penguin.status import table_status
from tests.support.builders import NOON
from tests.support.foreign import DAY, Directory, name_at
from tests.support.penguin_commands import penguin

ODD = {
    f"{DAY}/a\tb.parquet": rf"{DAY}/a\x09b.parquet",
    f"{DAY}/a\nb.parquet": rf"{DAY}/a\x0ab.parquet",
    f"p=a\tb/{name_at(1)}": rf"p=a\x09b/{name_at(1)}",
    f"{DAY}/\udcff.parquet": rf"{DAY}/\xff.parquet",
    f"p=\udcff/{name_at(2)}": r"p=\xff/",
}


@pytest.fixture
def table(tmp_path: Path) -> Directory:
    return Directory(tmp_path / "table")


def put(table, path):
    """Write a file under a name that Arrow would not take."""
    good = table.root / table.file(9, path="_temporary/x.parquet")
    target = table.root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    good.replace(target)


def left_out(visitor):
    return {path: one.code for one in visitor.told(FilesLeftOut) for path in one.paths}


@pytest.mark.parametrize("window", [None, Window.parse("date=%Y-%m-%d", 7)])
def test_names_that_cannot_be_used_are_told_and_the_others_go_in(table, window):
    """HOLES W23: one of them stopped every look at the directory."""
    visitor = table.penguin(partition_filter=window)
    table.file(1)
    visitor.drain()
    for path in ODD:
        put(table, path)
    table.file(2, age=-1)
    table.hands.at += 2
    visitor.drain()
    assert table.ids() == [1, 2]
    fresh = table.penguin(partition_filter=window).drain()
    told = left_out(fresh)
    folders = {rf"p=a\x09b/{name_at(1)}": r"p=a\x09b/"} if window else {}
    wanted = [folders.get(shown, shown) for shown in ODD.values()]
    assert told == dict.fromkeys(wanted, "name_unusable")
    assert "rename it" in fresh.told(FilesLeftOut)[0].reason


def test_status_names_them(table):
    """HOLES W23"""
    put(table, f"{DAY}/a\tb.parquet")
    put(table, f"{DAY}/notes\t.txt")
    put(table, "_temporary/a\tb.parquet")
    table.file(1)
    found = table_status(table.settings(), table.store, NOON + timedelta(hours=1))
    assert [(one.path, one.code) for one in found.others.left_out] == [
        (rf"{DAY}/a\x09b.parquet", "name_unusable")
    ]
    answer = penguin(table.root, "status")
    assert answer.exit_code == 1
    assert r"a\x09b.parquet: its name is not UTF-8, or has a control character" in answer.stdout


def test_a_meta_with_an_odd_name_stops_no_other(table):
    """HOLES W23: `_staging/pending` is listed, too."""
    path = table.file(1, path=f"{DAY}/asked.parquet")
    table.meta(path)
    odd = table.root / "_staging/pending/a\tb.meta.json"
    odd.write_text("{}")
    visitor = table.penguin().drain()
    assert table.ids() == [1]
    (told,) = visitor.told(MetasSkipped)
    assert told.paths == (r"_staging/pending/a\x09b.meta.json",)


def test_metas_that_ask_for_odd_names_are_left_alone(table):
    """HOLES W23: the library does not even look for it."""
    metas = []
    for number, folder in enumerate(("p=a\tb", "p=a//b", "p=1/.", "p=\n")):
        name = name_at(number)
        metas.append(table.meta(f"p=1/{name}", filename=f"{folder}/{name}").name)
    table.file(2, folder="p=2")
    visitor = table.penguin().drain()
    assert table.ids() == [2]
    told = [path for one in visitor.told(MetasSkipped) for path in one.paths]
    assert sorted(told) == sorted(f"_staging/pending/{name}" for name in metas)
