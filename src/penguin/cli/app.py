"""The program penguin: its commands and its run, each imported when it is called."""

from typing import Annotated

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

    packages = ("penguin.cli",)


app = program(PenguinCommands)


def main() -> None:
    """Run the program."""
    run_program(app, "penguin")


@app.callback(invoke_without_command=True)
def run(
    call: TableCall,
    *,
    once: bool = False,
    dry_run: DryRun = False,
    log_level: MinLogLevel = LogLevel.INFO,
    log_format: LogShape = LogFormat.TEXT,
    _version: Annotated[bool, version_option("penguin")] = False,
) -> None:
    """Commit blizzard's Parquet files to the Delta log, exactly once.

    Without a command it runs until it is stopped, and commits what blizzard writes; with --once it
    commits what is there.

    Args:
        once: Commit what is there, then exit.
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
