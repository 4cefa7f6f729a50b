"""Results of a run, for a person or a machine, on standard output."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakebed.terminal.arguments import Output
from lakebed.terminal.console import (
    INLINED,
    add,
    columns,
    console,
    is_are,
    plural,
    print_lines,
    print_table,
    say,
)

if TYPE_CHECKING:
    from penguin.pipeline import Totals

NUMBERS = ("version", "commits", "entries", "files", "rows")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """What was done for one table in a run."""

    table: str
    table_uri: str
    totals: "Totals" = field(metadata=INLINED)
    held_files: int
    held_rows: int
    error: str | None


def results(rows: list[ResultRow], output: Output) -> None:
    """Print what was done for each table: a JSON object a line, or one table of all."""
    if output is Output.JSON:
        print_lines(rows)
        return
    to = console()
    shown = columns("table", *NUMBERS, "", numbers=NUMBERS, wide=("table",))
    for row in rows:
        done = row.totals
        outcome = "" if done.commits else "nothing to commit"
        outcome = "failed" if row.error else "held" if row.held_files else outcome
        add(
            shown,
            row.table,
            done.version,
            done.commits,
            done.entries,
            done.files,
            done.rows,
            outcome,
        )
    print_table(to, shown)
    for row in rows:
        if row.error:
            say(to, f"{row.table}: {row.error}")
        if row.held_files:
            them = "it" if row.held_files == 1 else "them"
            say(
                to,
                f"{row.table}: {plural(row.held_files, 'file')} with "
                f"{plural(row.held_rows, 'row')} {is_are(row.held_files)} held and not in the "
                f"table; `penguin held` names {them}",
            )
