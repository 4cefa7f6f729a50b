"""`penguin history`: the last commits of each table."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated

import typer

from lakebed.deltalog.snapshot import LogReader
from lakebed.deltalog.versions import Commit, read_commits
from lakebed.terminal.console import Line, Table, picked, second
from penguin.cli.call import TableCall
from penguin.pipeline import open_reader

COUNTS = "files_rewritten files_held files_released files_discarded"


def history(
    call: TableCall,
    count: Annotated[
        int, typer.Argument(metavar="N", min=1, help="How many commits to show.")
    ] = 10,
) -> None:
    """Show the last commits of each table, the newest first."""
    for table in call.tables():
        with call.guard(table.name):
            reader = open_reader(table)
            snapshot = None if reader is None else LogReader(reader).look()
            commits: list[Commit] = []
            if reader is not None and snapshot is not None:
                commits = read_commits(reader, snapshot.version, count)
            documents = ({"table": table.name, **commit_document(each)} for each in commits)
            call.show(_text(table.name, commits), *documents)


def committed_at(commit: Commit) -> datetime | None:
    """Return when a version was committed."""
    return None if commit.at_ms is None else datetime.fromtimestamp(commit.at_ms / 1000, UTC)


def commit_document(commit: Commit) -> dict[str, object]:
    """Return a version of the log as JSON has it."""
    rest = "operation writer entries files_of_others files_added files_removed rows_added"
    return {
        "version": commit.version,
        "at": committed_at(commit),
        **picked(commit, f"{rest} {COUNTS}"),
    }


def _text(table: str, commits: list[Commit]) -> Iterator[Line]:
    if not commits:
        yield f"{table}: there is no Delta table yet, so there is no commit to show"
        return
    yield f"{table}:"
    yield Table(
        (">version", "at (UTC)", "operation", "entries", ">files", ">rows"),
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
    """Yield the entries and files of a commit, by their writers."""
    for one in commit.entries:
        until = f"-{one.last}" if one.last != one.first else ""
        yield f"{one.pipeline} {one.first}{until}"
    if commit.files_of_others:
        yield f"{commit.files_of_others:,} of others"


def _files(commit: Commit) -> str:
    """Return how many files a commit added, removed and left out, in words."""
    added = f"{commit.files_added:,}"
    if commit.files_removed:
        added = f"+{added} -{commit.files_removed:,}"
    others = picked(commit, COUNTS).items()
    return added + "".join(f", {n:,} {name.removeprefix('files_')}" for name, n in others if n)
