"""What a sweep makes of one file, decided by the same look and without the rest."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

from blizzard.discover.finding import Finding
from blizzard.discover.lister import SourceLister
from blizzard.discover.scan import DiscoveryContext, Scan
from lakebed.errors import StoreDenied
from lakebed.listing.incremental import Range
from lakebed.storage.store import ObjectFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotCheck:
    """Looks at single names of one source."""

    lister: SourceLister
    context: DiscoveryContext

    def of(self, path: str) -> Finding:
        """Return what a sweep makes of one name."""
        scan = self._scan()
        facts = self._plain(path)
        if facts is None:
            # What a listing makes of it: a link, a name that cannot be used, a folder's marker.
            one = Range(prefix="", after=path[:-1], until=path)
            scan.over(facts for facts in self._listed(scan, one) if facts.path == path)
        elif self.lister.sweep_plan(self.context.now).wanted(path):
            scan.over(iter((facts,)))
        else:
            scan.beyond_horizon(facts)
        return scan.finding(())

    def _scan(self) -> Scan:
        return self.lister.scan(self.context, sweep=True)

    def _listed(self, scan: Scan, names: Range) -> Iterator[ObjectFacts]:
        plan = replace(self.lister.sweep_plan(self.context.now), ranges=lambda _root: [names])
        return self.lister.lister.files(
            self.context.store, plan, scan.guide(), left_out=scan.beyond_horizon
        )

    def _plain(self, path: str) -> ObjectFacts | None:
        """Return an object that a listing shows as it is; None where that has to be asked."""
        root = self.context.store.local_root
        if root is not None:
            parts = path.split("/")
            links = (root.joinpath(*parts[:count]) for count in range(1, len(parts) + 1))
            # Path.is_symlink raises on a name that no file can have, or below a locked folder.
            if any(os.path.islink(link) for link in links):  # noqa: PTH114
                return None
        try:
            return self.context.store.head(path)
        except StoreDenied:
            return None
