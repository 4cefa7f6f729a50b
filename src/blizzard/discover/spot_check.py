"""What a sweep makes of one file, or of a folder, decided by the same look and without the rest."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

from blizzard.discover.finding import Finding
from blizzard.discover.lister import SourceLister
from blizzard.discover.scan import DiscoveryContext, Scan
from lakebed.errors import StoreDenied
from lakebed.listing.incremental import Range
from lakebed.storage.store import ObjectFacts


class _TooMany(Exception):
    """More names are listed than were to be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotCheck:
    """Looks at parts of one source."""

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

    def below(self, folder: str, most: int | None) -> Finding | None:
        """Return what a sweep of a folder takes; None where it lists more than so many names."""

        def look() -> Finding | None:
            scan = self._scan()
            try:
                scan.over(_at_most(self._listed(scan, Range(prefix=folder)), most))
            except _TooMany:
                return None
            return scan.finding(())

        return self.lister.lister.attempt(look)

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


def _at_most(listed: Iterator[ObjectFacts], most: int | None) -> Iterator[ObjectFacts]:
    for count, facts in enumerate(listed, start=1):
        if most is not None and count > most:
            raise _TooMany
        yield facts
