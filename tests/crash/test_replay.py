"""Lines in quarantine are replayed or discarded by processes that die, or by two at once.

The life is that of the command, of a batch that comes after it, and of the penguin. Whatever it
leaves behind, each line is a row once, discarded once, or waits; and whoever does it again ends
where one life would have.
"""

from pathlib import Path
from typing import Any

import pytest

from blizzard.model.bad_lines import fault_of
from lakebed.errors import JournalConflict
from lakebed.storage.store import Store
from lakebed.types import Handoff
from tests.support.builders import entries
from tests.support.dying import Fate, lives
from tests.support.lives import survives
from tests.support.mortal import HANDOFFS
from tests.support.replays import FIRST, SECOND, Replayed

pytestmark = pytest.mark.timeout(900)

BROKEN = b'{"id":'


def settled(desk: Replayed) -> tuple[int, int]:
    """Return how many lines were replayed, and how many discarded."""
    found = {"replay": 0, "discard": 0}
    for entry in entries(desk.table):
        if entry.kind in found:
            found[entry.kind] += sum(one.lines for one in entry.resolved)
    return found["replay"], found["discard"]


def replays(desk: Replayed, fate: Fate) -> None:
    """One life: lines become rows, and a batch comes after them."""
    desk.replay(fate)
    if not (desk.landing.folder / f"{SECOND}/late.ndjson").exists():
        desk.land(f"{SECOND}/late.ndjson", {"id": 4})
    desk.live(fate)


def discards(desk: Replayed, fate: Fate) -> None:
    """One life: the lines of a file are given up, and all others become rows."""
    desk.discard([f"default:{FIRST}/a.ndjson"], fate)
    replays(desk, fate)


@pytest.mark.parametrize(("handoff", "inlined"), HANDOFFS.values(), ids=list(HANDOFFS))
def test_a_replay_that_dies_at_any_call_makes_each_line_a_row_once(
    tmp_path: Path, handoff: Handoff, inlined: bool
) -> None:
    desk = Replayed(tmp_path / "desk", handoff=handoff, inlined=inlined)
    dies_at_every_call(desk, replays, ids=[1, 2, 3, 4], waiting=[BROKEN], counts=(2, 0))


def test_a_discard_that_dies_at_any_call_gives_each_line_up_once(tmp_path: Path) -> None:
    desk = Replayed(tmp_path / "desk", handoff=Handoff.JOURNAL, inlined=False)
    dies_at_every_call(desk, discards, ids=[1, 3, 4], waiting=[], counts=(1, 2))


def dies_at_every_call(
    desk: Replayed, life: Any, *, ids: list[int], waiting: list[bytes], counts: tuple[int, int]
) -> None:
    desk.begin()
    assert (desk.ids(), len(desk.waiting())) == ([1], 3)
    deaths = 0
    for fate in lives(desk.folder):
        deaths += not survives(lambda fate: life(desk, fate), fate)
        life(desk, Fate.none())

        where = f"died at {fate}"
        assert desk.ids() == ids, where
        assert desk.waiting() == waiting, where
        assert settled(desk) == counts, where
        desk.collect()
        assert desk.garbage() == [], where
        assert (desk.ids(), desk.waiting()) == (ids, waiting), where
    assert deaths >= 11, "the store really died, at many places"


class Between(Store):
    """A store of which, right before an entry is appended, somebody else does something."""

    def meanwhile(self) -> None: ...

    def create(self, path: str, body: bytes) -> Any:
        if "/journal/" in path:
            other, self.meanwhile = self.meanwhile, lambda: None  # type: ignore[method-assign]
            other()
        return super().create(path, body)


@pytest.fixture
def desk(tmp_path: Path) -> Replayed:
    desk = Replayed(tmp_path / "desk", handoff=Handoff.JOURNAL, inlined=False)
    desk.begin()
    return desk


def between(desk: Replayed, meanwhile: Any) -> Store:
    store = Between(str(desk.table), desk.sink.storage_options)
    store.meanwhile = meanwhile  # type: ignore[method-assign]
    return store


def test_of_two_replays_at_once_one_is_refused(desk: Replayed) -> None:
    """Their entries have one number: whoever is second sees that the lines wait no longer."""
    store = between(desk, desk.replay)
    with pytest.raises(JournalConflict, match="another command has replayed or discarded"):
        desk.replay(store=store)
    desk.live(Fate.none())

    assert (desk.ids(), desk.waiting(), settled(desk)) == ([1, 2, 3], [BROKEN], (2, 0))
    desk.collect()
    assert desk.garbage() == []


@pytest.mark.parametrize("first", ["replay", "discard"])
def test_a_replay_and_a_discard_at_once_do_one_of_both(desk: Replayed, first: str) -> None:
    if first == "discard":
        store = between(desk, lambda: desk.discard(None))
        with pytest.raises(JournalConflict):
            desk.replay(store=store)
    else:
        store = between(desk, desk.replay)
        with pytest.raises(JournalConflict):
            desk.discard(None, store=store)
    desk.live(Fate.none())

    replayed = first == "replay"
    assert desk.ids() == ([1, 2, 3] if replayed else [1])
    assert settled(desk) == ((2, 0) if replayed else (0, 3))
    assert desk.waiting() == ([BROKEN] if replayed else [])


def test_a_batch_in_between_does_no_harm(desk: Replayed) -> None:
    desk.land(f"{SECOND}/late.ndjson", {"id": 4}, '{"id":')
    desk.replay(store=between(desk, lambda: desk.live(Fate.none())))
    desk.live(Fate.none())

    assert (desk.ids(), desk.waiting()) == ([1, 2, 3, 4], [BROKEN, BROKEN])


def test_a_clean_up_in_between_takes_the_files_and_nothing_is_done(desk: Replayed) -> None:
    with pytest.raises(JournalConflict, match="blizzard gc"):
        desk.replay(store=between(desk, desk.collect))
    assert desk.replay().lines == 2
    desk.live(Fate.none())

    assert (desk.ids(), desk.waiting()) == ([1, 2, 3], [BROKEN])


def test_a_clean_up_in_between_takes_the_lines_that_were_to_wait_on(desk: Replayed) -> None:
    """What is left of a quarantine file must not be named once it is gone."""
    group = fault_of("wrong_type", "id", "an integer (int64)", "a string").group
    with pytest.raises(JournalConflict, match="blizzard gc"):
        desk.discard([group], store=between(desk, desk.collect))
    assert len(desk.waiting()) == 3
    assert desk.discard([group]).lines == 2

    assert (desk.waiting(), settled(desk)) == ([BROKEN], (0, 2))


@pytest.mark.parametrize("handoff", [Handoff.STAGING, Handoff.DIRECT])
def test_a_batch_that_died_before_its_hand_off_is_handed_off_after_a_replay(
    tmp_path: Path, handoff: Handoff
) -> None:
    """The last entry with files may be a replay's, and it is not the one that waits for it."""
    desk = Replayed(tmp_path / "desk", handoff=handoff, inlined=False)
    desk.begin()
    desk.land(f"{SECOND}/late.ndjson", {"id": 4})
    unpublished = 0
    for fate in lives(desk.folder):
        survives(desk.live, fate)
        batches = [one for one in entries(desk.table) if one.kind == "batch"]
        unpublished += fate.died and len(batches) == 2
        desk.replay()
        desk.live(Fate.none())

        where = f"died at call {fate.call}"
        assert (desk.ids(), desk.waiting()) == ([1, 2, 3, 4], [BROKEN]), where
    assert unpublished > 1, "some died after the entry"
