"""Directories of other programs' files: trouble on the way, and blizzard's files beside them."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from lakebed.documents.entry import DirectoryProtocol, encode
from lakebed.errors import CommitUnconfirmed, NoExclusiveCreate, StoreUnavailable
from lakebed.layout import CREATE_ONLY_PROOF, protocol
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from lakebed.types import DiscoverBy, Handoff
from penguin.delta.table import Log
from penguin.events.backlog import FilesLeftOut
from penguin.events.commits import CommittedByOther, PlanSuperseded
from tests.support.foreign import DAY, Directory, Visitor, date_folder
from tests.support.readers import added
from tests.support.stores import Overwrites
from tests.support.tables import Penguin, TableDirectory, before_commit, rows_of


@pytest.fixture
def table(tmp_path: Path) -> Directory:
    return Directory(tmp_path / "table")


# ------------------------------------------------------------------------------ trouble


def test_a_store_that_overwrites_is_refused_for_a_table_that_is_yet_to_be_made(table):
    """HOLES D08: of two penguins both would make the table; nothing there could be probed."""
    table.file(1)
    careless = Visitor(table, store=Overwrites(str(table.root), StorageOptions()))
    for _ in range(2):
        with pytest.raises(NoExclusiveCreate, match="conditional writes"):
            careless.run.step()
    assert not (table.root / "_delta_log").exists()
    assert [path.name for path in table.root.iterdir()] == [DAY], "no trace is left"
    (table.root / CREATE_ONLY_PROOF).write_bytes(b"")  # As after a crash.
    table.penguin().drain()
    assert table.ids() == [1]
    assert not (table.root / CREATE_ONLY_PROOF).exists()


def test_a_corrupt_file_next_to_good_ones(table):
    """HOLES L09: it is named, the good ones go in, and it does once it is whole."""
    path = table.path(age=5)
    (table.root / DAY).mkdir()
    (table.root / path).write_bytes(b"PAR1 half of an upload")
    table.file(1)
    penguin = table.penguin().drain()
    table.hands.at += 10
    table.file(2)
    penguin.drain()
    assert table.ids() == [1, 2]
    (said,) = penguin.told(FilesLeftOut)
    assert said.paths == (path,)
    table.file(3, path=path)
    penguin.drain()
    assert table.ids() == [1, 2, 3]


def test_a_file_that_is_replaced_between_the_listing_and_the_look_waits_for_the_next(table):
    """HOLES D17: the footer is read of the very object that was listed."""
    path = table.file(1)

    class Replacing(Store):
        turns = 1

        def part(self, path, start, end, *, etag):
            if self.turns:
                self.turns = 0
                table.file(2, path=path)
            return super().part(path, start, end, etag=etag)

    penguin = Visitor(table, store=Replacing(str(table.root), table.store.options))
    assert not penguin.run.step()
    assert (table.ids(), penguin.told(FilesLeftOut)) == ([], [])
    penguin.drain()
    assert (table.ids(), bounds(table)) == ([2], {path: (2, 2)})


def test_a_file_that_is_replaced_between_the_look_and_the_commit_is_looked_at_again(table):
    """HOLES D17: a commit failed, and what its footer said is not true any more."""
    path = table.file(1)
    answers = [False]

    class Away(Log):
        def create(self, *given, **named):
            if not answers[0]:
                raise CommitUnconfirmed("the store is away")
            super().create(*given, **named)

    penguin = Visitor(table, log=Away)
    with pytest.raises(CommitUnconfirmed):
        penguin.run.step()
    answers[0] = True
    table.file(2, path=path)
    penguin.drain()
    assert table.ids() == []
    for _ in range(2):
        penguin.drain()
    assert (table.ids(), bounds(table)) == ([2], {path: (2, 2)})


def test_a_listing_that_breaks_off_moves_nothing(table):
    """HOLES L10"""
    broken = [False]

    class Breaking(Store):
        def in_order(self, prefix="", *, after="", guide=None):
            listed = super().in_order(prefix, after=after, guide=guide)
            for number, facts in enumerate(listed):
                if broken[0] and number:
                    raise StoreUnavailable("gone")
                yield facts

    table.store = Breaking(table.store.uri, table.store.options)
    penguin = table.penguin()
    table.file(1)
    penguin.drain()
    broken[0] = True
    for number in (2, 3, 4):
        table.file(number)
    with pytest.raises(StoreUnavailable):
        penguin.drain()
    broken[0] = False
    penguin.drain()
    assert table.ids() == [1, 2, 3, 4]


def test_more_files_than_a_commit_holds_take_several(table):
    for number in range(7):
        table.file(number, folder=date_folder(number % 3))
    penguin = table.penguin(max_files_per_commit=3).drain()
    assert table.ids() == list(range(7))
    assert penguin.run.totals.commits == 3


@pytest.mark.parametrize("other", [True, False])
def test_two_scanners_at_once(table, other):
    """HOLES D08: of two that saw different files, one looks again."""
    table.file(0)
    table.penguin().drain()
    table.file(1)

    def overtake():
        if other:
            table.file(2)
        table.penguin().drain()

    Visitor(table, log=before_commit(overtake)).drain()
    assert table.ids() == ([0, 1, 2] if other else [0, 1])
    assert len(added(table.root)) == len(set(added(table.root)))


def test_a_commit_of_other_files_is_not_taken_for_ours(table):
    """HOLES D08: both count on by one, and hold different files."""
    table.file(0)
    table.penguin().drain()
    table.file(1)

    def overtake():
        table.meta(table.file(2))
        table.penguin(discovery=DiscoverBy.STAGING).drain()

    penguin = Visitor(table, log=before_commit(overtake)).drain()
    assert table.ids() == [0, 1, 2]
    assert penguin.told(CommittedByOther) == []
    assert len(penguin.told(PlanSuperseded)) == 1


def test_two_scanners_that_create_the_table(table):
    """HOLES W12, D08"""
    table.file(0)
    turns = [True]

    class Overtaken(Log):
        def create(self, *given, **named):
            if turns:
                turns.clear()
                table.penguin().drain()
            super().create(*given, **named)

    Visitor(table, log=Overtaken).drain()
    assert not turns
    assert table.ids() == [0]
    assert len(added(table.root)) == 1


# ------------------------------------------------------------------------------ blizzard's files


def marked(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids)}).replace_schema_metadata({"blizzard.journal": "j"})


def test_a_lost_folder_of_blizzard_does_not_turn_orphans_into_data(table):
    """No scan commits a file with blizzard's mark."""
    table.file(data=marked(7))
    table.file(1)
    table.penguin(discovery=DiscoverBy.WATERMARK).drain()
    assert table.ids() == [1]


def test_the_directory_is_listed_before_the_protocol_is_read(table):
    """Files of a blizzard that starts right now are not taken for another program's."""

    class Starting(Store):
        def in_order(self, prefix="", *, after="", guide=None):
            found = list(super().in_order(prefix, after=after, guide=guide))
            if prefix == "":
                self.create(protocol(1), encode(DirectoryProtocol(handoff=Handoff.JOURNAL)))
            yield from found

    table.store = Starting(table.store.uri, table.store.options)
    table.file(1)
    table.penguin().drain()
    assert table.ids() == []


def test_in_the_direct_hand_off_files_of_others_are_committed_beside_the_entries(tmp_path):
    both = TableDirectory(tmp_path / "both", handoff=Handoff.DIRECT)
    others = Directory(tmp_path / "both")
    both.journal().batch(rows_of(1))
    others.file(folder="date=2026-01-01", data=pa.table({"id": [2], "name": ["x"]}))
    penguin = Penguin(both).drain()
    assert both.ids() == [1, 2]
    assert penguin.run.totals.commits == 1
    Penguin(both).drain()
    assert both.versions() == 2


@pytest.mark.parametrize("wish", [DiscoverBy.JOURNAL, DiscoverBy.STAGING])
def test_a_setting_that_does_not_scan_does_not_scan(table, wish):
    table.file(1)
    table.penguin(discovery=wish).drain()
    assert table.ids() == []


def bounds(table: Directory) -> dict[str, tuple[int, int]]:
    """Return the least and the greatest id of each file, as the log says."""
    found = {}
    for version in (table.root / "_delta_log").glob("*.json"):
        for line in version.read_text().splitlines():
            if add := json.loads(line).get("add"):
                told = json.loads(add["stats"])
                found[add["path"]] = (told["minValues"]["id"], told["maxValues"]["id"])
    return found
