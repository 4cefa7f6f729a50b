"""`blizzard dlq replay` and `discard`: read quarantined lines again, or give them up.

Failed source files that were deleted since can be given up too, as can the unread rest of a file.
"""

import base64
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Annotated

import typer

from blizzard.answers.answer import CommandPrefix
from blizzard.answers.bad_lines import FaultGroup, Rules, fix_for, resolved, way_out_for
from blizzard.answers.progress import PipelineEvidence
from blizzard.cli.call import PipelineCall, document_of
from blizzard.cli.rows.rewriting import commit_inline, rewriter
from blizzard.model.bad_lines import WaitingFile
from blizzard.model.settings import PipelineSettings
from blizzard.model.source.partly_read import in_the_table, is_partly_read
from blizzard.model.stores import open_store, open_table
from blizzard.pipeline_log import PipelineLog
from blizzard.repair.retry import FailedSearch, FailedSources
from blizzard.rewrite.replay import ReplayOutcome, discard, plan_replay, replay, table_of
from blizzard.worker.quarantine.reader import QuarantinedLine
from lakebed.clock import Clock
from lakebed.storage.store import Store
from lakebed.telemetry.logs import log_events
from lakebed.terminal.call import Confirmed, refuse
from lakebed.terminal.console import Verbatim, first, picked, print_error
from lakebed.types import LogFormat, LogLevel
from lakebed.units import is_are, plural

SHOWN_BYTES = 80
"""The most bytes of a line to show to a person in a list."""


def line_document(uri: str, line: QuarantinedLine) -> dict[str, object]:
    """Return a quarantined line; if it is not UTF-8, `raw` is None and `raw_base64` has it."""
    try:
        raw, packed = line.raw.decode(), None
    except UnicodeDecodeError:
        raw, packed = None, base64.b64encode(line.raw).decode()
    return {
        "path": uri,
        **picked(line, "line offset size"),
        "raw": raw,
        "raw_base64": packed,
        **picked(line, "code message field expected found"),
        "group": line.fault.group,
    }


def uri_of(line: QuarantinedLine, waiting: WaitingFile) -> str:
    """Return the URI of a line's source file at the time of quarantine."""
    return f"{waiting.source_uris.get(line.source, '').rstrip('/')}/{line.path}"


def group_documents(
    settings: PipelineSettings, found: Iterable[FaultGroup], rules: Rules
) -> Iterator[dict[str, object]]:
    """Yield groups of lines with the keys documented in docs/errors.md."""
    uris = {source.name: source.uri.rstrip("/") for source in settings.sources}
    for group in found:
        sample = group.sample
        yield {
            "pipeline": settings.name,
            **picked(group.fault, "group code field expected found"),
            "lines": group.lines,
            "files": len(group.files),
            "fix": fix_for(group.tried, rules),
            "sample": line_document(
                f"{uris.get(sample.source, sample.source)}/{sample.path}", sample
            ),
        }


def word_for(settings: PipelineSettings, keys: Iterable[str] | None = None) -> str:
    """Return the unit of bad lines in some files, or in all: `line`, or `record` of documents."""
    documents = {one.name for one in settings.sources if one.form.is_documents}
    names = {one.name for one in settings.sources}
    if keys is not None:
        names = {key.partition(":")[0] for key in keys}
    return "record" if names and names <= documents else "line"


def group_lines(
    settings: PipelineSettings, found: list[FaultGroup], rules: Rules, cli: CommandPrefix
) -> Iterator[str]:
    """Yield groups for a person."""
    if not found:
        return
    word = word_for(settings, (key for group in found for key in group.files))
    lines = plural(sum(group.lines for group in found), f"bad {word} is", f"bad {word}s are")
    which = plural(len(found), "group")
    yield f"pipeline {settings.name}: {lines} in quarantine, in {which}"
    for group in found:
        count, sample = plural(group.lines, word_for(settings, group.files)), group.sample
        of, at = plural(len(group.files), "file"), _at(settings, sample)
        yield f"  {group.fault.group}  {count} of {of}: {_fault(sample)} [{group.fault.code}]"
        yield f"    for example {sample.key}{at}: {_line_text(sample.raw, SHOWN_BYTES)}"
        way = way_out_for(group.fault.group, fix_for(group.tried, rules), cli)
        yield from (f"    {line}" for line in way.lines())


def _at(settings: PipelineSettings, line: QuarantinedLine) -> str:
    """Return the position of a line, or of a record's first line, in its file."""
    if line.line is None:
        return ""
    is_record = word_for(settings, [line.key]) == "record"
    return f", record at line {line.line}" if is_record else f", line {line.line}"


def bad_lines(
    settings: PipelineSettings, found: Iterable[tuple[str, QuarantinedLine]], limit: int
) -> Iterator[str]:
    """Yield lines for a person, each with its fault."""
    some = list(found)
    for uri, line in some[:limit]:
        at, fault = _at(settings, line), _fault(line)
        yield f"{uri}{at}: {fault} [{line.code}, group {line.fault.group}]"
        yield Verbatim(f"  {_line_text(line.raw, 10 * SHOWN_BYTES)}")
    if len(some) > limit:
        rest = len(some) - limit
        yield f"... and {rest:,} more; --limit shows more, --output json all of them"


def _fault(line: QuarantinedLine) -> str:
    field = "" if line.field is None else f"{line.field}: "
    return f"{field}{line.message}"


def _line_text(raw: bytes, most: int) -> str:
    """Return the printable beginning of a line, with its size if it is cut."""
    text = "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode()
        for one in raw[:most].decode(errors="backslashreplace")
    )
    return text if len(raw) <= most else f"{text}... ({len(raw):,} bytes)"


Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="GROUP|FILE",
        help="Groups of bad lines from `blizzard dlq list`, or source files, named as for "
        "`blizzard why`.",
    ),
]
All = Annotated[bool, typer.Option("--all", help="All waiting lines.")]


def dlq_replay(
    call: PipelineCall,
    names: Names = None,
    every: All = False,
    yes: Confirmed = False,
) -> None:
    """Read quarantined lines again, with the current configuration.

    Lines that can be read now become rows, on Spark; the others keep waiting.
    """
    if bool(names) == every:
        refuse("name groups or source files, or use --all")
    with call.one() as settings:
        keys, store = _keys(settings, names), open_table(settings, open_store)
        if not yes:
            done = _plan(settings, store, keys, reads=True)
            _show(call, settings, done, FailedSources(), "would be read again")
            return
        done = ReplayOutcome()
        if store is not None:
            with rewriter(call) as runner:
                done = replay(
                    store,
                    settings,
                    keys,
                    runner,
                    clock=call.around.clock,
                    emit=log_events(LogLevel.INFO, LogFormat.TEXT),
                )
        commit_inline(call, settings, done.entry)
    became = "became a row" if done.lines == 1 else "became rows"
    _show(call, settings, done, FailedSources(), became, is_done=True)


def dlq_discard(
    call: PipelineCall,
    names: Names = None,
    every: All = False,
    lost: Annotated[bool, typer.Option("--deleted")] = False,
    yes: Confirmed = False,
) -> None:
    """Give up quarantined lines, or failed files that were deleted: they never become rows.

    Until then, a file deleted before it could be read keeps its day incomplete. If a part of a
    deleted file was read, only the rest is given up, and its rows stay.

    Args:
        lost: All failed files that were deleted from their source, including partly read ones.
    """
    if every and lost:
        refuse("use --all for all bad lines, or --deleted for deleted files")
    if bool(names) + every + lost != 1:
        refuse("name groups or source files, or use --all")
    with call.one() as settings:
        keys, store = _keys(settings, names), open_table(settings, open_store)
        wanted = frozenset(keys) if keys else None
        clock = call.around.clock
        done, given_up = ReplayOutcome(unknown=wanted or frozenset()), FailedSources()
        if store is not None:
            if not lost:
                done = (
                    discard(store, settings, keys, clock=clock)
                    if yes
                    else _plan(settings, store, keys, reads=False)
                )
            if lost or keys:
                search = FailedSearch(
                    store=store,
                    pipeline=settings.name,
                    wanted=wanted,
                    rejections=PipelineLog(settings).rejections,
                )
                given_up, entry = search.give_up(store, clock) if yes else (search.deleted(), None)
                done = replace(
                    done,
                    entry=done.entry if entry is None else entry,
                    unknown=done.unknown & given_up.unknown,
                )
        commit_inline(call, settings, done.entry)
    verb = "discarded" if yes else "would be discarded"
    _show(call, settings, done, given_up, verb, is_done=yes)


def _keys(settings: PipelineSettings, names: list[str] | None) -> list[str] | None:
    """Return the selected groups and source files; None for all lines."""
    if not names:
        return None
    return list(resolved(names, [PipelineEvidence.read(settings, Clock())])[settings.name])


def _plan(
    settings: PipelineSettings,
    store: Store | None,
    keys: list[str] | None,
    *,
    reads: bool,
) -> ReplayOutcome:
    """Return which lines would be read again or discarded; nothing is written."""
    if store is None:
        return ReplayOutcome(unknown=frozenset(keys or ()))
    found = plan_replay(store, settings.name, keys, table_of(settings))
    # Lines of rejected content can be discarded, but not replayed.
    in_vain = found.not_in_place if reads else 0
    return ReplayOutcome(
        lines=found.lines - in_vain,
        not_in_place=in_vain,
        unknown=found.unknown,
        sources=found.selected.sources,
    )


def _show(
    call: PipelineCall,
    settings: PipelineSettings,
    done: ReplayOutcome,
    lost: FailedSources,
    verb: str,
    *,
    is_done: bool = False,
) -> None:
    document = {
        **document_of(settings),
        **picked(done, "entry lines filtered left"),
        "files": [record.key for record in lost.records],
        "sources": sorted(done.sources),
    }
    call.show(_text(settings, done, lost, verb, is_done=is_done), document)
    # Selected files that stay failed; only their bad lines are resolved.
    for key, why in lost.refused.items():
        print_error(f"warning: {key}: {why}")
    if done.unknown:
        listed = ", ".join(sorted(done.unknown))
        print_error(
            f"error: no bad lines of {listed} are waiting; blizzard dlq list shows what is. A "
            "failed file that was deleted can be discarded after the next run"
        )
    call.fail_if(done.unknown or (not is_done and (done.lines or lost.records)))


def _text(
    settings: PipelineSettings,
    done: ReplayOutcome,
    lost: FailedSources,
    verb: str,
    *,
    is_done: bool,
) -> Iterator[str]:
    if not is_done and done.unknown and not (done.lines or lost.records):
        return
    word = word_for(settings)
    yield f"pipeline {settings.name}: {_amounts(word, done.lines, lost)} {verb}"
    if not is_done:
        yield from first([f"bad lines of {key}" for key in sorted(done.sources)])
    in_table = [(record.key, in_the_table(record)) for record in lost.records]
    yield from first(
        [f"{key}: {stays}; they stay there" if stays else key for key, stays in in_table]
    )
    if done.filtered:
        lines = plural(done.filtered, word)
        yield f"  {lines} skipped by source.skip_records, without a row"
    left = done.left - done.not_in_place
    if left > 0:
        keep = "keeps" if left == 1 else "keep"
        yield f"  {plural(left, word)} still cannot be read and {keep} waiting"
    if done.not_in_place:
        keep = "keeps" if done.not_in_place == 1 else "keep"
        yield (
            f"  {plural(done.not_in_place, word)} {keep} waiting, of replacement content that was "
            "rejected; blizzard dlq discard gives up such lines"
        )
    if done.entry is not None:
        yield f"  recorded in entry {done.entry}"
    if not is_done and (done.lines or lost.records):
        yield "add --yes to do it"


def _amounts(word: str, lines: int, lost: FailedSources) -> str:
    """Return the numbers of selected lines and deleted files in words."""
    in_part = sum(map(is_partly_read, lost.records))
    amounts = [plural(lines, word)] if lines or not lost.records else []
    for count, of in ((len(lost.records) - in_part, ""), (in_part, "the rest of ")):
        if count:
            files = plural(count, "source file")
            amounts.append(f"{of}{files} that failed and {is_are(count)} gone")
    return " and ".join(amounts)
