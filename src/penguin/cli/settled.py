"""What an operator's commands did, or would do, for a person or a machine."""

from typing import TYPE_CHECKING, Any

from lakebed.arguments import Output
from lakebed.console import console, print_line, print_lines, say

if TYPE_CHECKING:
    from penguin.held import HeldFile
    from penguin.operate.release import Settlement

Row = dict[str, Any]


def settled_rows(table: str, found: "Settlement", word: str) -> list[Row]:
    """Put what became of held files into plain values."""
    held = [
        {
            "table": table,
            "id": one.name,
            "file": one.meta.filename,
            "rows": one.meta.record_count,
            "outcome": outcome,
            "version": found.version if outcome == word else None,
            "reasons": [] if outcome == word else _why(found, one),
        }
        for outcome, files in ((word, found.done), ("held", found.left))
        for one in files
    ]
    return held + [
        {
            "table": table,
            "id": one.name,
            "file": one.file.filename,
            "rows": one.file.record_count,
            "outcome": word,
            "version": found.version,
            "reasons": [],
        }
        for one in found.taken_out
    ]


def _why(found: "Settlement", one: "HeldFile") -> list[str]:
    """Return why a file stays held: what forbids its release, or else what it is held for."""
    why = found.why.get(one.name)
    return list(one.meta.reasons) if why is None else [why]


def settled(rows: list[Row], output: Output) -> None:
    """Print what became of held files."""
    if output is Output.JSON:
        print_lines(rows)
        return
    to = console()
    if not rows:
        say(to, "nothing was done")
    for row in rows:
        where = f" in version {row['version']}" if row["version"] is not None else ""
        say(to, f"{row['table']}: {row['outcome']}{where}: {row['id']}, {row['rows']:,} rows")
        for reason in row["reasons"]:
            say(to, f"  {reason}")


def said(table: str, sentences: list[str], output: Output, *, done: bool) -> None:
    """Print what was done to a table, or what would be: a JSON object a line, or as it is."""
    for sentence in sentences:
        if output is Output.JSON:
            print_line({"table": table, "done": done, "what": sentence})
        else:
            say(console(), f"{table}: {sentence}")
