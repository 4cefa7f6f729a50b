"""Penguin dies before or after any call to the store, while it commits other programs' files."""

from contextlib import suppress
from pathlib import Path

import pytest

from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from tests.support.dying import Died, Fate, dying
from tests.support.foreign import Directory, Visitor
from tests.support.readers import added

MOST_CALLS = 400


def live(table: Directory, fate: Fate) -> None:
    """One life: two scanned files and one that a meta asks for, then one that comes late."""
    store = dying(Store(str(table.root), StorageOptions()), fate)
    penguin = Visitor(table, {"checkpoint_interval": 2}, store=store)
    penguin.drain()
    late = table.root / "late"
    if late.exists():
        table.file(4, path=late.read_text())
        late.unlink()
    penguin.drain()


def begin(root: Path) -> Directory:
    table = Directory(root)
    (table.root / "late").write_text(table.path(age=30))
    table.file(1)
    table.file(2, folder="date=2024-01-02")
    table.meta(table.file(3))
    return table


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("share", range(4))
def test_death_at_any_call_leaves_every_file_in_the_table_once(tmp_path, after, share):
    """HOLES D11, D06, L07: whichever call was the last, a new process comes to the same."""
    whole = Fate.none()
    live(begin(tmp_path / "whole"), whole)
    assert 20 < whole.calls < MOST_CALLS
    for call in range(1 + share, whole.calls + 1, 4):
        table = begin(tmp_path / f"{call}")
        fate = Fate(call=call, after=after)
        with suppress(Died):
            live(table, fate)
        # A version that is read ahead, and then not needed, may or may not have been asked for.
        assert fate.died or fate.calls == whole.calls - 1, call
        live(table, Fate.none())
        assert table.ids() == [1, 2, 3, 4], call
        assert table.metas() == [], call
        assert len(added(table.root)) == len(set(added(table.root))) == 4, call
