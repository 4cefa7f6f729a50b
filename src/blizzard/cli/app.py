"""Arguments and commands. What is heavy is loaded when a command is called, not before."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

import typer

from blizzard.cli.call import PipelineCall
from lakebed.telemetry.levels import LogFormat, LogLevel
from lakebed.terminal.call import FAILED, DryRun, LogShape, MinLogLevel, refuse
from lakebed.terminal.program import (
    ForwardingGroup,
    program,
    run_program,
    version_option,
)


class BlizzardCommands(ForwardingGroup):
    """The commands that are modules of their own, each imported when it is called."""

    package = "blizzard.cli"
    deferred: ClassVar[Mapping[str, str]] = {
        "init": "Look at files and write a configuration for them.",
        "validate": "Check a configuration for both programs, and say what it would do.",
        "status": "Show what is waiting, what failed and what is committed.",
        "top": "Watch all pipelines and tables in the terminal.",
        "audit": "Prove from metadata that each table holds what its journals say, "
        "or show the differences.",
        "files": "Show what landed on each day, and whether everything of it is in the table.",
        "why": "Show why a file is not in the table, or how it got there.",
        "gc": "Show or delete the files that failed attempts have left behind.",
        "redo": "Read source files again whose rows are not in the table.",
        "retract": "Take the rows of source files out of the table, "
        "or put those of another in their place.",
        "erase": "Take rows out of the table by their values, and show what still holds them.",
        "compact": "Merge the small data files of each partition into files of about file_size_mb.",
        "trace": "Show which source file and line rows of the table came from.",
        "journal": "Look at the journal, which has a numbered entry for each batch, "
        "or begin a new one.",
        "dlq": "Show which source files failed and which bad lines are set aside, "
        "or have them read again.",
        "schema": "Show the columns, find them in files, or compare them with the table.",
        "source": "Tell blizzard that the files of a source have moved.",
        "demo": "Run both programs on sample NDJSON, and show the table.",
        "handoff": "Change how files are handed off to penguin.",
    }
    places: ClassVar[Mapping[str, str]] = {
        "top": "liveview.terminal.command:top",
        "files": "blizzard.cli.files:files_command",
        "retract": "blizzard.cli.rows.retract:retract",
        "erase": "blizzard.cli.rows.erase:erase",
        "compact": "blizzard.cli.rows.compact:compact",
        "journal": "blizzard.cli.journal.commands:app",
        "dlq": "blizzard.cli.dlq.commands:app",
        "schema": "blizzard.cli.schema.commands:app",
        "source": "blizzard.cli.source:source_app",
        "handoff": "blizzard.cli.handoff:app",
    }


app = program(BlizzardCommands)


def main() -> None:
    """Run the program."""
    run_program(app, "blizzard")


@app.callback(invoke_without_command=True)
def run(
    call: PipelineCall,
    once: Annotated[bool, typer.Option("--once", help="Read what is there, then exit.")] = False,
    dry_run: DryRun = False,
    log_level: MinLogLevel = LogLevel.INFO,
    log_format: LogShape = LogFormat.TEXT,
    _version: Annotated[bool, version_option("blizzard")] = False,
) -> None:
    """Turn NDJSON files into Parquet in the directory of a Delta table, exactly once.

    Without a command it runs until it is stopped, and reads files as they land; with --once it
    reads what is there. `blizzard init FOLDER` writes a configuration to begin with, and
    `blizzard demo` shows it all on sample data.
    """
    if call.has_subcommand:
        return
    call.log_format = log_format
    if dry_run:
        from blizzard.cli.run.dry_run import show_next_batches  # noqa: PLC0415

        show_next_batches(call)
    else:
        from blizzard.cli.run.command import run_pipelines  # noqa: PLC0415

        run_pipelines(call, log_level, once=once)


@app.command(name="warm")
def warm_command(
    again: Annotated[
        bool, typer.Option("--again", help="Replace an archive that is there already.")
    ] = False,
) -> None:
    """Make Spark start faster from now on.

    It saves what Java works out at every start, as a class-data-sharing archive.
    """
    from blizzard.execute.spark.warm import NotMade, warm  # noqa: PLC0415
    from lakebed.units import in_words  # noqa: PLC0415

    try:
        archive = warm(again=again)
    except NotMade as error:
        refuse(str(error), FAILED)
    typer.echo(f"{archive.path} ({in_words(archive.path.stat().st_size)})")
