"""What the next commits would do, for a person or a machine, on standard output."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakebed.telemetry.events import code_of
from lakebed.terminal.arguments import Output
from lakebed.terminal.console import console, plural, print_lines, say
from lakebed.units import entries_from

if TYPE_CHECKING:
    from penguin.inspect.explain import Explanation
    from penguin.model.commit import Advance, Hold


@dataclass(frozen=True, slots=True, kw_only=True)
class EntriesRow:
    """The entries of one pipeline that a commit would have."""

    pipeline: str
    journal: str
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldRow:
    """Files of one entry that would be held for the same reasons."""

    pipeline: str
    entry: int
    files: int
    code: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutRow:
    """A file of another program that would not be committed."""

    file: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedRow:
    """A pipeline that has stopped."""

    pipeline: str
    code: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRow:
    """An entry that has to wait."""

    pipeline: str
    entry: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotPromotedRow:
    """A promotion or retraction that is settled without effect."""

    pipeline: str
    entry: int
    kind: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """What the next commit of one table would do, or why it would not."""

    table: str
    table_uri: str
    version: int | None = None
    creates_table: bool = False
    entries: int = 0
    files: int = 0
    rows: int = 0
    columns_added: tuple[str, ...] = ()
    columns_dropped: tuple[str, ...] = ()
    columns_widened: tuple[str, ...] = ()
    pipelines: tuple[EntriesRow, ...] = ()
    held: tuple[HoldRow, ...] = ()
    released: int = 0
    still_held: int = 0
    others: int = 0
    left_out: tuple[LeftOutRow, ...] = ()
    stopped: tuple[StoppedRow, ...] = ()
    waiting: tuple[WaitingRow, ...] = ()
    replaced: int = 0
    retracted: int = 0
    not_promoted: tuple[NotPromotedRow, ...] = ()
    error: str | None = None

    @property
    def is_wrong(self) -> bool:
        """Whether somebody has to settle something."""
        return bool(self.stopped or self.held or self.still_held)


def explanations(rows: list[PlanRow], output: Output) -> None:
    """Print what the next commit of each table would do, or why it would not."""
    if output is Output.JSON:
        print_lines(rows)
        return
    to = console()
    for row in rows:
        for line in (_sentence(row), *_details(row)):
            say(to, line)


def _sentence(row: PlanRow) -> str:
    if row.error:
        return f"{row.table}: {row.error}"
    if not row.entries and not row.released and not row.others:
        return f"{row.table}: nothing to commit"
    version = 0 if row.version is None else row.version + 1
    table = "create the table and commit" if row.creates_table else "commit"
    return (
        f"{row.table}: would {table} {plural(row.entries, 'entry', 'entries')}, "
        f"{plural(row.files, 'file')}, {plural(row.rows, 'row')} (version {version} or later) "
        f"to {row.table_uri}"
    )


def _details(row: PlanRow) -> Iterator[str]:
    """Yield each part of a plan as a line of its own."""
    for part in row.pipelines:
        yield f"  commit  {part.pipeline}: {entries_from(part.first, part.last)}"
    if row.others:
        yield f"  commit  {plural(row.others, 'file')} of other programs"
    for one in row.held:
        yield (
            f"  hold    {one.pipeline}: entry {one.entry}: {plural(one.files, 'file')}: "
            f"{'; '.join(one.reasons)} [{one.code}]"
        )
    if row.released:
        yield f"  release {plural(row.released, 'file that was', 'files that were')} held"
    if row.replaced:
        gone = f", take out {plural(row.retracted, 'row')}" if row.retracted else ""
        yield f"  replace {plural(row.replaced, 'file')}{gone}"
    for verb, names in (
        ("add", row.columns_added),
        ("drop", row.columns_dropped),
        ("widen", row.columns_widened),
    ):
        if names:
            yield f"  {verb:<7} {'column' if len(names) == 1 else 'columns'} {', '.join(names)}"
    yield from _left(row)


def _left(row: PlanRow) -> Iterator[str]:
    """Yield what is not part of a plan, and why."""
    for one in row.not_promoted:
        reasons = "; ".join(one.reasons)
        names = {"retract": "retraction", "erase": "erasure", "compact": "compaction"}
        what = names.get(one.kind, "promotion")
        yield f"  leave   {one.pipeline}: {what} in entry {one.entry}: {reasons}"
    for waiting in row.waiting:
        yield f"  wait    {waiting.pipeline}: entry {waiting.entry}: {waiting.reason}"
    if row.still_held:
        files = plural(row.still_held, "file that is", "files that are")
        yield f"  leave   {files} held; `penguin held` says why"
    for file in row.left_out:
        yield f"  leave   {file.file}: {file.reason} [{file.code}]"
    for stopped in row.stopped:
        yield f"  leave   {stopped.pipeline}: {stopped.error} [{stopped.code}]"


def plan_row(table: str, uri: str, found: "Explanation") -> PlanRow:
    """Return what the next commit of a table would do."""
    proposal = found.proposal
    commit = proposal.commit
    return PlanRow(
        table=table,
        table_uri=uri,
        version=found.view.version,
        creates_table=commit is not None and commit.table.version is None,
        entries=commit.entries if commit else 0,
        files=len(commit.adds) if commit else 0,
        rows=commit.rows if commit else 0,
        columns_added=tuple(commit.changes.added) if commit else (),
        columns_dropped=tuple(commit.changes.dropped) if commit else (),
        columns_widened=tuple(commit.changes.widened) if commit else (),
        pipelines=tuple(_entries(one) for one in (commit.advances if commit else ())),
        held=_holds(commit.holds if commit else ()),
        released=len(commit.released) if commit else 0,
        still_held=_still_held(found),
        others=len(commit.others.paths) if commit and commit.others else 0,
        left_out=tuple(
            LeftOutRow(file=one.path, code=one.code, reason=one.reason) for one in found.left_out
        ),
        stopped=tuple(
            StoppedRow(pipeline=one.pipeline, code=code_of(one.error), error=str(one.error))
            for one in proposal.stopped
        ),
        waiting=tuple(
            WaitingRow(pipeline=one.pipeline, entry=one.sequence, reason=one.reason)
            for one in proposal.waiting
        ),
        replaced=len(commit.removes) if commit else 0,
        retracted=commit.left_out if commit else 0,
        not_promoted=tuple(
            NotPromotedRow(
                pipeline=one.entry.pipeline,
                entry=one.entry.sequence,
                kind=one.kind,
                reasons=one.reasons,
            )
            for one in (commit.not_promoted if commit else ())
        ),
    )


def _entries(advance: "Advance") -> EntriesRow:
    return EntriesRow(
        pipeline=advance.before.pipeline,
        journal=advance.after.journal,
        first=advance.entries[0].entry.sequence,
        last=advance.entries[-1].entry.sequence,
    )


def _holds(holds: "Iterable[Hold]") -> tuple[HoldRow, ...]:
    """Put together the files of one entry that are held for the same reasons."""
    files = Counter((hold.entry, hold.code, hold.reasons) for hold in holds)
    return tuple(
        HoldRow(
            pipeline=entry.pipeline,
            entry=entry.sequence,
            files=count,
            code=code.value,
            reasons=reasons,
        )
        for (entry, code, reasons), count in files.items()
    )


def _still_held(found: "Explanation") -> int:
    """Count the files that are held now, and stay so."""
    commit = found.proposal.commit
    settled = {*commit.released, *commit.discarded} if commit else set()
    return sum(one.name not in settled for one in found.view.held)
