"""The whole way of a kind's files: `blizzard init`, what it writes, both programs, the table."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from deltalake import DeltaTable
from typer.testing import CliRunner

from blizzard.cli.app import app
from blizzard.config import load as blizzard_config
from blizzard.execute.runner import Runner
from lakebed.clock import Clock
from lakebed.documents.entry import Entry, decode_entry
from lakebed.documents.reading import adapter_of
from lakebed.storage.store import Store
from penguin.config import load as penguin_config
from tests.support.pipelines import pipeline_of
from tests.support.real_data.kind import Kind
from tests.support.real_data.oracle import Way, ways
from tests.support.tables import commit_table


@dataclass(frozen=True)
class Arrived:
    """A table of which nobody has written a word."""

    rows: list[dict[str, Any]]
    way: Way
    has_found_columns: bool
    """Whether it has others than those that are configured."""


def configured(kind: Kind, root: Path, seed: int, size: int, *arguments: str) -> tuple[Path, str]:
    """Have a configuration written for the files of a kind; return it, and the warnings."""
    for name, body in kind.files(seed, size).items():
        file = root / "in" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body)
    file = root / "pipeline.yaml"
    done = CliRunner().invoke(app, ["init", str(root / "in"), "--output", str(file), *arguments])
    assert done.exit_code == 0, done.output
    return file, done.stderr


def arrived(file: Path, runner: Runner) -> Arrived:
    """Run both programs with a configuration as it is, and read the table."""
    (settings,) = blizzard_config.load([file], [], {}).pipelines
    pipeline = pipeline_of(settings, runner)
    while pipeline.step():
        pass
    (table,) = penguin_config.load([file], [], {}).tables
    commit_table(table, Store(table.table_uri, table.storage_options), lambda _: None, Clock())
    there = pa.table(DeltaTable(table.table_uri).scan().read_all())
    journal = Path(table.table_uri) / "_blizzard/default/journal"
    last = max(journal.glob("*[0-9].json"))
    entry = decode_entry(last.read_bytes(), str(last))
    found = json.loads(adapter_of(Entry).dump_json(entry))["columns"]
    if found is None:
        said = yaml.safe_load(file.read_text())["schema"]["fields"]
    else:
        said = [_said(one) for one in found["fields"]]
    return Arrived(there.to_pylist(), ways(there.schema, said), found is not None)


def _said(one: dict[str, Any]) -> dict[str, Any]:
    """Return a column of the journal as a configuration would have it."""
    reading = one["reading"]
    said = {"name": one["name"], "type": one["type"], **reading}
    if reading["path"]:
        said["from"] = reading["path"]
    if one["fields"]:
        said["fields"] = [_said(each) for each in one["fields"]]
    if one["items"] is not None:
        said["items"] = said["values"] = _said(one["items"])
    return said
