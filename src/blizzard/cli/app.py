"""Arguments and commands; heavy modules are loaded when a command is called."""

import re
from importlib.util import find_spec
from typing import Annotated

import typer

from blizzard.cli.call import PipelineCall
from lakebed.terminal.call import FAILED, USAGE, DryRun, LogShape, MinLogLevel, refuse
from lakebed.terminal.console import print_error
from lakebed.terminal.program import (
    ForwardingGroup,
    program,
    run_program,
    version_option,
)
from lakebed.types import LogFormat, LogLevel


class BlizzardCommands(ForwardingGroup):
    """The commands with modules of their own, each imported when it is called."""

    packages = ("blizzard.cli", "liveview.terminal")


app = program(BlizzardCommands)


def missing() -> list[str]:
    """Return the packages of the extra `blizzard` that are not installed."""
    from importlib.metadata import requires  # noqa: PLC0415 - as slow as the help itself

    of_extra = (each for each in requires("blizzard-penguin") or () if "'blizzard'" in each)
    names = (re.split(r"[^\w-]", each)[0].replace("-", "_") for each in of_extra)
    return [name for name in names if find_spec(name) is None]


def require_packages() -> None:
    """Exit with advice on what to install, unless blizzard is installed completely."""
    if names := missing():
        print_error(
            f"error: blizzard is not installed here, only penguin: {', '.join(names)} "
            f"{'is' if len(names) == 1 else 'are'} missing; "
            "pip install 'blizzard-penguin[blizzard]' installs the rest"
        )
        raise SystemExit(USAGE)


def main() -> None:
    """Run the program."""
    if find_spec("pyspark") is None:
        require_packages()
    run_program(app, "blizzard")


@app.callback(invoke_without_command=True)
def run(
    call: PipelineCall,
    once: bool = False,
    dry_run: DryRun = False,
    log_level: MinLogLevel = LogLevel.INFO,
    log_format: LogShape = LogFormat.TEXT,
    _version: Annotated[bool, version_option("blizzard")] = False,
) -> None:
    """Turn NDJSON files into Parquet in the directory of a Delta table, exactly once.

    Without a command it reads files as they land, until it is stopped; with --once it reads the
    files that are there. `blizzard init FOLDER` writes a first configuration, and `blizzard demo`
    runs everything on sample data.

    Args:
        once: Read the files that are there, then exit.
    """
    if call.has_subcommand:
        return
    call.log_format = log_format
    if dry_run:
        from blizzard.cli.run.dry_run import show_next_batches  # noqa: PLC0415

        show_next_batches(call)
    else:
        require_packages()
        from blizzard.cli.run.command import run_pipelines  # noqa: PLC0415

        run_pipelines(call, log_level, once=once)


@app.command(name="warm")
def warm_command(
    again: bool = False,
) -> None:
    """Make Spark start faster from now on.

    Save Spark's loaded classes as a class-data-sharing archive.

    Args:
        again: Replace an existing archive.
    """
    from blizzard.execute.spark.session import ArchiveFailed, warm  # noqa: PLC0415
    from lakebed.units import in_words  # noqa: PLC0415

    try:
        archive = warm(again=again)
    except ArchiveFailed as error:
        refuse(str(error), FAILED)
    size = in_words(archive.path.stat().st_size)
    typer.echo(f"Spark starts faster from now on: its classes are saved in {archive.path} ({size})")
