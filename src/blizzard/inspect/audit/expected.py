"""Compare the files that journals expect in the table with the log's lineage. Pure.

Expected are the files of committed entries that no entry removed, merged or superseded. Each is
followed through the log separately, so rows restored by a RESTORE never offset rows lost with it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

from blizzard.inspect.audit.findings import AbsentFile, Difference, FindingKind, Supersession
from blizzard.inspect.audit.log_books import REPAIR, LogBooks
from lakebed.deltalog.lineage import BEFORE, RESTORE, Active
from lakebed.documents.entry import Entry
from lakebed.documents.losses import Accepted
from lakebed.documents.records import FinishedFile
from lakebed.layout import file_name
from lakebed.locations import below
from lakebed.units import plural

Sources = frozenset[int]
"""Source files as hashes of pipeline and key, to save memory."""


@dataclass(slots=True)
class ExpectedFiles:
    """The rows that must and must not be in the table, by committed entries."""

    log: LogBooks
    steps: list[Supersession] = field(default_factory=list)
    absent: dict[str, AbsentFile] = field(default_factory=dict)
    superseded: dict[str, dict[str | None, Supersession]] = field(default_factory=dict)
    """By name of a file, the last supersession of each source file's rows; at None of all."""
    _expected: dict[str, int] = field(default_factory=dict)
    """The rows of absent files that should be in the table."""
    _left_of: dict[str, Sources] = field(default_factory=dict)
    """The source files of expected rows in files of which others are superseded."""
    _given_up: dict[str, int] = field(default_factory=dict)
    """The rows of files that were given up once they were in the table."""
    _origins: dict[str, Counter[str]] = field(default_factory=dict)
    """By file that was ever removed, its rows by source file, if it has several."""
    _replacing: dict[tuple[str, int], set[str]] = field(default_factory=dict)
    """The files with the rows that supersede others, by pipeline and entry."""
    _sources: dict[str, Sources] = field(default_factory=dict)
    _first: dict[str, str] = field(default_factory=dict)
    """For each pipeline with an inherited journal, the original pipeline of its source files."""
    _without: dict[str, Sources] = field(default_factory=dict)
    """Source files with rows in an old file but not in its replacement."""
    _deleted: Counter[int] = field(default_factory=Counter)
    """Given-up rows, by the versions that deleted them."""

    def __post_init__(self) -> None:
        """Restrict the lineage to files with rows of the same source files."""
        self.log.lineage.sources_of = self.sources_of

    def begin(self, entry: Entry) -> None:
        """Record whose source files a journal inherits, from its first entry."""
        if entry.inherits is not None:
            before = entry.inherits.pipeline
            self._first[entry.pipeline] = self._first.get(before, before)

    def name(self, file: FinishedFile, pipeline: str) -> None:
        """Record which source files have rows in a file."""
        if file.source_files:
            self._sources[file.filename] = Sources(self._hashes(pipeline, file.source_files))

    def sources_of(self, path: str) -> Sources | None:
        """Return the source files with rows in a file; None if unknown."""
        if path not in self._sources:
            olds = self.log.lineage.made_from.get(path, ())
            found = [self.sources_of(old) for old in olds]
            known = [one for one in found if one is not None]
            if not known or len(known) < len(found):
                return None
            self._sources[path] = Sources().union(*known) - self._without.get(path, Sources())
        return self._sources[path]

    def add(self, file: FinishedFile, entry: Entry) -> None:
        """Expect the rows of a committed file."""
        path, one = file.filename, self.log.active.get(file.filename)
        if len(file.source_files) > 1 and (one is None or path in self.log.lineage.past):
            origins = self._origins[path] = Counter()
            for run in file.runs:
                origins[file.source_files[run.source]] += run.rows
        if one is None or one.deleted:
            self.absent[path] = AbsentFile(entry.pipeline, entry.sequence, file.record_count)

    def add_foreign(self, is_expected: Callable[[str, Active], bool]) -> None:
        """Expect the rows of unnamed files that penguin committed or took out."""
        lineage = self.log.lineage
        deleted = ((path, one) for path, one in lineage.active.items() if one.deleted)
        gone = ((path, one) for path, one in lineage.past.items() if path not in lineage.active)
        for path, one in chain(deleted, gone):
            if is_expected(path, one):
                self.absent[path] = AbsentFile(None, None, one.rows or 0)

    def give_up(self, path: str, rows: int) -> None:
        """Expect no row of a file that was given up."""
        if path in self.log.removed:
            self._given_up[path] = rows

    def take(self, entry: Entry, steps: Iterable[Supersession], version: int) -> None:
        """Apply a committed entry."""
        rows = _rows_by_source(entry)
        took = self._hashed(entry.pipeline, rows if rows.total() == entry.left_out else {})
        keys = (one.key for one in entry.sources if one.retracted)
        retracted = Sources(self._hashes(entry.pipeline, keys))
        for step in steps:
            self.steps.append(replace(step, sources=took))
            self.log.lineage.journaled(step.old, step.new)
            self._without |= dict.fromkeys(step.new, retracted)
        new = tuple(file.filename for file in entry.files)
        if entry.supersedes:
            self._replacing[entry.pipeline, entry.sequence] = {*new}
        supersedes = Supersession(
            entry=entry.sequence,
            pipeline=entry.pipeline,
            old="",
            new=new,
            version=version,
            supersedes=True,
        )
        for name, key in entry.superseded_rows():
            self.superseded.setdefault(name, {})[key] = supersedes

    def supersede(self, named: Iterable[str]) -> frozenset[str]:
        """Expect no superseded file, once all entries are applied; return their paths."""
        wanted = self.superseded.keys()
        paths = {name: path for path in named if (name := file_name(path)) in wanted}
        lineage = self.log.lineage
        in_effect = {
            step.version for step in self.steps if self.log.lineage.in_effect(step.version)
        }
        taken_out = {step.old for step in self.steps if step.version in in_effect}
        made = {new: step.version for step in self.steps for new in step.new}
        self._expected = {
            path: one.rows
            for path, one in self.absent.items()
            if path not in taken_out
            and (path not in made or made[path] in in_effect)
            and (path in lineage.active or lineage.removed.get(path, BEFORE) != BEFORE)
        }
        rewritten = {(step.old, step.pipeline, step.entry) for step in self.steps}
        for name, path in paths.items():
            one = lineage.active.get(path) or lineage.past.get(path)
            if one is None:
                continue
            absent, covered = self.absent.get(path), self.superseded[name]
            self._expected.pop(path, None)
            origins = Counter[str]() if None in covered else self._origins.get(path, Counter())
            others = {key: rows for key, rows in origins.items() if key not in covered}
            left = sum(others.values())
            if left and absent is not None and path not in taken_out:
                self._expected[path] = left
                self._left_of[path] = Sources(self._hashes(absent.pipeline or "", others))
            visible = one.visible or 0
            self._given_up[path] = (visible if absent is None else absent.rows) - left
            for step in {id(step): step for step in covered.values()}.values():
                if (path, step.pipeline, step.entry) in rewritten:
                    continue  # The rewrite says which rows it took out.
                keys = () if None in covered else (key for key in covered if covered[key] is step)
                took = self._hashed(step.pipeline, {str(key): origins[str(key)] for key in keys})
                rows = took.total() if origins else visible
                self.steps.append(replace(step, old=path, left_out=rows, sources=took))
        return frozenset(paths.values())

    def differences(self) -> Iterator[Difference]:
        """Yield rows that are missing, duplicated, or back after they were taken out."""
        again: dict[tuple[int, str], Difference] = {}
        superseding: set[str] = set()
        for step in self.steps:
            found = self._back(step) if step.left_out else self._twice(step)
            if found is not None:
                again[step.entry, found.message] = found
                superseding |= self._replacing.get((step.pipeline, step.entry), set())
        yield from self._losses(superseding)
        yield from again.values()

    def _losses(self, superseding: set[str]) -> Iterator[Difference]:
        """Yield the unaccepted losses of expected rows by version.

        `superseding` are files whose superseded rows are in the table again.
        """
        lineage = self.log.lineage
        whole: dict[int, dict[str, int]] = {}
        # Entries that rewrite a file leave out the rows that were deleted in place before.
        olds = {step.old: step.version for step in self.steps if step.deleted}
        altered = {
            version
            for path, until in olds.items()
            for version, _rows in (lineage.past[path].deletions if path in lineage.past else ())
            if version < until
        }
        for path, rows in self._expected.items():
            trace = lineage.trace(path)
            if trace.is_unknown:
                continue
            altered |= trace.altered
            is_whole = not (trace.active or trace.altered)
            for last, version in trace.removed:
                if version in self.log.ours and version not in self.log.repairs and last == path:
                    continue  # It is reported as a file that penguin removed.
                one = lineage.past.get(last)
                lost = whole.setdefault(version, {})
                # A repair removes files as they are, and is accepted by these.
                is_own = is_whole and (last == path or version not in self.log.repairs)
                lost[path if is_own else last] = rows if is_own or not one else one.visible or 0
        self._count_given_up()
        taken = {
            (one.pipeline, one.entry): Counter(one.sources)
            for one in self.steps
            if not one.supersedes
        }
        for version in sorted(altered | whole.keys()):
            files = {
                path: left
                for path, rows in whole.get(version, {}).items()
                if (left := rows - self._taken_of(path, rows, taken))
            }
            rewrite = lineage.rewrites.get(version) if version in altered else None
            some = 0 if rewrite is None else max(0, rewrite.lost - self._deleted[version])
            names = {*files, *(rewrite.removed if rewrite and some else ())}
            if rows := sum(files.values()) + some:
                yield from self._loss(version, rows, names, superseding)

    def _count_given_up(self) -> None:
        """Count, by version, removed rows that entries have given up anyway.

        Each row was removed by one version; if unknown, the first candidate counts. Rows that an
        entry took out later were not removed by an earlier version.
        """
        taken = {(one.old, one.version): one.left_out for one in self.steps if not one.supersedes}
        for path, rows in self._given_up.items():
            left, versions = self._not_taken(path, rows, taken)
            for version in versions:
                if (rewrite := self.log.lineage.rewrites.get(version)) is not None:
                    some = max(0, min(left, rewrite.lost - self._deleted[version]))
                    self._deleted[version] += some
                    left -= some

    def _not_taken(
        self, path: str, rows: int, taken: Mapping[tuple[str, int], int]
    ) -> tuple[int, list[int]]:
        """Return how many rows of a file no entry took out, and the versions that removed some."""
        took = 0

        def ends(name: str, version: int) -> bool:
            nonlocal took
            took += taken.get((name, version), 0)
            return took >= rows

        altered = self.log.lineage.forward(path, ends).altered
        return max(0, rows - took), sorted(altered)

    def _loss(
        self, version: int, rows: int, files: set[str], superseding: set[str]
    ) -> Iterator[Difference]:
        commit = self.log.commits.get(version)
        loss = Accepted(
            version=version,
            operation=REPAIR if commit is None else commit.operation,
            writer=self.log.repairs.get(version) if commit is None else commit.writer,
            rows=rows,
            files=tuple(sorted(files)),
        )
        document, instead = self.log.accepted.get(version), ""
        given_up = sum(self._given_up.get(path, 0) for path in document.files) if document else 0
        if self.log.accepts(loss, given_up + self._deleted[version]):
            return
        if document is not None:
            instead = (
                f", but {plural(document.rows, 'row')} of {plural(len(document.files), 'file')} "
                "were accepted"
            )
        accept = f"blizzard audit --accept {version} --reason TEXT"
        mend = f"restore version {version - 1}, or accept it with {accept}"
        if loss.operation == REPAIR:
            mend = f"put the files back and restore version {version - 1}, or {accept}"
        if loss.operation == RESTORE:
            mend = "penguin replay puts them back, or says how to"
            if not files.isdisjoint(superseding):
                mend = "blizzard retract --replace puts back those that supersede others"
                mend += "" if files <= superseding else ", and penguin replay then the others"
            mend += f"; accept it with {accept} if it was intended"
        yield Difference(
            kind=FindingKind.ROWS_REMOVED,
            message=f"{loss.message}{instead}; {mend}",
            version=version,
        )

    def _twice(self, step: Supersession) -> Difference | None:
        """Report a file that is in the table beside another one with the same rows."""
        lineage = self.log.lineage
        if not self._is_there(step.old, step) or not lineage.forward(step.old).active:
            return None
        there = frozenset[str]().union(*(lineage.forward(new).active for new in step.new))
        if not there:
            return None
        return _difference(
            FindingKind.FILE_COMMITTED_TWICE,
            f"entry {step.entry} replaces {step.old} with {min(there)}, and both are in the table"
            f"{self._brought_by(step.old, step)}",
            step,
        )

    def _back(self, step: Supersession) -> Difference | None:
        """Report rows that are in the table although they were taken out or superseded."""
        lineage = self.log.lineage
        carriers = self._carriers(step)
        back = [name for name in carriers if self._is_there(name, step)]
        there = next((name for name in back if lineage.forward(name).active), None)
        if there is None or self._is_taken_again(step, carriers):
            return None
        deleted = self._deleted_since(there, step)
        if deleted in self.log.accepted:
            return None
        verb = "supersedes" if step.supersedes else "took"
        of = f"{verb} {plural(step.left_out, 'row')} of {step.old}"
        where = "that file is in it again"
        if there != step.old:
            where = f"earlier files came back: {there} is in the table"
        if there not in lineage.active:
            where = f"they are in {min(lineage.forward(there).active)} now"
        out = "" if step.supersedes else " out of the table"
        is_replaced = (step.pipeline, step.entry) in self._replacing
        way = "retract --replace" if is_replaced else "retract or erase"
        unless = ""
        if deleted is not None:
            unless = (
                f", unless they are among the rows that version {deleted} deleted since, which the "
                "log does not say: then accept that version with blizzard audit --accept"
            )
        return _difference(
            FindingKind.ROWS_BACK,
            f"entry {step.entry} {of}{out}, and {where}{self._brought_by(there, step)}; "
            f"blizzard {way} takes them out again{unless}",
            step,
        )

    def _is_there(self, path: str, step: Supersession) -> bool:
        """Whether a file came back after a step, or was never taken out by it."""
        lineage, is_old = self.log.lineage, path == step.old
        if is_old and path not in lineage.active and {*step.new}.issuperset(lineage.after(path)):
            return False  # A RESTORE brought it back, and another one what replaced it.
        added = lineage.added(path)
        # Where a step is in effect, a RESTORE since brings back only what was there after it.
        is_undone = not lineage.in_effect(step.version)
        is_later = added > step.version and (is_undone or self.log.adds_rows(added))
        return is_later or (is_old and path in lineage.active)

    def _brought_by(self, path: str, step: Supersession) -> str:
        version = self.log.lineage.added(path)
        commit = self.log.commits.get(version)
        if version <= step.version or commit is None:
            return ""
        return f": version {version} ({commit.operation} of {commit.writer}) brought it back"

    def _carriers(self, step: Supersession) -> dict[str, None]:
        """Return the files that held a step's rows up to the step."""
        lineage = self.log.lineage
        found = {step.old: None}
        waiting = [step.old]
        while waiting:
            one = waiting.pop()
            near = [*lineage.made_from.get(one, ())]
            if step.supersedes and lineage.removed.get(one, BEFORE) < step.version:
                near += lineage.after(one)
            for name in near:
                held = self.sources_of(name) if step.sources else None
                if name not in found and (held is None or not step.sources.keys().isdisjoint(held)):
                    found[name] = None
                    waiting.append(name)
        return found

    def _is_taken_again(self, step: Supersession, carriers: Iterable[str]) -> bool:
        """Whether later entries took the same number of rows per source out of these files."""
        lineage = self.log.lineage
        reached = lineage.reached(carriers)
        is_undone = not self.log.lineage.in_effect(step.version)
        later = [
            one
            for one in self.steps
            if one.left_out
            and one.old in reached
            and (
                one.version > step.version
                or (is_undone and self.log.lineage.in_effect(one.version))
            )
        ]
        if not any(step.sources.values()):
            return sum(one.left_out for one in later) >= step.left_out
        by_entry: dict[tuple[str, int], Counter[int]] = {}
        for one in later:
            key = one.pipeline, one.entry
            by_entry[key] = by_entry.get(key, Counter()) | one.sources
        again = sum(by_entry.values(), Counter[int]())
        return all(again[key] >= min(rows, step.left_out) for key, rows in step.sources.items())

    def _taken_of(self, path: str, rows: int, taken: dict[tuple[str, int], Counter[int]]) -> int:
        """Count the rows of a file that entries took out of its successors."""
        found, sources = 0, self._left_of.get(path) or self.sources_of(path) or ()
        reached = self.log.lineage.reached([path])
        # Of several entries that took rows out of one file, a RESTORE has undone all but the last.
        last = {one.old: (one.pipeline, one.entry) for one in self.steps if one.old in reached}
        for key in {*last.values()}:
            left = taken.get(key, Counter[int]())
            for source in sources:
                some = min(rows - found, left[source])
                found += some
                left[source] -= some
        return found

    def _hashes(self, pipeline: str, keys: Iterable[str]) -> list[int]:
        pipeline = self._first.get(pipeline, pipeline)
        return [hash((pipeline, key)) for key in keys]

    def _hashed(self, pipeline: str, rows: Mapping[str, int]) -> Counter[int]:
        return Counter(dict(zip(self._hashes(pipeline, rows), rows.values(), strict=True)))

    def _deleted_since(self, path: str, step: Supersession) -> int | None:
        """Return another writer's version that deleted as many rows since; None without one.

        The log does not say which rows these were.
        """
        lineage = self.log.lineage
        for version in sorted(lineage.forward(path).altered):
            rewrite = lineage.rewrites.get(version)
            lost = 0 if rewrite is None else rewrite.lost - self._deleted[version]
            if version > step.version and lost >= step.left_out:
                return version
        return None


def _rows_by_source(entry: Entry) -> Counter[str]:
    """Count the rows that an entry takes out, by source file."""
    found = Counter({one.key: one.rows for one in entry.sources if one.retracted})
    for uri, rows in entry.erased.items():
        for name, root in entry.source_uris.items():
            path = below(root, uri)
            if path is not None:
                found[f"{name}:{path}"] += rows
    return found


def _difference(kind: FindingKind, message: str, step: Supersession) -> Difference:
    return Difference(
        kind=kind, message=message, pipeline=step.pipeline, entry=step.entry, file=step.old
    )
