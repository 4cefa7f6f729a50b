"""Tables that have grown old, and orders to keep them up."""

import os
import re
import time
from pathlib import Path
from typing import Any

from lakebed.clock import Clock
from lakebed.layout import DELTA_LOG
from lakebed.storage.store import Store
from lakebed.terminal.console import picked
from penguin.model.settings import TableSettings
from penguin.upkeep.vacuum import VacuumOrder, VacuumReport

A_DAY = 86_400


def grow_old(root: Path, days: float) -> None:
    """Let everything in a table directory have been written, and removed, so many days earlier."""
    for version in (root / DELTA_LOG).glob("*.json"):
        text = re.sub(
            r'"deletionTimestamp":(\d+)',
            lambda found: f'"deletionTimestamp":{int(found[1]) - int(days * A_DAY * 1000)}',
            version.read_text(),
        )
        keep = version.stat()
        (version.parent / f".{version.name}.crc").unlink(missing_ok=True)
        version.write_text(text)
        os.utime(version, (keep.st_atime, keep.st_mtime))
    for path in root.rglob("*"):
        if path.is_file():
            at = path.stat().st_mtime - days * A_DAY
            os.utime(path, (at, at))


def data(root: Path) -> set[str]:
    """Name the data files that are there."""
    found = (str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    return {path for path in found if not path.startswith(("_", "."))}


def order(settings: TableSettings, **given: Any) -> VacuumOrder:
    return VacuumOrder(settings=settings, **given)


def vacuumed(settings: TableSettings, store: Store, **given: Any) -> VacuumReport:
    """Vacuum a table that is there, and hold the dry run against what was deleted."""
    seen = order(settings, **given).plan(store)
    done = order(settings, **given).carry_out(store)
    assert seen is not None
    assert done is not None
    gone = "files bytes some"
    assert picked(done, gone) == picked(seen, gone)
    assert not done.failed
    return done


def later(days: float) -> Clock:
    """Return a clock of ours that is ahead."""
    return Clock(seconds=lambda: time.time() + days * A_DAY)
