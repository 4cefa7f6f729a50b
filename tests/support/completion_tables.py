"""The tables that completion in the shell goes by, made from the commands themselves.

python -m tests.support.completion_tables
"""

import json
from pathlib import Path
from typing import Any

from typer.main import get_group

import blizzard.cli.app
import penguin.cli.app
from lakebed.terminal.completion import TABLE, described

ROOT = Path(__file__).parents[2] / "src"
PROGRAMS: dict[str, Any] = {"blizzard": blizzard.cli.app, "penguin": penguin.cli.app}


def file_of(program: str) -> Path:
    """Return where the table of a program is."""
    return ROOT / program / "cli" / TABLE


def table(program: str) -> str:
    """Return what the commands take that are imported when they are called."""
    group: Any = get_group(PROGRAMS[program].app)
    told = {
        name: {"help": one.help, **described(one.load(name))}
        for name, one in group.deferred.items()
    }
    return json.dumps(told, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for each in PROGRAMS:
        file_of(each).write_text(table(each))
