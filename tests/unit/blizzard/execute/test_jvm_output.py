"""Spark's JVM: what it prints, the archive that it starts from, and memory that workers keep."""

import os
import subprocess
from pathlib import Path

import pytest
from pyspark.errors import PySparkRuntimeError
from typer.testing import CliRunner

from blizzard.cli.app import app
from blizzard.execute.spark.jvm import (
    SPARK_SAID,
    Archive,
    JvmOutput,
    Severity,
    archive_of,
    graded,
    java_options,
    on_standard_error,
)
from blizzard.execute.spark.session import LOG_SETTINGS, did_not_start
from lakebed.errors import ConfigInvalid
from lakebed.telemetry.events import Level
from tests.support.processes import printed
from tests.support.spark import archived
from tests.unit.blizzard.config.test_settings_reach_the_work import written

NOISE, WARNING, ERROR = Severity.NOISE, Severity.WARNING, Severity.ERROR


@pytest.mark.parametrize(
    ("line", "before", "words", "severity"),
    [
        (
            "WARNING: Using incubator modules: jdk.incubator.vector",
            ERROR,
            "WARNING: Using incubator modules: jdk.incubator.vector",
            NOISE,
        ),
        (
            'Setting default log level to "WARN".',
            ERROR,
            'Setting default log level to "WARN".',
            NOISE,
        ),
        (
            "2026-11-16 10:36:44 WARN  spark: Lost task 0.0 in stage 0.0",
            NOISE,
            "Lost task 0.0 in stage 0.0",
            WARNING,
        ),
        ("2026-11-16 10:36:44 ERROR spark: gone", NOISE, "gone", ERROR),
        ("26/11/16 10:36:44 WARN Utils: a host", NOISE, "Utils: a host", WARNING),
        ("26/11/16 10:36:44 INFO Utils: a host", ERROR, "Utils: a host", NOISE),
        ("\tat org.apache.spark.Nowhere", ERROR, "\tat org.apache.spark.Nowhere", ERROR),
        ("Caused by: java.lang.Error: x", WARNING, "Caused by: java.lang.Error: x", WARNING),
        ("Exception in thread main: x", NOISE, "Exception in thread main: x", ERROR),
        ("# A fatal error has been detected", NOISE, "# A fatal error has been detected", ERROR),
        ("Segmentation fault", NOISE, "Segmentation fault", WARNING),
        ("INFORMATION is no level", NOISE, "INFORMATION is no level", WARNING),
    ],
)
def test_a_line_of_the_jvm_matters_as_much_as_it_says(
    line: str, before: Severity, words: str, severity: Severity
) -> None:
    """HOLES W40: errors are kept, what is printed at each start is told to who asks for it."""
    assert graded(line, before) == (words, severity)


def test_our_own_settings_of_sparks_log_are_understood() -> None:
    """The pattern that the JVM is given, and the one that is looked for."""
    pattern = (
        LOG_SETTINGS.read_text()
        .partition("appender.stderr.layout.pattern = ")[2]
        .partition("\n")[0]
    )
    line = pattern.replace("%d{yyyy-MM-dd HH:mm:ss}", "2026-11-16 10:36:44")
    line = line.replace("%-5p", "WARN ").replace("%m", "a word").partition("%n")[0]

    assert graded(line, ERROR) == ("a word", WARNING)


def test_every_line_comes_through_the_pipe_and_blank_ones_do_not() -> None:
    """HOLES W40: also one without an end, and bytes that are no text."""
    heard: list[tuple[str, Severity]] = []
    listener = JvmOutput(lambda line, severity: heard.append((line, severity)))
    with listener.pipe() as handle:
        subprocess.run(
            ["sh", "-c", r"printf 'one\n\n  \n'; printf 'Error: two \377\n three' >&2"],
            stdout=handle,
            stderr=handle,
            check=True,
        )

    assert listener.last == ("one", "Error: two �", " three")
    assert heard == [("one", WARNING), ("Error: two �", ERROR), (" three", ERROR)]


def test_each_severity_has_its_level_in_the_log() -> None:
    """HOLES W40."""
    levels = {severity: SPARK_SAID[severity].level for severity in Severity}

    assert levels == {NOISE: Level.DEBUG, WARNING: Level.WARN, ERROR: Level.ERROR}
    assert SPARK_SAID[ERROR](line="it broke").sentence() == "spark: it broke"


def test_without_a_log_what_may_matter_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    on_standard_error("noise", NOISE)
    on_standard_error("trouble", WARNING)

    assert capsys.readouterr().err == "trouble\n"


@pytest.mark.parametrize(
    ("last", "says"),
    [
        (
            ("Picked up _JAVA_OPTIONS: -Xmx9", "Invalid maximum heap size: -Xmx9", "Error: no VM"),
            "no VM",
        ),
        (("only this",), "only this"),
        ((), "it printed nothing"),
    ],
)
def test_a_jvm_that_ends_before_it_answers_is_told_by_its_own_words(
    last: tuple[str, ...], says: str
) -> None:
    """HOLES W41: not by those of a library that waited for it."""
    error = did_not_start(last)

    assert isinstance(error, PySparkRuntimeError)
    assert says in str(error)


def test_a_java_that_is_too_old_is_a_fault_of_the_configuration() -> None:
    """HOLES W41."""
    error = did_not_start(("java.lang.UnsupportedClassVersionError: class file version 61.0",))

    assert isinstance(error, ConfigInvalid)
    assert "Java 17 or newer" in str(error)


@pytest.mark.parametrize("home", [None, "/nowhere/jdk"])
def test_a_missing_java_ends_the_program_with_2_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str | None
) -> None:
    """HOLES W41: and not in the fifth attempt at a batch, days later."""
    file = written(tmp_path)
    (tmp_path / "in" / "a.ndjson").write_text('{"id": 1}\n')
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if home is not None:
        monkeypatch.setenv("JAVA_HOME", home)
    answer = CliRunner().invoke(app, ["-c", file, "--once"])

    assert answer.exit_code == 2
    assert "Java 17 or newer" in answer.stderr
    assert "JAVA_HOME" in answer.stderr
    assert not (tmp_path / "table").exists()


LOG = Path("/tmp/log4j2.properties")


@pytest.fixture
def spark_home(tmp_path: Path) -> Path:
    home = tmp_path / "spark"
    (home / "jars").mkdir(parents=True)
    (home / "jars/spark-core.jar").write_bytes(b"classes")
    return home


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "java/bin").mkdir(parents=True)
    (tmp_path / "java/lib").mkdir()
    (tmp_path / "java/bin/java").write_bytes(b"")
    (tmp_path / "java/lib/modules").write_bytes(b"17")
    return {"JAVA_HOME": str(tmp_path / "java"), "XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return archived(tmp_path / "cache/blizzard/jvm/key.jsa")


@pytest.mark.parametrize("changed", ["spark/jars/spark-core.jar", "java/lib/modules"])
def test_another_spark_or_another_java_has_another_archive(spark_home, environ, tmp_path, changed):
    first = archive_of(spark_home, environ)
    os.utime(tmp_path / changed, ns=(1, 1))
    assert archive_of(spark_home, environ) != first


@pytest.mark.parametrize("cache", ["relative/cache", "/with:colon"])
def test_a_cache_the_jvm_cannot_name_is_not_used(spark_home, environ, cache):
    assert archive_of(spark_home, environ | {"XDG_CACHE_HOME": cache}) is None


def test_it_appears_whole(archive):
    assert archive.path.read_bytes() == b"an archive"
    assert archive.there
    names = sorted(file.name for file in archive.path.parent.iterdir())
    assert names == ["key.jsa"]


def test_a_collector_of_the_users_choice_replaces_ours():
    """Two collectors named at once keep a JVM from starting."""
    options = java_options(users="-XX:+UseG1GC", archive=None, log_settings=LOG)
    assert "UseSerialGC" not in options


@pytest.mark.parametrize(
    "users", ["-Xshare:off", "-XX:SharedArchiveFile=mine.jsa", "-XX:ArchiveClassesAtExit=mine.jsa"]
)
def test_a_user_who_speaks_of_archives_is_left_alone(archive, users):
    assert str(archive.path) not in java_options(users=users, archive=archive, log_settings=LOG)


def test_a_home_with_a_space_in_its_name_is_one_option(tmp_path):
    archive = archived(tmp_path / "my cache/key.jsa")
    options = java_options(users="", archive=archive, log_settings=LOG)
    assert f'"-XX:SharedArchiveFile={archive.path}"' in options


FAULTS = """
import resource, sys
import numpy as np

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

if sys.argv[1] == "keeps":
    from blizzard.execute.spark.daemon import keep_freed_memory
    keep_freed_memory()
for _ in range(2):  # what the first batches take is never there before
    arrays = [np.ones(size << 20, np.uint8) for size in (1, 2, 4, 4, 8, 8, 8)]
    del arrays
before = faults()
for _ in range(3):
    arrays = [np.ones(size << 20, np.uint8) for size in (1, 2, 4, 4, 8, 8, 8)]
    del arrays
print(faults() - before)
"""


def faults(how: str) -> int:
    """Count the pages that the system hands out while arrays of the same sizes come and go."""
    (counted,) = printed(FAULTS, how)
    assert isinstance(counted, int)
    return counted


def test_arrays_of_the_same_sizes_take_no_pages_anew():
    assert faults("keeps") < faults("gives back") / 10
