"""penguin's commands on a configuration of one table, in this process."""

from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from penguin.cli.app import app


def penguin(root: Path, *words: str, columns: int = 80, **settings: Any) -> Result:
    """Run a command on the table at a place; its settings are given as YAML writes them."""
    file = root.parent / "penguin.yaml"
    given = {"table_uri": root, **settings}
    lines = (f"    {key}: {value}\n" for key, value in given.items())
    file.write_text(f"tables:\n  events:\n{''.join(lines)}")
    done = CliRunner().invoke(app, [*words, "-c", str(file)], env={"COLUMNS": str(columns)})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done
