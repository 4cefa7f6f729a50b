"""Rows that are held or discarded come from their sources again, under the present schema, once."""

import contextlib

import pytest

from blizzard.repair.redo import RedoRequest, redo
from lakebed.layout import discarded_meta, held_meta
from lakebed.storage.store import Store
from tests.support.builders import entries
from tests.support.commands import told
from tests.support.desk import Desk
from tests.support.dying import Died, dying, lives
from tests.support.readers import ids


class Held(Desk):
    """Two batches, of which the table cannot hold the second."""

    def __init__(self, folder):
        super().__init__(folder)
        self.name = self.holds_a_file()
        assert self.fate == 0

    @property
    def fate(self):
        return self.fates([self.name])[self.name]

    @property
    def data_file(self):
        return self.table / f"{self.name}.parquet"

    @property
    def wanted(self):
        return RedoRequest(files=frozenset({self.name}))

    def goes_on(self):
        """Let both programs do whatever there is to do."""
        for later in (60, 3600):
            self.blizzard(later=later)
            self.penguin()

    def is_well(self):
        assert ids(self.table) == self.landing.ids
        (row,) = told(self.cli("status", "--output", "json"))
        assert (row["held_rows"], row["discarded_rows"]) == (0, 0)
        (row,) = told(self.order("status", "--output", "json"))
        assert (row["held_rows"], row["discarded_rows"], row["stopped"]) == (0, 0, 0)


@pytest.fixture
def desk(tmp_path):
    return Held(tmp_path)


def test_what_is_held_is_read_again_under_the_present_schema(desk):
    """HOLES W24: by the file's id; every row is once."""
    shown = desk.cli("redo", "--held", desk.name)
    assert shown.exit_code == 1
    assert "the next batch would read 1 source file again" in shown.stdout
    assert len(entries(desk.table)) == 3
    done = desk.cli("redo", "--held", desk.name, "--yes")
    assert (done.exit_code, done.stderr) == (0, "")
    (record,) = entries(desk.table)[-1].sources
    assert record.failure is not None
    assert (record.path, record.failure.code) == ("b.ndjson", "output_given_up")
    desk.goes_on()
    assert desk.fate == 2
    desk.is_well()


def test_what_was_discarded_is_read_again_by_its_source(desk):
    """HOLES W24: before, its source counted as ingested for ever."""
    assert desk.order("discard", desk.name, "--yes").exit_code == 0
    assert (desk.table / discarded_meta(desk.name)).exists()
    assert desk.name in desk.order("status").stdout
    path = f"{desk.landing.folder}/b.ndjson"
    for named in (path, f"file://{path}", "default:b.ndjson", f"{desk.name}.parquet"):
        shown = desk.cli("redo", "--file", named)
        assert "the next batch would read 1 source file again" in shown.stdout, named
    done = desk.cli("redo", "--file", "b.ndjson", "--yes")
    assert (done.exit_code, done.stderr) == (0, "")
    assert not (desk.table / discarded_meta(desk.name)).exists()
    desk.goes_on()
    desk.is_well()


@pytest.mark.parametrize("option", ["--held", "--file"])
def test_a_held_file_that_was_deleted_by_hand_is_read_again(desk, option):
    """HOLES W24: the file, and the note that it is held; the log still says it."""
    desk.data_file.unlink()
    (desk.table / held_meta(desk.name)).unlink()
    desk.penguin()
    named = desk.name if option == "--held" else "b.ndjson"
    assert desk.cli("redo", option, named, "--yes").exit_code == 0
    desk.goes_on()
    desk.is_well()


@pytest.mark.parametrize("discarded", [False, True], ids=["held", "discarded"])
def test_what_is_read_again_already_is_not_read_once_more(desk, discarded):
    """HOLES D18: neither while penguin has yet to commit it, nor after."""
    if discarded:
        desk.order("discard", desk.name, "--yes")
    assert desk.redo(desk.wanted)[1] == 3
    found, entry = desk.redo(desk.wanted)
    assert (entry, found.units[0].why_not[:25]) == (None, "this is already under way")
    desk.blizzard(later=60)
    assert desk.redo(desk.wanted)[1] is None
    desk.penguin()
    found, entry = desk.redo(desk.wanted)
    assert (entry, found.units[0].why_not) == (None, "entry 3 has already had them read again")
    again = desk.cli("redo", "--file", "b.ndjson", "--yes")
    assert again.exit_code == 1
    desk.goes_on()
    desk.is_well()


def test_an_older_unit_that_is_settled_does_not_fail_a_redo(desk):
    """After a discard the source is read again; then that data file is lost, too."""
    desk.order("discard", desk.name, "--yes")
    assert desk.cli("redo", "--file", "b.ndjson", "--yes").exit_code == 0
    desk.goes_on()
    (written,) = (file.filename for file in entries(desk.table)[-1].files)
    (desk.table / written).unlink()
    assert desk.order("fsck", "--repair", "--yes").exit_code == 0
    done = desk.cli("redo", "--file", "b.ndjson", "--yes")
    assert (done.exit_code, done.output.count("of entry")) == (0, 1), done.output
    desk.goes_on()
    desk.is_well()


def test_what_is_in_the_table_is_not_read_again(desk):
    """HOLES D18: a source of which all rows are there, and a file that was released."""
    before = len(entries(desk.table))
    said = desk.cli("redo", "--file", "a.ndjson", "--yes")
    assert said.exit_code == 1
    assert "a.ndjson has no held or discarded rows" in said.stderr
    desk.let("schema_evolution: overwrite")
    assert desk.order("release", desk.name).exit_code == 0
    said = desk.cli("redo", "--held", desk.name, "--yes")
    assert said.exit_code == 1
    assert "penguin neither holds nor discarded them" in said.stdout
    assert len(entries(desk.table)) == before
    assert ids(desk.table) == desk.landing.ids


def test_before_penguin_has_decided_nothing_is_given_up(desk):
    """HOLES D18: the entry may still be committed whole."""
    said = desk.cli("redo", "--held", "nobody", "--yes")
    assert (said.exit_code, said.stdout) == (1, "")
    assert "nobody is not the ID of a held or discarded file; see penguin held" in said.stderr
    desk.landing.land("c.ndjson", 1)
    desk.blizzard()
    known = desk.cli("redo", "--file", "c.ndjson", "--yes")
    assert (known.exit_code, len(entries(desk.table))) == (1, 4)


def test_a_source_that_was_read_since_is_not_read_once_more(desk):
    """HOLES D18: held, then changed and ingested as it is now, then put back as it was."""
    text = desk.file.read_text()
    desk.file.write_text(text.replace("source:\n", "source:\n  on_change: reingest\n", 1))
    source = desk.landing.folder / "b.ndjson"
    body = source.read_bytes()
    source.write_bytes(b"")
    source.write_bytes(body)  # Another object of the same content: it is ingested again.
    desk.blizzard()
    desk.penguin()
    assert ids(desk.table) == desk.landing.ids
    found, entry = desk.redo(desk.wanted)
    assert (entry, found.units[0].why_not) == (None, "entry 3 has read b.ndjson again")
    desk.goes_on()
    assert ids(desk.table) == desk.landing.ids


def test_what_a_redo_of_a_held_file_has_given_up_is_not_released(desk):
    """HOLES D18: nor does it go in by itself, though it would fit by now."""
    assert desk.redo(desk.wanted)[1] == 3
    desk.let("schema_evolution: overwrite")
    said = desk.order("release", desk.name)
    assert (said.exit_code, desk.fate) == (1, 0)
    assert "reads its sources again (blizzard redo)" in said.stdout
    desk.goes_on()
    desk.is_well()


def test_a_batch_between_the_looks_of_a_redo_leaves_the_journal_whole(desk):
    """HOLES D18: what was read first is what the entry is written after, or nothing is."""
    turns = [True]

    def overtaken(names):
        # Asked for once the journal has been read.
        if turns:
            turns.clear()
            desk.landing.land("c.ndjson", 1)
            desk.blizzard()
        return desk.fates(names)

    _, entry = redo(desk.store, desk.settings.name, overtaken, clock=desk.clock, wanted=desk.wanted)
    assert (entry, turns) == (4, [])
    desk.goes_on()
    desk.is_well()


@pytest.mark.parametrize("discarded", [False, True], ids=["held", "discarded"])
def test_death_at_any_call_of_a_redo_of_a_held_file(tmp_path, discarded):
    """HOLES W24, D11: it is written down or it is not; to say it again finishes it."""
    written = set()
    desk = Held(tmp_path / "desk")
    if discarded:
        desk.order("discard", desk.name, "--yes")
    for fate in lives(desk.folder):
        store = dying(Store(str(desk.table), desk.sink.storage_options), fate)
        with contextlib.suppress(Died):
            desk.redo(desk.wanted, store)
        entry = desk.redo(desk.wanted)[1]
        written.add(entry is None)
        desk.goes_on()
        desk.is_well()
    assert written == {True, False}


def test_death_at_any_call_of_penguin_around_a_redo_of_a_held_file(tmp_path):
    """HOLES W24, D11."""
    desk = Held(tmp_path / "desk")
    desk.redo(desk.wanted)
    desk.blizzard(later=60)
    for fate in lives(desk.folder):
        with contextlib.suppress(Died):
            desk.penguin(fate)
        desk.penguin()
        assert ids(desk.table) == desk.landing.ids, f"died at call {fate.call}"


def test_death_at_any_call_of_a_discard_and_then_a_redo(tmp_path):
    """HOLES W24, D11: discarded or still held, its sources are read again once."""
    fates = set()
    desk = Held(tmp_path / "desk")
    for fate in lives(desk.folder):
        store = dying(Store(str(desk.table), desk.sink.storage_options), fate)
        with contextlib.suppress(Died):
            desk.operator(store).discard(frozenset({desk.name}))
        fates.add(desk.fate)
        (row,) = told(desk.cli("status", "--output", "json"))
        assert (row["held_rows"], row["discarded_rows"]) == ((5, 0) if desk.fate == 0 else (0, 5))
        assert desk.redo(desk.wanted)[1] == 3
        desk.goes_on()
        desk.is_well()
    assert fates == {0, 2}
