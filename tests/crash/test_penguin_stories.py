"""What the documents promise of penguin, told with real penguins that are killed and started."""

import json
import signal
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from blizzard.config import load as blizzard_config
from lakebed.clock import Clock
from penguin.cli.app import app
from penguin.cli.run import PenguinSurroundings
from tests.support.builders import Hands
from tests.support.foreign import Directory
from tests.support.landing import Landing, config
from tests.support.pipelines import pipeline_of
from tests.support.processes import finish, run, start
from tests.support.readers import ids
from tests.support.runner import InProcessRunner

NOT_YET = 0.2
UNHEARD = PenguinSurroundings(listen=lambda *_given: None)
"""Signals are for pytest; penguin runs in this process where nobody kills it."""


def blizzard(file: Path) -> None:
    """Let blizzard read what is there. Its own story is told elsewhere, so it needs no Spark."""
    for settings in blizzard_config.load([file], [], {}).pipelines:
        pipeline_of(settings, InProcessRunner()).step()


def penguin(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)], obj=UNHEARD)


def dies(tmp_path: Path, method: str, when: str, match: str) -> dict[str, object]:
    return {
        "method": method, "when": when, "match": match,
        "victim": "self", "spent": str(tmp_path / "spent"),
    }  # fmt: skip


def test_penguin_is_down_while_blizzard_goes_on(tmp_path: Path) -> None:
    """L06: what piled up is committed in order, many entries at a time, once."""
    landing, file = Landing(tmp_path / "landing"), config(tmp_path)
    landing.land("first.ndjson", 5)
    blizzard(file)
    running = start("penguin", "-c", file)
    deadline = time.monotonic() + 300
    while not (tmp_path / "table/_delta_log").exists() or ids(tmp_path / "table") != landing.ids:
        assert time.monotonic() < deadline, "penguin commits what is there"
        time.sleep(NOT_YET)
    running.kill()
    finish(running)
    for number in range(5):
        landing.land(f"{number}.ndjson", 5)
        blizzard(file)
    assert len(ids(tmp_path / "table")) == 5
    ended = penguin("-c", file, "--once", "--output", "json")
    result = json.loads(ended.stdout)
    assert (ended.exit_code, result["commits"], result["entries"]) == (0, 1, 5)
    assert ids(tmp_path / "table") == landing.ids


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_after_the_commit_and_before_the_metas_are_deleted(tmp_path: Path, when: str):
    """D11: the transaction says that they are committed; the next penguin only deletes them."""
    landing, file = Landing(tmp_path / "landing"), config(tmp_path, sink="handoff: staging")
    landing.land("a.ndjson", 5)
    blizzard(file)
    pending = tmp_path / "table/_staging/pending"
    assert list(pending.iterdir())
    ended = run(
        "penguin", "-c", file, "--once",
        doom=dies(tmp_path, "lakebed.storage.store:Store.delete", when, "_staging/pending"),
    )  # fmt: skip
    assert ended.code == -signal.SIGKILL
    assert ids(tmp_path / "table") == landing.ids
    again = penguin("-c", file, "--once", "--output", "json")
    assert (again.exit_code, json.loads(again.stdout)["commits"]) == (0, 0)
    assert list(pending.iterdir()) == []
    assert ids(tmp_path / "table") == landing.ids


def test_a_partial_file_and_a_whole_one_that_nobody_announced(tmp_path: Path) -> None:
    """L09: the whole one is committed, the partial one named; once it is whole it goes in."""
    table = Directory(tmp_path / "table", hands=Hands(at=Clock().seconds()))
    file = tmp_path / "penguin.yaml"
    file.write_text(f"tables:\n  events:\n    table_uri: {table.root}\n")
    table.file(1, 2)
    torn = table.root / table.file(3)
    body = torn.read_bytes()
    torn.write_bytes(body[: len(body) // 2])
    ended = penguin("-c", file, "--once")
    assert table.ids() == [1, 2]
    assert torn.name in ended.stderr
    assert penguin("status", "-c", file).exit_code == 1
    torn.write_bytes(body)
    assert penguin("-c", file, "--once").exit_code == 0
    assert table.ids() == [1, 2, 3]


def test_killed_anywhere_in_a_scan_commit_files_are_in_once(tmp_path: Path) -> None:
    """D11: of files that no journal names the log alone knows."""
    table = Directory(tmp_path / "table", hands=Hands(at=Clock().seconds()))
    file = tmp_path / "penguin.yaml"
    file.write_text(f"tables:\n  events:\n    table_uri: {table.root}\n")
    for number, when in enumerate(("before", "after")):
        table.file(number)
        (tmp_path / "spent").unlink(missing_ok=True)
        ended = run(
            "penguin", "-c", file, "--once",
            doom=dies(tmp_path, "penguin.delta.table:WritableTable.commit", when, ""),
        )  # fmt: skip
        assert ended.code == -signal.SIGKILL
    assert penguin("-c", file, "--once").exit_code == 0
    assert table.ids() == [0, 1]
