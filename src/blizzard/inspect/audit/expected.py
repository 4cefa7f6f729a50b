"""What must be in the table by the journals, compared with where the log's lineage has it. Pure.

Expected are the files of committed entries, without those that entries removed, merged or
superseded. Each is followed through the versions of the log by itself: rows that came back with a
RESTORE never make up for others that were lost with it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from blizzard.inspect.audit.findings import Difference, Kind, Loss
from blizzard.inspect.audit.log_books import REPAIR, LogBooks
from lakebed.deltalog.lineage import BEFORE, RESTORE
from lakebed.documents.data_file import FinishedFile, Replacement
from lakebed.documents.entry import Entry
from lakebed.layout import file_name
from lakebed.units import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A file that an entry took out of the table or superseded, and those in its place."""

    entry: int
    pipeline: str
    old: str
    new: tuple[str, ...]
    number: int
    """The place of its entry among all that were taken."""
    version: int
    """The version that committed it."""
    left_out: int = 0
    """How many of its rows are in none of the new files."""
    supersedes: bool = False


@dataclass(slots=True)
class ExpectedFiles:
    """What committed entries say must be in the table, and what must not."""

    log: LogBooks
    steps: list[Step] = field(default_factory=list)
    superseded: dict[str, tuple[Entry, int, int]] = field(default_factory=dict)
    """By the names of superseded files: the entries that supersede them, their versions and
    places."""
    _absent: dict[str, int] = field(default_factory=dict)
    """The rows of files that were committed and are not in the table as they were."""
    _origins: dict[str, Counter[str]] = field(default_factory=dict)
    """Of those with rows of several source files, how many each has."""
    _covered: dict[str, set[str] | None] = field(default_factory=dict)
    """The source files whose rows in a superseded file were read again, by its name; None: all."""
    _orphaned: dict[str, int] = field(default_factory=dict)
    """The rows of superseded files whose source files were not read again."""
    _given_up: dict[str, int] = field(default_factory=dict)
    """The rows of files that were given up once they were in the table."""
    _taken: dict[int, Mapping[str, int]] = field(default_factory=dict)
    """The rows that were taken of each source file, by the number of an entry."""
    _entries: int = 0

    def add(self, file: FinishedFile) -> None:
        """Expect the rows of a committed file."""
        path, one = file.filename, self.log.active.get(file.filename)
        if one is None or one.deleted:
            self._absent[path] = file.record_count
            if one is None and len(file.source_files) > 1:
                rows = self._origins[path] = Counter()
                for run in file.runs:
                    rows[file.source_files[run.source]] += run.rows

    def give_up(self, path: str, rows: int) -> None:
        """Expect no row of a file that was given up."""
        if path in self.log.removed:
            self._given_up[path] = rows

    def take(self, entry: Entry, replaced: Iterable[Replacement], version: int) -> None:
        """Enter what a committed entry did: the pairs that took place, all that it merged."""
        self._entries += 1
        for one in replaced:
            new = () if one.new is None else (one.new.filename,)
            self._enter(entry, one.old, new, version, one.left_out)
        for merge in entry.merged:
            names = tuple(file.filename for file in merge.new)
            for old in merge.old:
                self._enter(entry, old.path, names, version)
        told = (entry, version, self._entries)
        self.superseded |= dict.fromkeys(entry.supersedes, told)
        for record in entry.readings:
            for name in record.supersedes if record.failure is None else ():
                covered = self._covered.setdefault(name, set())
                if covered is not None:
                    covered.add(record.key)
        self._covered |= dict.fromkeys(entry.redone)
        if entry.left_out:
            self._taken[self._entries] = _rows_by_source(entry)

    def _enter(
        self, entry: Entry, old: str, new: tuple[str, ...], version: int, left_out: int = 0
    ) -> None:
        self.log.lineage.journaled(old, new)
        self.steps.append(
            Step(
                entry=entry.sequence,
                pipeline=entry.pipeline,
                old=old,
                new=new,
                number=self._entries,
                version=version,
                left_out=left_out,
            )
        )

    def supersede(self, paths: Mapping[str, str]) -> None:
        """Enter the superseded files, once all entries are in, with the paths of their names."""
        lineage = self.log.lineage
        taken_out = {step.old for step in self.steps}
        for name, (entry, version, number) in self.superseded.items():
            path = paths.get(name)
            one = None if path is None else lineage.active.get(path) or lineage.past.get(path)
            if path is None or one is None:
                continue
            rows = self._absent.pop(path, None)
            covered = self._covered[name]
            origins = self._origins.get(path) or Counter[str]()
            others = () if covered is None else origins.keys() - covered
            left = sum(origins[key] for key in others)
            if rows is not None and left and path not in taken_out:
                self._orphaned[path] = left
            self._given_up[path] = ((one.visible or 0) if rows is None else rows) - left
            self.steps.append(
                Step(
                    entry=entry.sequence,
                    pipeline=entry.pipeline,
                    old=path,
                    new=tuple(file.filename for file in entry.files),
                    number=number,
                    version=version,
                    left_out=one.visible or 0,
                    supersedes=True,
                )
            )

    def differences(self) -> Iterator[Difference]:
        """Yield rows that are missing, in the table twice, or again after they were taken out."""
        yield from self._losses()
        told: set[tuple[int, str]] = set()
        for step in self.steps:
            found = self._back(step) if step.left_out else self._twice(step)
            if found is not None and (step.entry, found.message) not in told:
                told.add((step.entry, found.message))
                yield found

    def _losses(self) -> Iterator[Difference]:
        """Yield what each version took away that must be there, and nobody has accepted."""
        lineage = self.log.lineage
        for step in self.steps:
            self._absent.pop(step.old, None)
        whole: dict[int, dict[str, int]] = {}
        altered: set[int] = set()
        for path, rows in {**self._absent, **self._orphaned}.items():
            trace = lineage.trace(path)
            if trace.is_unknown:
                continue
            altered |= trace.altered
            is_whole = not (trace.active or trace.altered)
            for last, version in trace.removed:
                if version in self.log.ours and last == path:
                    continue  # It is reported as a file that penguin removed.
                one = lineage.past.get(last)
                lost = whole.setdefault(version, {})
                lost[path if is_whole else last] = rows if is_whole or not one else one.visible or 0
        ordered = self._altered_and_given_up()
        for version in sorted(altered | whole.keys()):
            files = whole.get(version, {})
            rewrite = lineage.rewrites.get(version) if version in altered else None
            rewritten = 0 if rewrite is None else max(0, rewrite.lost - ordered[version])
            names = {*files, *(rewrite.removed if rewrite and rewritten else ())}
            if rows := sum(files.values()) + rewritten:
                yield from self._loss(version, rows, names)

    def _altered_and_given_up(self) -> Counter[int]:
        """Count, by version, the rows it may have removed that entries have given up anyway.

        Rows that an entry took out of the table later were not removed by a version before.
        """
        found: Counter[int] = Counter()
        taken = {(one.old, one.version): one.left_out for one in self.steps if not one.supersedes}
        for path, rows in self._given_up.items():
            still_there: list[int] = []

            def ends(name: str, version: int, still_there: list[int] = still_there) -> bool:
                left_out = taken.get((name, version), 0)
                still_there.append(left_out)
                return left_out > 0

            altered = self.log.lineage.forward(path, ends).altered
            found.update(dict.fromkeys(altered, max(0, rows - sum(still_there))))
        return found

    def _loss(self, version: int, rows: int, files: Iterable[str]) -> Iterator[Difference]:
        commit = self.log.commit_of(version)
        loss = Loss(
            version=version,
            operation=REPAIR if commit is None else commit.operation,
            writer=self.log.repairs.get(version) if commit is None else commit.writer,
            rows=rows,
            files=tuple(sorted(files)),
        )
        document = self.log.accepted.get(version)
        if loss.is_accepted_by(document):
            self.log.applied.add(version)
            return
        self.log.losses.append(loss)
        instead = ""
        if document is not None:
            instead = (
                f", but {plural(document.rows, 'row')} of {plural(len(document.files), 'file')} "
                "were accepted"
            )
        mend = (
            "penguin replay puts them back, or says what does" if loss.operation == RESTORE else ""
        )
        mend = mend or f"restore version {version - 1}, or accept it with blizzard audit --accept"
        yield Difference(
            kind=Kind.ROWS_REMOVED, message=f"{loss.message}{instead}; {mend}", version=version
        )

    def _twice(self, step: Step) -> Difference | None:
        """Report a file that is in the table beside one that has all of its rows, too."""
        lineage = self.log.lineage
        if not self._is_there(step.old, step) or not lineage.forward(step.old).active:
            return None
        there = frozenset[str]().union(*(lineage.forward(new).active for new in step.new))
        if not there:
            return None
        return _difference(
            Kind.FILE_COMMITTED_TWICE,
            f"entry {step.entry} puts {min(there)} in the place of {step.old}, and both are in the "
            f"table{self._brought_by(step.old, step)}",
            step,
        )

    def _back(self, step: Step) -> Difference | None:
        """Report rows that were taken out or superseded and are in the table, in any file."""
        lineage = self.log.lineage
        carriers = self._carriers(step)
        back = [name for name in carriers if self._is_there(name, step)]
        there = next((name for name in back if lineage.forward(name).active), None)
        if there is None or self._is_taken_again(step, carriers):
            return None
        verb = "supersedes" if step.supersedes else "took"
        of = f"{verb} {plural(step.left_out, 'row')} of {step.old}"
        where = "that file is in it again"
        if there != step.old:
            where = f"files of before came back: {there} is in the table"
        if there not in lineage.active:
            where = f"they are in {min(lineage.forward(there).active)} now"
        out = "" if step.supersedes else " out of the table"
        way = "retract --replace" if step.supersedes else "retract or erase"
        return _difference(
            Kind.ROWS_BACK,
            f"entry {step.entry} {of}{out}, and {where}{self._brought_by(there, step)}; "
            f"blizzard {way} takes them out again",
            step,
        )

    def _is_there(self, path: str, step: Step) -> bool:
        """Whether a file came back after a step, or was never taken out by it."""
        lineage = self.log.lineage
        return lineage.added(path) > step.version or (path == step.old and path in lineage.active)

    def _brought_by(self, path: str, step: Step) -> str:
        version = self.log.lineage.added(path)
        commit = self.log.commit_of(version)
        if version <= step.version or commit is None:
            return ""
        return f": version {version} ({commit.operation} of {commit.writer}) brought it back"

    def _carriers(self, step: Step) -> dict[str, None]:
        """Return the files that held the rows of a step's old file by the time it was taken."""
        lineage = self.log.lineage
        found = {step.old: None}
        waiting = [step.old]
        while waiting:
            one = waiting.pop()
            near = [*lineage.made_from.get(one, ())]
            if lineage.removed.get(one, BEFORE) < step.version and step.supersedes:
                near += lineage.forward(one).active
                near += (name for name, _version in lineage.forward(one).removed)
            for name in near:
                if name not in found:
                    found[name] = None
                    waiting.append(name)
        return found

    def _is_taken_again(self, step: Step, carriers: Iterable[str]) -> bool:
        """Whether later entries took as many rows of the same source files out of these files."""
        reached = dict.fromkeys(carriers)
        waiting = list(reached)
        while waiting:
            one = waiting.pop()
            following = self.log.lineage.after(one)
            waiting += [name for name in following if name not in reached]
            reached |= dict.fromkeys(following)
        later = [
            one
            for one in self.steps
            if one.left_out and one.number > step.number and one.old in reached
        ]
        by_source: Counter[str] = Counter()
        for number in {one.number for one in later}:
            by_source.update(self._taken.get(number, {}))
        wanted = self._taken.get(step.number, {})
        if not wanted or step.supersedes:
            return sum(one.left_out for one in later) >= step.left_out
        return all(by_source[key] >= min(rows, step.left_out) for key, rows in wanted.items())


def superseded_paths(names: Iterable[str], paths: Iterable[str]) -> dict[str, str]:
    """Return the paths of files by their names, of those that are superseded."""
    wanted = set(names)
    return {name: path for path in paths if (name := file_name(path)) in wanted} if wanted else {}


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
