"""`blizzard audit`: whether a table holds what its journals say, proved from metadata."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import typer
from rich.console import Console

from blizzard.answers.reconcile import SourceCounts
from blizzard.cli.output import One, chosen, load, looked_with, open_reader
from blizzard.cli.surroundings import Surroundings
from blizzard.handoff.dead_letters import beside, is_in_queue, queue_at
from blizzard.inspect.audit.findings import (
    AcceptedLoss,
    Amount,
    Audit,
    Difference,
    OtherCommit,
    Place,
)
from blizzard.inspect.audit.table import audit_table
from blizzard.log_questions import reconciler_of
from blizzard.model.files import Location
from blizzard.model.locations import OpenReader, sink_location
from blizzard.model.settings import PipelineSettings
from blizzard.repair.accept import NothingToAccept, accept
from lakebed.clock import Clock
from lakebed.deltalog import tables
from lakebed.errors import LakeError, ObjectMissing
from lakebed.locations import written_out
from lakebed.storage.store import Store, local_path
from lakebed.terminal.arguments import FAILED, USAGE, Files, Folders, Outcome, Output, Shape
from lakebed.terminal.console import (
    add,
    columns,
    console,
    plural,
    print_line,
    print_table,
    say,
    say_error,
)

FEW = 10
IN_WORDS = {
    Place.IN_TABLE: "in the table as they were written",
    Place.REPLACED: "replaced by a promotion, retraction, erasure or compaction",
    Place.RETRACTED: "taken out by a retraction or erasure",
    Place.REMOVED_BY_OTHERS: "removed or rewritten by other writers",
    Place.UNKNOWN: "removed or rewritten by versions that are no longer in the log",
    Place.WAITING: "waiting for {committer}",
    Place.HELD: "held by penguin",
    Place.GIVEN_UP: "given up: discarded, lost, or read again",
    Place.AWAITING_REDO: "taken out by penguin fsck, waiting for blizzard redo",
    Place.FORGOTTEN: "left out by penguin forget",
    Place.NOWHERE: "nowhere",
}


def audit(
    context: typer.Context,
    files: Files = None,
    folders: Folders = None,
    pipeline: One = None,
    deep: Annotated[
        bool,
        typer.Option("--deep", help="Also read the footer of every data file."),
    ] = False,
    version: Annotated[
        int | None,
        typer.Option(
            "--accept",
            metavar="VERSION",
            help="Accept that this version of the table removed rows, as a DELETE does: they no "
            "longer count as missing. Needs --reason.",
        ),
    ] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="Why the rows are gone.")
    ] = None,
    output: Shape = Output.TEXT,
) -> None:
    """Prove from metadata that each table holds what its journals say, or show the differences.

    One listing shows whether every data file is there. Source files that are not in the table are
    counted in the same answer.

    Exits with 0 if everything is accounted for, 1 if there are differences, 2 if it cannot tell.
    """
    outcome = Outcome()
    loaded, clock = load(files, folders), Surroundings.of(context).clock
    tables = {
        written_out(settings.sink.table_uri): sink_location(settings)
        for settings in chosen(loaded, pipeline)
    }
    _check_options(version, reason, len(tables))
    for uri, place in tables.items():
        own = [one for one in loaded.pipelines if written_out(one.sink.table_uri) == uri]
        with outcome.of(place.uri, _exit_code):
            with looked_with(place.uri, output) as opens:
                found = audit_of(place, deep=deep, pipelines=own, opens=opens)
                sources = [source_counts(each, opens, clock) for each in own]
            if version is not None and reason is not None:
                _accept(place, found, version, reason, clock.now())
                found = audit_of(place, deep=deep, pipelines=own)
            if output is Output.JSON:
                print_line(audit_row(place.uri, found, sources))
            else:
                show(place.uri, found, sources, committer_of(own))
            if not found.is_balanced:
                outcome.at_least(FAILED)
    raise typer.Exit(outcome.code)


def _exit_code(error: LakeError) -> int:
    """Return 2 where it cannot be told whether a table is balanced."""
    return FAILED if isinstance(error, NothingToAccept) else USAGE


def _check_options(version: int | None, reason: str | None, tables: int) -> None:
    """End the program where it is not clear what is accepted, and why."""
    fault = None
    if (version is None) != (reason is None) or (reason is not None and not reason.strip()):
        fault = "--accept VERSION and --reason TEXT belong together"
    elif version is not None and tables > 1:
        fault = "a version is one of a table; name its pipeline with --pipeline"
    if fault is not None:
        say_error(f"error: {fault}")
        raise typer.Exit(USAGE)


def _accept(place: Location, found: Audit, version: int, reason: str, at: datetime) -> None:
    """Accept exactly the rows that an audit says a version has removed."""
    loss = next((one for one in found.losses if one.version == version), None)
    if loss is None:
        raise NothingToAccept(
            f"version {version} has no difference of kind rows_removed, nor one of kind "
            "file_removed that penguin fsck made, or it is accepted already; blizzard audit shows "
            "which versions have one",
            path=place.uri,
        )
    accept(Store(place.uri, place.options), loss.accepted(reason, at))


def audit_of(
    table: Location,
    *,
    deep: bool = False,
    pipelines: Sequence[PipelineSettings] = (),
    opens: OpenReader = open_reader,
) -> Audit:
    """Audit the table of a place; a folder that does not exist is an error, and not balanced.

    Dead letters are reached as the pipelines say whose queues they are in.
    """
    folder = local_path(table.uri)
    if folder is not None and not folder.exists():
        raise ObjectMissing("there is no table yet: nothing has been written here", path=table.uri)
    return audit_table(
        opens(table),
        lambda: tables.whole_log(table.uri, table.options),
        lambda uri: opens(_letters_at(table, uri, pipelines)),
        deep=deep,
    )


def source_counts(settings: PipelineSettings, opens: OpenReader, clock: Clock) -> SourceCounts:
    """Count the source files of a pipeline by state; what keeps it from counting is no error."""
    try:
        return reconciler_of(settings, opens, clock).count()
    except LakeError as trouble:
        return SourceCounts(pipeline=settings.name, states={}, errors=(str(trouble),))


def not_covered(found: Audit, sources: Sequence[SourceCounts]) -> tuple[str, ...]:
    """Say what a verdict on a table leaves out: files that never reached it, and other places."""
    counted = {one.pipeline for one in sources}
    waiting = found.totals.bad_lines_waiting
    told = [f"{one.pipeline}: {text}" for one in sources for text in one.sentences()]
    told += [
        f"{name}: its source files, since the configuration does not have this pipeline"
        for name in found.pipelines
        if name not in counted
    ]
    if waiting:
        told.append(f"{plural(waiting, 'bad line')} in quarantine; see blizzard dlq list")
    if found.elsewhere:
        told.append(f"{plural(found.elsewhere, 'data file')} outside of the table's directory")
    return tuple(told)


def _letters_at(table: Location, uri: str, pipelines: Sequence[PipelineSettings]) -> Location:
    queues = (settings for settings in pipelines if is_in_queue(settings, uri))
    owner = next(queues, None)
    return beside(table, uri) if owner is None else queue_at(owner, uri)


@dataclass(frozen=True, slots=True, kw_only=True)
class AmountsRow:
    """Where the data files are that entries name."""

    in_table: Amount
    replaced: Amount
    retracted: Amount
    removed_by_others: Amount
    unknown: Amount
    waiting: Amount
    held: Amount
    given_up: Amount
    awaiting_redo: Amount
    forgotten: Amount
    nowhere: Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """The audit of a table, in the keys that docs/answers.md promises."""

    table_uri: str
    balanced: bool
    deep: bool
    version: int | None
    history_since: int | None
    journals: int
    entries: int
    waiting_entries: int
    source_files: int
    lines: int
    blank: int
    filtered: int
    quarantined: int
    bad_lines_waiting: int
    replayed: int
    passed_over: int
    discarded: int
    rows: int
    named: AmountsRow
    active: Amount
    by_others: Amount
    adopted: Amount
    unknown: Amount
    others: tuple[OtherCommit, ...]
    accepted: tuple[AcceptedLoss, ...]
    differences: tuple[Difference, ...]
    sources: tuple[SourceCounts, ...]
    not_covered: tuple[str, ...]


def audit_row(uri: str, found: Audit, sources: Sequence[SourceCounts] = ()) -> AuditRow:
    """Return an audit as one row."""
    totals = found.totals
    return AuditRow(
        table_uri=uri,
        balanced=found.is_balanced,
        deep=found.deep,
        version=found.version,
        history_since=found.history_since,
        journals=totals.journals,
        entries=totals.entries,
        waiting_entries=totals.waiting,
        source_files=totals.source_files,
        lines=totals.lines,
        blank=totals.blank,
        filtered=totals.filtered,
        quarantined=totals.quarantined,
        bad_lines_waiting=totals.bad_lines_waiting,
        replayed=totals.replayed,
        passed_over=totals.passed_over,
        discarded=totals.discarded,
        rows=totals.rows,
        named=AmountsRow(**{place.value: amount for place, amount in found.places.amounts.items()}),
        active=found.active,
        by_others=found.by_others,
        adopted=found.adopted,
        unknown=found.unknown,
        others=found.others,
        accepted=found.accepted,
        differences=found.differences,
        sources=tuple(sources),
        not_covered=not_covered(found, sources),
    )


def committer_of(pipelines: Sequence[PipelineSettings]) -> str:
    """Return who commits what waits: penguin, unless every pipeline of the table does it itself."""
    programs = {one.sink.committer for one in pipelines}
    return programs.pop() if len(programs) == 1 else "penguin"


def show(
    uri: str, found: Audit, sources: Sequence[SourceCounts] = (), committer: str = "penguin"
) -> None:
    """Print an audit for a person, who runs that program to have the rest committed."""
    to = console()
    at = "no version yet" if found.version is None else f"version {found.version}"
    say(to, f"table {uri}: {at}")
    _show_books(to, found, committer)
    _show_files(to, found, committer)
    if found.others:
        _show_others(to, found.others)
    if found.history_since:
        say(
            to,
            f"  the log's history is known since version {found.history_since}: what that version "
            "and those before it did is known only by its result",
        )
    for one in found.accepted:
        say(to, f"  accepted: {_accepted(one)}")
    for difference in found.differences[:FEW]:
        say(to, f"  {difference.kind}: {difference.message}")
    if len(found.differences) > FEW:
        kinds = Counter(one.kind.value for one in found.differences[FEW:])
        rest = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
        say(to, f"  ... and {rest}; --output json has them all")
    if found.is_balanced:
        looked = "" if found.deep else " (--deep also reads footers)"
        says = "the table holds what the journals say, and every data file is there"
        say(to, f"balanced: {says}{looked}")
    else:
        say(to, f"not balanced: {plural(len(found.differences), 'difference')}")
    for each in not_covered(found, sources):
        say(to, f"  not covered: {each}")


def _show_books(to: Console, found: Audit, committer: str) -> None:
    totals = found.totals
    waiting = f", {totals.waiting:,} of them waiting for {committer}" if totals.waiting else ""
    say(
        to,
        f"  {plural(totals.entries, 'entry', 'entries')} of "
        f"{plural(totals.journals, 'journal')}{waiting}",
    )
    say(
        to,
        f"  {plural(totals.source_files, 'source file')}: {totals.lines:,} lines = "
        f"{totals.rows:,} rows + {totals.blank:,} blank + {totals.filtered:,} filtered + "
        f"{totals.quarantined:,} quarantined",
    )
    if totals.quarantined:
        passed_over = f"{totals.passed_over:,} passed over, " if totals.passed_over else ""
        say(
            to,
            f"  bad lines: {totals.bad_lines_waiting:,} waiting, {totals.replayed:,} replayed, "
            f"{passed_over}{totals.discarded:,} discarded",
        )


def _show_files(to: Console, found: Audit, committer: str) -> None:
    shown = columns("data files", "files", "rows", numbers=("files", "rows"), wide=("data files",))
    for place, words in IN_WORDS.items():
        amount = found.places.amounts[place]
        if amount.files:
            add(shown, words.format(committer=committer), amount.files, amount.rows)
    for words, amount in (
        ("in the table, by other writers", found.by_others),
        ("in the table, of other programs and committed by penguin", found.adopted),
        ("in the table, by versions that are no longer in the log", found.unknown),
    ):
        if amount.files:
            add(shown, words, amount.files, amount.rows)
    add(shown, "in the table, all", found.active.files, found.active.rows)
    print_table(to, shown)


def _show_others(to: Console, others: tuple[OtherCommit, ...]) -> None:
    say(to, f"  {plural(len(others), 'commit')} of other writers:")
    for one in others[-FEW:]:
        say(
            to,
            f"    version {one.version}, {one.operation or 'unknown operation'} of "
            f"{one.writer or 'an unknown writer'}: {plural(one.files_removed, 'file')} removed "
            f"({_rows(one.rows_removed)}), {one.files_added:,} added ({_rows(one.rows_added)})",
        )
    if len(others) > FEW:
        say(to, f"    ... and {len(others) - FEW:,} before; --output json has them all")


def _accepted(one: AcceptedLoss) -> str:
    stands = "" if one.applies else "; it does not say what is missing now"
    return (
        f"version {one.version} ({one.operation or 'an unknown operation'} of "
        f"{one.writer or 'an unknown writer'}) removed {plural(one.rows, 'row')} of "
        f"{plural(one.files, 'file')}: {one.reason}{stands}"
    )


def _rows(count: int | None) -> str:
    return "rows unknown" if count is None else plural(count, "row")
