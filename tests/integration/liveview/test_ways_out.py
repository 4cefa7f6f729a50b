"""Every command that the page offers can be run as it is, in a configuration of two pipelines."""

import os
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from typer.testing import CliRunner, Result

from blizzard.cli.app import app as blizzard
from blizzard.cli.surroundings import Surroundings
from lakebed.clock import Clock
from lakebed.layout import journal_entry
from lakebed.terminal.call import USAGE
from liveview.answers import Answers
from liveview.lake import lake_of
from liveview.live import Live
from liveview.observer import Observer
from penguin.cli.app import app as penguin
from tests.support.live_lake import PATIENT, LiveLake
from tests.support.runner import inside

NAMES = ("orders", "clicks")
ALL = (*NAMES, "damaged")


def spoiled(root: Path) -> LiveLake:
    """Return two pipelines with many kinds of problems each."""
    lake = LiveLake(root, names=ALL)
    for name in NAMES:
        folder = root / f"{name}-in"
        lake.land(name, "changed.ndjson", 3)
        lake.land(name, "bad.ndjson", 3, bad=2)
        lake.land(name, "retracted.ndjson", 2)
        (folder / "cut.ndjson").write_text('{"id": 1, "na\n{"id": 2, "name": "y"}\n')
        (folder / "lost.ndjson.gz").write_bytes(b"\x1f\x8b nothing of gzip")
        (folder / "broken.ndjson.gz").write_bytes(b"\x1f\x8b nothing of gzip")
        lake.ingest(name)
        lake.commit(name)
        taken = run(f"blizzard -c {lake.file} -p {name} retract retracted.ndjson --yes")
        assert taken.exit_code == 0, taken.output
        lake.commit(name)
        lake.land(name, "changed.ndjson", 4)
        (folder / "lost.ndjson.gz").unlink()
        lake.land(name, "late.ndjson", 5)
        lake.ingest(name)
        lake.land(name, "waits.ndjson", 1)
    lake.land("damaged", "a.ndjson", 1)
    lake.ingest("damaged")
    lake.commit("damaged")
    (root / "damaged-table" / journal_entry("damaged", 1)).write_bytes(b"{")
    return lake


def ways_out(document: Any) -> Iterator[dict[str, Any]]:
    """Yield every way out that a document has, at any depth."""
    if isinstance(document, list):
        for one in document:
            yield from ways_out(one)
    elif isinstance(document, dict):
        found = [document.get("way_out"), *document.get("next", ())]
        yield from (one for one in found if one is not None)
        for one in document.values():
            yield from ways_out(one)


def offered(lake: LiveLake) -> list[str]:
    """Return the commands of all documents of the page."""
    clock = Clock(seconds=lambda: time.time() + 1000)
    view = lake_of(lake.blizzard, [lake.file], [], os.environ)
    live = Live("blizzard", version="0", seconds=clock.seconds)
    observer = Observer(view, live, "blizzard", clock=clock, patience=PATIENT)
    answers = Answers(observer)
    observer.overview()
    observer.settle(PATIENT.first)
    documents: list[Any] = [answers.overview()]
    for name in NAMES:
        documents += [answers.pipeline(name), answers.table(f"{name}-t")]
        found = answers.files(name, search="", limit=50).files
        documents += [answers.journey(name, path=one.path) for one in found]
    observer.close()
    plain = TypeAdapter(list[Any]).dump_python(documents, mode="json")
    return list(dict.fromkeys(each for one in ways_out(plain) for each in one["commands"]))


def run(command: str) -> Result:
    """Run a command as it is; one that starts a program shows what it would do."""
    words, _pipe, _filter = command.partition(" | ")
    program, *arguments = shlex.split(words)
    is_start = "--once" in arguments or not [
        one for one in arguments[2:] if one not in ("-p", *ALL)
    ]
    if program == "penguin":
        return CliRunner().invoke(penguin, [*arguments, *["--dry-run"] * is_start])
    around = Surroundings(make_runner=inside)
    return CliRunner().invoke(blizzard, [*arguments, *["--dry-run"] * is_start], obj=around)


def test_every_command_of_two_pipelines_runs_as_it_is(tmp_path, monkeypatch):
    lake = spoiled(tmp_path)
    monkeypatch.chdir(tmp_path)
    commands = offered(lake)
    refused = {one: done.output for one in commands if (done := run(one)).exit_code == USAGE}

    assert refused == {}
    kinds = (
        "dlq list", "dlq retry", "dlq discard", "dlq show", "journal show",
        "files --state changed", "retract", "--dry-run", "dlq discard --deleted",
    )  # fmt: skip
    assert [kind for kind in kinds if not any(kind in one for one in commands)] == []
    assert all(f"-c {lake.file}" in one for one in commands)
