"""`blizzard status`: the state of each pipeline and each source."""

import time
from dataclasses import dataclass, field
from typing import Annotated

import typer
from rich.console import Console

from blizzard.answers.source_status import FEW, FailedFile, SourceStatus
from blizzard.answers.status import PipelineStatus, pipeline_status
from blizzard.answers.ways_out import quarantine_hint, way_out
from blizzard.cli.output import One, chosen, load, looked_with, place
from blizzard.discover.skip_reason import IN_WORDS as WHY
from blizzard.journal.lease_record import Life, moment
from blizzard.journal.ledger import Ledger
from blizzard.log_questions import asks_fates
from blizzard.model.locations import OpenReader
from blizzard.model.settings import PipelineSettings
from blizzard.service import open_queue
from lakebed.clock import Clock
from lakebed.errors import LakeError, StoreUnavailable
from lakebed.telemetry.events import code_of
from lakebed.terminal.arguments import DONE, FAILED, Files, Folders, Output, Shape, exit_code_of
from lakebed.terminal.console import (
    INLINED,
    add,
    columns,
    console,
    plural,
    print_line,
    print_table,
    say,
    second,
)
from lakebed.units import in_words, span

IN_WORDS = {
    Life.ALIVE: "written now by",
    Life.UNKNOWN: "written by",
    Life.ENDED: "not written now; the last was",
    Life.GONE: "not written now; died without an end:",
}


def status(
    files: Files = None,
    folders: Folders = None,
    pipeline: One = None,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh until Ctrl-C.")] = False,
    interval: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.1, help="Time between refreshes, with --watch."),
    ] = 5.0,
    output: Shape = Output.TEXT,
) -> None:
    """Show what is waiting, what failed and what is committed.

    Nothing is written.
    """
    pipelines = chosen(load(files, folders), pipeline)
    look = Look(pipelines, Clock())
    if not watch:
        raise typer.Exit(look.print(output))
    try:
        while True:
            if output is Output.TEXT:
                console().clear()  # Does nothing where it is not a terminal.
            look.print(output)
            time.sleep(interval)
    except KeyboardInterrupt:
        # This is how a watch is ended; it is not a failure.
        raise typer.Exit(DONE) from None


class Look:
    """Repeated looks at the same pipelines; entries that were read once are not read again."""

    def __init__(self, pipelines: tuple[PipelineSettings, ...], clock: Clock) -> None:
        self.pipelines = pipelines
        self.clock = clock
        self.ledgers: dict[str, Ledger] = {}

    def print(self, output: Output) -> int:
        """Print the state of each pipeline; one that cannot be read hides no other."""
        code = DONE
        for number, settings in enumerate(self.pipelines):
            if number and output is Output.TEXT:
                say(console(), "")
            try:
                with looked_with(settings.name, output) as opens:
                    found = self._look(settings, opens)
            except LakeError as trouble:
                code = max(code, exit_code_of(trouble))
                _print_error(settings, trouble, output)
                continue
            troubled = any(one.error for one in found.sources) or found.aside_error is not None
            if not found.receipt_fits or troubled:
                code = max(code, FAILED)
            if output is Output.JSON:
                print_line(StatusRow(status=found, lag_secs=found.lag_secs))
            else:
                show(found, self.clock)
                failures = (one for source in found.sources for one in source.failures)
                hint = quarantine_hint(settings, (one.line for one in failures))
                if hint is not None:
                    say(console(), f"  {hint}")
        return code

    def _look(
        self, settings: PipelineSettings, opens: OpenReader, tries: int = 3
    ) -> PipelineStatus:
        """Look at a pipeline, once more where objects vanish under the look: a batch ends."""
        ledger = self.ledgers.pop(settings.name, None) or Ledger()
        try:
            found = pipeline_status(
                settings,
                opens,
                clock=self.clock,
                ledger=ledger,
                fates=asks_fates(settings),
                open_queue=open_queue,
            )
        except StoreUnavailable:
            if tries <= 1:
                raise
            return self._look(settings, opens, tries - 1)
        # After an error nothing is kept: what was learned may be of another journal.
        self.ledgers[settings.name] = ledger
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusRow:
    """The state of a pipeline, in the keys that docs/operations.md promises."""

    status: PipelineStatus = field(metadata=INLINED)
    lag_secs: float
    error: None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadRow:
    """A pipeline that could not be read."""

    pipeline: str
    table_uri: str
    error: str
    code: str


def _print_error(settings: PipelineSettings, trouble: LakeError, output: Output) -> None:
    if output is Output.JSON:
        print_line(
            UnreadRow(
                pipeline=settings.name,
                table_uri=settings.sink.table_uri,
                error=str(trouble),
                code=code_of(trouble),
            )
        )
    else:
        say(console(), f"pipeline {settings.name}: {trouble} [{code_of(trouble)}]")


COMPACTED = {
    "committed": "committed",
    "waiting": "waiting to be committed",
    "passed_over": "without effect, since other writers came first",
    "unknown": "with what effect cannot be told, since the Delta log cannot be read",
}
SHOWN = 3
"""How many folders of a source are shown to a person."""


def show(found: PipelineStatus, clock: Clock) -> None:
    """Print the state of one pipeline, for a person."""
    to = console()
    say(to, f"pipeline {found.pipeline} -> {found.table_uri}")
    for line in _standing(found, clock):
        say(to, f"  {line}")
    shown = columns(
        "source", "waiting", "bytes", "lag", "failed", "done", "rows",
        numbers=("waiting", "bytes", "lag", "failed", "done", "rows"), wide=("source",),
    )  # fmt: skip
    for one in found.sources:
        add(
            shown,
            one.source,
            one.pending_files,
            None if one.pending_bytes is None else in_words(one.pending_bytes),
            None if one.lag_secs is None else span(one.lag_secs),
            one.failed_files,
            one.totals.files,
            one.totals.rows,
        )
    print_table(to, shown)
    for one in found.sources:
        for mark in one.watermarks[:SHOWN]:
            say(
                to,
                f"  {one.source}: read up to {mark.folder}{'/' if mark.folder else ''}{mark.name}",
            )
        if one.folders > SHOWN:
            say(to, f"  {one.source}: and in {plural(one.folders - SHOWN, 'earlier folder')}")
        if one.notifications is not None:
            say(to, f"  {one.source}: {one.notifications.sentence()}")
        _show_values(to, one)
        _show_trouble(to, one, clock)


def _standing(found: PipelineStatus, clock: Clock) -> list[str]:
    if found.last_entry is None:
        return ["nothing is journaled yet: blizzard has not written to this table", *_writer(found)]
    lines = [_last_batch(found, clock), _committed(found), *_aside(found)]
    if found.last_written is not None:
        lines.append(
            f"last written by run {found.last_written.run}, entry {found.last_written.entry} at "
            f"{second(found.last_written.at)} UTC"
        )
    lines += _writer(found)
    all_in = found.totals
    filtered = f"{plural(all_in.filtered, 'filtered record')}, " if all_in.filtered else ""
    if all_in.quarantined:
        replayed = found.quarantine.replayed
        rows = f" ({replayed:,} replayed)" if replayed else ""
        filtered += f"{plural(all_in.quarantined, 'bad line')}{rows}, "
    lines.append(
        f"in all {plural(all_in.batches, 'batch', 'batches')}, {plural(all_in.files, 'file')}, "
        f"{plural(all_in.rows, 'row')}, {filtered}{plural(found.parquet_files, 'Parquet file')} "
        f"({in_words(found.parquet_bytes)})"
    )
    return lines + _compacted(found, clock) + _found(found)


def _compacted(found: PipelineStatus, clock: Clock) -> list[str]:
    """Return how many small files were put together, and what has become of the last of them."""
    one = found.compactions
    if one is None:
        return []
    ago = span(max(0.0, (clock.now() - one.last_at).total_seconds()))
    last = (
        f"the last {ago} ago (entry {one.last_entry}): {one.last_files:,} into "
        f"{one.last_into:,}, {COMPACTED[one.last_state]}"
    )
    all_in = f"{plural(one.files, 'file')} put into {one.into:,}"
    return [f"{plural(one.entries, 'compaction')}: {all_in}; {last}"]


def _found(found: PipelineStatus) -> list[str]:
    """Return the columns that were found in the data."""
    names = [f"{path} ({kind})" for path, kind in found.found_columns.items()]
    if not names:
        return []
    more = f" and {len(names) - FEW:,} more" if len(names) > FEW else ""
    count = plural(len(names), "column was", "columns were")
    return [f"{count} found in the data: {', '.join(names[:FEW])}{more}"]


def _show_values(to: Console, one: SourceStatus) -> None:
    """Print where values stood that no column takes."""
    for count, places, what in (
        (one.totals.rescued, one.rescued, "in _rescued"),
        (one.totals.dropped, one.dropped, "left out"),
    ):
        if count:
            shown = ", ".join(f"{each.path} ({each.values:,})" for each in places)
            more = ", ..." if sum(each.values for each in places) < count else ""
            values = plural(count, "value is", "values are")
            say(to, f"  {one.source}: {values} {what}: {shown}{more}")


def _writer(found: PipelineStatus) -> list[str]:
    one = found.writer
    if one is None:
        return []
    elsewhere = "; whether it is alive is not known here" if one.state is Life.UNKNOWN else ""
    began = "since" if one.state in (Life.ALIVE, Life.UNKNOWN) else "started"
    who = f"run {one.run} on {one.host}, process {one.process}, {began} {moment(one.since)}"
    return [f"{IN_WORDS[one.state]} {who}{elsewhere}"]


def _last_batch(found: PipelineStatus, clock: Clock) -> str:
    last = found.last_batch
    if last is None:
        return "the journal is begun; no batch is in it yet"
    ago = span(max(0.0, (clock.now() - last.at).total_seconds()))
    failed = f", {last.failed:,} failed" if last.failed else ""
    return (
        f"last batch {last.entry}: {ago} ago, {plural(last.files, 'file')}{failed}, "
        f"{plural(last.rows, 'row')}, {in_words(last.parquet_bytes)}"
    )


def _committed(found: PipelineStatus) -> str:
    if not found.receipt_fits:
        return (
            f"entry {found.committed_entry} is committed, but the journal does not have it as it "
            "was; see blizzard --dry-run"
        )
    if found.committed_entry is None:
        upto = "nothing is committed yet"
    else:
        upto = f"committed up to entry {found.committed_entry} of {found.last_entry}"
    waiting = found.uncommitted_entries
    entries = plural(waiting, "entry is", "entries are")
    behind = f", {entries} waiting to be committed" if waiting else ""
    return f"{upto}{behind}"


def _aside(found: PipelineStatus) -> list[str]:
    """Return which rows are journaled and not in the table, and why."""
    lines = []
    if found.held_files:
        lines.append(
            f"NOT in the table: {plural(found.held_files, 'file')} with "
            f"{plural(found.held_rows, 'row')}, which penguin holds; see penguin held, and "
            "blizzard redo --held ID to read the sources again"
        )
        for one in found.held[:SHOWN]:
            which = plural(one.files, "file")
            lines += [f"  {which}: {reason} [{one.code}]" for reason in one.reasons]
    discarded = found.discarded_files - found.unapplied_files
    if discarded:
        lines.append(
            f"NOT in the table: {plural(discarded, 'file')} with "
            f"{plural(found.discarded_rows - found.unapplied_rows, 'row')}, which were discarded; "
            "blizzard redo --file SOURCE reads a source file again"
        )
    if found.unapplied_files:
        lines.append(
            f"NOT in the table: {plural(found.unapplied_files, 'file')} with "
            f"{plural(found.unapplied_rows, 'row')} that were to replace others: penguin could not "
            "apply that, and the old rows are in the table; run blizzard retract --replace again"
        )
    if found.retracted_rows:
        lines.append(
            f"NOT in the table: {plural(found.retracted_rows, 'row')} that blizzard retract has "
            "taken out"
        )
    if found.erased_rows:
        lines.append(
            f"NOT in the table: {plural(found.erased_rows, 'row')} that blizzard erase has taken "
            "out"
        )
    if found.quarantine.waiting:
        lines.append(
            f"NOT in the table: {plural(found.quarantine.waiting, 'bad line')} in quarantine; see "
            "blizzard dlq list"
        )
    if found.aside_error is not None:
        lines.append(f"what penguin holds cannot be told: {found.aside_error}")
    return lines


def _show_trouble(to: Console, one: SourceStatus, clock: Clock) -> None:
    if one.error is not None:
        say(to, f"  source {one.source} is not looked at: {one.error}")
    if one.changed_files:
        say(
            to,
            f"  source {one.source}: {plural(one.changed_files, 'file')} changed after being "
            "ingested; the new content is not read",
        )
    for each in one.passed_over:
        say(
            to,
            f"  source {one.source}: {plural(each.files, 'name')} passed over: "
            f"{WHY[each.reason]}; for example {each.some[0]}",
        )
    if one.lost_files:
        were = "was" if one.lost_files == 1 else "were"
        say(
            to,
            f"  source {one.source}: {plural(one.lost_files, 'file')} failed and {were} deleted "
            "since, never loaded; blizzard dlq discard --deleted gives up such files",
        )
    for failed in one.failures:
        say(to, f"  failed {one.source}:{failed.path}: {_failed(failed, clock)}")
    more = one.failed_files - len(one.failures)
    if more > 0:
        say(to, f"  ... and {more:,} more; see blizzard dlq list")


def _failed(failed: FailedFile, clock: Clock) -> str:
    if failed.next_try is None:
        again = way_out(failed.code, part_way=bool(failed.lines_in_table))
    elif failed.next_try <= clock.now():
        again = "tried again with the next batch"
    else:
        wait = span((failed.next_try - clock.now()).total_seconds())
        again = f"tried again at {second(failed.next_try)} UTC (in {wait})"
    return f"{failed.code} ({place(failed.stage, failed.line, failed.field)}); {again}"
