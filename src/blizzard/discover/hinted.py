"""A look at the files that notices name, and at no others.

It goes through the lister and the filter that a sweep goes through, so every rule holds: a hint
only makes the look happen sooner. What is new is still asked of the journal.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import groupby, islice

from blizzard.discover.filter import Decision
from blizzard.discover.finding import Finding, why_not_ours
from blizzard.discover.lister import SourceLister
from blizzard.discover.scan import DiscoveryContext, Scan
from blizzard.model.notices import Hint, HintsFollowed, NoticeKind
from blizzard.model.source.file import Before
from lakebed.errors import StoreDenied
from lakebed.listing.sort import CONTROL, SURROGATE
from lakebed.listing.watermark import ListingPlan, Range, folder_and_name
from lakebed.storage.options import ObjectFacts

MOST_HEADS = 10
"""Files of one folder that are looked at one by one; of more, a listing takes the place."""


@dataclass(slots=True, kw_only=True)
class HintedLook:
    """One look at hinted files of a source, between two looks at the source."""

    lister: SourceLister
    context: DiscoveryContext
    _settled: dict[Hint, NoticeKind] = field(default_factory=dict)
    _missing: list[Hint] = field(default_factory=list)
    _waiting: list[Hint] = field(default_factory=list)
    _new: list[Hint] = field(default_factory=list)
    _later: dict[Hint, float] = field(default_factory=dict)
    _left_over: int = 0

    def follow(self, hints: Collection[Hint], known: Finding) -> tuple[Finding, HintsFollowed]:
        """Return what is known of the source with what the hints bring, and what became of them.

        A batch holds no more for that than it may.
        """
        work = {file.key for file in known.take} | {record.key for record in known.misplaced}
        self._waiting = [hint for hint in hints if hint.key in work]
        scan = self.lister.scan(self.context, sweep=False)
        scan.file_filter.begin_with(known.take)
        new = sorted((hint for hint in hints if hint.key not in work), key=lambda hint: hint.path)
        asked = [(hint, before) for hint in new for before in self._worth_a_look(hint)]
        for folder, some in groupby(asked, key=lambda each: folder_and_name(each[0].path)[0]):
            group = list(some)
            facts = self._in_folder(scan, folder, [hint.path for hint, _ in group])
            for hint, before in group:
                if scan.file_filter.is_full:
                    self._put_off(hint)
                elif hint.path in facts:
                    self._consider(scan, hint, facts[hint.path], before)
                else:
                    self._consider(scan, hint, self._object(scan, hint.path), before)
        self.lister.remember_young(scan.file_filter.young)
        followed = HintsFollowed(
            waiting=tuple(self._waiting),
            new=tuple(self._new),
            settled=self._settled,
            missing=tuple(self._missing),
            later=self._later,
        )
        return self._with(known, scan.finding(known.amiss)), followed

    def _worth_a_look(self, hint: Hint) -> Iterator[Before]:
        """Settle a hint that needs no request to a store; else yield what the journal knows."""
        plan = self.lister.sweep_plan(self.context.now)
        source = self.lister.source
        odd = not _is_usable(hint.path) or why_not_ours(hint.path, source) is not None
        if odd or not plan.wanted(hint.path):
            self._settled[hint] = NoticeKind.NOT_MATCHED
            return
        before = self.context.lookup(hint.key)
        if before.unfinished is None and _is_known(hint, before):
            self._settled[hint] = NoticeKind.KNOWN
            return
        yield before

    def _consider(self, scan: Scan, hint: Hint, facts: ObjectFacts | None, before: Before) -> None:
        if facts is None:
            self._missing.append(hint)
            return
        if not scan.file_filter.is_ours(facts):
            self._settled[hint] = NoticeKind.NOT_MATCHED
            return
        match scan.consider_hinted(facts, before):
            case Decision.TAKE:
                self._waiting.append(hint)
                self._new.append(hint)
            case Decision.DONE:
                self._settled[hint] = NoticeKind.KNOWN
            case Decision.NO_FILE:
                self._settled[hint] = NoticeKind.NOT_MATCHED
            case Decision.FAIL:
                self._waiting.append(hint)
            case Decision.FULL:
                self._put_off(hint)
            case Decision.WAIT:
                self._wait(scan, hint)

    def _wait(self, scan: Scan, hint: Hint) -> None:
        """Look again when a file is old enough."""
        young = scan.file_filter.young.get(hint.key)
        if young is None:
            self._put_off(hint)
            return
        facts, first_seen = young
        now = self.context.now - self.context.ahead
        age = max(now - facts.modified, now - first_seen, timedelta(0))
        self._later[hint] = max(0.0, self.lister.source.min_age - age.total_seconds())

    def _put_off(self, hint: Hint) -> None:
        """Leave a file to a later batch: the next one is full."""
        self._later[hint] = 0.0
        self._left_over += 1

    def _object(self, scan: Scan, path: str) -> ObjectFacts | None:
        """Return one object; where it may not be asked for itself, as a listing shows it."""
        try:
            return self.context.store.head(path)
        except StoreDenied:
            one = Range(prefix="", after=path[:-1], until=path)
            return self._listed(scan, one, [path]).get(path)

    def _in_folder(
        self, scan: Scan, folder: str, paths: list[str]
    ) -> dict[str, ObjectFacts | None]:
        """List the part of a folder that hints are in, where that is cheaper than one by one."""
        if len(paths) <= MOST_HEADS:
            return {}
        part = Range(prefix=folder, after=paths[0][:-1], until=paths[-1])
        return self.lister.lister.attempt(lambda: self._listed(scan, part, paths))

    def _listed(self, scan: Scan, part: Range, paths: list[str]) -> dict[str, ObjectFacts | None]:
        """Return the objects of some names, None where there is none.

        The listing ends once it has cost as many requests as the files one by one; names that it
        has not come to by then are left out.
        """
        plan = ListingPlan(ranges=lambda _root: [part])
        listing = self.lister.lister.files(self.context.store, plan, scan.guide())
        most = self.lister.limits.page * len(paths)
        wanted = set(paths)
        found: dict[str, ObjectFacts] = {}
        listed, last = 0, ""
        for facts in islice(listing, most):
            listed, last = listed + 1, facts.path
            if facts.path in wanted:
                found[facts.path] = facts
        return {path: found.get(path) for path in paths if listed < most or path <= last}

    def _with(self, known: Finding, found: Finding) -> Finding:
        new = {hint.key for hint in self._new}
        return replace(
            known,
            take=found.take,
            misplaced=known.misplaced + found.misplaced,
            left_over=max(known.left_over, self._left_over),
            again=known.again | found.again,
            changed=known.changed + found.changed,
            noticed=known.noticed | new,
        )


def _is_known(hint: Hint, before: Before) -> bool:
    """Whether a message is about the very object that is in the table: size and e-tag."""
    name = before.finished
    if name is None or hint.size is None or hint.etag is None:
        return False
    return (hint.size, hint.etag) == (name.size, (name.etag or "").strip('"'))


def _is_usable(path: str) -> bool:
    """Whether a store's library can handle a name: no listing would show another one."""
    odd = CONTROL.search(path) or SURROGATE.search(path)
    return odd is None and not {"", ".", ".."} & set(path.split("/"))
