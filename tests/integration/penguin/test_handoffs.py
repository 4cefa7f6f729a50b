"""Staging and direct on penguin's side: what is committed, what waits, what is left alone."""

import json

import pytest

from lakebed.clock import Clock
from lakebed.deltalog.log_contents import LogContents
from lakebed.documents.entry import DirectoryProtocol, Receipt, digest, encode
from lakebed.errors import ProtocolConflict
from lakebed.layout import (
    data_file,
    journal_entry,
    log_version,
    outbox,
    pending_meta,
    protocol,
    receipt,
)
from lakebed.listing.lookback import Window
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Reader, Store
from lakebed.types import DiscoverBy, Handoff
from penguin.events.backlog import EntryNotHandedOff, MetasSkipped
from penguin.status import explain
from tests.support.foreign import Directory
from tests.support.handoffs import metas, move_out, put_back, ring
from tests.support.tables import Penguin, TableDirectory, log_of, losing, rows_of

FITTING = {
    Handoff.JOURNAL: DiscoverBy.JOURNAL,
    Handoff.STAGING: DiscoverBy.STAGING,
    Handoff.DIRECT: DiscoverBy.WATERMARK,
}


@pytest.fixture
def staging(tmp_path):
    return TableDirectory(tmp_path / "table", handoff=Handoff.STAGING)


@pytest.fixture
def direct(tmp_path):
    return TableDirectory(tmp_path / "table", handoff=Handoff.DIRECT)


def told(penguin, kind):
    return [event for event in penguin.events if isinstance(event, kind)]


def ids(table):
    return table.ids() if (table.root / "_delta_log").exists() else []


def test_an_entry_is_committed_when_its_metas_are_there_and_then_they_are_deleted(staging):
    """D11: penguin may die between the commit and the deletion."""
    entry = staging.journal().batch(rows_of(1), rows_of(2, date="2026-01-02"))
    ring(staging, entry)
    assert Penguin(staging).step()
    assert (ids(staging), len(metas(staging))) == ([1, 2], 2), "the commit comes first"
    version = staging.versions()
    assert Penguin(staging).drain().run.totals.commits == 0
    assert (metas(staging), staging.versions(), ids(staging)) == ([], version, [1, 2])
    assert staging.receipt().sequence == 1


def test_one_meta_of_many_commits_the_whole_entry(staging):
    """L23: the others are still on their way when penguin looks."""
    entry = staging.journal().batch(rows_of(1), rows_of(2), rows_of(3))
    ring(staging, entry, entry.files[1:2])
    Penguin(staging).drain()
    assert ids(staging) == [1, 2, 3]

    ring(staging, entry, (entry.files[0], entry.files[2]))
    late = Penguin(staging).drain()
    assert ids(staging) == [1, 2, 3]
    assert (metas(staging), late.run.totals.commits) == ([], 0)


def test_an_entry_without_a_meta_waits_and_is_named_once(staging):
    """The metas are written last: before them nothing is handed off."""
    entry = staging.journal().batch(rows_of(1))
    penguin = Penguin(staging).drain()
    penguin.step()
    assert ids(staging) == []
    (said,) = told(penguin, EntryNotHandedOff)
    assert "entry 1 of pipeline events is waiting" in said.sentence()
    assert penguin.run.stopped == {}

    ring(staging, entry)
    penguin.drain()
    assert ids(staging) == [1]


def test_a_bell_for_a_later_entry_commits_the_earlier_ones_in_order(staging):
    """The metas of entry 1 are lost; entry 2 cannot be committed without it (L23)."""
    journal = staging.journal()
    journal.batch(rows_of(1))
    ring(staging, journal.batch(rows_of(2)))
    journal.batch(rows_of(3))
    Penguin(staging).drain()
    assert ids(staging) == [1, 2], "entry 3 has not been handed off"
    assert staging.receipt().sequence == 2


def test_entries_without_files_need_no_meta(staging):
    journal = staging.journal()
    ring(staging, journal.batch(rows_of(1)))
    journal.batch()
    Penguin(staging).drain()
    assert staging.receipt().sequence == 2


def test_a_meta_heard_weeks_later_after_vacuum_is_only_deleted(staging):
    """D11, D09: the files were compacted and are gone from the disk; nothing is committed again."""
    journal = staging.journal()
    entries = [journal.batch(rows_of(number)) for number in (1, 2, 3)]
    for entry in entries:
        ring(staging, entry)
    Penguin(staging).drain()
    staging.delta().optimize.compact()
    for entry in entries:
        (staging.root / entry.files[0].filename).unlink()
        ring(staging, entry)
    version = staging.versions()

    penguin = Penguin(staging).drain()
    assert (metas(staging), staging.versions(), penguin.codes) == ([], version, {})
    assert ids(staging) == [1, 2, 3]


def test_metas_that_nobody_can_follow_are_named_once_and_left_and_the_rest_goes_on(
    staging, tmp_path
):
    """One that cannot be read, one of another program, and one of a journal that is not here."""
    broken, foreign = (pending_meta(data_file({}, Clock().fresh_id())) for _ in range(2))
    staging.store.create(broken, b'{"filename": "x"')
    body = {
        "filename": "date=2026-01-01/x.parquet",
        "size": 5,
        "record_count": 1,
        "partition_values": {"date": "2026-01-01"},
        "source_file": "s3://b/x",
    }
    staging.store.create(foreign, json.dumps(body).encode())
    other = TableDirectory(tmp_path / "other", handoff=Handoff.STAGING)
    gone = other.journal("gone").batch(rows_of(9))
    ring(staging, gone)
    journal = staging.journal()
    penguin = Penguin(staging)
    for number in (1, 2):
        ring(staging, journal.batch(rows_of(number)))
        penguin.drain()
    assert ids(staging) == [1, 2]
    left = [broken, foreign, pending_meta(gone.files[0].filename)]
    assert metas(staging) == sorted(path.rpartition("/")[2] for path in left)
    said = {one.paths: one for one in told(penguin, MetasSkipped)}
    assert len(told(penguin, MetasSkipped)) == len(said)
    first, _second, third = (said.pop((path,)) for path in left)
    assert said == {}
    assert broken in first.sentence()
    assert "cannot be read" in first.sentence()
    assert "no journal" in third.reason


def test_a_bell_for_an_entry_that_the_journal_lacks_stops_the_pipeline(staging):
    """L21: the journal was rolled back after the hand-off."""
    journal = staging.journal()
    journal.batch(rows_of(1))
    ring(staging, journal.batch(rows_of(2)))
    staging.store.delete(journal_entry("events", 2))
    penguin = Penguin(staging).drain()
    assert penguin.codes == {"events": "journal_lost"}
    assert ids(staging) == []
    assert len(metas(staging)) == 1


def test_metas_are_deleted_after_the_commit_is_put_on_disk(staging):
    """D11: a crash before the receipt; at the next start it is written before metas go."""
    entry = staging.journal().batch(rows_of(1))
    ring(staging, entry)
    Penguin(staging).step()
    staging.store.delete(receipt("events"))

    seen = []

    class Noting(Store):
        def delete(self, path):
            seen.append(staging.receipt())
            super().delete(path)

    staging.store = Noting(str(staging.root), StorageOptions())
    Penguin(staging).drain()
    body = staging.journals["events"].bodies[1]
    assert seen == [Receipt(journal=staging.journals["events"].id, sequence=1, digest=digest(body))]


def test_of_two_penguins_neither_trips_over_the_others_deletions(staging):
    """D08: the meta is gone between the listing and the read."""
    entry = staging.journal().batch(rows_of(1))
    ring(staging, entry)

    class Raced(Reader):
        def get(self, path):
            if "pending" in path:
                staging.store.delete(path)
            return super().get(path)

    reader = Raced(staging.store.uri, staging.store.options)
    found = explain(staging.settings(), reader)
    assert found.proposal.commit is None
    assert [one.sequence for one in found.proposal.waiting] == [1]


def test_leftover_metas_of_an_earlier_hand_off_are_cleared_at_the_start(staging):
    ring(staging, staging.journal().batch(rows_of(1)))
    assert Penguin(staging).step()
    staging.store.create(protocol(2), encode(DirectoryProtocol(handoff=Handoff.JOURNAL)))
    Penguin(staging).drain()
    assert metas(staging) == []


def test_an_entry_in_direct_waits_until_all_of_its_files_have_their_names(direct):
    """L07: the file with the higher name is moved first; a look in between commits nothing."""
    entry = direct.journal().batch(rows_of(1), rows_of(2), rows_of(3))
    put_back(direct, entry)
    penguin = Penguin(direct).drain()
    for file in reversed(entry.files):
        assert ids(direct) == []
        move_out(direct, entry, [file])
        penguin.drain()
    assert ids(direct) == [1, 2, 3]
    assert penguin.run.totals.commits == 1
    assert len(told(penguin, EntryNotHandedOff)) == 1
    assert penguin.codes == {}


def test_entries_before_the_one_that_waits_are_committed_and_those_after_are_not(direct):
    journal = direct.journal()
    journal.batch(rows_of(1))
    put_back(direct, journal.batch(rows_of(2)))
    journal.batch(rows_of(3))
    direct.journal("other").batch(rows_of(9))
    penguin = Penguin(direct).drain()
    assert ids(direct) == [1, 9]
    assert [(one.pipeline, one.sequence) for one in penguin.run.waiting] == [("events", 2)]


@pytest.mark.parametrize("body", [None, b"short"], ids=["gone", "of another size"])
def test_a_file_that_is_not_what_its_entry_says_is_held(direct, body):
    """W21: it is gone where it is neither here nor in the outbox."""
    entry = direct.journal().batch(rows_of(1))
    file = direct.root / entry.files[0].filename
    file.unlink()
    if body is not None:
        file.write_bytes(body)
    assert Penguin(direct).drain().held == {entry.files[0].filename: "file_missing"}
    assert ids(direct) == []


def test_a_file_that_is_moved_between_two_looks_is_not_gone(direct):
    """L07: it is in neither place only because one was looked at too early, the other too late."""
    entry = direct.journal().batch(rows_of(1))
    put_back(direct, entry)
    (file,) = entry.files

    class Moving(Reader):
        def head(self, path):
            found = super().head(path)
            if path == file.filename and found is None:
                move_out(direct, entry)
            return found

    found = explain(direct.settings(), Moving(direct.store.uri, direct.store.options))
    assert found.proposal.stopped == ()
    assert found.proposal.commit is not None
    (added,) = found.proposal.commit.adds.values()
    assert outbox("events", file.filename) == added.outbox


def test_files_that_no_entry_names_are_left_alone(direct):
    """D10, D02: a stranger's file, or one that a dead attempt left under its final name."""
    journal = direct.journal()
    journal.batch(rows_of(1))
    strange = [journal.file(rows_of(number)).filename for number in (7, 8)]
    (direct.root / "date=2026-01-01/part-00000.parquet").write_bytes(b"unfinished")
    penguin = Penguin(direct).drain()
    journal.batch(rows_of(2))
    penguin.drain()
    assert ids(direct) == [1, 2]
    assert all((direct.root / path).exists() for path in strange)


@pytest.mark.parametrize("handoff", Handoff)
@pytest.mark.parametrize("wish", DiscoverBy)
def test_a_setting_that_contradicts_the_table_is_refused(tmp_path, handoff, wish):
    table = TableDirectory(tmp_path / "table", handoff=handoff)
    ring(table, table.journal().batch(rows_of(1)))
    penguin = Penguin(table, options={"discovery": wish})
    if wish in (DiscoverBy.AUTO, FITTING[handoff]):
        penguin.drain()
        assert ids(table) == [1]
    else:
        with pytest.raises(ProtocolConflict, match=f"set it to auto or {FITTING[handoff]}"):
            penguin.step()
        assert ids(table) == []


def test_an_entry_appended_right_before_the_hand_off_changed_is_committed(tmp_path):
    """A blizzard that was running hears of the change only before its next batch."""
    table = TableDirectory(tmp_path / "table", handoff=Handoff.DIRECT)
    entry = table.journal().batch(rows_of(1))
    put_back(table, entry)
    table.store.create(protocol(2), encode(DirectoryProtocol(handoff=Handoff.STAGING)))
    penguin = Penguin(table).drain()
    assert ids(table) == []
    move_out(table, entry)
    penguin.drain()
    assert ids(table) == [1]


def test_a_lost_answer_of_the_commit_is_one_commit_and_then_the_metas_go(staging):
    """D06."""
    ring(staging, staging.journal().batch(rows_of(1)))
    penguin = Penguin(staging, log=log_of(losing())).drain()
    assert (ids(staging), metas(staging), penguin.run.totals.commits) == ([1], [], 1)


@pytest.mark.parametrize("handoff", list(Handoff))
def test_a_partition_filter_leaves_out_nothing_that_is_journaled(tmp_path, handoff):
    """HOLES L37: `lookback` of the first documents, on a cold start in the mode it comes from."""
    table = TableDirectory(tmp_path / "table", handoff=handoff)
    entry = table.journal().batch(rows_of(1, date="2001-01-01"), rows_of(2))
    if handoff is Handoff.STAGING:
        ring(table, entry)
    window = Window.parse("date=%Y-%m-%d", 7)
    Penguin(table, {"partition_filter": window}).drain()
    assert table.ids() == [1, 2]


def test_a_filter_on_a_table_that_blizzard_does_not_write_to_does_what_it_says(tmp_path):
    """HOLES L37"""
    others = Directory(tmp_path / "table")
    others.file(9, folder="date=2001-01-01")
    others.file(1)
    others.penguin(partition_filter=Window.parse("date=%Y-%m-%d", 7)).drain()
    assert others.ids() == [1]


def test_staging_commits_read_no_file_names_however_many_a_table_has(staging, monkeypatch):
    """What the log says of files is asked for the files of other programs alone."""
    journal, taken = staging.journal(), []
    ring(staging, journal.batch(rows_of(0)))
    penguin = Penguin(staging).drain()
    (line,) = (one for one in staging.commit_text(1).splitlines() if '"add"' in one)
    add = json.loads(line)["add"]
    others = [
        {"add": {**add, "path": f"date=2026-01-01/{number}.parquet"}} for number in range(2_000)
    ]
    body = "\n".join(map(json.dumps, [{"commitInfo": {"operation": "WRITE"}}, *others]))
    staging.store.create(log_version(2), body.encode())
    staging.delta().create_checkpoint()
    see = LogContents.add_paths

    def count(known, paths):
        taken.append(len(paths))
        see(known, paths)

    monkeypatch.setattr(LogContents, "add_paths", count)
    for number in range(1, 4):
        ring(staging, journal.batch(rows_of(number)))
        penguin.drain()
    assert (penguin.run.totals.commits, sum(taken)) == (4, 0)
