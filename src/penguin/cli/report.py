"""The answers of `status`, `held` and `history`, for a person (80 columns) or a machine."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Console

from lakebed.terminal.arguments import Output
from lakebed.terminal.console import (
    add,
    columns,
    console,
    is_are,
    plural,
    print_lines,
    print_table,
    say,
    say_first,
    second,
)
from lakebed.terminal.tables import Table
from lakebed.units import span
from penguin.cli.rows import (
    CommitRow,
    HeldFileRow,
    HeldRows,
    HistoryRow,
    OthersRow,
    StatusRow,
    StoppedRow,
)

if TYPE_CHECKING:
    from penguin.inspect.status import StoppedStatus

SHOWN = 10
"""How many files of one reason are named to a person."""


def statuses(rows: list[StatusRow], output: Output) -> None:
    """Print the state of each table."""
    if output is Output.JSON:
        print_lines(rows)
        return
    to = console()
    for row in rows:
        say(to, f"{row.table}: {_standing(row)}")
        _say_others(to, row.table, row.others)
        if row.catalog is not None and row.catalog.state != "registered":
            found = row.catalog
            why = "" if found.error is None else f": {found.error}"
            say(to, f"{row.table}: {found.state} in {found.type} as {found.name}{why}")
        if row.in_danger is not None:
            say(to, f"{row.table}: {row.in_danger.reason}")
        if not row.pipelines:
            continue
        say(to, _waiting(row))
        shown = _table("pipeline", "committed", "waiting", "files", "rows", "lag", "")
        for one in row.pipelines:
            add(
                shown,
                one.pipeline,
                None if one.committed_entry is None else f"entry {one.committed_entry}",
                one.pending_entries,
                one.pending_files,
                one.pending_rows,
                None if one.lag_secs is None else span(one.lag_secs),
                "stopped" if one.stopped else "",
            )
        print_table(to, shown)
        _say_held(to, row)
        _say_discarded(to, row)
        for one in row.pipelines:
            if one.stopped is not None:
                _say_why(to, row.table, one.stopped)


def _standing(row: StatusRow) -> str:
    if row.error:
        return row.error
    if row.version is None:
        others = row.others
        if row.pipelines or others.pending_files:
            return "there is no Delta table yet; the first commit creates it"
        if others.left_out or others.passed_over.files:
            return f"there is no Delta table yet, and no file in {row.table_uri} can be committed"
        return f"there is no table yet: nothing has been written to {row.table_uri}"
    last = row.last_commit
    at = f", last commit {second(last.at)} UTC" if last and last.at else ""
    return f"version {row.version}{at}"


def _waiting(row: StatusRow) -> str:
    if not row.pending_entries:
        return "nothing is waiting"
    return (
        f"{plural(row.pending_entries, 'entry is', 'entries are')} waiting with "
        f"{plural(row.pending_files, 'file')}, the oldest for {span(row.lag_secs)}"
    )


def _say_others(to: Console, table: str, others: OthersRow) -> None:
    """Print what is known of other programs' files, if there are any."""
    if others.pending_files:
        late = f", {others.pending_late:,} of them late" if others.pending_late else ""
        files = plural(others.pending_files, "file")
        say(to, f"{table}: {files} of other programs {is_are(others.pending_files)} waiting{late}")
    if others.watermarks:
        folder, name = max(others.watermarks.items(), key=lambda pair: pair[1])
        where = f"{folder}/{name}" if folder else name
        count = plural(len(others.watermarks), "folder")
        say(to, f"{table}: watermarks of {count}, the newest is {where}")
    for one in others.left_out[:SHOWN]:
        say(to, f"{table}: not committed: {one.file}: {one.reason} [{one.code}]")
    if (more := len(others.left_out) - SHOWN) > 0:
        what = f"{plural(more, 'more file is', 'more files are')} not committed"
        say(to, f"{table}: {what}; --output json has them all")
    passed = others.passed_over
    if passed.files:
        least = "" if passed.complete else "at least "
        files = plural(passed.files, "Parquet file is", "Parquet files are")
        say(to, f"{table}: {least}{files} passed over: {passed.reason}")
        for path in passed.some:
            say(to, f"  {path}")
        if passed.files > len(passed.some):
            say(to, f"  ... and {passed.files - len(passed.some):,} more")


def _say_held(to: Console, row: StatusRow) -> None:
    """Print how much is held, and why."""
    if not row.held_files:
        return
    say(
        to,
        f"{row.table}: {_files_with_rows(row.held_files, row.held_rows)} "
        f"{is_are(row.held_files)} held; `penguin held` names {_them(row.held_files)}",
    )
    for one in row.held[:SHOWN]:
        for reason in one.reasons:
            say(to, f"  {plural(one.files, 'file')}: {reason} [{one.code}]")
    if (more := len(row.held) - SHOWN) > 0:
        say(to, f"  ... and for {plural(more, 'more reason')}")


def _say_discarded(to: Console, row: StatusRow) -> None:
    """Print how much was given up."""
    if row.discarded_files:
        were, their = ("was", "its") if row.discarded_files == 1 else ("were", "their")
        say(
            to,
            f"{row.table}: {_files_with_rows(row.discarded_files, row.discarded_rows)} "
            f"{were} discarded; `blizzard redo --held ID` reads {their} sources again",
        )


def held(found: list[HeldRows], output: Output) -> None:
    """Print what is held, and every reason on a line of its own."""
    if output is Output.JSON:
        for one in found:
            print_lines((*one.files, *one.stopped))
        return
    to = console()
    files = [row for one in found for row in one.files]
    stopped = [row for one in found for row in one.stopped]
    if not files and not stopped:
        say(to, "nothing is held")
        return
    _show_files(to, files)
    if files:
        say(
            to,
            "files go in by themselves once nothing speaks against it; penguin release ID tries "
            "at once, penguin discard ID gives them up, and blizzard redo --held ID has their "
            "sources read again",
        )
    _show_halts(to, stopped)


def _show_files(to: Console, rows: list[HeldFileRow]) -> None:
    """Show the files that are held, those of one entry and one reason together."""
    together: dict[tuple[object, ...], list[HeldFileRow]] = {}
    for row in rows:
        key = (row.table, row.pipeline, row.entry, row.code, row.reasons)
        together.setdefault(key, []).append(row)
    for files in together.values():
        first = files[0]
        whose = "" if first.pipeline is None else f", {first.pipeline}, entry {first.entry}"
        have = "has" if len(files) == 1 else "have"
        say(
            to,
            f"{first.table}{whose}: "
            f"{_files_with_rows(len(files), sum(row.rows for row in files))} "
            f"{have} been held since {_minute(first.since)} UTC [{first.code}]",
        )
        for reason in first.reasons:
            say(to, f"  {reason}")
        names = [f"{row.id}  {plural(row.rows, 'row')}" for row in files]
        say_first(to, names, SHOWN, indent="    ")


def _show_halts(to: Console, rows: list[StoppedRow]) -> None:
    if not rows:
        return
    shown = _table("table", "stopped", "entry", "since", "files", "rows", "behind")
    for row in rows:
        add(
            shown,
            row.table,
            row.halt.pipeline,
            row.halt.entry,
            _minute(row.halt.since),
            row.halt.files,
            row.halt.rows,
            row.halt.entries_behind,
        )
    print_table(to, shown)
    for row in rows:
        _say_why(to, row.table, row.halt)


def _say_why(to: Console, table: str, halt: "StoppedStatus") -> None:
    entry = "" if halt.entry is None else f", entry {halt.entry}"
    for reason in halt.reasons:
        say(to, f"{table}, {halt.pipeline}{entry}: {reason} [{halt.code}]")


def history(table: str, commits: list[CommitRow], output: Output) -> None:
    """Print the last commits of one table, the newest first."""
    if output is Output.JSON:
        print_lines(HistoryRow(table=table, commit=one) for one in commits)
        return
    to = console()
    if not commits:
        say(to, f"{table}: there is no Delta table yet, so there is no commit to show")
        return
    shown = _table("version", "at (UTC)", "operation", "entries", "files", "rows")
    for one in commits:
        add(
            shown,
            str(one.version),
            second(one.at),
            one.operation,
            list(_settled(one)) or None,
            _files(one),
            one.rows_added,
        )
    say(to, f"{table}:")
    print_table(to, shown)


def _settled(commit: CommitRow) -> Iterable[str]:
    """Yield whose entries and files a commit has."""
    for one in commit.entries:
        until = f"-{one.last}" if one.last != one.first else ""
        yield f"{one.pipeline} {one.first}{until}"
    if commit.files_of_others:
        yield f"{commit.files_of_others:,} of others"


def _files(commit: CommitRow) -> str:
    """Return how many files a commit added, removed and set aside, in words."""
    added = f"{commit.files_added:,}"
    if commit.files_removed:
        added = f"+{added} -{commit.files_removed:,}"
    aside = (
        (commit.files_rewritten, "rewritten"),
        (commit.files_held, "held"),
        (commit.files_released, "released"),
        (commit.files_discarded, "discarded"),
    )
    more = "".join(f", {count:,} {word}" for count, word in aside if count)
    return f"{added}{more}"


def _table(*names: str) -> Table:
    numbers = {"waiting", "files", "rows", "lag", "entry", "behind", "version"}
    return columns(
        *names,
        numbers=numbers,
        wide={"table", "pipeline", "stopped", "operation", "entries", "files"},
    )


def _files_with_rows(files: int, rows: int) -> str:
    return f"{plural(files, 'file')} with {plural(rows, 'row')}"


def _them(count: int) -> str:
    return "it" if count == 1 else "them"


def _minute(at: str | None) -> str:
    return "-" if at is None else at[:16].replace("T", " ")
