"""`blizzard demo`: run both programs on sample NDJSON as a user would, and show the table."""

import gzip
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

from lakebed.deltalog.tables import preview
from lakebed.terminal.call import FAILED, refuse
from lakebed.terminal.console import Line, Table, Verbatim, print_text, second
from lakebed.units import plural

CONFIG = """\
# One file for both programs: blizzard reads the top, penguin reads `tables`.
source:
  path: "{folder}/landing"

sink:
  path: "{folder}/table"
  partition_by:
    prefix_template: "date=%Y-%m-%d"

schema:
  fields:
    - {{name: id, type: int64, nullable: false}}
    - {{name: user, type: string}}
    - {{name: action, type: string}}
    - {{name: amount, type: float64}}
    - {{name: member, type: boolean}}
    - {{name: at, type: timestamp}}

tables:
  demo:
    table_uri: "{folder}/table"
"""
DAYS = 3
FILES_A_DAY = 4
ROWS_A_FILE = 10_000
ACTIONS = ("view", "search", "basket", "buy", "return")


def demo(
    folder: Annotated[Path, typer.Option("--dir")] = Path("demo"),
) -> None:
    """Run both programs on sample NDJSON, and show the table.

    Args:
        folder DIR: The folder for the data and the table: new, empty, or of an earlier demo, which
            gets more files.
    """
    config = folder / "pipeline.yaml"
    try:
        prepare(folder, config)
        count, rows = make_sample(folder / "landing")
    except OSError as trouble:
        refuse(f"cannot create {folder}: {trouble.strerror}", FAILED)
    print_text([f"1. {count:,} new NDJSON files, {rows:,} records, in {folder}/landing"])
    for number, program, does in (
        (2, "blizzard", "turns them into Parquet on local Spark"),
        (3, "penguin", "commits the Parquet files to the Delta log"),
    ):
        print_text([Verbatim(f"{number}. {program} -c {config} --once  # {does}")])
        sys.stdout.flush()
        finished = subprocess.run(  # noqa: S603 - our own program, with arguments of our own
            [sys.executable, "-m", program, "-c", str(config), "--once"], check=False
        )
        if finished.returncode:
            refuse(f"{program} failed with exit code {finished.returncode}", finished.returncode)
    print_text([*table_lines(str(folder / "table")), *next_lines(folder, config)])


def prepare(folder: Path, config: Path) -> None:
    """Write the configuration of a demo; refuse a folder with other files."""
    folder.mkdir(parents=True, exist_ok=True)
    text = CONFIG.format(folder=folder)
    paths = text.partition("schema:")[0]
    if config.exists() and config.read_text().startswith(paths):
        return
    if any(folder.iterdir()):
        refuse(f"{folder} has files that no demo wrote; name an empty folder with --dir")
    config.write_text(text)


def next_lines(folder: Path, config: Path) -> Iterator[Line]:
    """Yield commands to run next, each as a line for a shell."""
    yield ""
    yield "Try next:"
    tries = (
        (f"{_program('blizzard')} demo --dir {folder}", "more files arrive; only those are read"),
        (
            f"{_program('blizzard')} -c {config} --dry-run",
            "what would be read now, and why other files would be skipped",
        ),
        (f"{_program('penguin')} -c {config}", "keeps committing what arrives; Ctrl-C ends it"),
    )
    yield from (Verbatim(f"  {command}  # {why}") for command, why in tries)


def _program(name: str) -> str:
    """Return the path of one of our programs as typed in this folder."""
    path = Path(sys.executable).parent / name
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def make_sample(landing: Path) -> tuple[int, int]:
    """Write a few days of shop events: plain, gzip and zstd. A repetition adds new files."""
    earlier = sum(1 for _ in landing.rglob("*.ndjson*")) if landing.exists() else 0
    chance = random.Random(earlier)  # noqa: S311 - sample data, the same on every machine
    first_day = datetime(2024, 1, 1, tzinfo=UTC)
    record = earlier * ROWS_A_FILE
    for day in range(DAYS):
        date = first_day + timedelta(days=day)
        folder = landing / f"date={date:%Y-%m-%d}"
        folder.mkdir(parents=True, exist_ok=True)
        for _ in range(FILES_A_DAY):
            lines = []
            for _ in range(ROWS_A_FILE):
                record += 1
                lines.append(json.dumps(_event(record, date, chance)))
            body = ("\n".join(lines) + "\n").encode()
            name = f"events-{record // ROWS_A_FILE:05d}.ndjson"
            match record // ROWS_A_FILE % 3:
                case 0:
                    (folder / name).write_bytes(body)
                case 1:
                    (folder / f"{name}.gz").write_bytes(gzip.compress(body, 6))
                case _:
                    packed: Any = pa.compress(body, "zstd", asbytes=True)
                    (folder / f"{name}.zst").write_bytes(packed)
    count = DAYS * FILES_A_DAY
    return count, count * ROWS_A_FILE


def table_lines(uri: str) -> Iterator[Line]:
    """Yield the Delta table as a reader sees it."""
    seen = preview(uri, rows=5)
    yield ""
    yield (
        f"The table  {plural(seen.rows, 'row')} in {plural(seen.files, 'file')}, "
        f"Delta version {seen.version}"
    )
    yield Verbatim(Path(uri).absolute())
    titles = [f">{name}" if name in ("id", "amount") else name for name in seen.columns]
    yield Table(titles, [[_value(cell) for cell in row] for row in seen.first_rows])


def _value(cell: object) -> str:
    """Return a value as query engines print it."""
    if cell is None or isinstance(cell, bool):
        return json.dumps(cell)
    # With times to the second, all columns fit into 80 characters.
    return second(cell) if isinstance(cell, datetime) else str(cell)


def _event(number: int, date: datetime, chance: random.Random) -> dict[str, object]:
    at = date + timedelta(seconds=chance.randrange(86_400), microseconds=chance.randrange(10**6))
    action = chance.choice(ACTIONS)
    return {
        "id": number,
        "user": f"user-{chance.randrange(5000):04d}",
        "action": action,
        "amount": round(chance.uniform(1, 200), 2) if action in ("buy", "return") else None,
        "member": chance.random() < 0.3,
        "at": at.isoformat().replace("+00:00", "Z"),
    }
