"""What an operator's commands did, or would do, for a person or a machine."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakebed.terminal.arguments import Output
from lakebed.terminal.console import console, plural, print_lines, say

if TYPE_CHECKING:
    from penguin.held import HeldFile
    from penguin.operate.release import Settlement


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledRow:
    """What became of a held file; the reasons are those for which it stays held."""

    table: str
    id: str
    file: str
    rows: int
    outcome: str
    version: int | None
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderRow:
    """What was done to a table, or would be."""

    table: str
    done: bool
    what: str


def settled_rows(table: str, found: "Settlement", word: str) -> list[SettledRow]:
    """Return what became of the held files of one table."""
    held = [
        SettledRow(
            table=table,
            id=one.name,
            file=one.meta.filename,
            rows=one.meta.record_count,
            outcome=outcome,
            version=found.version if outcome == word else None,
            reasons=() if outcome == word else _why(found, one),
        )
        for outcome, files in ((word, found.done), ("held", found.left))
        for one in files
    ]
    return held + [
        SettledRow(
            table=table,
            id=one.name,
            file=one.file.filename,
            rows=one.file.record_count,
            outcome=word,
            version=found.version,
            reasons=(),
        )
        for one in found.taken_out
    ]


def _why(found: "Settlement", one: "HeldFile") -> tuple[str, ...]:
    """Return why a file stays held: what forbids its release, or else what it is held for."""
    why = found.why.get(one.name)
    return tuple(one.meta.reasons) if why is None else (why,)


def settled(rows: list[SettledRow], output: Output) -> None:
    """Print what became of held files."""
    if output is Output.JSON:
        print_lines(rows)
        return
    to = console()
    if not rows:
        say(to, "nothing was done")
    for row in rows:
        where = f" in version {row.version}" if row.version is not None else ""
        say(to, f"{row.table}: {row.outcome}{where}: {row.id}, {plural(row.rows, 'row')}")
        for reason in row.reasons:
            say(to, f"  {reason}")


def orders(rows: list[OrderRow], output: Output) -> None:
    """Print what was done to tables, or would be."""
    if output is Output.JSON:
        print_lines(rows)
        return
    to = console()
    for row in rows:
        say(to, f"{row.table}: {row.what}")
