"""What a command loads, in a process that does nothing else.

Nothing here goes by a clock of its own: modules are counted, and CPU time is compared with that of
a fixed set of imports in the same run.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import blizzard.cli.app as blizzard_cli
from tests.support.tables import Penguin, TableDirectory, rows_of

HEAVY = {
    "deltalake", "numba", "numpy", "pandas", "prometheus_client", "pyarrow", "pyspark", "zstandard",
}  # fmt: skip
"""What takes a tenth of a second to load, or brings along what does."""
ONLY_FOR_WORK = HEAVY | {
    "lakebed.telemetry.events", "logging", "obstore", "pydantic", "rich", "yaml",
}  # fmt: skip
"""What no command needs to say what it can do."""
NOT_FOR_COMMITS = HEAVY | {
    "blizzard", "lakebed.telemetry.metrics_server", "liveview", "penguin.adopt", "penguin.cli.plan",
    "penguin.catalog", "penguin.cli.status", "penguin.operate", "penguin.status", "penguin.upkeep",
    "ssl",
}  # fmt: skip
"""What a commit of entries that wait needs nothing of."""

LOADED = """
import sys
from {program}.cli.app import main
sys.argv = {command!r}
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print(*sorted(sys.modules), file=sys.stderr)
"""
YARDSTICK = "import dataclasses, json, typer, typer.main, yaml, pydantic, rich.table, rich.console"
"""What penguin cannot do without, as far as others wrote it."""


def loaded(*command: str) -> set[str]:
    """Return the packages and modules that a command has loaded when it ends."""
    code = LOADED.format(program=command[0], command=list(command))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    return set(done.stderr.splitlines()[-1].split())


MOST_ROUNDS = 20


def cpu_of(*commands: tuple[str, ...], enough: Callable[[list[float]], bool]) -> list[float]:
    """Return the least CPU time that each of some processes took; they run in turns.

    A neighbour on the machine adds to it, and takes nothing away. So there are more rounds where
    the first ones are not enough, and no bound has to allow for neighbours.
    """
    kept = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    least = [float("inf")] * len(commands)
    for _ in range(MOST_ROUNDS):
        for number, command in enumerate(commands):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(
                [sys.executable, *command], check=True, capture_output=True, env=kept, timeout=300
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            taken = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            least[number] = min(least[number], taken)
        if enough(least):
            break
    return least


@pytest.fixture
def waiting(tmp_path: Path) -> Path:
    """A configuration of a table that has a commit, and an entry that waits for the next."""
    table = TableDirectory(tmp_path / "table")
    table.journal().batch(rows_of(1))
    Penguin(table).drain()
    table.journal().batch(rows_of(2))
    file = tmp_path / "penguin.yaml"
    file.write_text(f"tables: {{events: {{table_uri: {table.root}}}}}\n")
    return file


@pytest.mark.parametrize("program", ["blizzard", "penguin"])
@pytest.mark.parametrize("option", ["--help", "--version"])
def test_what_a_program_can_do_is_said_without_anything_heavy(program: str, option: str):
    assert loaded(program, option) & ONLY_FOR_WORK == set()


def test_an_entry_is_committed_without_anything_heavy(waiting: Path, tmp_path: Path):
    """The log is read and written here; Arrow and the Delta library are for other tasks."""
    found = loaded("penguin", "--once", "-c", str(waiting))
    assert found & NOT_FOR_COMMITS == set()
    assert TableDirectory(tmp_path / "table").versions() == 3  # created, and two appends


def test_results_in_json_need_nothing_that_draws_tables(waiting: Path):
    found = loaded("penguin", "--once", "-c", str(waiting), "--output", "json")
    assert "rich" not in found


def test_a_start_costs_little_more_than_what_others_wrote(waiting: Path):
    """Generous: it is twice as much for a commit, and half of it for help."""

    def is_little(least: list[float]) -> bool:
        yardstick, commit, helped = least
        return commit < 3 * yardstick and helped < 2 * yardstick

    least = cpu_of(
        ("-c", YARDSTICK),
        ("-m", "penguin", "--once", "-c", str(waiting)),
        ("-m", "blizzard", "--help"),
        enough=is_little,
    )
    assert is_little(least), least


def test_a_command_that_is_imported_late_is_listed_as_it_calls_itself():
    """The list has the first line of its help, without importing it."""
    for name, listed in blizzard_cli.BlizzardCommands.deferred().items():
        whole = blizzard_cli.BlizzardCommands.load(name)
        first = whole.help.split("\n\n")[0].replace("\n", " ")
        assert (whole.name, first) == (name, listed.sentence)


def test_a_command_that_is_imported_late_is_suggested_and_helps():
    listed: Any = get_command(blizzard_cli.app)
    assert set(listed.deferred()) < set(listed.commands)
    missed = CliRunner().invoke(blizzard_cli.app, ["statsu"])
    assert "Did you mean 'status'?" in missed.stderr
    helped = CliRunner().invoke(blizzard_cli.app, ["dlq", "retry", "-h"])
    assert "dlq retry" in helped.stdout
