"""`penguin adopt` dies before or after any call to the store, and is started again."""

from pathlib import Path

import pytest

from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from tests.support.adoptions import Counting, ParquetFolder
from tests.support.dying import Died, Fate, dying
from tests.support.readers import added, ids

IDS = [1, 2, 3, 4, 5]
MOST_CALLS = 200


def begin(root: Path) -> ParquetFolder:
    folder = ParquetFolder(root)
    for one in IDS:
        folder.file(f"date=2024-01-0{1 + one % 2}/part-{one}.parquet", [one])
    return folder


def live(folder: ParquetFolder, fate: Fate) -> None:
    adopter = folder.adopter(dying(Store(str(folder.root), StorageOptions()), fate))
    adopter.concurrent = 1  # The calls of one life come in one order.
    adopter.adopt()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_death_at_any_call_leaves_no_table_or_the_whole_one(tmp_path, after):
    """HOLES W49: whichever call was the last, a new process comes to the same table."""
    whole = Fate.none()
    live(begin(tmp_path / "whole"), whole)
    assert 20 < whole.calls < MOST_CALLS
    for call in range(1, whole.calls + 1):
        folder = begin(tmp_path / f"{call}")
        before = folder.files()
        with pytest.raises(Died):
            live(folder, Fate(call=call, after=after))
        # Nobody ever sees a part of it.
        assert ids(folder.root) in ([], IDS), call
        store = Counting(str(folder.root))
        known = 2 * len(folder.state())
        found = folder.adopt(store)
        assert (found.version, found.totals.files, found.totals.rows) == (0, 5, 5), call
        assert store.reads.total() <= max(0, len(IDS) - known + 1), call
        assert ids(folder.root) == IDS, call
        assert sorted(added(folder.root)) == sorted(before), call
        assert (folder.root / "_delta_log/_last_checkpoint").exists(), call
        assert folder.files() == before
        assert folder.state() == [], call
