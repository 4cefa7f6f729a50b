"""A missing file is taken out, its sources are read again, and a RESTORE brings it back meanwhile.

Whenever that is, no row is in the table twice: penguin stops and names the way out.
"""

import pytest
from deltalake import DeltaTable

from penguin.pipeline import TableRun
from tests.support.audits import audited
from tests.support.desk import Desk
from tests.support.readers import ids
from tests.support.tables import before_commit


class Case(Desk):
    """A data file that was lost, and taken out by `penguin fsck --repair`."""

    def __init__(self, folder):
        super().__init__(folder)
        self.first = [row["id"] for row in self.landing.land("a.ndjson", 5)]
        self.blizzard()
        self.penguin()
        self.arrives("b.ndjson", 5)
        self.lost = min(self.table.glob("*.parquet"))
        self.body = self.lost.read_bytes()
        self.whole = self.delta.version()
        self.lost.unlink()
        assert self.order("fsck", "--repair", "--yes").exit_code == 0

    @property
    def delta(self):
        return DeltaTable(str(self.table))

    @property
    def name(self):
        return self.lost.stem

    def restore(self, version=None):
        self.lost.write_bytes(self.body)
        self.delta.restore(self.whole if version is None else version)

    def ordered(self):
        return self.cli("redo", "--held", self.name, "--yes")

    def drain(self, **options):
        run = TableRun(
            settings=self.table_settings,
            emit=lambda _: None,
            clock=self.clock,
            open_store=lambda: self.store,
            **options,
        )
        while run.step():
            pass
        return run.stopped

    def stops(self):
        (stopped,) = self.drain().values()
        assert stopped.error.code == "file_released"
        return str(stopped.error)

    def goes_on(self):
        for later in (60, 3600):
            assert not self.drain()
            self.ends_well()
            self.blizzard(later=later)
        assert not self.drain()
        assert sorted(ids(self.table)) == sorted(self.landing.ids)
        assert audited(self.table).is_balanced


@pytest.fixture
def case(tmp_path):
    return Case(tmp_path)


def before_the_redo_is_committed(case):
    assert case.ordered().exit_code == 0
    case.restore()


def before_the_sources_are_read(case):
    assert case.ordered().exit_code == 0
    case.penguin()
    case.restore()
    case.ends_well()
    case.blizzard(later=60)


def after_the_sources_were_read(case):
    assert case.ordered().exit_code == 0
    case.penguin()
    case.ends_well()
    case.blizzard(later=60)
    case.restore()


MOMENTS = [before_the_redo_is_committed, before_the_sources_are_read, after_the_sources_were_read]


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_restored_file_stops_what_would_double_its_rows(case, moment):
    """HOLES D14: a RESTORE beside a redo."""
    moment(case)
    told = case.stops()
    assert "(RESTORE by " in told
    assert f"penguin discard {case.name} --yes" in told
    assert sorted(ids(case.table)) == sorted(case.landing.ids)
    assert case.order("discard", case.name, "--yes").exit_code == 0
    case.goes_on()
    assert case.order("discard", case.name, "--yes").exit_code == 1


@pytest.mark.parametrize("updated", [False, True])
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_restored_file_that_is_taken_out_by_another_restore_is_read_again(case, moment, updated):
    """An UPDATE moves its rows to another file, which the second RESTORE takes out as well."""
    moment(case)
    if updated:
        case.delta.update(updates={"id": "id"}, predicate=f"id = {case.first[0]}")
    assert ("it was rewritten" in case.stops()) is updated
    case.restore(case.whole + 1)
    case.goes_on()


def test_a_file_that_is_back_is_not_read_again_at_all(case):
    case.restore()
    refused = case.ordered()
    assert refused.exit_code == 1
    assert "they are in the table again" in " ".join(refused.output.split())
    assert not case.drain()
    assert sorted(ids(case.table)) == sorted(case.landing.ids)


@pytest.mark.parametrize("read_before", [False, True])
def test_a_restore_between_the_look_and_the_commit(case, read_before):
    case.ordered()
    if read_before:
        case.penguin()
        case.ends_well()
        case.blizzard(later=60)
    (stopped,) = case.drain(open_log=before_commit(case.restore)).values()
    assert stopped.error.code == "file_released"
    case.operator().discard(frozenset({case.name}))
    case.goes_on()


def test_rows_of_a_restored_file_that_was_rewritten_are_to_be_deleted(case):
    case.ordered()
    case.restore()
    case.delta.optimize.compact()
    assert "it was rewritten" in case.stops()
    refused = case.order("discard", case.name, "--yes")
    assert "Delete its rows from the table, then pass --rows-deleted" in refused.output
    case.delta.delete(f"id IN ({', '.join(map(str, case.first))})")
    assert case.order("discard", case.name, "--rows-deleted", "--yes").exit_code == 0
    for later in (60, 3600):
        assert not case.drain()
        case.ends_well()
        case.blizzard(later=later)
    assert not case.drain()
    assert sorted(ids(case.table)) == sorted(case.landing.ids)


def test_a_source_that_fails_before_it_is_read_again_still_names_the_file(case):
    """What comes in the place of a file is known however long it takes to read it."""
    case.ordered()
    case.penguin()
    source = case.landing.folder / "a.ndjson"
    kept = source.read_bytes()
    source.write_bytes(b"\x00" * len(kept))
    case.ends_well()
    case.blizzard(later=60)
    case.penguin()
    source.write_bytes(kept)
    case.restore()
    case.ends_well()
    case.blizzard(later=36_000)
    case.stops()
    case.operator().discard(frozenset({case.name}))
    case.goes_on()


@pytest.mark.unbalanced("rows_back")
def test_a_file_that_is_back_although_its_sources_are_read_again_is_reported(case):
    case.ordered()
    case.penguin()
    case.restore()
    assert {one.kind.value for one in audited(case.table).differences} == {"rows_back"}
