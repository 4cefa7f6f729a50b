"""The answers of `status`, `held` and `history`, for a person (80 columns) or a machine."""

from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from lake.arguments import Output
from penguin.show import print_lines

if TYPE_CHECKING:
    from penguin.history import Commit
    from penguin.status import Held, TableStatus

Row = dict[str, Any]


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
        "held": sum(one.held is not None for one in pipelines),
        "error": error,
    }


def statuses(rows: list[Row], output: Output) -> None:
    """Print how each table stands."""
    if output is Output.JSON:
        print_lines(rows)
        return
    console = Console()
    for row in rows:
        _say(console, f"{row['table']}: {_standing(row)}")
        if not row["pipelines"]:
            continue
        _say(console, _waiting(row))
        shown = _columns("pipeline", "committed", "waiting", "files", "rows", "lag", "")
        for one in row["pipelines"]:
            committed = one["committed_entry"]
            shown.add_row(
                one["pipeline"],
                "-" if committed is None else f"entry {committed}",
                _count(one["pending_entries"]),
                _count(one["pending_files"]),
                _count(one["pending_rows"]),
                "-" if one["lag_secs"] is None else duration(one["lag_secs"]),
                "held" if one["held"] else "",
            )
        console.print(shown)
        _say_why(console, row["table"], [one["held"] for one in row["pipelines"] if one["held"]])


def held_rows(table: str, found: Iterable["Held"]) -> list[Row]:
    """Put what is held of one table into plain values."""
    return [{"table": table, **asdict(one)} for one in found]


def held(rows: list[Row], output: Output) -> None:
    """Print what is held, and every reason on a line of its own."""
    if output is Output.JSON:
        print_lines(rows)
        return
    console = Console()
    if not rows:
        _say(console, "nothing is held")
        return
    shown = _columns("table", "pipeline", "entry", "since", "files", "rows", "behind")
    for row in rows:
        shown.add_row(
            row["table"],
            row["pipeline"],
            _count(row["entry"]),
            _minute(row["since"]),
            _count(row["files"]),
            _count(row["rows"]),
            _count(row["entries_behind"]),
        )
    console.print(shown)
    for row in rows:
        _say_why(console, row["table"], [row])


def commit_rows(table: str, found: Iterable["Commit"]) -> list[Row]:
    """Put commits into plain values."""
    return [{"table": table, **_commit(one)} for one in found]


def history(table: str, rows: list[Row], output: Output) -> None:
    """Print the last commits of one table, the newest first."""
    if output is Output.JSON:
        print_lines(rows)
        return
    console = Console()
    if not rows:
        _say(console, f"{table}: there is no Delta table yet, so there is no commit to show")
        return
    shown = _columns("version", "at (UTC)", "operation", "entries", "files", "rows")
    for row in rows:
        settled = (
            f"{one['pipeline']} {one['first']}"
            + (f"-{one['last']}" if one["last"] != one["first"] else "")
            for one in row["entries"]
        )
        removed = f" -{row['files_removed']}" if row["files_removed"] else ""
        shown.add_row(
            str(row["version"]),
            _second(row["at"]),
            row["operation"] or "-",
            "\n".join(settled) or "-",
            f"{row['files_added']}{removed}",
            _count(row["rows_added"]),
        )
    _say(console, f"{table}:")
    console.print(shown)


def duration(seconds: float) -> str:
    """Say a time span in its two largest units."""
    whole = int(seconds)
    for unit, size, smaller, part in (("d", 86_400, "h", 3600), ("h", 3600, "m", 60)):
        if whole >= size:
            return f"{whole // size}{unit} {whole % size // part}{smaller}"
    return f"{whole // 60}m {whole % 60}s" if whole >= 60 else f"{whole}s"


def _standing(row: Row) -> str:
    if row["error"]:
        return str(row["error"])
    if row["version"] is None and not row["pipelines"]:
        return f"there is no table yet: blizzard has not written to {row['table_uri']} yet"
    if row["version"] is None:
        return "there is no Delta table yet; the first commit creates it"
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


def _say_why(console: Console, table: str, found: list[Row]) -> None:
    for one in found:
        entry = "" if one["entry"] is None else f", entry {one['entry']}"
        for reason in one["reasons"]:
            _say(console, f"{table}, {one['pipeline']}{entry}: {reason} [{one['code']}]")


def _commit(one: "Commit") -> Row:
    told = asdict(one)
    stamp = told.pop("at_ms")
    at = None if stamp is None else datetime.fromtimestamp(stamp / 1000, UTC).isoformat()
    return {"version": told.pop("version"), "at": at, **told}


def _columns(*names: str) -> Table:
    shown = Table()
    numbers = {"waiting", "files", "rows", "lag", "entry", "behind", "version"}
    for name in names:
        shown.add_column(name, justify="right" if name in numbers else "left", overflow="fold")
    return shown


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _minute(at: str | None) -> str:
    return "-" if at is None else at[:16].replace("T", " ")


def _second(at: str | None) -> str:
    return "-" if at is None else at[:19].replace("T", " ")


def _say(console: Console, text: str) -> None:
    console.print(text, soft_wrap=True, markup=False, highlight=False)
