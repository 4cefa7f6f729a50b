"""Arguments and commands. What is heavy is loaded when a command is called, not before."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from blizzard.cli.options import One
from lakebed.telemetry.levels import LogFormat, LogLevel
from lakebed.terminal.arguments import (
    FAILED,
    DeferredCommand,
    Files,
    Folders,
    ForwardingGroup,
    Least,
    LineShape,
    Output,
    Shape,
    program,
    run_program,
    version_option,
)
from lakebed.terminal.console import say_error


class Commands(ForwardingGroup):
    """The commands that are modules of their own, each imported when it is called."""

    deferred: ClassVar[Mapping[str, DeferredCommand]] = {
        "init": DeferredCommand(
            "blizzard.cli.init",
            "init",
            "Look at files and write a configuration for them.",
        ),
        "validate": DeferredCommand(
            "blizzard.cli.validate",
            "validate",
            "Check a configuration for both programs, and say what it would do.",
        ),
        "status": DeferredCommand(
            "blizzard.cli.status",
            "status",
            "Show what is waiting, what failed and what is committed.",
        ),
        "top": DeferredCommand(
            "liveview.terminal.command",
            "top",
            "Watch all pipelines and tables in the terminal.",
        ),
        "audit": DeferredCommand(
            "blizzard.cli.audit",
            "audit",
            "Prove from metadata that each table holds what its journals say, "
            "or show the differences.",
        ),
        "files": DeferredCommand(
            "blizzard.cli.files.command",
            "files_command",
            "Show what landed on each day, and whether everything of it is in the table.",
        ),
        "why": DeferredCommand(
            "blizzard.cli.why",
            "why",
            "Show why a file is not in the table, or how it got there.",
        ),
        "gc": DeferredCommand(
            "blizzard.cli.gc",
            "gc",
            "Show or delete the files that failed attempts have left behind.",
        ),
        "redo": DeferredCommand(
            "blizzard.cli.redo",
            "redo",
            "Read source files again whose rows are not in the table.",
        ),
        "retract": DeferredCommand(
            "blizzard.cli.rows.retract",
            "retract",
            "Take the rows of source files out of the table, "
            "or put those of another in their place.",
        ),
        "erase": DeferredCommand(
            "blizzard.cli.rows.erase",
            "erase",
            "Take rows out of the table by their values, and show what still holds them.",
        ),
        "compact": DeferredCommand(
            "blizzard.cli.rows.compact",
            "compact",
            "Merge the small data files of each partition into files of about file_size_mb.",
        ),
        "trace": DeferredCommand(
            "blizzard.cli.trace",
            "trace",
            "Show which source file and line rows of the table came from.",
        ),
        "journal": DeferredCommand(
            "blizzard.cli.journal.commands",
            "app",
            "Look at the journal, which has a numbered entry for each batch, or begin a new one.",
        ),
        "dlq": DeferredCommand(
            "blizzard.cli.dlq.commands",
            "app",
            "Show which source files failed and which bad lines are set aside, "
            "or have them read again.",
        ),
        "schema": DeferredCommand(
            "blizzard.cli.schema.commands",
            "app",
            "Show the columns, find them in files, or compare them with the table.",
        ),
        "source": DeferredCommand(
            "blizzard.cli.source",
            "source_app",
            "Tell blizzard that the files of a source have moved.",
        ),
        "handoff": DeferredCommand(
            "blizzard.cli.handoff",
            "app",
            "Change how files are handed off to penguin.",
        ),
    }


app = program(Commands)


def main() -> None:
    """Run the program."""
    run_program(app, "blizzard")


@app.callback(invoke_without_command=True)
def run(
    context: typer.Context,
    files: Files = None,
    folders: Folders = None,
    pipeline: One = None,
    once: Annotated[bool, typer.Option("--once", help="Read what is there, then exit.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done; write nothing.")
    ] = False,
    log_level: Least = LogLevel.INFO,
    log_format: LineShape = LogFormat.TEXT,
    output: Shape = Output.TEXT,
    _version: Annotated[bool, version_option("blizzard")] = False,
) -> None:
    """Turn NDJSON files into Parquet in the directory of a Delta table, exactly once.

    Without a command it runs until it is stopped, and reads files as they land; with --once it
    reads what is there. `blizzard init FOLDER` writes a configuration to begin with, and
    `blizzard demo` shows it all on sample data.
    """
    if context.invoked_subcommand is not None:
        return
    from blizzard.cli.run.command import run_pipelines  # noqa: PLC0415

    code = run_pipelines(
        context,
        files,
        folders,
        pipeline,
        once=once,
        dry_run=dry_run,
        log_level=log_level,
        log_format=log_format,
        output=output,
    )
    raise typer.Exit(code)


@app.command(name="demo")
def demo_command(
    folder: Annotated[
        Path, typer.Option("--dir", metavar="DIR", help="Where to put the data and the table.")
    ] = Path("demo"),
) -> None:
    """Run both programs on sample NDJSON, and show the table."""
    from rich.console import Console  # noqa: PLC0415

    from blizzard.cli import demo  # noqa: PLC0415

    raise typer.Exit(demo.run(folder, Console()))


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
        say_error(f"error: {error}")
        raise typer.Exit(FAILED) from error
    typer.echo(f"{archive.path} ({in_words(archive.path.stat().st_size)})")
