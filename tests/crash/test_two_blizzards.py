"""Two real blizzards on one pipeline: told, taken over from, frozen and woken."""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from blizzard.cli.app import app
from blizzard.cli.surroundings import Surroundings
from blizzard.journal.lease import LeaseRecord, read_lease
from tests.support.landing import Landing, config
from tests.support.processes import Ended, finish, run, start
from tests.support.readers import ids
from tests.support.runner import inside
from tests.support.stores import local

PATIENCE = 240
SLOW_BEAT = {"constants": {"blizzard.journal.lease:BEAT_SECS": 8.0}}
"""Quick enough to be waited for, and slow enough that a busy machine does not miss three."""
QUICK_BEAT = {"constants": {"blizzard.journal.lease:BEAT_SECS": 0.5}}
"""For one that is frozen, so that it need not be waited for."""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def begin() -> Iterator[Start]:
    """Start programs that are gone when the test is over, frozen ones too."""
    started: list[subprocess.Popen[str]] = []

    def begin(*arguments: object, doom: dict[str, Any]) -> "subprocess.Popen[str]":
        started.append(start("blizzard", *arguments, doom=doom))
        return started[-1]

    yield begin
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_for(what: Callable[[], bool], why: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < deadline, why
        time.sleep(0.05)


def writer(tmp_path: Path) -> LeaseRecord | None:
    return read_lease(local(tmp_path / "table"), "default")


def is_writing(tmp_path: Path, process: "subprocess.Popen[str]") -> bool:
    found = writer(tmp_path)
    return found is not None and found.process == process.pid and not found.ended


def is_frozen(process: "subprocess.Popen[str]") -> bool:
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def is_dead(process: "subprocess.Popen[str]") -> bool:
    return process.poll() is not None


def in_this_process(*arguments: object) -> Result:
    """Run a blizzard that nobody stops and that starts no Spark."""
    around = Surroundings(listen=lambda *_given: None, make_runner=inside)
    return CliRunner().invoke(app, [*map(str, arguments)], obj=around)


def said(ended: Ended) -> str:
    return f"{ended.code}: {ended.out}\n{ended.err}"


def test_a_second_blizzard_is_told_and_the_first_goes_on(tmp_path: Path, begin: Start) -> None:
    """Exit 1, with the name of the first; the first's orderly end is noted (HOLES D07)."""
    (tmp_path / "landing").mkdir()
    file = config(tmp_path)
    first = begin("-c", file, doom=SLOW_BEAT)
    wait_for(lambda: is_writing(tmp_path, first), "the first has begun")
    second = in_this_process("-c", file, "--once", "--output", "json")

    assert second.exit_code == 1, second.output
    assert f"process {first.pid}" in second.stderr
    assert "[journal_conflict]" in second.stderr
    assert json.loads(second.stdout)["error"]
    assert is_writing(tmp_path, first)
    first.send_signal(signal.SIGTERM)
    ended = finish(first)
    assert ended.code == 0, said(ended)
    found = writer(tmp_path)
    assert found is not None
    assert found.ended


def test_after_a_kill_the_next_blizzard_starts_at_once(tmp_path: Path, begin: Start) -> None:
    """Its process is gone from this machine, so nobody is waited for (HOLES D07)."""
    (tmp_path / "landing").mkdir()
    file = config(tmp_path)
    first = begin("-c", file, doom=SLOW_BEAT)
    wait_for(lambda: is_writing(tmp_path, first), "the first has begun")
    first.kill()
    first.wait(PATIENCE)
    second = in_this_process("-c", file, "--once")

    assert second.exit_code == 0, second.output
    assert "its process is gone" in second.stderr
    assert "watching for" not in second.stderr


def test_a_signal_ends_the_watch_at_once(tmp_path: Path, begin: Start) -> None:
    """A stop waits for nobody: the second leaves in good order, and nothing was done."""
    (tmp_path / "landing").mkdir()
    file = config(tmp_path)
    first = begin("-c", file, doom={"constants": {"blizzard.journal.lease:BEAT_SECS": 3600.0}})
    wait_for(lambda: is_writing(tmp_path, first), "the first has begun")
    second = begin("-c", file, "--log-format", "json", doom={})
    assert second.stderr is not None
    for line in second.stderr:
        if json.loads(line).get("event") == "OtherWriterWatched":
            break
    second.send_signal(signal.SIGTERM)
    ended = finish(second)

    assert ended.code == 0, said(ended)
    assert is_writing(tmp_path, first)


@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("handoff", "moment"),
    [
        ("journal", {"method": "lakebed.storage.store:Store.upload", "when": "before"}),
        (
            "staging",
            {"method": "lakebed.storage.store:Store.create", "when": "before", "match": "01.json"},
        ),
        (
            "direct",
            {"method": "lakebed.storage.store:Store.create", "when": "after", "match": "01.json"},
        ),
    ],
    ids=["in an upload", "before the entry", "after the entry"],
)
def test_a_frozen_first_is_taken_over_from_and_cannot_write_when_it_wakes(
    tmp_path: Path, begin: Start, handoff: str, moment: dict[str, str]
) -> None:
    """It stops with exit 1 and hands nothing off; every row is in the table once (HOLES D07)."""
    landing = Landing(tmp_path / "landing")
    for number in range(3):
        landing.land(f"events-{number}.ndjson.gz", 100)
    file = config(tmp_path, sink=f"handoff: {handoff}")
    pid, awake = tmp_path / "pid", tmp_path / "awake"
    first = begin(
        "-c", file, "--once",
        doom={
            **moment, **QUICK_BEAT,
            "victim": str(pid), "signal": "SIGSTOP", "spent": str(tmp_path / "spent"),
            "until": str(awake),
        },
    )  # fmt: skip
    pid.write_text(str(first.pid))
    wait_for(lambda: is_dead(first) or is_frozen(first), "the first is frozen in its batch")
    assert not is_dead(first), said(finish(first))
    second = run("blizzard", "-c", file, "--once")
    assert second.code == 0, said(second)
    assert "no heartbeat" in second.err
    assert run("penguin", "-c", file, "--once").code == 0
    assert ids(tmp_path / "table") == landing.ids
    journal = entries_in(tmp_path)
    note = writer(tmp_path)

    awake.touch()
    first.send_signal(signal.SIGCONT)
    woken = finish(first)
    assert woken.code == 1, said(woken)
    assert "[journal_conflict]" in woken.err
    assert entries_in(tmp_path) == journal
    left = writer(tmp_path)
    assert note is not None
    # A beat that was frozen on its way to the disk lands when it wakes; its turn is over.
    assert left == note or (left is not None and left.turn < note.turn)
    assert run("blizzard", "-c", file, "--once").code == 0
    assert entries_in(tmp_path) == journal
    assert run("penguin", "-c", file, "--once").code == 0
    assert ids(tmp_path / "table") == landing.ids


def entries_in(folder: Path) -> dict[str, bytes]:
    """Return the journal's entries; the note of a batch that was started may come and go."""
    files = (folder / "table/_blizzard/default/journal").glob("*.json")
    return {file.name: file.read_bytes() for file in files if ".started" not in file.name}
