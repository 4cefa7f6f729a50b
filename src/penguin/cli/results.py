"""Results and plans, for a person or a machine, on standard output."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lakebed.arguments import Output
from lakebed.console import add, columns, console, print_lines, say
from lakebed.telemetry.events import code_of

if TYPE_CHECKING:
    from penguin.inspect.explain import Explanation
    from penguin.model.commit import Hold

NUMBERS = ("version", "commits", "entries", "files", "rows")


def results(rows: list[dict[str, Any]], output: Output) -> None:
    """Print what was done for each table: a JSON object a line, or one table of all."""
    if output is Output.JSON:
        print_lines(rows)
        return
    to = console()
    shown = columns("table", *NUMBERS, "", numbers=NUMBERS, wide=("table",))
    for row in rows:
        outcome = "" if row["commits"] else "nothing to commit"
        outcome = "failed" if row["error"] else "held" if row["held_files"] else outcome
        add(shown, row["table"], *(row[name] for name in NUMBERS), outcome)
    to.print(shown)
    for row in rows:
        if row["error"]:
            say(to, f"{row['table']}: {row['error']}")
        if row["held_files"]:
            say(
                to,
                f"{row['table']}: {row['held_files']:,} files with {row['held_rows']:,} rows are "
                "held and not in the table; `penguin held` names them",
            )


def explanations(rows: list[dict[str, Any]], output: Output) -> None:
    """Print what the next commit of each table would do, or why it would not."""
    if output is Output.JSON:
        print_lines(rows)
        return
    to = console()
    for row in rows:
        for line in (_sentence(row), *_details(row)):
            say(to, line)


def _details(row: dict[str, Any]) -> Iterator[str]:
    """Say each part of a plan on a line of its own."""
    for part in row["pipelines"]:
        yield f"  commit  {part['pipeline']}: entries {part['first']} to {part['last']}"
    if row["others"]:
        yield f"  commit  {row['others']} files of other programs"
    for one in row["held"]:
        yield (
            f"  hold    {one['pipeline']}: entry {one['entry']}: {one['files']} files: "
            f"{'; '.join(one['reasons'])} [{one['code']}]"
        )
    if row["released"]:
        yield f"  release {row['released']} files that were held"
    for verb, key in (("add", "added"), ("drop", "dropped"), ("widen", "widened")):
        if row[f"columns_{key}"]:
            yield f"  {verb:<7} columns {', '.join(row[f'columns_{key}'])}"
    yield from _left(row)


def _left(row: dict[str, Any]) -> Iterator[str]:
    """Return what is not part of a plan, and why."""
    for one in row["waiting"]:
        yield f"  wait    {one['pipeline']}: entry {one['entry']}: {one['reason']}"
    if row["still_held"]:
        yield f"  leave   {row['still_held']} files that are held; `penguin held` says why"
    for one in row["left_out"]:
        yield f"  leave   {one['file']}: {one['reason']} [{one['code']}]"
    for one in row["stopped"]:
        yield f"  leave   {one['pipeline']}: {one['error']} [{one['code']}]"


def explanation_row(name: str, uri: str, found: "Explanation | None") -> dict[str, Any]:
    """Put an explanation into plain values; None is a directory that is still to be made."""
    commit = found.proposal.commit if found else None
    return {
        "table": name,
        "table_uri": uri,
        "version": found.view.version if found else None,
        "creates_table": commit is not None and commit.table.version is None,
        "entries": commit.entries if commit else 0,
        "files": len(commit.adds) if commit else 0,
        "rows": commit.rows if commit else 0,
        "columns_added": list(commit.changes.added) if commit else [],
        "columns_dropped": list(commit.changes.dropped) if commit else [],
        "columns_widened": list(commit.changes.widened) if commit else [],
        "pipelines": [
            {"pipeline": pipeline, **told}
            for pipeline, told in (commit.settled() if commit else {}).items()
        ],
        "held": _holds(commit.holds if commit else ()),
        "released": len(commit.released) if commit else 0,
        "still_held": _still_held(found),
        "others": len(commit.others.paths) if commit and commit.others else 0,
        "left_out": [
            {"file": one.path, "code": one.code, "reason": one.reason}
            for one in (found.left_out if found else ())
        ],
        "stopped": [
            {"pipeline": one.pipeline, "code": code_of(one.error), "error": str(one.error)}
            for one in (found.proposal.stopped if found else ())
        ],
        "waiting": [
            {"pipeline": one.pipeline, "entry": one.sequence, "reason": one.reason}
            for one in (found.proposal.waiting if found else ())
        ],
        "error": None,
    }


def _still_held(found: "Explanation | None") -> int:
    """Count the files that are set aside now, and stay so."""
    if found is None:
        return 0
    commit = found.proposal.commit
    settled = {*commit.released, *commit.discarded} if commit else set()
    return sum(one.name not in settled for one in found.view.held)


def _holds(holds: "tuple[Hold, ...]") -> list[dict[str, Any]]:
    """Put together the files of one entry that are left out for the same reasons."""
    files = Counter((hold.entry, hold.code, hold.reasons) for hold in holds)
    return [
        {
            "pipeline": entry.pipeline,
            "entry": entry.sequence,
            "files": count,
            "code": code.value,
            "reasons": list(reasons),
        }
        for (entry, code, reasons), count in files.items()
    ]


def _sentence(row: dict[str, Any]) -> str:
    if row["error"]:
        return f"{row['table']}: {row['error']}"
    if not row["entries"] and not row["released"] and not row["others"]:
        return f"{row['table']}: nothing to commit"
    version = 0 if row["version"] is None else row["version"] + 1
    table = "create the table and commit" if row["creates_table"] else "commit"
    return (
        f"{row['table']}: would {table} {row['entries']} entries, {row['files']} files, "
        f"{row['rows']:,} rows (version {version} or later) to {row['table_uri']}"
    )
