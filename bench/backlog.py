"""What it costs to list a backlog of many batches, over a store in memory that counts as S3 does.

Batches of 10,000 files (the default) are found ahead and journaled; the names that are known go to
segments on a disk, as a run writes them. With `--s3` the files are on a SeaweedFS, which
`make test-stores` installs; a proxy counts the requests. Run it from the root of the checkout:

    .venv/bin/python -m bench.backlog [--files 20000 200000 2000000] [--by-folder] [--once] [--s3]
"""

import argparse
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from blizzard.journal.checkpoint import SnapshotWriter
from blizzard.journal.ledger import Ledger
from blizzard.model.settings import SnapshotLimits
from lakebed.clock import Clock
from lakebed.storage.options import ObjectFacts, StorageOptions
from lakebed.storage.store import Store
from tests.support.bucket import Bucket
from tests.support.faulty import Proxy, in_front_of
from tests.support.servers_reached import seaweedfs_s3
from tests.support.site import HOUR, SECOND, Backlog, Site, flat

AT_ONCE = 32
"""Files that are put at the same time."""


class ServedBucket(Bucket):
    """Files on an S3 server; `listed` counts the names of its listings."""

    def __init__(self, store: Store, proxy: Proxy) -> None:
        super().__init__(uri=store.uri)
        self.store, self.proxy = store, proxy

    def objects(self, prefix: str = "", *, after: str | None = None) -> Iterator[ObjectFacts]:
        """List as the store does."""
        for facts in self.store.objects(prefix, after=after):
            self.listed += 1
            yield facts
        self.requests["list"] = len(self.proxy.kinds("list"))

    def head(self, path: str) -> ObjectFacts | None:
        """Ask the store."""
        return self.store.head(path)


@contextmanager
def served(names: list[str]) -> Iterator[ServedBucket]:
    """Run an S3 server that has the files, and a proxy that counts requests."""
    with seaweedfs_s3() as server, in_front_of(server.address) as proxy:
        uri = server.fresh()
        store = server.open(uri)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda name: store.replace(name, b'{"id": 1}\n'), names))
        yield ServedBucket(server.open(uri, proxy.address), proxy)


@contextmanager
def in_memory(names: list[str]) -> Iterator[Bucket]:
    """Hold the names in memory."""
    yield Bucket(names)


def drain(count: int, table: Path, *, by_folder: bool, once: bool, s3: bool) -> None:
    """Read a backlog to its end and print what looking at it has cost."""
    names = flat(count)
    if by_folder:
        names = [f"day={number // 5_000:04d}/{name}" for number, name in enumerate(names)]
    with served(names) if s3 else in_memory(names) as bucket:
        _drain(count, table, bucket, once=once)


def _drain(count: int, table: Path, bucket: Bucket, *, once: bool) -> None:
    site = Site()
    site.bucket = bucket
    if isinstance(bucket, ServedBucket):
        site.now = Clock().now() + HOUR
    store = Store(str(table), StorageOptions(), make_folder=True)
    site.history = Ledger(store=store, pipeline="default")
    backlog = Backlog(site, once=once)
    writer = SnapshotWriter(
        store=store, pipeline="default", clock=Clock(), limits=SnapshotLimits(names=1)
    )
    Path("/proc/self/clear_refs").write_text("5")  # The peak of memory begins anew.
    before, began = _peak(), time.process_time()
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
    grown = (_peak() - before) // 1024
    print(
        f"{count:>9,} files, {batches} batches: {site.bucket.listed / count:.2f} looks a file, "
        f"{site.bucket.requests['list']:,} LIST requests, {took:.1f} s of CPU for looks, "
        f"{held:.1f} s for segments, {grown} MB more memory"
    )


def _peak() -> int:
    """Return the most memory that this process has had, in KiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def main() -> None:
    """Measure each size, the smallest first."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--files", type=int, nargs="+", default=[20_000, 200_000, 2_000_000])
    given.add_argument("--by-folder", action="store_true")
    given.add_argument("--once", action="store_true")
    given.add_argument("--s3", action="store_true")
    asked = given.parse_args()
    for count in asked.files:
        with TemporaryDirectory() as folder:
            drain(count, Path(folder), by_folder=asked.by_folder, once=asked.once, s3=asked.s3)


if __name__ == "__main__":
    main()
