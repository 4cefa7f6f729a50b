"""A store that dies before or after its n-th call, for every n; then a restart."""

from functools import partial
from pathlib import Path

import pytest

from tests.support.dying import Fate
from tests.support.landing import Landing, config
from tests.support.lives import MOST_CALLS, Programs, moments, survives
from tests.support.readers import ids

# As many lives as a life makes calls: minutes, on a machine that has other things to do.
pytestmark = pytest.mark.timeout(900)


def both(programs: Programs, landing: Landing, fate: Fate) -> None:
    """One life: two batches, each committed."""
    programs.blizzard(fate)
    programs.penguin(fate)
    if not (landing.folder / "late.ndjson").exists():
        landing.land("late.ndjson", 5)
    programs.blizzard(fate)
    programs.penguin(fate)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_death_at_any_call_leaves_every_row_in_the_table_once(tmp_path: Path, after: bool) -> None:
    """Over journal, uploads, hand-off and receipt, twice in a row (D01, D02, D11, L01)."""
    deaths = 0
    for number in moments(after=after):
        folder = tmp_path / f"{number}"
        landing = Landing(folder / "landing")
        for name in ("a.ndjson", "b.ndjson.gz"):
            landing.land(name, 5)
        programs = Programs(config(folder))
        died = 0
        for call in (number, max(1, number // 2)):
            # The second death comes during the recovery from the first.
            died += not survives(partial(both, programs, landing), Fate(call, after=after))
        both(programs, landing, Fate.none())

        assert ids(folder / "table") == landing.ids, f"died at call {number}"
        if not died:
            break
        deaths += died
    else:
        pytest.fail(f"a life makes more than {MOST_CALLS} calls")
    assert deaths > (12 if after else 40), "the store really died, at many places"
