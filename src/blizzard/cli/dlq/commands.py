"""`blizzard dlq`: failed source files and quarantined lines; reading them again."""

from collections.abc import Iterator, Mapping
from typing import Annotated

import typer

from blizzard.answers.answer import CommandPrefix
from blizzard.answers.bad_lines import groups_of, quarantine_of, resolved
from blizzard.answers.progress import PipelineEvidence
from blizzard.answers.status_reader import DeadLetterQueue, dead_letter_queue
from blizzard.answers.wording.phrases import of_lost, quarantine_hint
from blizzard.cli.call import PipelineCall
from blizzard.cli.dlq import resolve_lines
from blizzard.cli.dlq.resolve_lines import dlq_discard, dlq_replay
from blizzard.handoff.dead_letters import DeadLetter
from blizzard.model.bad_lines import SelectedLines, selected_by
from blizzard.model.settings import PipelineSettings
from blizzard.model.stores import (
    open_reader,
    open_store,
    open_table,
    source_location,
    source_uris_of,
)
from blizzard.pipeline_log import PipelineLog
from blizzard.repair.retry import FailedSearch, FailedSources, PresentSources
from lakebed.clock import Clock
from lakebed.errors import printable
from lakebed.terminal.call import FAILED, refuse
from lakebed.terminal.console import Line, Table, first, print_error
from lakebed.terminal.program import program
from lakebed.units import is_are, plural

Letters = tuple[DeadLetter, ...]

app = program()


@app.callback(invoke_without_command=True)
def dlq(call: PipelineCall) -> None:
    """Show which source files failed and which bad lines are quarantined, or read them again.

    Without a command this is `list`.
    """
    if not call.has_subcommand:
        dlq_list(call)


@app.command(name="list")
def dlq_list(call: PipelineCall) -> None:
    """Show which source files failed and why, newest first, and which lines are quarantined."""
    for settings in call.pipelines():
        with call.guard(settings.name):
            _list(call, settings)


def _list(call: PipelineCall, settings: PipelineSettings) -> None:
    asked = PipelineEvidence.read(settings, Clock())
    refusal = asked.refusal_without_journal()
    if refusal is not None:
        raise refusal
    queue = dead_letter_queue(asked)
    cli = call.line(settings)
    call.show(letter_lines(queue, source_uris_of(settings), cli), *queue.letters, *queue.lost)
    hint = quarantine_hint(settings, (letter.line for letter in queue.letters))
    if hint is not None:
        call.show([f"pipeline {settings.name}: {hint}"])
    for uri in queue.gone:
        print_error(f"warning: {settings.name}: {printable(uri)} is not there any more")
    quarantine = quarantine_of(asked)
    groups, rules = groups_of(quarantine, SelectedLines(everything=True)), quarantine.rules
    documents = resolve_lines.group_documents(settings, groups, rules)
    call.show(resolve_lines.group_lines(settings, groups, rules, cli), *documents)


@app.command(name="show")
def dlq_show(
    call: PipelineCall,
    names: list[str],
    limit: Annotated[int, typer.Option(min=1)] = 20,
) -> None:
    """Print quarantined lines, each with its fault.

    Args:
        names GROUP|FILE: A group of bad lines from `blizzard dlq list`, or a source file.
        limit N: Show at most this many lines; as JSON, all.
    """
    call.who, unknown = "dlq", set(names)
    scopes = call.scopes()
    asked = resolved(names, scopes)
    for scope in scopes:
        settings = scope.settings
        with call.guard(settings.name):
            found, typed = quarantine_of(scope), asked[settings.name]
            selected = selected_by(list(typed), found.files)
            lines = [(resolve_lines.uri_of(one, file), one) for file, one in found.lines(selected)]
            missing = selected.groups - {one.fault.group for _uri, one in lines}
            unknown -= {name for key, name in typed.items() if key not in missing}
            documents = (resolve_lines.line_document(uri, one) for uri, one in lines)
            call.show(resolve_lines.bad_lines(settings, lines, limit), *documents)
    if unknown:
        listed = ", ".join(sorted(unknown))
        refuse(f"no bad lines of {listed} are waiting; blizzard dlq list shows what is", FAILED)


@app.command(name="retry")
def dlq_retry(
    call: PipelineCall,
    paths: Annotated[list[str] | None, typer.Option("--file")] = None,
    every: Annotated[bool, typer.Option("--all")] = False,
    same_lines: bool = False,
) -> None:
    """Have failed source files read again at once, even if nothing has changed since they failed.

    Args:
        paths PATH: A source file, named as for `blizzard why`; repeatable.
        every: All failed files.
        same_lines: Read only the lines that are not in the table; you confirm that the file still
            begins with the others.
    """
    if bool(paths) == every:
        refuse("name files with --file, or use --all")
    if same_lines and every:
        refuse("--same-lines needs files named with --file")
    call.who, unknown = "dlq", set(paths or ())
    scopes = call.scopes()
    # A person cannot confirm the lines of files that only the command has selected.
    asked = resolved(paths or (), scopes, parts=not same_lines)
    for settings in (scope.settings for scope in scopes):
        with call.guard(settings.name):
            typed = asked[settings.name]
            keys = None if every else frozenset(typed)
            found, entry = _retry(settings, keys, same_lines=same_lines)
            unknown -= {name for key, name in typed.items() if key not in found.unknown}
            document = {
                "pipeline": settings.name,
                "entry": entry,
                "files": [record.key for record in found.records],
                "refused": found.refused,
            }
            call.show(_retried(settings.name, found, entry, every=every), document)
            for key, why in found.refused.items():
                print_error(f"error: {key} is not read again: {why}")
            call.fail_if(found.refused)
    if unknown:
        listed = ", ".join(sorted(unknown))
        refuse(f"not among the failed files: {listed}; blizzard dlq list shows them", FAILED)


app.command(name="replay")(dlq_replay)
app.command(name="discard")(dlq_discard)


def _retry(
    settings: PipelineSettings, wanted: frozenset[str] | None, *, same_lines: bool
) -> tuple[FailedSources, int | None]:
    places = {source.name: source_location(source) for source in settings.sources}
    uris = source_uris_of(settings)
    present = PresentSources(uris=uris, open=lambda name: open_reader(places[name]))
    store = open_table(settings, open_store)
    if store is None:
        return FailedSources(unknown=wanted or frozenset()), None
    search = FailedSearch(
        store=store,
        pipeline=settings.name,
        wanted=wanted,
        present=present if same_lines else None,
        rejections=PipelineLog(settings).rejections,
    )
    return search.retry(store, Clock())


def _retried(
    pipeline: str, found: FailedSources, entry: int | None, *, every: bool
) -> Iterator[str]:
    if entry is not None:
        which = plural(len(found.records), "source file")
        yield f"pipeline {pipeline}: the next batch reads {which} again (entry {entry})"
        yield from first([record.key for record in found.records])
    elif every and not found.refused:
        yield f"pipeline {pipeline}: no source file has failed"


def letter_lines(
    queue: DeadLetterQueue, uris: Mapping[str, str], cli: CommandPrefix
) -> Iterator[Line]:
    """Yield the failures, newest first, and the lost files; `uris` has the sources by name."""
    yield from _inherited(queue)
    if queue.letters:
        yield from _failures(queue, uris)
    elif queue.over or queue.lost:
        yield f"pipeline {queue.pipeline}: no file is in a failed state now{_over(queue)}"
    else:
        since = " under this journal" if queue.inherited else ""
        yield f"pipeline {queue.pipeline}: no failures{since}"
    yield from _lost(queue, cli)


def _inherited(queue: DeadLetterQueue) -> Iterator[str]:
    if queue.inherited:
        files, them = plural(queue.inherited, "file"), "it" if queue.inherited == 1 else "them"
        yield (
            f"pipeline {queue.pipeline}: {files} failed under the earlier journal and "
            f"{is_are(queue.inherited)} not listed here; blizzard files --state failed lists "
            f"{them}, and blizzard why explains each"
        )


def _over(queue: DeadLetterQueue) -> str:
    failures = plural(queue.over, "earlier failure has", "earlier failures have")
    return f"; {failures} been resolved" if queue.over else ""


def _failures(queue: DeadLetterQueue, uris: Mapping[str, str]) -> Iterator[Line]:
    letters = queue.letters
    below = f", below {uris[letters[0].source]}" if _is_one(letters, uris) else ""
    failures = f"{plural(len(letters), 'failure')}, newest first"
    yield f"pipeline {queue.pipeline}: {failures}{below}{_over(queue)}"
    yield Table(
        ("stage", "code", ">line", "message", ">retries", "path"),
        [
            (
                letter.stage,
                letter.code,
                "" if letter.line is None else str(letter.line),
                f"{'' if letter.field is None else f'{letter.field}: '}{letter.error}",
                letter.retry_count,
                _named(letter, uris, alone=bool(below)),
            )
            for letter in letters
        ],
    )


def _lost(queue: DeadLetterQueue, cli: CommandPrefix) -> Iterator[str]:
    """Yield the files that no run can ever read, with the way out."""
    if not queue.lost:
        return
    count = len(queue.lost)
    files = plural(count, "file is lost, it", "files are lost, they")
    were, days = ("was", "its day stays") if count == 1 else ("were", "their days stay")
    yield (
        f"pipeline {queue.pipeline}: {files} failed and {were} deleted from the source, and {days} "
        "incomplete until an operator decides:"
    )
    yield from first(
        [f"{one.path}{'' if one.code is None else f' [{one.code}]'}" for one in queue.lost]
    )
    yield from (f"  {line}" for line in of_lost(cli).lines())


def _is_one(letters: Letters, uris: Mapping[str, str]) -> bool:
    """Whether all files are below the only source as configured now."""
    return len(uris) == 1 and all(letter.path.startswith(_root(letter, uris)) for letter in letters)


def _named(letter: DeadLetter, uris: Mapping[str, str], *, alone: bool) -> str:
    """Return the name of a file to copy into `blizzard dlq retry` and other commands."""
    root = _root(letter, uris)
    if not letter.path.startswith(root):
        return letter.path  # Its source has moved, or is no longer configured.
    path = letter.path.removeprefix(root)
    return path if alone else f"{letter.source}:{path}"


def _root(letter: DeadLetter, uris: Mapping[str, str]) -> str:
    return f"{uris.get(letter.source, '').rstrip('/')}/"
