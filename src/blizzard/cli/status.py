"""`blizzard status`: the state of each pipeline and each source."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Annotated

import typer

from blizzard.answers.answer import CommandPrefix, FailedSource, Health, Problem, WayOut
from blizzard.answers.problems import LATE, UnreadFiles, health_of, of_pipeline, said_of
from blizzard.answers.status import PipelineStatus, SourceStatus
from blizzard.answers.status_reader import StatusReader
from blizzard.answers.wording.phrases import of_failed
from blizzard.cli.call import PipelineCall, document_of, failed_at
from blizzard.journal.lease import Life, moment
from blizzard.model.settings import PipelineSettings
from blizzard.notices.listener import open_queue
from blizzard.pipeline_log import PipelineLog
from blizzard.table_rules import checks_schema
from lakebed.clock import Clock
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
    # Both are no-ops unless the output is a terminal.
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
    """The status of one pipeline, or why it cannot be read, with its problems."""

    settings: PipelineSettings
    found: PipelineStatus | LakeError
    cli: CommandPrefix
    refusal: LakeError | None = None
    """Why a start of the pipeline would be refused."""
    problems: Sequence[Problem] = ()
    health: Health = "failing"

    def document(self) -> dict[str, object]:
        """Return it in the keys that docs/answers.md promises."""
        error = self.found if isinstance(self.found, LakeError) else self.refusal
        known = {"error": None} if error is None else {"error": str(error), "code": code_of(error)}
        if isinstance(self.found, LakeError):
            return {**document_of(self.settings), **known}
        late = [one for one in self.problems if one.code in LATE]
        lag = self.found.lag_secs
        return {**fields_of(self.found), "late": late, "lag_secs": lag, **known}

    def lines(self, clock: Clock) -> Iterator[Line]:
        """Yield it for a person."""
        if isinstance(self.found, LakeError):
            yield f"pipeline {self.settings.name}: {self.found} [{code_of(self.found)}]"
        else:
            yield from status_lines(self, self.found, clock)


class WatchedPipelines:
    """Pipelines whose status is shown repeatedly; no entry is read twice."""

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
        known = {settings.name: call.uncommitted(settings) for settings in call.pipelines()}
        self.warnings = {name: [f"  warning: {text}"] for name, text in known.items() if text}

    def read(self) -> list[ShownStatus]:
        """Read the state of each pipeline; an unreadable one does not hide the others."""
        return [self._read(settings) for settings in self.call.pipelines()]

    def show(self, statuses: list[ShownStatus]) -> None:
        """Print the health of the pipelines, and the state of each, the worst first."""
        if self.call.output is Output.TEXT:
            statuses = sorted(statuses, key=lambda each: list(HEALTH).index(each.health))
        self.call.show([headline(each.health for each in statuses)])
        for number, each in enumerate(statuses):
            gap = [""] if number else []
            warnings = self.warnings.get(each.settings.name, ())
            self.call.show(chain(gap, each.lines(self.clock), warnings), each.document())

    def _read(self, settings: PipelineSettings) -> ShownStatus:
        cli = self.call.line(settings)
        try:
            with reading(settings.name, self.call.output):
                evidence, found = self.readers[settings.name].read(open_queue=open_queue)
                refusal = replace(evidence, check_schema=self.checks[settings.name]).refusal()
        except LakeError as trouble:
            self.call.at_least(exit_code_of(trouble))
            return ShownStatus(settings, trouble, cli)
        is_lost = found.lost_entry is not None or not found.receipt_fits
        self.call.fail_if(refusal or is_lost or found.withheld_error is not None)
        self.call.fail_if(any(one.error for one in found.sources))
        problems = of_pipeline(
            settings,
            found,
            UnreadFiles.of(found.sources),
            cli=cli,
            now=self.clock.now(),
            sources=found.sources,
            refusal=refusal,
        )
        health = health_of(problems, known=True)
        return ShownStatus(settings, found, cli, refusal, problems, health)


HEALTH: dict[Health, tuple[str, str]] = {
    "failing": ("failing", "failing"),
    "warning": ("needs attention", "need attention"),
    "ok": ("ok", "ok"),
}
"""Words for the health of one pipeline and of several, worst first."""


def headline(healths: Iterable[Health]) -> str:
    """Return the health of all pipelines, worst first: `2 pipelines: 1 failing, 1 ok`."""
    counts = Counter(healths)
    each = (plural(counts[one], *HEALTH[one]) for one in HEALTH if counts[one])
    words = ", ".join(each) if len(counts) > 1 else HEALTH[next(iter(counts))][counts.total() > 1]
    return f"{plural(counts.total(), 'pipeline')}: {words}"


def status_lines(shown: ShownStatus, found: PipelineStatus, clock: Clock) -> Iterator[Line]:
    """Yield the state of a pipeline for a person, its problems first."""
    yield f"pipeline {found.pipeline} -> {found.table_uri}"
    for problem in shown.problems:
        yield f"  {problem.severity}: {said_of(problem, clock.now())} [{problem.code}]"
        yield from _way_lines(problem.way_out)
    if shown.refusal is None or found.last_entry is not None:
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
        yield from _troubles(one, shown, clock)


def _way_lines(way: WayOut | None) -> Iterator[str]:
    yield from () if way is None else (f"    {line}" for line in way.lines())


def _standing(found: PipelineStatus, clock: Clock) -> list[str]:
    if found.last_entry is None:
        return ["nothing is journaled yet: blizzard has not written to this table", *_writer(found)]
    lines = [_last_batch(found, clock), _committed(found), *_withheld(found)]
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
    elsewhere = "; whether it is alive is unknown here" if one.state is Life.UNKNOWN else ""
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
    if found.committed_entry is None:
        upto = "nothing is committed yet"
    else:
        upto = f"committed up to entry {found.committed_entry} of {found.last_entry}"
    waiting = found.uncommitted_entries
    entries = plural(waiting, "entry is", "entries are")
    behind = f", {entries} waiting to be committed" if waiting else ""
    return f"{upto}{behind}"


def _withheld(found: PipelineStatus) -> Iterator[str]:
    """Yield which rows did not reach the table, and why."""
    for files, rows, why in (
        (found.held_files, found.held_rows, "which penguin holds"),
        (found.discarded_files, found.discarded_rows, "discarded, or rejected as replacements"),
    ):
        if files:
            yield f"NOT in the table: {plural(files, 'file')} with {plural(rows, 'row')}, {why}"


def _troubles(one: SourceStatus, shown: ShownStatus, clock: Clock) -> Iterator[str]:
    for each in one.skipped_names:
        names = plural(each.files, "name")
        yield (
            f"  source {one.source}: {names} ignored: {each.reason.words}; for example "
            f"{each.some[0]}"
        )
    for failed in one.failures:
        key = f"{one.source}:{failed.path}"
        yield f"  failed {key}: {_failed(failed, clock)}"
        if failed.next_try is None:
            yield from _way_lines(of_failed(failed, key, shown.settings, shown.cli))
    more = one.failed_files - len(one.failures)
    if more > 0:
        yield f"  ... and {more:,} more"


def _failed(failed: FailedSource, clock: Clock) -> str:
    if failed.next_try is None:
        again = "not tried again"
    elif failed.next_try <= clock.now():
        again = "tried again with the next batch"
    else:
        wait = span((failed.next_try - clock.now()).total_seconds())
        again = f"tried again at {second(failed.next_try)} UTC (in {wait})"
    return f"{failed.code} ({failed_at(failed.stage, failed.line, failed.field)}); {again}"
