"""The program penguin: its commands and its run, each imported when it is called."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

import typer

from lakebed.telemetry.levels import LogFormat, LogLevel
from lakebed.terminal.call import DryRun, LogShape, MinLogLevel
from lakebed.terminal.program import (
    ForwardingGroup,
    program,
    run_program,
    version_option,
)
from penguin.cli.call import TableCall


class PenguinCommands(ForwardingGroup):
    """The commands of penguin."""

    package = "penguin.cli"
    deferred: ClassVar[Mapping[str, str]] = {
        "status": "Show what is committed, what is waiting, and what is held.",
        "held": "Show which files are held because they do not fit, "
        "and which pipelines have stopped.",
        "plan": "Show what the next commit would do, as --dry-run does.",
        "history": "Show the last commits of each table, the newest first.",
        "release": "Try held files again, and commit those that now fit the table.",
        "discard": "Discard held files for good; their rows will not be in the table.",
        "replay": "Commit again what the log has lost, or what a RESTORE removed.",
        "forget": "Continue without the rows that the log has lost.",
        "adopt": "Make a folder of Parquet files a Delta table; no file is moved or rewritten.",
        "vacuum": "Show or delete data files that no version within the table's retention needs.",
        "fsck": "Show which files of each table are missing, "
        "or have another size than the log says.",
    }
    places: ClassVar[Mapping[str, str]] = {
        "held": "penguin.cli.status:held",
        "history": "penguin.cli.status:history",
        "vacuum": "penguin.cli.upkeep:vacuum",
        "fsck": "penguin.cli.upkeep:fsck",
        "release": "penguin.cli.operator:release",
        "discard": "penguin.cli.operator:discard",
        "replay": "penguin.cli.operator:replay",
        "forget": "penguin.cli.operator:forget",
    }


app = program(PenguinCommands)


def main() -> None:
    """Run the program."""
    run_program(app, "penguin")


@app.callback(invoke_without_command=True)
def run(
    call: TableCall,
    *,
    once: Annotated[bool, typer.Option("--once", help="Commit what is there, then exit.")] = False,
    dry_run: DryRun = False,
    log_level: MinLogLevel = LogLevel.INFO,
    log_format: LogShape = LogFormat.TEXT,
    _version: Annotated[bool, version_option("penguin")] = False,
) -> None:
    """Commit blizzard's Parquet files to the Delta log, exactly once.

    Without a command it runs until it is stopped, and commits what blizzard writes; with --once it
    commits what is there.
    """
    if call.has_subcommand:
        return
    call.log_format = log_format
    if dry_run:
        from penguin.cli.plan import plan  # noqa: PLC0415

        plan(call)
        return
    from penguin.cli.run import commit_all_tables  # noqa: PLC0415

    commit_all_tables(call, log_level, once=once)
