"""Which data files came in the place of which, and what may not be in the table beside it. Pure."""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from blizzard.inspect.audit.findings import Difference, Kind
from lakebed.documents.entry import Entry
from lakebed.documents.replacement import Replacement
from lakebed.units import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A file that left the table, and those that came in its place."""

    entry: int
    pipeline: str
    old: str
    new: tuple[str, ...]
    left_out: int = 0
    """How many of its rows are in none of them."""
    number: int = 0
    """The place of its entry among all that were taken."""


@dataclass(slots=True)
class Successors:
    """What committed entries have put in the place of what."""

    after: dict[str, list[Step]] = field(default_factory=dict)
    """By the file that left."""
    before: dict[str, list[str]] = field(default_factory=dict)
    """By each file that came: those in whose place it is."""
    removals: list[Step] = field(default_factory=list)
    """The steps after which rows are in no file, in their order."""
    _taken: dict[int, Mapping[str, int]] = field(default_factory=dict)
    """The rows that were taken of each source file, by the number of an entry."""
    _entries: int = 0

    def take(self, entry: Entry, replaced: Iterable[Replacement]) -> None:
        """Enter what a committed entry did: the pairs that took place, and all that it merged."""
        self._entries += 1
        for one in replaced:
            new = () if one.new is None else (one.new.filename,)
            self._enter(entry, one.old, new, one.left_out)
        for merge in entry.merged:
            names = tuple(file.filename for file in merge.new)
            for old in merge.old:
                self._enter(entry, old.path, names, 0)
        if self.removals and self.removals[-1].number == self._entries:
            self._taken[self._entries] = _rows_by_source(entry)

    def _enter(self, entry: Entry, old: str, new: tuple[str, ...], left_out: int) -> None:
        step = Step(
            entry=entry.sequence,
            pipeline=entry.pipeline,
            old=old,
            new=new,
            left_out=left_out,
            number=self._entries,
        )
        self.after.setdefault(old, []).append(step)
        for name in new:
            self.before.setdefault(name, []).append(old)
        if left_out:
            self.removals.append(step)

    def differences(self, active: Container[str]) -> Iterator[Difference]:
        """Yield rows that are in the table twice, or again after they were taken out."""
        came_back = [old for old in self.after if old in active]
        for old in came_back:
            yield from self._twice(old, active)
        # A file leaves the table once, unless somebody has put it back in between.
        if came_back or any(len(steps) > 1 for steps in self.after.values()):
            for step in self.removals:
                yield from self._back(step, active)

    def _twice(self, old: str, active: Container[str]) -> Iterator[Difference]:
        """Report a file that is in the table beside one that has all of its rows, too."""
        there = self._since([old], active, lambda step: not step.left_out)
        if there is not None:
            first = self.after[old][0]
            yield _difference(
                Kind.FILE_COMMITTED_TWICE,
                f"entry {first.entry} puts {there} in the place of {old}, and both are in the "
                "table",
                first,
            )

    def _back(self, step: Step, active: Container[str]) -> Iterator[Difference]:
        """Report rows that were taken out and are in the table, in whichever file."""
        rows = plural(step.left_out, "row")
        if step.old in active:
            yield _difference(
                Kind.ROWS_BACK,
                f"entry {step.entry} took {rows} of {step.old} out of the table, and that file "
                "is in it again",
                step,
            )
            return
        had_them = self._all_before(step.old)
        there = next((one for one in had_them if one in active), None) or self._since(
            had_them, active, lambda other: other is not step
        )
        if there is not None and not self._is_taken_again(step, had_them):
            yield _difference(
                Kind.ROWS_BACK,
                f"entry {step.entry} took {rows} of {step.old} out of the table, and files of "
                f"before came back: {there} is in the table",
                step,
            )

    def _is_taken_again(self, step: Step, had_them: Iterable[str]) -> bool:
        """Whether later entries took as many rows of the same source files out of these files."""
        where = self._reached(had_them, lambda other: other is not step)
        later = [one for one in self.removals if one.number > step.number and one.old in where]
        by_source: Counter[str] = Counter()
        for number in {one.number for one in later}:
            by_source.update(self._taken[number])
        wanted = self._taken[step.number]
        if not wanted:
            return sum(one.left_out for one in later) >= step.left_out
        return all(by_source[key] >= min(rows, step.left_out) for key, rows in wanted.items())

    def _all_before(self, path: str) -> dict[str, None]:
        """Return a file and all in whose place it came, directly or not."""
        found = {path: None}
        waiting = [path]
        while waiting:
            for old in self.before.get(waiting.pop(), ()):
                if old not in found:
                    found[old] = None
                    waiting.append(old)
        return found

    def _reached(self, paths: Iterable[str], follows: Callable[[Step], bool]) -> dict[str, None]:
        """Return files and all that came in their place, by the steps that are followed."""
        found = dict.fromkeys(paths)
        waiting = list(found)
        while waiting:
            for step in self.after.get(waiting.pop(), ()):
                for new in step.new if follows(step) else ():
                    if new not in found:
                        found[new] = None
                        waiting.append(new)
        return found

    def _since(
        self, paths: Iterable[str], active: Container[str], follows: Callable[[Step], bool]
    ) -> str | None:
        """Return a file in the table that came in the place of others, by such steps only."""
        before = dict.fromkeys(paths)
        reached = self._reached(before, follows)
        return next((one for one in reached if one in active and one not in before), None)


def _rows_by_source(entry: Entry) -> Mapping[str, int]:
    """Return how many rows an entry takes of each source file, by its URI."""
    found = Counter(entry.erased)
    for record in entry.sources:
        if record.retracted:
            folder = entry.source_uris.get(record.source, record.source).rstrip("/")
            found[f"{folder}/{record.path}"] += record.rows
    return found


def _difference(kind: Kind, message: str, step: Step) -> Difference:
    return Difference(
        kind=kind, message=message, pipeline=step.pipeline, entry=step.entry, file=step.old
    )
