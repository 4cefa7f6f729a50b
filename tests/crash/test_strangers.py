"""Penguin dies before or after any call to the store, while it commits other programs' files."""

from contextlib import suppress
from pathlib import Path

from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from tests.support.dying import Died, Fate, dying, lives
from tests.support.foreign import Directory, Visitor
from tests.support.readers import added


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


def test_death_at_any_call_leaves_every_file_in_the_table_once(tmp_path: Path) -> None:
    """HOLES D11, D06, L07: whichever call was the last, a new process comes to the same."""
    table = Directory(tmp_path / "table")
    (table.root / "late").write_text(table.path(age=30))
    table.file(1)
    table.file(2, folder="date=2024-01-02")
    table.meta(table.file(3))
    deaths = 0
    for fate in lives(table.root):
        with suppress(Died):
            live(table, fate)
        deaths += fate.died
        live(table, Fate.none())
        assert table.ids() == [1, 2, 3, 4], fate
        assert table.metas() == [], fate
        assert len(added(table.root)) == len(set(added(table.root))) == 4, fate
    assert deaths >= 10, "the store really died, at many places"
