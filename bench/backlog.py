"""What it costs to list a backlog of many batches, over a store in memory that counts as S3 does.

Batches of 10,000 files (the default) are found ahead and journaled; the names that are known go to
segments on a disk, as a run writes them. Run it from the root of the checkout:

    .venv/bin/python -m bench.backlog [--files 20000 200000 2000000] [--by-folder] [--once]
"""

import argparse
import resource
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from blizzard.journal.checkpoint import SnapshotWriter
from blizzard.journal.ledger import Ledger
from blizzard.model.limits import SnapshotLimits
from lakebed.clock import Clock
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from tests.support.site import SECOND, Backlog, Site, flat


def drain(count: int, table: Path, *, by_folder: bool, once: bool) -> None:
    """Read a backlog to its end and print what looking at it has cost."""
    names = flat(count)
    if by_folder:
        names = [f"day={number // 5_000:04d}/{name}" for number, name in enumerate(names)]
    site = Site(names)
    store = Store(str(table), StorageOptions(), make_folder=True)
    site.history = Ledger(store=store, pipeline="default")
    backlog = Backlog(site, once=once)
    writer = SnapshotWriter(
        store=store, pipeline="default", clock=Clock(), limits=SnapshotLimits(names=1)
    )
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    found, batches, held = 0, 0, 0.0
    while files := backlog.batch():
        found, batches = found + len(files), batches + 1
        at = time.process_time()
        writer.spill(site.history)
        held += time.process_time() - at
        site.now += 11 * SECOND
        if found == count:
            break
    assert found == count
    took = time.process_time() - began - held
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    print(
        f"{count:>9,} files, {batches} batches: {site.bucket.listed / count:.2f} looks a file, "
        f"{site.bucket.requests['list']:,} LIST requests, {took:.1f} s of CPU for looks, "
        f"{held:.1f} s for segments, {grown} MB more memory"
    )


def main() -> None:
    """Measure each size, the smallest first."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--files", type=int, nargs="+", default=[20_000, 200_000, 2_000_000])
    given.add_argument("--by-folder", action="store_true")
    given.add_argument("--once", action="store_true")
    asked = given.parse_args()
    for count in asked.files:
        with TemporaryDirectory() as folder:
            drain(count, Path(folder), by_folder=asked.by_folder, once=asked.once)


if __name__ == "__main__":
    main()
