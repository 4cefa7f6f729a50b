"""`penguin adopt` dies before or after any call to the store, and is started again."""

from pathlib import Path

from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from tests.support.adoptions import ParquetFolder
from tests.support.dying import Died, Fate, dying, lives
from tests.support.readers import added, ids

IDS = [1, 2, 3, 4, 5]


def live(folder: ParquetFolder, fate: Fate) -> None:
    adopter = folder.adopter(dying(Store(str(folder.root), StorageOptions()), fate))
    adopter.concurrent = 1  # The calls of one life come in one order.
    adopter.adopt()


def test_death_at_any_call_leaves_no_table_or_the_whole_one(tmp_path: Path) -> None:
    """HOLES W49: whichever call was the last, a new process comes to the same table."""
    folder = ParquetFolder(tmp_path / "table")
    for one in IDS:
        folder.file(f"date=2024-01-0{1 + one % 2}/part-{one}.parquet", [one])
    before = folder.files()
    deaths = 0
    for fate in lives(folder.root):
        try:
            live(folder, fate)
        except Died:
            deaths += 1
            # Nobody ever sees a part of it.
            assert ids(folder.root) in ([], IDS), fate
            found = folder.adopt()
            assert (found.version, found.totals.files, found.totals.rows) == (0, 5, 5), fate
        assert ids(folder.root) == IDS, fate
        assert sorted(added(folder.root)) == sorted(before), fate
        assert (folder.root / "_delta_log/_last_checkpoint").exists(), fate
        assert folder.files() == before
    assert deaths >= 6, "the store really died, at many places"
