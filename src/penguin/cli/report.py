"""The answers of `status`, `held` and `history`, for a person (80 columns) or a machine."""

from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from lakebed.arguments import Output
from lakebed.console import add, columns, console, duration, print_lines, say

if TYPE_CHECKING:
    from penguin.delta.versions import Commit
    from penguin.held import HeldFile
    from penguin.inspect.status import ForeignFilesStatus, TableStatus
    from penguin.model.retention import Danger

Row = dict[str, Any]
NONE_PASSED_OVER: Row = {"files": 0, "some": (), "reason": "", "complete": True}
SHOWN = 10
"""How many files of one reason are named to a person."""


def status_row(name: str, uri: str, found: "TableStatus | None", error: str | None) -> Row:
    """Put a table's status into plain values; None is a directory that is still to be made."""
    pipelines = found.pipelines if found else ()
    return {
        "table": name,
        "table_uri": uri,
        "version": found.version if found else None,
        "last_commit": _commit(found.last_commit) if found and found.last_commit else None,
        "lag_secs": found.lag_secs if found else 0.0,
        "pending_entries": sum(one.pending_entries or 0 for one in pipelines),
        "pending_files": sum(one.pending_files or 0 for one in pipelines),
        "pending_rows": sum(one.pending_rows or 0 for one in pipelines),
        "pipelines": [asdict(one) for one in pipelines],
        "stopped": sum(one.stopped is not None for one in pipelines),
        "held_files": len(found.held) if found else 0,
        "held_rows": sum(one.meta.record_count for one in found.held) if found else 0,
        "held": _held_for(found.held if found else ()),
        "discarded_files": len(found.discarded) if found else 0,
        "discarded_rows": sum(one.meta.record_count for one in found.discarded) if found else 0,
        "others": _others(found.others if found else None),
        "in_danger": _danger(found.danger if found else None),
        "error": error,
    }


def statuses(rows: list[Row], output: Output) -> None:
    """Print how each table stands."""
    if output is Output.JSON:
        print_lines(rows)
        return
    to = console()
    for row in rows:
        say(to, f"{row['table']}: {_standing(row)}")
        _say_others(to, row["table"], row["others"])
        if row["in_danger"]:
            say(to, f"{row['table']}: {row['in_danger']['reason']}")
        if not row["pipelines"]:
            continue
        say(to, _waiting(row))
        shown = _table("pipeline", "committed", "waiting", "files", "rows", "lag", "")
        for one in row["pipelines"]:
            committed = one["committed_entry"]
            add(
                shown,
                one["pipeline"],
                "-" if committed is None else f"entry {committed}",
                one["pending_entries"],
                one["pending_files"],
                one["pending_rows"],
                "-" if one["lag_secs"] is None else duration(one["lag_secs"]),
                "stopped" if one["stopped"] else "",
            )
        to.print(shown)
        _say_held(to, row)
        _say_discarded(to, row)
        stopped = [one["stopped"] for one in row["pipelines"] if one["stopped"]]
        _say_why(to, row["table"], stopped)


def _others(found: "ForeignFilesStatus | None") -> Row:
    """Put what is known of other programs' files into plain values."""
    return {
        "pending_files": found.pending_files if found else 0,
        "pending_late": found.pending_late if found else 0,
        "left_out": [
            {"file": one.path, "code": one.code, "reason": one.reason, "meta": one.asked_by}
            for one in (found.left_out if found else ())
        ],
        "watermarks": dict(found.watermarks) if found else {},
        "passed_over": asdict(found.passed_over) if found else dict(NONE_PASSED_OVER),
    }


def _held_for(held: "tuple[HeldFile, ...]") -> list[Row]:
    """Count the files that are set aside by what they are held for."""
    together: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for one in held:
        rows = together.setdefault((one.meta.code, tuple(one.meta.reasons)), [])
        rows.append(one.meta.record_count)
    return [
        {"code": code, "reasons": list(reasons), "files": len(rows), "rows": sum(rows)}
        for (code, reasons), rows in together.items()
    ]


def _say_held(to: Console, row: Row) -> None:
    """Say how much is set aside, and why."""
    if not row["held_files"]:
        return
    say(
        to,
        f"{row['table']}: {row['held_files']:,} files with {row['held_rows']:,} rows are held; "
        "`penguin held` names them",
    )
    for one in row["held"][:SHOWN]:
        for reason in one["reasons"]:
            say(to, f"  {one['files']:,} files: {reason} [{one['code']}]")
    if len(row["held"]) > SHOWN:
        say(to, f"  and for {len(row['held']) - SHOWN:,} more reasons")


def _say_discarded(to: Console, row: Row) -> None:
    """Say how much was given up."""
    if row["discarded_files"]:
        say(
            to,
            f"{row['table']}: {row['discarded_files']:,} files with {row['discarded_rows']:,} rows "
            "were discarded; `blizzard redo --held ID` reads their sources again",
        )


def _danger(found: "Danger | None") -> Row | None:
    """Put what a VACUUM may take into plain values."""
    if found is None:
        return None
    return {
        "since": found.waiting_since.isoformat(),
        "retention_secs": found.retention.total_seconds(),
        "reason": found.sentence(),
    }


def _say_others(to: Console, table: str, others: Row) -> None:
    """Tell of other programs' files, if there are any."""
    if others["pending_files"]:
        late = f", {others['pending_late']:,} of them late" if others["pending_late"] else ""
        say(to, f"{table}: {others['pending_files']:,} files of other programs wait{late}")
    if others["watermarks"]:
        folder, name = max(others["watermarks"].items(), key=lambda pair: pair[1])
        count = len(others["watermarks"])
        where = f"{folder}/{name}" if folder else name
        say(to, f"{table}: watermarks of {count:,} folders, the newest is {where}")
    for one in others["left_out"][:SHOWN]:
        say(to, f"{table}: not committed: {one['file']}: {one['reason']} [{one['code']}]")
    if len(others["left_out"]) > SHOWN:
        more = len(others["left_out"]) - SHOWN
        say(to, f"{table}: and {more:,} more are not committed; --output json has all")
    passed = others["passed_over"]
    if passed["files"]:
        least = "" if passed["complete"] else "at least "
        say(
            to,
            f"{table}: {least}{passed['files']:,} Parquet files are passed over: "
            f"{passed['reason']}",
        )
        for path in passed["some"]:
            say(to, f"  {path}")
        if passed["files"] > len(passed["some"]):
            say(to, f"  and {passed['files'] - len(passed['some']):,} more")


def held_rows(table: str, found: "TableStatus | None") -> list[Row]:
    """Put what is held of one table into plain values: files, and pipelines that have stopped."""
    if found is None:
        return []
    files = [
        {
            "table": table,
            "kind": "file",
            "id": one.name,
            "pipeline": one.meta.pipeline,
            "entry": one.meta.entry,
            "code": one.meta.code,
            "reasons": list(one.meta.reasons),
            "since": one.meta.held_at or None,
            "file": one.meta.filename,
            "rows": one.meta.record_count,
            "bytes": one.meta.size,
            "sources": list(one.meta.source_files),
        }
        for one in found.held
    ]
    halted = [one.stopped for one in found.pipelines if one.stopped]
    return files + [{"table": table, "kind": "pipeline", **asdict(one)} for one in halted]


def held(rows: list[Row], output: Output) -> None:
    """Print what is held, and every reason on a line of its own."""
    if output is Output.JSON:
        print_lines(rows)
        return
    to = console()
    if not rows:
        say(to, "nothing is held")
        return
    _show_files(to, [row for row in rows if row["kind"] == "file"])
    _show_halts(to, [row for row in rows if row["kind"] == "pipeline"])


def _show_files(to: Console, rows: list[Row]) -> None:
    """Show the files that are set aside, those of one entry and one reason together."""
    together: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        key = (row["table"], row["pipeline"], row["entry"], row["code"], tuple(row["reasons"]))
        together.setdefault(key, []).append(row)
    for (table, pipeline, entry, code, reasons), files in together.items():
        whose = "" if pipeline is None else f", {pipeline}, entry {entry}"
        count = sum(row["rows"] for row in files)
        say(
            to,
            f"{table}{whose}: {len(files):,} files with {count:,} rows are held "
            f"since {_minute(files[0]['since'])} [{code}]",
        )
        for reason in reasons:
            say(to, f"  {reason}")
        for row in files[:SHOWN]:
            say(to, f"    {row['id']}  {row['rows']:,} rows")
        if len(files) > SHOWN:
            say(to, f"    and {len(files) - SHOWN:,} more (--output json names them all)")


def _show_halts(to: Console, rows: list[Row]) -> None:
    if not rows:
        return
    shown = _table("table", "stopped", "entry", "since", "files", "rows", "behind")
    for row in rows:
        add(
            shown,
            row["table"],
            row["pipeline"],
            row["entry"],
            _minute(row["since"]),
            row["files"],
            row["rows"],
            row["entries_behind"],
        )
    to.print(shown)
    for row in rows:
        _say_why(to, row["table"], [row])


def commit_rows(table: str, found: Iterable["Commit"]) -> list[Row]:
    """Put commits into plain values."""
    return [{"table": table, **_commit(one)} for one in found]


def history(table: str, rows: list[Row], output: Output) -> None:
    """Print the last commits of one table, the newest first."""
    if output is Output.JSON:
        print_lines(rows)
        return
    to = console()
    if not rows:
        say(to, f"{table}: there is no Delta table yet, so there is no commit to show")
        return
    shown = _table("version", "at (UTC)", "operation", "entries", "files", "rows")
    for row in rows:
        settled = (
            f"{one['pipeline']} {one['first']}"
            + (f"-{one['last']}" if one["last"] != one["first"] else "")
            for one in row["entries"]
        )
        others = [f"{row['files_of_others']} of others"] if row["files_of_others"] else []
        removed = f" -{row['files_removed']}" if row["files_removed"] else ""
        aside = "".join(
            f", {row[f'files_{word}']} {word}"
            for word in ("held", "released", "discarded")
            if row[f"files_{word}"]
        )
        add(
            shown,
            str(row["version"]),
            _second(row["at"]),
            row["operation"] or "-",
            "\n".join([*settled, *others]) or "-",
            f"{row['files_added']}{removed}{aside}",
            row["rows_added"],
        )
    say(to, f"{table}:")
    to.print(shown)


def _standing(row: Row) -> str:
    if row["error"]:
        return str(row["error"])
    if row["version"] is None:
        others = row["others"]
        if row["pipelines"] or others["pending_files"]:
            return "there is no Delta table yet; the first commit creates it"
        if others["left_out"] or others["passed_over"]["files"]:
            return (
                f"there is no Delta table yet, and no file in {row['table_uri']} can be committed"
            )
        return f"there is no table yet: nothing has been written to {row['table_uri']}"
    last = row["last_commit"]
    at = f", last commit {_second(last['at'])} UTC" if last and last["at"] else ""
    return f"version {row['version']}{at}"


def _waiting(row: Row) -> str:
    if not row["pending_entries"]:
        return "nothing waits"
    return (
        f"{row['pending_entries']:,} entries wait with {row['pending_files']:,} files, "
        f"the oldest for {duration(row['lag_secs'])}"
    )


def _say_why(to: Console, table: str, found: list[Row]) -> None:
    for one in found:
        entry = "" if one["entry"] is None else f", entry {one['entry']}"
        for reason in one["reasons"]:
            say(to, f"{table}, {one['pipeline']}{entry}: {reason} [{one['code']}]")


def _commit(one: "Commit") -> Row:
    told = asdict(one)
    stamp = told.pop("at_ms")
    at = None if stamp is None else datetime.fromtimestamp(stamp / 1000, UTC).isoformat()
    return {"version": told.pop("version"), "at": at, **told}


def _table(*names: str) -> Table:
    numbers = {"waiting", "files", "rows", "lag", "entry", "behind", "version"}
    return columns(
        *names,
        numbers=numbers,
        wide={"table", "pipeline", "stopped", "operation", "entries", "files"},
    )


def _minute(at: str | None) -> str:
    return "-" if at is None else at[:16].replace("T", " ")


def _second(at: str | None) -> str:
    return "-" if at is None else at[:19].replace("T", " ")
