"""`blizzard redo` and `penguin release` of the same file, in every order: every row is once."""

import contextlib
import json
import shutil
from dataclasses import replace

import pytest
from deltalake import DeltaTable

from blizzard.repair.redo import redo
from lakebed.clock import Clock
from lakebed.errors import DocumentUnreadable
from lakebed.layout import journal_entry
from lakebed.storage.store import Store
from penguin.backlog.redo_conflicts import FileRewritten
from penguin.operate.release import HeldFileOperations, NotHeld
from penguin.pipeline import TableRun
from tests.support.deletion_vectors import delete_in_place
from tests.support.desk import Desk
from tests.support.dying import Died, dying, lives
from tests.support.mapped import added
from tests.support.readers import ids
from tests.support.tables import before_commit


class Case(Desk):
    """A data file was gone when penguin came, was held, and is back from a backup."""

    def __init__(self, folder):
        super().__init__(folder)
        self.landing.land("a.ndjson", 5)
        self.blizzard()
        (self.lost,) = self.table.glob("*.parquet")
        self.body = self.lost.read_bytes()
        self.name = self.lost.stem
        self.lost.unlink()
        self.penguin()
        assert self.fate == 0

    @property
    def fate(self):
        return self.fates([self.name])[self.name]

    def put_back(self):
        self.lost.write_bytes(self.body)

    def goes_on(self):
        """Let both programs do whatever there is to do."""
        self.blizzard(later=60)
        self.drain()
        self.blizzard(later=3600)
        self.drain()

    def drain(self, **options):
        run = TableRun(
            settings=self.of_penguin(**options),
            emit=lambda _: None,
            clock=self.clock,
            open_store=lambda: self.store,
        )
        while run.step():
            pass
        return run.stopped

    def of_penguin(self, **options):
        return replace(self.table_settings, **options)

    def operator(self, store=None):
        return HeldFileOperations(
            settings=self.of_penguin(),
            store=store or self.store,
            clock=self.clock,
            pause=lambda _seconds: None,
        )

    def both_at_once(self):
        """Release the file between the redo's look at the log and its entry."""
        self.put_back()

        def overtaken(names):
            told = self.fates(names)
            assert self.order("release", self.name).exit_code == 0
            return told

        _, entry = redo(self.store, self.settings.name, overtaken, clock=Clock())
        assert (self.fate, entry is None) == (1, False)

    def is_well(self):
        assert ids(self.table) == self.landing.ids
        assert self.drain() == {}


@pytest.fixture
def case(tmp_path):
    return Case(tmp_path)


def test_what_a_redo_has_given_up_is_not_released(case):
    """HOLES D18: the redo is first; penguin has yet to commit its entry."""
    assert case.redo()[1] == 2
    case.put_back()
    said = case.order("release", case.name)
    assert (said.exit_code, case.fate) == (1, 0)
    assert "entry 2 of default reads its sources again (blizzard redo)" in said.stdout
    assert case.order("release", "--all").exit_code == 1
    case.goes_on()
    assert case.fate == 2
    case.is_well()


def test_what_was_released_is_not_done_again(case):
    """HOLES D18: the release is first. What no redo gives up stays in the table."""
    told = " ".join(case.cli("why", "a.ndjson").output.split())
    assert "Put the missing data file back" in told
    assert "schema" not in told
    case.put_back()
    assert case.order("release", case.name).exit_code == 0
    assert case.order("discard", case.name, "--yes").exit_code == 1
    with pytest.raises(NotHeld):
        case.operator().discard(frozenset({case.name}))
    assert case.redo()[1] is None
    case.goes_on()
    assert case.fate == 1
    case.is_well()


def test_what_a_redo_has_given_up_does_not_go_in_by_itself_either(case):
    """HOLES D18: penguin starts anew, and cannot commit the entry of the redo now."""
    assert case.redo()[1] == 2
    case.put_back()
    stopped = case.drain(partition_columns=("name",))
    assert [one.error.code for one in stopped.values()] == ["schema_refused"]
    assert case.fate == 0
    assert json.loads(case.order("plan", "--output", "json").stdout)["released"] == 0
    case.goes_on()
    case.is_well()


def test_a_file_that_is_discarded_during_a_redo_is_read_again_all_the_same(case):
    assert case.redo()[1] == 2
    assert case.order("discard", case.name, "--yes").exit_code == 0
    case.goes_on()
    case.is_well()


def test_of_a_journal_that_cannot_be_read_nobody_knows_what_it_gives_up(case):
    case.redo()
    case.put_back()
    entry = case.table / journal_entry("default", 2)
    whole = entry.read_bytes()
    entry.write_bytes(b"{")
    said = case.order("release", "--all")
    assert (said.exit_code, case.fate) == (1, 0)
    assert "may give it up, but cannot be read" in said.stdout
    with pytest.raises(DocumentUnreadable):
        case.operator().contested()
    entry.write_bytes(whole)
    case.goes_on()
    case.is_well()


@pytest.mark.parametrize("read_again", [False, True], ids=["before", "after"])
def test_both_at_once_stop_the_pipeline_until_the_file_is_discarded(case, read_again):
    """HOLES D18: whether the sources were read again before or after, nothing is doubled."""
    case.both_at_once()
    if read_again:
        case.blizzard(later=60)
    (stopped,) = case.drain().values()
    assert stopped.error.code == "file_released"
    assert f"penguin discard {case.name} --yes" in case.order("held").stdout.replace("\n", " ")
    assert ids(case.table) == case.landing.ids
    asked = case.order("discard", case.name)
    assert (asked.stdout, asked.stderr) == (
        f"t: {case.name} would be discarded\n",
        "add --yes to do it\n",
    )
    # Rows are not taken for deleted while the file is there.
    sure = ("--yes", *["--rows-deleted"] * read_again)
    done = case.order("discard", case.name, *sure, "--output", "json")
    row = json.loads(done.stdout)
    assert (done.exit_code, row["outcome"], row["rows"]) == (0, "discarded", 5)
    assert (case.fate, ids(case.table)) == (2, [])
    case.goes_on()
    case.is_well()
    assert case.order("discard", case.name, "--yes").exit_code == 1


def test_a_redo_between_the_release_s_look_and_its_commit(case):
    """HOLES D18: the other way round."""
    case.put_back()
    entries = []
    overtaken = before_commit(lambda: entries.append(case.redo()[1]))
    done = replace(case.operator(), open_log=overtaken).release(frozenset({case.name}))
    assert ([one.name for one in done.done], entries) == ([case.name], [2])
    (stopped,) = case.drain().values()
    assert stopped.error.code == "file_released"
    case.operator().discard(frozenset({case.name}))
    case.goes_on()
    case.is_well()


@pytest.mark.parametrize("back", [True, False], ids=["back", "gone"])
def test_a_log_that_has_lost_what_became_of_the_file(case, back):
    """HOLES D16, D18: everything is committed again, with the file where it is there by then."""
    assert case.redo()[1] == 2
    case.goes_on()
    case.is_well()
    if back:
        case.put_back()
    shutil.rmtree(case.table / "_delta_log")
    assert [one.error.code for one in case.drain().values()] == ["log_rolled_back"]
    assert case.order("replay", "--yes").exit_code == 0
    stopped = case.drain()
    assert [one.error.code for one in stopped.values()] == ["file_released"] * back
    if back:
        assert (case.fate, ids(case.table)) == (None, case.landing.ids)
        assert case.order("discard", case.name, "--yes").exit_code == 0
    case.goes_on()
    assert case.fate == 2
    case.is_well()


def test_a_file_that_was_rewritten_is_given_up_once_its_rows_are_deleted(case):
    """HOLES D18, D09: OPTIMIZE has put its rows into another file."""
    lost = case.landing.ids
    case.landing.land("b.ndjson", 5)
    case.blizzard()
    case.drain()
    case.both_at_once()
    assert DeltaTable(str(case.table)).optimize.compact()["numFilesRemoved"] == 2
    said = case.order("discard", case.name, "--yes")
    assert said.exit_code == 1
    assert "rewrote it. Delete its rows from the table, then pass --rows-deleted" in said.stderr
    assert (case.fate, ids(case.table)) == (1, case.landing.ids)
    DeltaTable(str(case.table)).delete(f"id IN ({', '.join(map(str, lost))})")
    assert case.order("discard", case.name, "--yes", "--rows-deleted").exit_code == 0
    case.goes_on()
    case.is_well()


def test_an_optimize_in_the_very_moment_of_the_discard_doubles_nothing(case):
    """HOLES D08, D09: the library would not see it."""
    case.landing.land("b.ndjson", 5)
    case.blizzard()
    case.drain()
    case.both_at_once()
    turns = []

    def optimize():
        turns.append(DeltaTable(str(case.table)).optimize.compact())

    operator = replace(case.operator(), open_log=before_commit(optimize))
    with pytest.raises(FileRewritten):
        operator.discard(frozenset({case.name}))
    assert len(turns) == 1
    assert (case.fate, ids(case.table)) == (1, case.landing.ids)


@pytest.mark.parametrize(
    ("forbid", "why"),
    [
        pytest.param(
            lambda case: DeltaTable(str(case.table)).alter.set_table_properties(
                {"delta.appendOnly": "true"}
            ),
            "nothing may be removed",
            id="append only",
        ),
        pytest.param(
            lambda case: delete_in_place(case, next(iter(added(case))), [0]),
            "not in the table as it was written",
            id="rows of it are deleted in place",
            marks=pytest.mark.unbalanced("rows_removed"),
        ),
    ],
)
def test_a_file_that_may_not_be_taken_out_is_told_so(case, forbid, why):
    case.both_at_once()
    forbid(case)
    with pytest.raises(FileRewritten, match=why):
        case.operator().discard(frozenset({case.name}))
    assert (case.fate, *added(case)) == (1, f"{case.name}.parquet")


def deaths(tmp_path, begin, order):
    """Let an order die at each of its calls, before or after it, and yield what is left."""
    case = Case(tmp_path / "desk")
    begin(case)
    for fate in lives(case.folder):
        with contextlib.suppress(Died):
            order(case, dying(Store(str(case.table), case.sink.storage_options), fate))
        yield fate.call, case


def test_death_at_any_call_of_a_release_and_then_a_redo(tmp_path):
    """HOLES D18, D11: it went in, or it did not, and the redo sees which."""
    fates = set()
    for number, case in deaths(
        tmp_path, Case.put_back, lambda case, store: case.operator(store).release(None)
    ):
        fates.add(case.fate)
        entry = case.redo()[1]
        assert (entry is None) == (case.fate == 1), number
        case.goes_on()
        case.is_well()
    assert fates == {0, 1}


def test_death_at_any_call_of_a_redo_and_then_a_release(tmp_path):
    """HOLES D18, D11: its entry is there, or it is not, and the release sees which."""
    outcomes = set()
    for _number, case in deaths(
        tmp_path,
        Case.put_back,
        lambda case, store: redo(store, case.settings.name, case.fates, clock=case.clock),
    ):
        outcomes.add(len(case.operator().release(None).done))
        case.goes_on()
        case.is_well()
    assert outcomes == {0, 1}


def test_death_at_any_call_of_the_discard_of_a_contested_file(tmp_path):
    """HOLES D18, D11: to say it again finishes it, or there is nothing left to do."""
    fates = set()
    for _number, case in deaths(
        tmp_path,
        Case.both_at_once,
        lambda case, store: case.operator(store).discard(frozenset({case.name})),
    ):
        fates.add(case.fate)
        with contextlib.suppress(NotHeld):
            case.operator().discard(frozenset({case.name}))
        case.goes_on()
        case.is_well()
    assert fates == {1, 2}
