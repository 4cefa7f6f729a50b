"""Starts of Spark profit from what an earlier one kept, and never suffer from it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from blizzard.execute.spark.jvm import Archive
from blizzard.execute.spark.session import own_archive, warm
from tests.support.landing import Landing, config
from tests.support.processes import run

pytestmark = pytest.mark.spark

LOOK_INTO_THE_JVM = """
from pathlib import Path
from blizzard.model.settings import SparkSettings
from blizzard.execute.spark.session import start

session = start(SparkSettings(master="local[1]"))
jvm = session.sparkContext._gateway.proc.pid
print(Path(f"/proc/{jvm}/maps").read_text())
"""

RUN_WITHOUT_THE_JVM = """
import os, signal, sys
from pathlib import Path
from blizzard.execute.runner import RunFailed
from blizzard.model.settings import SparkSettings
from blizzard.execute.spark.runner import SparkRunner
from lakebed.clock import Clock
from tests.support.builders import listed, ndjson, put, rows, unit, work

folder = Path(sys.argv[1])
put(folder / "in", "a.ndjson", ndjson(rows(3)))
# Executors know the programs, and not the tests.
job = [unit(listed(folder / "in"))], work(folder / "in", folder / "table", clock=Clock())
runner = SparkRunner(SparkSettings(master="local[1]"))
runner.run(*job)
process = runner._session.sparkContext._gateway.proc
os.kill(process.pid, signal.SIGKILL)
process.wait()
try:
    runner.run(*job)
except RunFailed as failed:
    print(failed)
(outcome,) = runner.run(*job)
print(sum(record.rows for record in outcome.sources), "rows")
"""

KILL_THE_JVM_WHILE_IT_STARTS = """
import os, signal, sys
from py4j.clientserver import ClientServerConnection
from pyspark import SparkContext
from blizzard.execute.runner import RunFailed
from blizzard.execute.spark.runner import SparkRunner
from blizzard.model.settings import SparkSettings

moments = sys.argv[1:]
real = ClientServerConnection.send_command

def send(connection, command, *given, **named):
    if moments and SparkContext._gateway and moments[0] in command:
        del moments[0]
        os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)
    return real(connection, command, *given, **named)

ClientServerConnection.send_command = send
runner = SparkRunner(SparkSettings(master="local[1]"))
while moments:
    left = len(moments)
    try:
        runner._started()
    except RunFailed as failed:
        print(failed)
    assert len(moments) < left
print(runner._started()[0].range(3).count(), "rows")
runner.stop()
"""


@pytest.fixture(scope="module")
def archive() -> Archive:
    """Return the archive of this Java and this Spark; make it where there is none."""
    found = own_archive()
    assert found is not None
    return found if found.there else warm()


def in_cache(archive: Archive, cache: Path) -> Path:
    folder = cache / "blizzard/jvm"
    shutil.copytree(
        archive.path.parent,
        folder,
        ignore=lambda _, names: {name for name in names if not name.startswith(archive.path.stem)},
    )
    return folder / archive.path.name


def jvm_maps(cache: Path) -> str:
    """Start Spark in a process of its own; give the files that its JVM has mapped."""
    return subprocess.run(
        [sys.executable, "-c", LOOK_INTO_THE_JVM],
        env=os.environ | {"XDG_CACHE_HOME": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_a_start_uses_what_an_earlier_start_kept(tmp_path: Path, archive: Archive) -> None:
    """It is in the JVM's memory: a JVM that does not like an archive goes on without it."""
    path = in_cache(archive, tmp_path)
    assert str(path) in jvm_maps(tmp_path)


def test_a_broken_archive_changes_nothing(
    tmp_path: Path, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The JVM starts without it, and says nothing on standard output."""
    landing = Landing(tmp_path / "landing")
    landing.land("events.ndjson", 10)
    broken = in_cache(archive, tmp_path / "cache")
    broken.chmod(0o600)
    size = broken.stat().st_size
    with broken.open("r+b") as file:
        file.seek(size // 2)
        file.write(b"\xff" * 4096)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    ended = run("blizzard", "-c", config(tmp_path), "--once", "--output", "json")

    assert ended.code == 0, ended.err
    assert ended.results[0]["records_processed"] == 10
    assert len(ended.out.splitlines()) == 1, "nothing but the result"


def test_a_spark_that_died_is_started_again_by_the_next_batch(tmp_path: Path) -> None:
    """A process that runs for months must not end with its JVM."""
    ended = subprocess.run(
        [sys.executable, "-c", RUN_WITHOUT_THE_JVM, str(tmp_path)],
        check=False,
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
    )

    assert ended.stdout == "Spark is gone; it is being restarted\n3 rows\n", ended.stderr


def test_modules_of_the_users_folder_stay_out_and_the_log_stays_whole(tmp_path: Path) -> None:
    """HOLES W27, W40: workers do not import what lies where they are started.

    Every line on standard error is one of the log, in its format, the JVM's own lines among them.
    """
    landing = Landing(tmp_path / "landing")
    landing.land("events.ndjson", 10)
    (tmp_path / "here").mkdir()
    for module in ("profile", "random", "numpy", "pyarrow", "lakebed"):
        (tmp_path / "here" / f"{module}.py").write_text("raise SystemExit('a file of the user')\n")
    program = Path(sys.executable).with_name("blizzard")
    arguments = ["-c", str(config(tmp_path)), "--once", "--output", "json"]
    ended = subprocess.run(
        [program, *arguments, "--log-format", "json", "--log-level", "debug"],
        cwd=tmp_path / "here",
        check=False,
        capture_output=True,
        text=True,
    )

    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["records_processed"] == 10
    events = [json.loads(line) for line in ended.stderr.splitlines()]
    assert "SparkDebugLogged" in {each["event"] for each in events}, "the JVM always says something"
    done = [each for each in events if each["event"] == "BatchJournaled"]
    assert [each["rows"] for each in done] == [10]


def test_a_jvm_that_dies_while_spark_starts_is_launched_again() -> None:
    """Before its context is made, and before its session is."""
    ended = subprocess.run(
        [sys.executable, "-c", KILL_THE_JVM_WHILE_IT_STARTS, "JavaSparkContext", "getDefaultS"],
        check=False,
        env=os.environ | {"XDG_CACHE_HOME": "none"},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    *failures, rows = ended.stdout.splitlines()
    assert rows == "3 rows"
    assert [words.startswith("Spark did not start on local[1]: ") for words in failures] == [
        True
    ] * 2
