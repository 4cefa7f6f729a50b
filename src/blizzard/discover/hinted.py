"""Check the files named by notifications, and no others.

They pass through the same lister and filter as in a sweep, so all rules apply, and the journal
decides what is new: a hint only makes the check happen sooner.
"""

from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice

from blizzard.discover.filter import Decision
from blizzard.discover.finding import Finding, why_not_ours
from blizzard.discover.lister import SourceLister
from blizzard.discover.scan import DiscoveryContext, Scan
from blizzard.model.notices import Hint, HintsFollowed, NoticeKind
from blizzard.model.source.file import Recorded
from lakebed.errors import StoreDenied
from lakebed.listing.sort import CONTROL, SURROGATE
from lakebed.storage.options import ObjectFacts

AT_ONCE = 16
"""Files whose facts are requested at the same time."""


@dataclass(slots=True, kw_only=True)
class HintCheck:
    """One check of the hinted files of a source, between two listings."""

    lister: SourceLister
    context: DiscoveryContext
    _followed: HintsFollowed = field(default_factory=HintsFollowed)
    _left_over: int = 0

    def follow(self, hints: Collection[Hint], known: Finding) -> tuple[Finding, HintsFollowed]:
        """Return the finding extended by the hinted files, and the outcome of the hints.

        The limits of a batch still apply.
        """
        work = {file.key for file in known.take} | {record.key for record in known.misplaced}
        self._followed.waiting = [hint for hint in hints if hint.key in work]
        scan = self.lister.scan(self.context, sweep=False)
        scan.file_filter.begin_with(known.take)
        new = sorted((hint for hint in hints if hint.key not in work), key=lambda hint: hint.path)
        asked = ((hint, before) for hint in new for before in self._needs_check(hint))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            while some := list(islice(asked, 1 if scan.file_filter.is_full else 8 * AT_ONCE)):
                if scan.file_filter.is_full:
                    self._put_off(some[0][0])
                    continue
                found = pool.map(self._object, (hint.path for hint, _ in some))
                for (hint, before), facts in zip(some, found, strict=True):
                    self._consider(scan, hint, facts, before)
        self.lister.remember_young(scan.file_filter.young)
        return self._with(known, scan.finding(known.amiss)), self._followed

    def _needs_check(self, hint: Hint) -> Iterator[Recorded]:
        """Settle a hint that needs no request to the store, or yield its state in the journal."""
        plan = self.lister.sweep_plan(self.context.now)
        source = self.lister.source
        odd = not _is_usable(hint.path) or why_not_ours(hint.path, source) is not None
        if odd or not plan.wanted(hint.path):
            self._followed.settled[hint] = NoticeKind.NOT_MATCHED
            return
        yield self.context.lookup(hint.key)

    def _consider(self, scan: Scan, hint: Hint, facts: ObjectFacts | None, known: Recorded) -> None:
        if facts is None:
            self._followed.settled[hint] = NoticeKind.MISSING
            return
        if not scan.file_filter.is_ours(facts):
            self._followed.settled[hint] = NoticeKind.NOT_MATCHED
            return
        match scan.consider_hinted(facts, known):
            case Decision.TAKE:
                self._followed.waiting.append(hint)
                self._followed.new.append(hint)
            case Decision.DONE:
                self._followed.settled[hint] = NoticeKind.KNOWN
            case Decision.NO_FILE:
                self._followed.settled[hint] = NoticeKind.NOT_MATCHED
            case Decision.FAIL:
                self._followed.waiting.append(hint)
            case Decision.FULL:
                self._put_off(hint)
            case Decision.WAIT:
                self._followed.later[hint] = self.lister.source.min_age

    def _put_off(self, hint: Hint) -> None:
        """Leave a file to a later batch, because the next one is full."""
        self._followed.later[hint] = 0.0
        self._left_over += 1

    def _object(self, path: str) -> ObjectFacts | None:
        """Return one object; None if it does not exist or may not be asked for."""
        try:
            return self.context.store.head(path)
        except StoreDenied:
            return None

    def _with(self, known: Finding, found: Finding) -> Finding:
        return replace(
            known,
            take=found.take,
            misplaced=known.misplaced + found.misplaced,
            left_over=max(known.left_over, self._left_over),
            again=known.again | found.again,
            changed=known.changed + found.changed,
        )


def _is_usable(path: str) -> bool:
    """Whether a listing could show this name."""
    odd = CONTROL.search(path) or SURROGATE.search(path)
    return odd is None and not {"", ".", ".."} & set(path.split("/"))
