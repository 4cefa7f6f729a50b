"""Spark starts: a stop meanwhile is no error, and a JVM that dies meanwhile is started anew."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from blizzard.events import BatchStopped
from blizzard.execute.runner import RunFailed, RunnerDied, RunStopped
from blizzard.execute.spark.runner import SparkRunner
from blizzard.execute.spark.session import Jvm, _drop_jvm, start
from blizzard.model.settings import BlizzardSettings, RollingPolicy, SparkSettings
from blizzard.service import Result, Service
from lakebed.polling import Stop
from lakebed.telemetry.events import Event, StepFailed
from tests.support.builders import entries, ndjson, pipeline_settings, put, rows
from tests.support.spark import archived

LOCAL = SparkSettings(master="local[1]")
Begin = Callable[[Stop], SparkSession]


class Untouched:
    """A session that nothing may be asked of but to end."""

    def stop(self) -> None:
        pass


def killed(stop: Stop) -> SparkSession:
    """Begin a start whose JVM is ended by the signal that asks us to stop."""
    stop.request()
    raise PySparkRuntimeError("Java exited before Spark was up")


def too_late(stop: Stop) -> SparkSession:
    """Begin a start that succeeds once nobody wants it any more."""
    stop.request()
    return cast(SparkSession, Untouched())


def run(root: Path, begin: Begin, *, once: bool = True) -> tuple[Result, list[Event], list[Stop]]:
    """Run one pipeline with one waiting file; return how often Spark was started, too."""
    put(root / "in", "a.ndjson", ndjson(rows(3)))
    stop, heard, starts = Stop(), list[Event](), list[Stop]()

    def begun(_settings: SparkSettings, **_how: Any) -> SparkSession:
        starts.append(stop)
        return begin(stop)

    one = pipeline_settings(root / "in", root / "table", name="one")
    one = replace(one, sink=replace(one.sink, rolling=RollingPolicy(inactivity=0.0)))
    settings = BlizzardSettings(pipelines=(one,), spark=LOCAL)
    (result,) = Service(
        settings=settings,
        emit=heard.append,
        stop=stop,
        once=once,
        make_runner=lambda spark, **told: SparkRunner(spark, start=begun, **told),
    ).run()
    return result, heard, starts


@pytest.mark.parametrize("begin", [killed, too_late])
@pytest.mark.parametrize("once", [True, False])
def test_a_stop_while_spark_starts_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begin: Begin, once: bool
) -> None:
    result, heard, starts = run(tmp_path, begin, once=once)

    assert result.error is None
    assert len(starts) == 1
    assert not [each for each in heard if isinstance(each, StepFailed)]
    (stopped,) = (each for each in heard if isinstance(each, BatchStopped))
    said = "batch 1: stopped before any file was read; the next start reads them"
    assert said in stopped.sentence()
    assert [entry.kind for entry in entries(tmp_path / "table", "one")] == ["open"]
    # Nothing counts against the file: it was not read.
    assert not list((tmp_path / "table/_blizzard/one").rglob("*started*"))


@pytest.mark.parametrize(
    ("begun", "stopping", "kind"),
    [(False, True, RunStopped), (False, False, RunFailed), (True, True, RunnerDied)],
)
def test_a_spark_that_goes_with_a_stop_before_any_unit_began_was_stopped(
    begun: bool, stopping: bool, kind: type[RunFailed]
) -> None:
    """Once a unit has begun, one of its files may have ended Spark."""
    dead = SimpleNamespace(isStopped=lambda: True)
    session: Any = Untouched()
    session.sparkContext = SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: dead))
    one = SparkRunner(LOCAL, stop_requested=lambda: stopping)

    assert type(one._explained(Py4JError("no answer"), 1, session, begun=begun)) is kind


@pytest.mark.parametrize(("stopping", "launches"), [(True, 1), (False, 2)])
def test_a_start_that_a_stop_ends_says_nothing_of_the_archive(
    tmp_path: Path, stopping: bool, launches: int
) -> None:
    """Otherwise it is given up, and Spark started once more without it."""
    archive = archived(tmp_path / "key.jsa")
    launched: list[str] = []

    def launch(master: str, *_how: Any) -> None:
        launched.append(master)
        raise PySparkRuntimeError("Java exited before Spark was up")

    with pytest.raises(PySparkRuntimeError):
        start(
            LOCAL, stop_requested=lambda: stopping, jvm=Jvm(archive=lambda: archive, launch=launch)
        )
    assert len(launched) == launches
    assert archive.there is stopping


class DyingSpark:
    """pyspark as far as a start goes; its first JVM is killed at one step of the start."""

    def __init__(self, step: str, error: Exception) -> None:
        self.step, self.error, self.launched, self.builder = step, error, 0, self

    def master(self, *_given: str) -> "DyingSpark":
        return self

    config = master

    def launch(self, *_given: Any) -> None:
        if SparkContext._gateway is None:
            self.launched += 1
            process = subprocess.Popen(["sleep", "60"])
            SparkContext._gateway = SimpleNamespace(proc=process, shutdown=lambda: None)
        self.reach("launch")

    def getOrCreate(self) -> Any:  # noqa: N802 - pyspark's name
        self.reach("session")
        SparkSession._instantiatedSession = cast(Any, self)
        return self

    @property
    def conf(self) -> Any:
        self.reach("address")
        return SimpleNamespace(get=lambda *_: "127.0.0.1")

    def stop(self) -> None:
        SparkSession._instantiatedSession = None

    def reach(self, step: str) -> None:
        if step == self.step and self.launched == 1:
            cast(Any, SparkContext._gateway).proc.kill()
            raise self.error


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ("launch", ConnectionRefusedError(111, "Connection refused")),
        ("session", TypeError("'JavaPackage' object is not callable")),
        ("session", EOFError()),
        ("address", Py4JNetworkError("Answer from Java side is empty")),
    ],
)
def test_a_jvm_that_dies_while_spark_starts_is_launched_anew_by_the_next_batch(
    monkeypatch: pytest.MonkeyPatch, step: str, error: Exception
) -> None:
    """A call to a JVM that is dead fails in many ways."""
    for name in ("_gateway", "_jvm", "_active_spark_context"):
        monkeypatch.setattr(SparkContext, name, None)
    for name in ("_instantiatedSession", "_activeSession"):
        monkeypatch.setattr(SparkSession, name, None)
    spark = DyingSpark(step, error)
    jvm = Jvm(archive=lambda: None, launch=spark.launch, session=spark)
    runner = SparkRunner(LOCAL, start=partial(start, jvm=jvm))
    with pytest.raises(RunFailed, match="Spark did not start"):
        runner._started()
    assert SparkContext._gateway is None
    runner._started()
    assert spark.launched == 2
    _drop_jvm()
    runner.stop()
