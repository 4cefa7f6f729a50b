"""`blizzard dlq`: source files that failed and bad lines that are set aside; reading them again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import typer

from blizzard.answers.bad_lines import groups_of, quarantine_of
from blizzard.answers.dead_letters import dead_letter_queue
from blizzard.answers.ways_out import quarantine_hint
from blizzard.cli.dlq import bad_lines
from blizzard.cli.dlq.resolve_lines import dlq_discard, dlq_replay
from blizzard.cli.names import resolved, scopes_of
from blizzard.cli.output import One, chosen, load, open_reader
from blizzard.cli.run import results
from blizzard.journal.checkpoint import read_ledger
from blizzard.log_questions import asks_fates, asks_passed_over, asks_refusal, asks_still_out
from blizzard.model.bad_lines import Meant, meant_by
from blizzard.model.locations import sink_location, source_location, source_uris_of
from blizzard.model.settings import PipelineSettings
from blizzard.repair.retry import FailedSources, Present
from blizzard.repair.retry import retry as append_retry
from lakebed.clock import Clock
from lakebed.errors import ObjectMissing
from lakebed.shown import printable
from lakebed.storage.store import Store
from lakebed.terminal.arguments import (
    FAILED,
    USAGE,
    Files,
    Folders,
    ForwardingGroup,
    Outcome,
    Output,
    Program,
    Shape,
    ends_on_error,
)
from lakebed.terminal.console import console, plural, print_line, print_lines, say, say_error

FEW = 10

app = Program(cls=ForwardingGroup)

Named = Annotated[
    list[str],
    typer.Argument(
        metavar="GROUP|FILE",
        help="A group of bad lines, as `blizzard dlq list` names it, or a source file.",
    ),
]
Over = Annotated[bool, typer.Option("--all", help="Also failures that are resolved.")]


@app.callback(invoke_without_command=True)
def dlq(
    context: typer.Context,
    files: Files = None,
    folders: Folders = None,
    pipeline: One = None,
    every: Over = False,
    output: Shape = Output.TEXT,
) -> None:
    """Show which source files failed and which bad lines are set aside, or have them read again.

    Without a command this is `list`.
    """
    if context.invoked_subcommand is None:
        dlq_list(files, folders, pipeline, every, output)


@app.command(name="list")
def dlq_list(
    files: Files = None,
    folders: Folders = None,
    pipeline: One = None,
    every: Over = False,
    output: Shape = Output.TEXT,
) -> None:
    """Show which source files failed and why, the newest first, and which lines are set aside."""
    outcome = Outcome()
    for settings in chosen(load(files, folders), pipeline):
        with outcome.of(settings.name):
            _refuse_what_a_start_would(settings)
            queue = dead_letter_queue(
                settings,
                open_reader,
                every=every,
                passed_over=asks_passed_over(settings),
                fates=asks_fates(settings),
                still_out=asks_still_out(settings),
            )
            results.dead_letters(queue, output, source_uris_of(settings), every=every)
            hint = quarantine_hint(settings, (letter.line for letter in queue.current))
            if hint is not None and output is Output.TEXT:
                say(console(), f"pipeline {settings.name}: {hint}")
            for uri in queue.gone:
                told = f"{settings.name}: {printable(uri)} is not there any more"
                say_error(f"warning: {told}")
            for doubt in queue.unsure:
                say_error(f"warning: {settings.name}: states are not known for sure: {doubt}")
            quarantine = quarantine_of(settings, open_reader)
            groups = groups_of(quarantine, Meant(everything=True))
            if output is Output.JSON:
                print_lines(bad_lines.group_rows(settings, groups, quarantine.rules))
            else:
                bad_lines.show_groups(settings, groups, quarantine.rules)
    raise typer.Exit(outcome.code)


def _refuse_what_a_start_would(settings: PipelineSettings) -> None:
    """Raise where the pipeline has no journal to go on with, though there is one of its sources."""
    try:
        store = open_reader(sink_location(settings))
    except ObjectMissing:
        return  # The table's folder does not exist yet, so nothing has failed.
    refusal = asks_refusal(settings)(store, read_ledger(store, settings.name))
    if refusal is not None:
        raise refusal


@app.command(name="show")
def dlq_show(
    names: Named,
    files: Files = None,
    folders: Folders = None,
    pipeline: One = None,
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, help="Show at most this many lines; as JSON, all.")
    ] = 20,
    output: Shape = Output.TEXT,
) -> None:
    """Print bad lines that are set aside, with what is wrong with each."""
    outcome, unknown = Outcome(), set(names)
    scopes = scopes_of(chosen(load(files, folders), pipeline), outcome)
    with ends_on_error("dlq"):
        asked = resolved(names, scopes)
    for settings in (scope.settings for scope in scopes):
        with outcome.of(settings.name):
            found, typed = quarantine_of(settings, open_reader), asked[settings.name]
            meant = meant_by(list(typed), found.files)
            lines = [(bad_lines.uri_of(one, file), one) for file, one in found.lines(meant)]
            missing = meant.groups - {one.fault.group for _uri, one in lines}
            unknown -= {name for key, name in typed.items() if key not in missing}
            if output is Output.JSON:
                print_lines(bad_lines.line_row(uri, one) for uri, one in lines)
            else:
                bad_lines.show_lines(settings, lines, limit)
    _complain_of(unknown, outcome)
    raise typer.Exit(outcome.code)


def _complain_of(unknown: set[str], outcome: Outcome) -> None:
    if unknown:
        listed = ", ".join(sorted(unknown))
        say_error(f"error: no bad lines of {listed} are waiting; blizzard dlq list shows what is")
        outcome.at_least(FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRow:
    """The source files of a pipeline that are read again, and those that are not."""

    pipeline: str
    entry: int | None
    files: tuple[str, ...]
    refused: Mapping[str, str]


def _wrong_usage(text: str) -> typer.Exit:
    say_error(f"error: {text}")
    return typer.Exit(USAGE)


@app.command(name="retry")
def dlq_retry(
    files: Files = None,
    folders: Folders = None,
    pipeline: One = None,
    paths: Annotated[
        list[str] | None,
        typer.Option(
            "--file", metavar="PATH", help="A source file, named as for `blizzard why`; repeatable."
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All files that have failed.")] = False,
    same_lines: Annotated[
        bool,
        typer.Option(
            "--same-lines",
            help="Read only the lines that are not in the table; you confirm that the others are "
            "still where they were in the file.",
        ),
    ] = False,
    output: Shape = Output.TEXT,
) -> None:
    """Have failed source files read again right away.

    It does not matter whether anything has changed since they failed.
    """
    if bool(paths) == every:
        raise _wrong_usage("name files with --file, or use --all")
    if same_lines and every:
        raise _wrong_usage("--same-lines needs files that are named with --file")
    outcome, unknown = Outcome(), set(paths or ())
    scopes = scopes_of(chosen(load(files, folders), pipeline), outcome)
    with ends_on_error("dlq"):
        # Nobody confirms the lines of a file that the command alone has picked.
        asked = resolved(paths or (), scopes, parts=not same_lines)
    for settings in (scope.settings for scope in scopes):
        with outcome.of(settings.name):
            typed = asked[settings.name]
            keys = None if every else frozenset(typed)
            found, entry = _one(settings, keys, _present(settings) if same_lines else None)
            unknown -= {name for key, name in typed.items() if key not in found.unknown}
            if output is Output.JSON:
                print_line(
                    RetryRow(
                        pipeline=settings.name,
                        entry=entry,
                        files=tuple(record.key for record in found.records),
                        refused=found.refused,
                    )
                )
            elif entry is not None or (every and not found.refused):
                _show(settings.name, found, entry)
            for key, why in found.refused.items():
                say_error(f"error: {key} is not read again: {why}")
                outcome.at_least(FAILED)
    if unknown:
        listed = ", ".join(sorted(unknown))
        say_error(f"error: not among the files that failed: {listed}; blizzard dlq list has them")
        outcome.at_least(FAILED)
    raise typer.Exit(outcome.code)


app.command(name="replay")(dlq_replay)
app.command(name="discard")(dlq_discard)


def _present(settings: PipelineSettings) -> Present:
    places = {source.name: source_location(source) for source in settings.sources}
    return Present(uris=source_uris_of(settings), open=lambda name: open_reader(places[name]))


def _one(
    settings: PipelineSettings, wanted: frozenset[str] | None, present: Present | None
) -> tuple[FailedSources, int | None]:
    place = sink_location(settings)
    try:
        store = Store(place.uri, place.options)
        return append_retry(
            store,
            settings.name,
            wanted,
            clock=Clock(),
            present=present,
            passed_over=asks_passed_over(settings),
        )
    except ObjectMissing:
        # The table's folder does not exist yet, so nothing has failed.
        return FailedSources(unknown=wanted or frozenset()), None


def _show(pipeline: str, found: FailedSources, entry: int | None) -> None:
    to = console()
    if entry is None:
        say(to, f"pipeline {pipeline}: no source file has failed")
        return
    which = plural(len(found.records), "source file")
    say(to, f"pipeline {pipeline}: the next batch reads {which} again (entry {entry})")
    for record in found.records[:FEW]:
        say(to, f"  {record.key}")
    if len(found.records) > FEW:
        say(to, f"  ... and {len(found.records) - FEW:,} more; --output json has them all")
