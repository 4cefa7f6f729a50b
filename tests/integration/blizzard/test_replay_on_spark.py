"""Lines in quarantine, replayed on a real Spark session: a task for each quarantine file."""

import pytest

from blizzard.log_questions import asks_columns
from blizzard.rewrite.replay import NotReplayed, _units, replay
from lakebed.clock import Clock
from lakebed.types import Handoff
from tests.support.builders import entries
from tests.support.dying import Fate
from tests.support.replays import Replayed
from tests.support.spark import shared_runner

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("session")]


def replayed(desk: Replayed) -> int:
    settings = desk.settings
    columns = asks_columns(settings)
    done = replay(desk.store, settings, None, columns, shared_runner(), clock=Clock())
    return done.lines


@pytest.fixture
def desk(tmp_path):
    desk = Replayed(tmp_path / "desk", handoff=Handoff.JOURNAL, inlined=False)
    desk.begin()
    return desk


def test_lines_are_read_again_by_tasks(desk):
    assert replayed(desk) == 2
    desk.live(Fate.none())

    assert (desk.ids(), desk.waiting()) == ([1, 2, 3], [b'{"id":'])
    assert replayed(desk) == 0


@pytest.mark.unbalanced("quarantine_gone")
def test_a_file_that_goes_meanwhile_is_named_and_nothing_is_changed(desk, monkeypatch):

    def units(*given):
        for path in (desk.table / "_blizzard/default/quarantine").iterdir():
            path.unlink()
        return _units(*given)

    monkeypatch.setattr("blizzard.rewrite.replay._units", units)
    with pytest.raises(NotReplayed, match="object_missing"):
        replayed(desk)
    assert [one.kind for one in entries(desk.table)][-1] == "batch"
