"""What is settled before and after a cluster's executors run: their Python, addresses, reports."""

import os
import pickle
import re
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import Row, SparkSession

from blizzard.config.load import load
from blizzard.execute.runner import ExecutorsUnfit, RunFailed, RunnerDied, WorkersDied
from blizzard.execute.spark.executor_check import DRIVERS_PYTHON, PAGE, own_python, unfit
from blizzard.execute.spark.job import DESCRIPTION, GROUP, POOL, SparkJob, batch_description
from blizzard.execute.spark.runner import SparkRunner
from blizzard.execute.spark.session import (
    WAIT_FOR_EXECUTORS_SECS,
    Jvm,
    await_executors,
    executors_python,
    start,
)
from blizzard.model.progress import Address, Report
from blizzard.model.settings import SparkSettings
from blizzard.model.source.file import ByteRange
from blizzard.worker.progress import ProgressServer
from lakebed.errors import ConfigInvalid, LakeError
from tests.support.builders import source_file, unit, work
from tests.support.cluster import ARCHIVE, ROOT

REPORT = """\
An error occurred while calling o280.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 0.0 failed 4 \
times, most recent failure: Lost task 1.3 in stage 0.0 (TID 6) (127.0.0.1 executor 1): {what}
	at org.apache.spark.api.python.PythonWorkerFactory.startDaemon(PythonWorkerFactory.scala:357)

Driver stacktrace:
	at org.apache.spark.SparkContext.runJob(SparkContext.scala:2519)
"""
"""What Spark 4.2 says, shortened."""

NO_PACKAGE = REPORT.format(
    what="""org.apache.spark.SparkException: \n\
Error from python worker:
  /opt/python/bin/python: Error while finding module specification for \
'blizzard.execute.spark.daemon' \
(ModuleNotFoundError: No module named 'blizzard')
PYTHONPATH was:
  /opt/spark/python/lib/pyspark.zip:/opt/spark/python/lib/py4j-0.10.9.9-src.zip
org.apache.spark.SparkException: EOFException occurred while reading the port number from \
blizzard.execute.spark.daemon's stdout."""
)
OTHER_PYTHON = REPORT.format(
    what="""org.apache.spark.SparkException: \n\
Error from python worker:
  blizzard: this is Python 3.12 and the driver's is 3.11
PYTHONPATH was:
  /opt/spark/python/lib/pyspark.zip"""
)
SPARKS_WORDS = REPORT.format(
    what="pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in "
    "worker has different version: 3.12 than that in driver: 3.11, PySpark cannot run with "
    "different minor versions."
)
NO_PYTHON = REPORT.format(
    what='java.io.IOException: Cannot run program "python3.11": error=2, No such file or directory'
)
DEAD = REPORT.format(what="ExecutorLostFailure (executor 1 exited caused by one of the tasks)")


class Living:
    """A session whose Spark runs, and which nobody may stop: other pipelines have jobs in it."""

    sparkContext: Any  # noqa: N815 - Spark's name

    def __init__(
        self,
        *,
        stopped: bool = False,
        workers_come_up: bool = True,
        raises: BaseException | None = None,
    ) -> None:
        self.ended = False
        self.workers_come_up = workers_come_up
        self.raises = raises
        self.local: dict[str, str | None] = {}
        self.shown: list[tuple[str, str]] = []
        """The pool and the description of each job."""
        self.begun: list[str | None] = []
        self.cancelled: list[str] = []
        is_stopped = SimpleNamespace(isStopped=lambda: stopped)
        self.sparkContext = SimpleNamespace(
            _jsc=SimpleNamespace(sc=lambda: is_stopped),
            setLocalProperty=self.local.__setitem__,
            setJobGroup=lambda group, said: self.local.update({GROUP: group, DESCRIPTION: said}),
            cancelJobGroup=self.cancelled.append,
        )

    def stop(self) -> None:
        self.ended = True

    def range(self, *_numbers: int) -> "Living":
        return self

    def mapInArrow(self, *_how: Any) -> "Living":  # noqa: N802 - Spark's name
        return self

    def collect(self) -> list[Any]:
        self.begun.append(self.local[GROUP])
        self.shown.append((str(self.local[POOL]), str(self.local[DESCRIPTION])))
        if self.raises is not None:
            raise self.raises
        if not self.workers_come_up:
            raise Py4JError(DEAD)
        return []


def explained(
    report: str, living: Living | None = None, *, master: str = "spark://h:7077", begun: bool = True
) -> tuple[LakeError, bool]:
    """Return what a report is taken for, and whether the session was given up for it."""
    living = living or Living()
    one, running = runner(master), cast(SparkSession, living)
    one._session = running
    error = one._explained(Py4JError(report), 3, running, begun=begun)
    assert living.ended == (one._session is None)
    return error, living.ended


class Conf:
    """A session that is asked for its settings alone."""

    def __init__(self, **given: str) -> None:
        self.conf = {key.replace("__", "."): value for key, value in given.items()}


def runner(master: str = "spark://h:7077", **given: Any) -> SparkRunner:
    return SparkRunner(SparkSettings(master=master, **given))


def listening(of: SparkRunner, **conf: str) -> ProgressServer:
    return of._listening(cast(SparkSession, Conf(**conf)))


# ------------------------------------------------------------------------------ jobs


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"batch": 1200}, "orders, batch 1,200: 2 files, 3.0 KiB"),
        ({"batch": 3, "infer_share": 0.5}, "orders, batch 3: columns of 2 files, 3.0 KiB"),
        ({}, "orders: 2 files, 3.0 KiB"),
    ],
)
def test_sparks_ui_shows_pipeline_batch_files_and_bytes(
    tmp_path: Path, given: dict[str, Any], shown: str
) -> None:
    large = source_file("a.ndjson", size=2048)
    parts = [replace(large, part=ByteRange(at, at + 1024)) for at in (0, 1024)]
    units = [unit([parts[0], source_file("b.ndjson", size=1024)]), unit([parts[1]], "8")]
    shared = work(tmp_path, tmp_path, marks={"pipeline": "orders", "journal": "j"}, **given)

    assert batch_description(units, shared) == shown


@pytest.mark.parametrize("raises", [None, KeyboardInterrupt(), Py4JError("no answer")])
def test_a_job_has_a_group_of_its_own_and_is_cancelled_by_it(raises: BaseException | None) -> None:
    """Another pipeline's jobs on the same session run on."""
    living = Living(raises=raises)
    job = SparkJob(
        name="g-1",
        pipeline="orders",
        description="orders, batch 1",
        items={"0": None},
        begin=lambda: lambda _item, _channel: None,
    )
    with nullcontext() if raises is None else pytest.raises(type(raises)):
        job.collect(cast(SparkSession, living))

    assert (living.begun, living.shown) == (["g-1"], [("orders", "orders, batch 1")])
    assert living.cancelled == ([] if raises is None else ["g-1"])
    assert living.local[GROUP] is living.local[DESCRIPTION] is None, "left to the thread's next job"


# ------------------------------------------------------------------------------ reports


@pytest.mark.parametrize(
    ("report", "says"),
    [
        (NO_PACKAGE, ["no module blizzard:", "spark.archives", "make archive"]),
        (NO_PACKAGE.replace("'blizzard')", "'pyarrow')"), ["no module pyarrow:"]),
        (OTHER_PYTHON, ["have Python 3.12 and the driver has 3.11", "spark.pyspark.python"]),
        (SPARKS_WORDS, ["have Python 3.12 and the driver has 3.11"]),
        (NO_PYTHON, ["have no python3.11;", "spark.pyspark.python"]),
    ],
)
def test_executors_that_cannot_work_are_told_with_the_way_out(report: str, says: list[str]) -> None:
    error, given_up = explained(report)

    assert isinstance(error, ExecutorsUnfit)
    assert not given_up
    assert all(part in str(error) for part in says), str(error)
    assert "docs/cluster.md" in str(error)


@pytest.mark.parametrize("report", [NO_PACKAGE, OTHER_PYTHON, SPARKS_WORDS, NO_PYTHON])
def test_a_local_session_of_somebody_else_is_told_to_use_this_python(report: str) -> None:
    """No archive helps there: the workers are on this machine, with another Python."""
    said = unfit(report, local=True)
    assert said is not None
    assert f"PYSPARK_PYTHON to {sys.executable}" in said
    assert "archive" not in said
    assert unfit(DEAD, local=True) is None


@pytest.mark.parametrize(
    ("begun", "workers_come_up", "kind"),
    [(True, False, WorkersDied), (False, True, WorkersDied), (False, False, RunFailed)],
)
def test_workers_that_die_before_any_file_is_read_died_of_none(
    begun: bool, workers_come_up: bool, kind: type[LakeError]
) -> None:
    """HOLES L25: where no unit has reported, a worker without any file says who is to blame."""
    error, given_up = explained(DEAD, Living(workers_come_up=workers_come_up), begun=begun)

    assert type(error) is kind
    assert not given_up


@pytest.mark.parametrize(
    ("master", "begun", "kind"),
    [
        ("local[2,4]", True, RunnerDied),
        ("local[2,4]", False, RunFailed),
        ("spark://h:7077", True, RunFailed),
    ],
)
def test_only_a_spark_that_reads_files_itself_can_have_died_of_one(
    master: str, begun: bool, kind: type[LakeError]
) -> None:
    """HOLES L25: the driver of a cluster reads none."""
    gone = "Job 0 cancelled because SparkContext was shut down"

    assert type(explained(gone, master=master, begun=begun)[0]) is kind


def test_reports_of_a_job_that_is_over_are_not_passed_on() -> None:
    """HOLES W33: an attempt that Spark gave up goes on for a while, in the next batch's time."""
    passed: list[str] = []
    one = runner()
    one._heard = lambda report: passed.append(report.job)
    one._jobs = {"now": set()}
    one._report(Report(unit="p/0", job="before"))
    one._report(Report(unit="p/0", job="now"))

    assert passed == ["now"]
    assert one._jobs == {"now": {"p/0"}}


def test_a_job_that_failed_does_not_cost_other_pipelines_their_session() -> None:
    """Every stack trace of Spark names its context."""
    error, given_up = explained(REPORT.format(what="java.lang.OutOfMemoryError: Java heap space"))

    assert isinstance(error, RunFailed)
    assert "OutOfMemoryError" in str(error)
    assert not given_up


@pytest.mark.parametrize(
    ("report", "stopped"),
    [
        ("Job 0 cancelled because SparkContext was shut down", False),
        ("Job aborted due to stage failure: Master removed our application: KILLED", False),
        ("Cannot call methods on a stopped SparkContext.", True),
    ],
)
def test_a_session_that_is_gone_is_given_up(report: str, stopped: bool) -> None:
    error, given_up = explained(report, Living(stopped=stopped))

    assert str(error) == "Spark is gone; it is being restarted"
    assert given_up


def test_a_start_that_fails_is_told_with_the_master() -> None:
    def fails(_settings: SparkSettings, **_how: Any) -> SparkSession:
        raise Py4JError("java.lang.Exception: All masters are unresponsive! Giving up.\n\tat x.y")

    with pytest.raises(RunFailed, match=r"on spark://h:7077: .*masters are unresponsive"):
        SparkRunner(SparkSettings(master="spark://h:7077"), start=fails)._started()


def test_an_executor_with_another_python_says_so_before_it_imports_anything() -> None:
    """Arrow's own words would be of a missing module, and lead nowhere."""
    ended = subprocess.run(
        [sys.executable, "-m", "blizzard.execute.spark.daemon"],
        check=False,
        env=os.environ | {DRIVERS_PYTHON: "3.99"},
        capture_output=True,
        text=True,
    )

    assert ended.returncode == 1
    assert unfit(ended.stderr) == (
        f"the executors have Python {own_python()} and the driver has 3.99; install the driver's "
        "version on them and set spark.pyspark.python under spark.conf to it, see "
        "docs/cluster.md"
    )


def test_the_page_the_message_and_the_make_target_speak_of_the_same_archive(tmp_path: Path) -> None:
    example = re.findall(r"```yaml\n(.*?)```", (ROOT / PAGE).read_text(), flags=re.DOTALL)[0]
    file = tmp_path / "cluster.yaml"
    file.write_text(example)
    conf = load([file], [], {}).spark.conf

    assert f"{ARCHIVE.relative_to(ROOT)}#" in conf["spark.archives"]
    for key in ("spark.archives", "spark.executorEnv.PYTHONPATH"):
        assert f"{key}: {conf[key]}" in str(unfit(NO_PACKAGE))
    assert conf["spark.archives"].endswith(f"#{conf['spark.executorEnv.PYTHONPATH']}")
    assert f"ARCHIVE := {ARCHIVE.relative_to(ROOT)}\n" in (ROOT / "Makefile").read_text()


def test_the_archive_has_all_that_executors_import() -> None:
    """A new import in the worker's code must be in the `executor` group, or clusters break."""
    code = "import sys, pandas, blizzard.worker.progress, blizzard.worker.unit; print(*sys.modules)"
    said = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout
    providers = metadata.packages_distributions()
    imported = {
        provider.lower().replace("_", "-")
        for module in {name.partition(".")[0] for name in said.split()}
        for provider in providers.get(module, [])
    }
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    assert "pyarrow" in imported
    # Not imported before a store is opened by a profile that leads to its keys.
    imported.add("botocore")
    assert imported - {"blizzard-penguin"} <= with_requirements(groups["executor"])


def with_requirements(names: Iterable[str]) -> set[str]:
    """Return distributions with all that they need, at every depth."""
    found: set[str] = set()
    left = list(names)
    while left:
        name = left.pop().lower().replace("_", "-")
        if name not in found:
            found.add(name)
            needed = (each for each in metadata.requires(name) or () if "extra ==" not in each)
            left += [re.split(r"[^\w.-]", each)[0] for each in needed if "win" not in each]
    return found


# ------------------------------------------------------------------------------ their Python


@pytest.mark.parametrize(
    ("master", "conf", "environ", "python"),
    [
        ("local[2]", {}, {}, sys.executable),
        ("local[2]", {}, {"PYSPARK_PYTHON": "/p"}, "/p"),
        ("spark://h:7077", {}, {}, f"python{own_python()}"),
        ("yarn", {}, {"PYSPARK_PYTHON": "/p"}, "/p"),
        ("yarn", {"spark.pyspark.python": "/q"}, {"PYSPARK_PYTHON": "/p"}, "/q"),
    ],
)
def test_executors_of_a_cluster_are_not_sent_to_the_drivers_own_python(
    master: str, conf: dict[str, str], environ: dict[str, str], python: str
) -> None:
    """A path of this machine means nothing on theirs."""
    assert executors_python(SparkSettings(master=master, conf=conf), environ) == python


# ------------------------------------------------------------------------------ addresses


def test_a_driver_that_executors_would_seek_at_home_is_refused_before_spark_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "python3")
    jvm = Jvm(launch=lambda *_: pytest.fail("Spark was started"))
    settings = SparkSettings(master="spark://h:7077", conf={"spark.driver.host": "localhost"})
    with pytest.raises(ConfigInvalid, match=r"spark\.driver\.host is localhost"):
        start(settings, jvm=jvm)


def test_a_loopback_that_spark_chose_by_itself_is_refused_too() -> None:
    """So it is on a machine whose name stands for its loopback, as Debian sets it up."""
    with pytest.raises(ConfigInvalid, match=r"spark\.driver\.host is 127\.0\.1\.1"):
        listening(runner(), spark__driver__host="127.0.1.1")


def test_tasks_call_the_host_that_executors_know_and_the_driver_listens_where_spark_does() -> None:
    given = {"spark__driver__host": "driver.lan", "spark__driver__bindAddress": "127.0.0.1"}
    server = listening(runner(), **given)
    server.close()

    assert server.address.host == "driver.lan"


def test_a_port_that_is_taken_is_told_with_the_key() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RunFailed, match=rf"port {port} .*spark\.line_port"):
            listening(
                runner("spark://127.0.0.1:7077", line_port=port), spark__driver__host="127.0.0.1"
            )


def test_a_jvm_that_is_gone_before_the_end_is_no_trouble_of_the_run() -> None:
    """A supervisor signals every process of a service; what the run did is told all the same."""

    class Gone(Living):
        def stop(self) -> None:
            super().stop()
            raise ConnectionRefusedError

    one, gone = runner(), Gone()
    one._session = cast(SparkSession, gone)
    one.stop()

    assert gone.ended


def test_that_nobody_could_call_is_told_once_and_not_of_a_job_in_which_one_could(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    told: list[tuple[str, int]] = []
    one = SparkRunner(SparkSettings(), unreached=lambda host, port: told.append((host, port)))
    server = type("Quiet", (), {"address": Address("h", 7078, b"")})
    calls = iter([True, False, False])

    def collect(job: SparkJob[Any], _session: object, _begun: object) -> list[Row]:
        if next(calls):
            one._report(Report(unit="p/0", job=job.name))
        return [Row(item=0, outcome=pickle.dumps("done"))]

    monkeypatch.setattr(one, "_started", lambda: (None, server))
    monkeypatch.setattr(one, "_collect", collect)
    for expected in (0, 1, 1):
        assert len(one.run([unit([])], work(tmp_path, tmp_path))) == 1
        assert len(told) == expected
    assert told == [("h", 7078)]


# ------------------------------------------------------------------------------ their number


def awaited(*counts: int) -> tuple[int, float]:
    """Wait for executors that come as listed, a tenth of a second apart; the last ones stay."""
    at = [0.0]

    def pause(seconds: float) -> None:
        at[0] += seconds

    def count() -> int:
        return counts[min(round(at[0] * 10), len(counts) - 1)]

    return await_executors(count, clock=lambda: at[0], pause=pause), at[0]


def test_executors_are_awaited_until_no_more_come() -> None:
    found, took = awaited(0, 0, 0, 1, 1, 2, 2, 2, 3)

    assert found == 3
    assert took < 3


def test_a_cluster_without_a_free_executor_is_not_waited_for_long() -> None:
    found, took = awaited(0)

    assert found == 0
    assert took == pytest.approx(WAIT_FOR_EXECUTORS_SECS, abs=1)
