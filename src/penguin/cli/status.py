"""`penguin status`, `penguin held`, `penguin history`: what is committed, waiting or held."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from lakebed.clock import Clock
from lakebed.deltalog.snapshot import LogReader
from lakebed.deltalog.versions import Commit, read_commits
from lakebed.documents.pending_meta import HeldMeta, by_reason
from lakebed.errors import LakeError
from lakebed.terminal.call import DONE
from lakebed.terminal.console import Line, Table, cells, fields_of, first, picked, second
from lakebed.units import is_are, plural, span
from penguin.cli.app import LEFT_OUT, TableCall, document_of, known, sentence, unclaimed
from penguin.model.settings import TableSettings
from penguin.pipeline import nothing_at, open_reader, written
from penguin.status import ForeignFilesStatus, StoppedStatus, TableStatus, table_status

COUNTS = "files_rewritten files_held files_released files_discarded"


def history(
    call: TableCall,
    count: Annotated[int, typer.Argument(min=1)] = 10,
) -> None:
    """Show the last commits of each table, the newest first.

    Args:
        count N: How many commits to show.
    """
    for table in call.tables():
        with call.guard(table.name):
            reader = written(table, open_reader(table))
            snapshot = LogReader(reader).newest()
            commits = [] if snapshot is None else read_commits(reader, snapshot.version, count)
            documents = ({"table": table.name, **commit_document(each)} for each in commits)
            call.show(_text(table.name, commits), *documents)


def committed_at(commit: Commit) -> datetime | None:
    """Return when a version was committed."""
    return None if commit.at_ms is None else datetime.fromtimestamp(commit.at_ms / 1000, UTC)


def commit_document(commit: Commit) -> dict[str, object]:
    """Return a version of the log as a JSON document."""
    rest = "operation writer entries files_of_others files_added files_removed rows_added"
    at = committed_at(commit)
    return {"version": commit.version, "at": at, **picked(commit, f"{rest} {COUNTS}")}


def _text(table: str, commits: list[Commit]) -> Iterator[Line]:
    if not commits:
        yield f"{table}: there is no Delta table yet, so there is no commit to show"
        return
    yield f"{table}:"
    yield Table(
        (">version", ">at (UTC)", "operation", "entries", ">files", ">rows"),
        [
            (
                str(one.version),
                second(committed_at(one)),
                one.operation,
                list(_entries(one)) or None,
                _files(one),
                one.rows_added,
            )
            for one in commits
        ],
    )


def _entries(commit: Commit) -> Iterator[str]:
    """Yield the entries of a commit by pipeline, and its foreign files."""
    for one in commit.entries:
        until = f"-{one.last}" if one.last != one.first else ""
        yield f"{one.pipeline} {one.first}{until}"
    if commit.files_of_others:
        yield f"{commit.files_of_others:,} of others"


def _files(commit: Commit) -> str:
    """Return in words how many files a commit added, removed and left out."""
    added = f"{commit.files_added:,}"
    if commit.files_removed:
        added = f"+{added} -{commit.files_removed:,}"
    others = picked(commit, COUNTS).items()
    return added + "".join(f", {n:,} {name.removeprefix('files_')}" for name, n in others if n)


Held = tuple[TableSettings, HeldMeta]
Stops = tuple[TableSettings, StoppedStatus]


def status(call: TableCall) -> None:
    """Show what is committed, what is waiting, and what is held."""
    settings = call.settings()
    for table in settings.tables:
        found, error = TableStatus(version=None, last_commit=None, pipelines=()), None
        try:
            reader = open_reader(table)
            if reader is not None:
                found = table_status(table, reader, Clock().now())
        except LakeError as trouble:
            error = sentence(trouble)
        document = known(_document(table, found, error), error)
        call.show(status_lines(table, found, error), document)
        call.fail_if(error or _needs_attention(found))
    call.show(unclaimed(settings))


def _needs_attention(found: TableStatus) -> bool:
    """Whether the table needs attention."""
    return bool(
        any(one.stopped for one in found.pipelines)
        or found.held
        or found.others.left_out
        or found.danger is not None
    )


def _document(table: TableSettings, found: TableStatus, error: str | None) -> dict[str, Any]:
    others, last, danger = found.others, found.last_commit, found.danger
    pending = ("pending_entries", "pending_files", "pending_rows")
    return {
        **document_of(table),
        "version": found.version,
        "last_commit": None if last is None else commit_document(last),
        "lag_secs": found.lag_secs,
        **{
            name: None if found.uncounted else sum(getattr(one, name) for one in found.pipelines)
            for name in pending
        },
        "pipelines": found.pipelines,
        "stopped": sum(one.stopped is not None for one in found.pipelines),
        "held_files": len(found.held),
        "held_rows": _rows(found.held),
        "held": by_reason(found.held),
        "discarded_files": len(found.discarded),
        "discarded_rows": _rows(found.discarded),
        "others": {
            **fields_of(others),
            "left_out": [picked(one, f"{LEFT_OUT} meta=asked_by") for one in others.left_out],
        },
        "in_danger": None
        if danger is None
        else {
            "since": danger.waiting_since,
            "retention_secs": danger.retention.total_seconds(),
            "reason": danger.sentence(),
        },
        "error": error,
    }


def _rows(files: Iterable[HeldMeta]) -> int:
    return sum(one.record_count for one in files)


def status_lines(
    table: TableSettings, found: TableStatus, error: str | None = None
) -> Iterator[Line]:
    """Yield the state of a table as text."""
    name = table.name
    yield f"{name}: {error or _headline(table, found)}"
    yield from (f"{name}: {line}" for line in _others(found.others))
    if ignored := found.others.ignored:
        yield from (f"  {path}" for path in ignored.some)
        if ignored.files > len(ignored.some):
            yield f"  ... and {ignored.files - len(ignored.some):,} more"
    if found.danger is not None:
        yield f"{name}: {found.danger.sentence()}"
    if not found.pipelines:
        return
    yield _waiting(found)
    yield Table(
        ("pipeline", "committed", ">waiting", ">files", ">rows", ">lag", ""),
        [
            (
                one.pipeline,
                None if one.committed_entry is None else f"entry {one.committed_entry}",
                *cells(one, "pending_entries pending_files pending_rows"),
                None if one.lag_secs is None else span(one.lag_secs),
                "stopped" if one.stopped else "",
            )
            for one in found.pipelines
        ],
    )
    yield from _held_and_discarded(name, found)
    for one in found.pipelines:
        if one.stopped is not None:
            yield from _why_stopped(name, one.stopped)


def _headline(table: TableSettings, found: TableStatus) -> str:
    if found.version is None:
        others = found.others
        if found.pipelines or others.pending_files:
            return "there is no Delta table yet; the first commit creates it"
        if others.left_out or (others.ignored and others.ignored.files):
            return f"there is no Delta table yet, and no file in {table.table_uri} can be committed"
        return nothing_at(table)
    last = None if found.last_commit is None else committed_at(found.last_commit)
    return f"version {found.version}" + (f", last commit {second(last)} UTC" if last else "")


def _waiting(found: TableStatus) -> str:
    lag, stopped = found.lag_secs, len(found.uncounted)
    if stopped:
        halted = plural(stopped, "pipeline is", "pipelines are")
        return f"{halted} stopped: how many entries are waiting is unknown"
    entries = sum(one.pending_entries or 0 for one in found.pipelines)
    if not entries:
        return "nothing is waiting"
    files = plural(sum(one.pending_files or 0 for one in found.pipelines), "file")
    waiting = plural(entries, "entry is", "entries are")
    oldest = "" if lag is None else f", the oldest for {span(lag)}"
    return f"{waiting} waiting with {files}{oldest}"


def _others(others: ForeignFilesStatus) -> Iterator[str]:
    """Yield lines about files of other programs."""
    if others.pending_files:
        files = plural(others.pending_files, "file")
        yield f"{files} of other programs {is_are(others.pending_files)} waiting"
    if others.watermarks:
        folder, name = max(others.watermarks.items(), key=lambda pair: pair[1])
        where = f"{folder}/{name}" if folder else name
        yield f"watermarks of {plural(len(others.watermarks), 'folder')}, the newest is {where}"
    left = [f"not committed: {one.path}: {one.reason} [{one.code}]" for one in others.left_out]
    yield from first(left, indent="")
    ignored = others.ignored
    if ignored and ignored.files:
        files = plural(ignored.files, "Parquet file is", "Parquet files are")
        yield f"{files} ignored: {ignored.reason}"


def _held_and_discarded(table: str, found: TableStatus) -> Iterator[str]:
    if found.held:
        files = _files_with_rows(found.held)
        them = "it" if len(found.held) == 1 else "them"
        yield f"{table}: {files} {is_are(len(found.held))} held; `penguin held` names {them}"
        reasons = [
            f"{plural(one.files, 'file')}: {reason} [{one.code}]"
            for one in by_reason(found.held)
            for reason in one.reasons
        ]
        yield from first(reasons)
    if found.discarded:
        were, their = ("was", "its") if len(found.discarded) == 1 else ("were", "their")
        yield (
            f"{table}: {_files_with_rows(found.discarded)} {were} discarded; "
            f"`blizzard redo --held ID` reads {their} sources again"
        )
        yield from first([one.name for one in found.discarded])


def _files_with_rows(files: Iterable[HeldMeta]) -> str:
    some = tuple(files)
    return f"{plural(len(some), 'file')} with {plural(_rows(some), 'row')}"


def _why_stopped(table: str, halt: StoppedStatus) -> Iterator[str]:
    entry = "" if halt.entry is None else f", entry {halt.entry}"
    for reason in halt.reasons:
        yield f"{table}, {halt.pipeline}{entry}: {reason} [{halt.code}]"


def held(call: TableCall) -> None:
    """Show which files are held because they do not fit, and which pipelines have stopped.

    The exit code is 1 if there are any.
    """
    files: list[Held] = []
    stopped: list[Stops] = []
    for table in call.tables():
        with call.guard(table.name):
            reader = written(table, open_reader(table))
            found = table_status(table, reader, Clock().now())
            files += [(table, one) for one in found.held]
            stopped += [(table, one.stopped) for one in found.pipelines if one.stopped]
    call.show(
        _held_text(files, stopped, nothing=call.code == DONE),
        *(_held_document(table, one) for table, one in files),
        *({"table": table.name, "kind": "pipeline", **fields_of(one)} for table, one in stopped),
    )
    call.fail_if(files or stopped)


def _held_document(table: TableSettings, held: HeldMeta) -> dict[str, object]:
    rest = "file=filename rows=record_count bytes=size sources=source_files"
    return {
        "table": table.name,
        "kind": "file",
        "id": held.name,
        **picked(held, "pipeline entry code reasons"),
        "since": held.held_at or None,
        **picked(held, rest),
    }


def _held_text(files: list[Held], stopped: list[Stops], *, nothing: bool) -> Iterator[Line]:
    if nothing and not files and not stopped:
        yield "nothing is held"
    yield from _held_groups(files)
    if files:
        yield (
            "held files are committed automatically once the cause is fixed; penguin release ID "
            "tries at once, penguin discard ID gives them up, and blizzard redo --held ID has "
            "their sources read again"
        )
    for table, one in stopped:
        yield f"{table.name}: pipeline {one.pipeline} is stopped"
        yield from _why_stopped(table.name, one)


def _held_groups(held: list[Held]) -> Iterator[str]:
    """Yield the held files, grouped by entry and reasons."""
    together: dict[tuple[object, ...], list[HeldMeta]] = {}
    for table, meta in held:
        key = (table.name, meta.pipeline, meta.entry, meta.code, tuple(meta.reasons))
        together.setdefault(key, []).append(meta)
    for (name, *_rest), files in together.items():
        meta = files[0]
        whose = "" if meta.pipeline is None else f", {meta.pipeline}, entry {meta.entry}"
        have = "has" if len(files) == 1 else "have"
        since = _minute(meta.held_at)
        yield (
            f"{name}{whose}: {_files_with_rows(files)} {have} been held since {since} UTC "
            f"[{meta.code}]"
        )
        yield from (f"  {reason}" for reason in meta.reasons)
        names = [f"{one.name}  {plural(one.record_count, 'row')}" for one in files]
        yield from first(names, indent="    ")


def _minute(at: str | None) -> str:
    return at[:16].replace("T", " ") if at else "-"
