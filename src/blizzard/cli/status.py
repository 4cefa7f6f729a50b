"""`blizzard status`: the state of each pipeline and each source."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Annotated

import typer

from blizzard.answers.answer import FailedSource, Health, Problem
from blizzard.answers.phrases import quarantine_hint, way_out
from blizzard.answers.problems import health_of, late_steps, of_changed, of_pipeline, of_sources
from blizzard.answers.source_status import SourceStatus
from blizzard.answers.status import PipelineStatus, StatusReader
from blizzard.cli.call import PipelineCall, document_of, failed_at
from blizzard.discover.finding import IN_WORDS as WHY
from blizzard.journal.lease_record import Life, moment
from blizzard.model.settings import PipelineSettings
from blizzard.pipeline_log import PipelineLog
from blizzard.service import open_queue
from blizzard.table_rules import checks_schema
from lakebed.clock import Clock
from lakebed.config.files import options_of
from lakebed.errors import LakeError
from lakebed.telemetry.events import code_of
from lakebed.terminal.call import DONE, Output, exit_code_of, reading
from lakebed.terminal.console import Line, Table, cells, console, fields_of, second
from lakebed.units import in_words, plural, span

IN_WORDS = {
    Life.ALIVE: "written now by run",
    Life.UNKNOWN: "written by run",
    Life.ENDED: "no blizzard is running; the last run was",
    Life.GONE: "no blizzard is running; the last run was killed:",
}


def status(
    call: PipelineCall,
    watch: bool = False,
    interval: Annotated[float, typer.Option(min=0.1)] = 5.0,
) -> None:
    """Show what is waiting, what failed and what is committed.

    Nothing is written.

    Args:
        watch: Refresh until Ctrl-C.
        interval SECONDS: Time between refreshes, with --watch.
    """
    watched = WatchedPipelines(call, Clock())
    if not watch:
        watched.show(watched.read())
        return
    is_text = call.output is Output.TEXT
    # Neither does anything unless it is a terminal.
    screen = console()
    with screen.screen() if is_text else nullcontext(), suppress(KeyboardInterrupt):
        while True:
            statuses = watched.read()
            if is_text:
                screen.clear()
            watched.show(statuses)
            time.sleep(interval)
    call.code = DONE  # Ctrl-C ends a watch; it is no failure.


@dataclass(frozen=True, slots=True)
class ShownStatus:
    """The status of one pipeline, or why it cannot be read, and what a person should know."""

    settings: PipelineSettings
    found: PipelineStatus | LakeError
    refusal: LakeError | None = None
    """Why a start of the pipeline would be refused."""
    late: Sequence[Problem] = ()
    health: Health = "failing"

    def document(self) -> dict[str, object]:
        """Return it in the keys that docs/answers.md promises."""
        error = self.found if isinstance(self.found, LakeError) else self.refusal
        known = {"error": None} if error is None else {"error": str(error), "code": code_of(error)}
        if isinstance(self.found, LakeError):
            return {**document_of(self.settings), **known}
        lag = self.found.lag_secs
        return {**fields_of(self.found), "late": self.late, "lag_secs": lag, **known}

    def lines(self, clock: Clock) -> Iterator[Line]:
        """Yield it for a person."""
        if isinstance(self.found, LakeError):
            yield f"pipeline {self.settings.name}: {self.found} [{code_of(self.found)}]"
        else:
            yield from status_lines(self.settings, self.found, clock, self.late, self.refusal)


class WatchedPipelines:
    """The same pipelines, shown again and again; no entry is read twice."""

    def __init__(self, call: PipelineCall, clock: Clock) -> None:
        self.call = call
        self.clock = clock
        self.readers = {
            settings.name: StatusReader(settings, clock, PipelineLog(settings))
            for settings in call.pipelines()
        }
        self.checks = {
            settings.name: checks_schema(settings, call.table_of) for settings in call.pipelines()
        }

    def read(self) -> list[ShownStatus]:
        """Read the state of each pipeline; one that cannot be read hides no other."""
        return [self._read(settings) for settings in self.call.pipelines()]

    def show(self, statuses: list[ShownStatus]) -> None:
        """Print the health of the pipelines, and the state of each, the worst first."""
        if self.call.output is Output.TEXT:
            statuses = sorted(statuses, key=lambda each: list(HEALTH).index(each.health))
        self.call.show([headline(each.health for each in statuses)])
        for number, each in enumerate(statuses):
            gap = [""] if number else []
            self.call.show(chain(gap, each.lines(self.clock)), each.document())

    def _read(self, settings: PipelineSettings) -> ShownStatus:
        try:
            with reading(settings.name, self.call.output):
                asked, found = self.readers[settings.name].read(open_queue=open_queue)
                refusal = replace(asked, check_schema=self.checks[settings.name]).refusal()
        except LakeError as trouble:
            self.call.at_least(exit_code_of(trouble))
            return ShownStatus(settings, trouble)
        self.call.fail_if(refusal or not found.receipt_fits or found.aside_error is not None)
        self.call.fail_if(any(one.error for one in found.sources))
        options = options_of(self.call.files or [], self.call.folders or [])
        oldest = [one.oldest_pending for one in found.sources if one.oldest_pending is not None]
        late = tuple(
            late_steps(
                settings,
                found,
                self.clock.now(),
                files=sum(one.pending_files or 0 for one in found.sources),
                files_since=min(oldest, default=None),
                options=options,
            )
        )
        problems = [
            *late,
            *of_pipeline(found, (), refusal, options),
            *of_sources(found.sources),
            *of_changed({one.source: one.changed_files for one in found.sources}, options),
        ]
        return ShownStatus(settings, found, refusal, late, health_of(problems, known=True))


HEALTH: dict[Health, tuple[str, str]] = {
    "failing": ("failing", "failing"),
    "warning": ("needs attention", "need attention"),
    "ok": ("ok", "ok"),
}
"""The health of one pipeline and of several, in words, the worst first."""


def headline(healths: Iterable[Health]) -> str:
    """Return the health of all pipelines, the worst first: `2 pipelines: 1 failing, 1 ok`."""
    counts = Counter(healths)
    each = (plural(counts[one], *HEALTH[one]) for one in HEALTH if counts[one])
    words = ", ".join(each) if len(counts) > 1 else HEALTH[next(iter(counts))][counts.total() > 1]
    return f"{plural(counts.total(), 'pipeline')}: {words}"


SHOWN = 3
"""How many reasons for held files are shown to a person."""


def status_lines(
    settings: PipelineSettings,
    found: PipelineStatus,
    clock: Clock,
    late: Iterable[Problem] = (),
    refusal: LakeError | None = None,
) -> Iterator[Line]:
    """Yield the state of a pipeline for a person."""
    yield f"pipeline {found.pipeline} -> {found.table_uri}"
    if refusal is not None:
        yield f"  blizzard would refuse to start: {refusal} [{code_of(refusal)}]"
    yield from (f"  {one.severity}: {one.message}; {one.way_out}" for one in late)
    if refusal is None or found.last_entry is not None:
        yield from (f"  {line}" for line in _standing(found, clock))
    yield Table(
        ("source", ">waiting", ">bytes", ">lag", ">failed", ">done", ">rows"),
        [
            (
                one.source,
                one.pending_files,
                None if one.pending_bytes is None else in_words(one.pending_bytes),
                None if one.lag_secs is None else span(one.lag_secs),
                *cells(one, "failed_files files=totals.files rows=totals.rows"),
            )
            for one in found.sources
        ],
    )
    for one in found.sources:
        if one.notifications is not None:
            yield f"  {one.source}: {one.notifications.sentence()}"
        yield from _values(one)
        yield from _troubles(one, clock)
    failures = (one for source in found.sources for one in source.failures)
    hint = quarantine_hint(settings, (one.line for one in failures))
    if hint is not None:
        yield f"  {hint}"


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
    return lines


def _values(one: SourceStatus) -> Iterator[str]:
    """Yield how many values no column takes."""
    for count, what in ((one.totals.rescued, "in _rescued"), (one.totals.dropped, "left out")):
        if count:
            values = plural(count, "value is", "values are")
            yield f"  {one.source}: {values} {what}; blizzard schema show lists where they were"


def _writer(found: PipelineStatus) -> list[str]:
    one = found.writer
    if one is None:
        return []
    elsewhere = "; whether it is alive is not known here" if one.state is Life.UNKNOWN else ""
    began = "since" if one.state in (Life.ALIVE, Life.UNKNOWN) else "started"
    who = f"{one.run} on {one.host}, process {one.process}, {began} {moment(one.since)}"
    return [f"{IN_WORDS[one.state]} {who}{elsewhere}"]


def _last_batch(found: PipelineStatus, clock: Clock) -> str:
    last = found.last_batch
    if last is None:
        return "the journal has no batch yet"
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
    for rows, command in ((found.retracted_rows, "retract"), (found.erased_rows, "erase")):
        if rows:
            taken_out = f"{plural(rows, 'row')} that blizzard {command} has taken out"
            lines.append(f"NOT in the table: {taken_out}")
    if found.quarantine.waiting:
        lines.append(
            f"NOT in the table: {plural(found.quarantine.waiting, 'bad line')} in quarantine; see "
            "blizzard dlq list"
        )
    if found.aside_error is not None:
        lines.append(f"it is not known what penguin holds: {found.aside_error}")
    return lines


def _troubles(one: SourceStatus, clock: Clock) -> Iterator[str]:
    if one.error is not None:
        yield f"  source {one.source} cannot be listed: {one.error}"
    if one.changed_files:
        files = plural(one.changed_files, "file")
        yield (
            f"  source {one.source}: {files} changed after being ingested; the new content is not "
            "read"
        )
    for each in one.passed_over:
        names = plural(each.files, "name")
        yield (
            f"  source {one.source}: {names} ignored: {WHY[each.reason]}; for example "
            f"{each.some[0]}"
        )
    if one.lost_files:
        files, were = plural(one.lost_files, "file"), "was" if one.lost_files == 1 else "were"
        yield (
            f"  source {one.source}: {files} failed and {were} deleted since, never loaded; "
            "blizzard dlq discard --deleted gives up such files"
        )
    for failed in one.failures:
        yield f"  failed {one.source}:{failed.path}: {_failed(failed, clock)}"
    more = one.failed_files - len(one.failures)
    if more > 0:
        yield f"  ... and {more:,} more; see blizzard dlq list"


def _failed(failed: FailedSource, clock: Clock) -> str:
    if failed.next_try is None:
        again = way_out(failed.code, part_way=bool(failed.lines_in_table))
    elif failed.next_try <= clock.now():
        again = "tried again with the next batch"
    else:
        wait = span((failed.next_try - clock.now()).total_seconds())
        again = f"tried again at {second(failed.next_try)} UTC (in {wait})"
    return f"{failed.code} ({failed_at(failed.stage, failed.line, failed.field)}); {again}"
