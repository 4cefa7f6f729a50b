"""What every command of both programs prints about one lake, to be read by a person.

    python -m tests.support.screens [WIDTH]

The lake has a bit of everything: committed and waiting files, one that failed, one that penguin
holds, long names.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from typer.testing import CliRunner

from blizzard.cli.app import app as blizzard_app
from blizzard.cli.surroundings import Surroundings
from penguin.cli.app import app as penguin_app
from tests.support.desk import Desk
from tests.support.runner import inside

LONG = "a-very-long-folder-name/with-another-one-below/2024-05-01T10-00-00-device-0000001.ndjson"
COMMANDS = (
    "blizzard status",
    "blizzard files",
    "blizzard files a",
    "blizzard files --state failed",
    "blizzard why a.ndjson",
    "blizzard why b.ndjson",
    "blizzard why bad.ndjson",
    "blizzard why c.ndjson",
    "blizzard --dry-run",
    "blizzard audit",
    "blizzard audit --deep",
    "blizzard journal",
    "blizzard journal 1",
    "blizzard journal 3",
    "blizzard journal list --limit 2",
    "blizzard journal show 1",
    "blizzard journal new --empty",
    "blizzard dlq list",
    "blizzard dlq show bad.ndjson",
    "blizzard dlq retry --file nothing",
    "blizzard dlq replay --all",
    "blizzard dlq discard --all",
    "blizzard schema show",
    "blizzard schema infer",
    "blizzard schema diff",
    "blizzard schema promote nothing --type string",
    "blizzard source set default --same-files",
    "blizzard top",
    "blizzard trace --where small>0 --limit 2",
    "blizzard gc --older-than 0s",
    "blizzard redo",
    "blizzard retract a.ndjson",
    "blizzard erase --where small>0",
    "blizzard compact",
    "blizzard validate --online",
    "blizzard init {folder}/landing --output -",
    "blizzard handoff set staging",
    "blizzard --once",
    "penguin status",
    "penguin plan",
    "penguin held",
    "penguin history",
    "penguin vacuum",
    "penguin fsck",
    "penguin --dry-run",
    "penguin --once",
    "penguin status",
    "penguin release nothing",
    "penguin discard nothing",
    "penguin adopt {folder}/table",
    "penguin replay",
    "penguin forget",
)


def lake(folder: Path) -> Desk:
    """Return both programs on a table with a bit of everything."""
    desk = Desk(folder)
    desk.holds_a_file()
    desk.landing.write("bad.ndjson", b"{nope\n")
    (desk.landing.folder / "cut.ndjson.gz").write_bytes(b"\x1f\x8b\x08xx")
    desk.landing.land(LONG, 3)
    desk.blizzard()
    desk.landing.land("c.ndjson", 2)
    desk.ends_well()
    return desk


def screens(desk: Desk, width: int | None, *, colour: bool = False) -> Iterator[tuple[str, str]]:
    """Yield each command and what it prints: on a terminal so wide, or into a pipe."""
    env = {"COLUMNS": None if width is None else str(width), "NO_COLOR": "" if colour else "1"}
    if colour:
        env["FORCE_COLOR"] = "1"
    for command in COMMANDS:
        program, *words = command.split()
        words = [word.format(folder=desk.folder) for word in words]
        app = blizzard_app if program == "blizzard" else penguin_app
        if words[:1] != ["init"]:
            words += ["-c", str(desk.file)]
        done = CliRunner().invoke(app, words, env=env, obj=Surroundings(make_runner=inside))
        yield command, done.output


def main() -> None:
    """Print all of them."""
    width = int(sys.argv[1]) if len(sys.argv) > 1 else shutil.get_terminal_size().columns
    with tempfile.TemporaryDirectory() as folder:
        for command, output in screens(lake(Path(folder) / "lake"), width):
            sys.stdout.write(f"$ {command}{os.linesep}{output}{os.linesep}")


if __name__ == "__main__":
    main()
