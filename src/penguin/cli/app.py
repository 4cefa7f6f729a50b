"""The program penguin: its commands and its run, each imported when it is called."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from lakebed.terminal.call import Call, DryRun, LogShape, MinLogLevel, reading
from lakebed.terminal.program import (
    ForwardingGroup,
    program,
    run_program,
    version_option,
)
from lakebed.types import LogFormat, LogLevel

if TYPE_CHECKING:
    from lakebed.storage.store import Store
    from penguin.model.settings import PenguinSettings, TableSettings


@dataclass(kw_only=True)
class TableCall(Call):
    """A call for the tables of a configuration."""

    def settings(self) -> "PenguinSettings":
        """Load the configuration."""
        from penguin.config import load  # noqa: PLC0415 - help is printed without it
        from penguin.rules import refused_properties  # noqa: PLC0415

        return load.load(self.files or [], self.folders or [], os.environ, refused_properties)

    def tables(self) -> "tuple[TableSettings, ...]":
        """Load the tables of the configuration."""
        return self.settings().tables

    @contextmanager
    def store(self, table: "TableSettings") -> "Iterator[Store | None]":
        """Open a table's directory, if it exists, and show that it is being read."""
        from penguin.pipeline import open_store  # noqa: PLC0415 - help is printed without it

        with reading(table.name, self.output):
            yield open_store(table)


def unclaimed(settings: "PenguinSettings") -> "Iterator[str]":
    """Yield a sentence for each configured sink that penguin commits nothing from."""
    for pipeline, uri in settings.unclaimed.items():
        yield (
            f"pipeline {pipeline} writes to {uri}, which is not the table_uri of any table: "
            "penguin commits nothing from there"
        )


LEFT_OUT = "file=path code reason"
"""The JSON keys of a foreign file that is not committed."""


def known(document: dict[str, Any], error: str | None) -> dict[str, Any]:
    """Return a document about a table; its facts are null if the table cannot be read."""
    if error is None:
        return document
    kept = ("table", "table_uri", "error")
    return {key: value if key in kept else None for key, value in document.items()}


def document_of(table: "TableSettings") -> dict[str, str]:
    """Return the first keys of every document about a table."""
    return {"table": table.name, "table_uri": table.table_uri}


def sentence(error: BaseException | None) -> str | None:
    """Return the message of an error; None without one."""
    return None if error is None else str(error) or type(error).__name__


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
