"""Where the JVM's archive lies, who makes it, and what the user's own options do to it."""

import os
import resource
from pathlib import Path

import pytest

from blizzard.execute.spark.cds_archive import (
    Archive,
    archive_of,
    java_options,
    require_files,
    settle,
    unfinished,
)
from lakebed.errors import ConfigInvalid

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
    return Archive(path=tmp_path / "cache/blizzard/jvm/key.jsa")


def made(archive: Archive) -> Archive:
    archive.path.parent.mkdir(parents=True, exist_ok=True)
    part = unfinished(archive)
    part.write_bytes(b"an archive")
    settle(archive, part)
    return archive


@pytest.mark.parametrize("changed", ["spark/jars/spark-core.jar", "java/lib/modules"])
def test_another_spark_or_another_java_has_another_archive(spark_home, environ, tmp_path, changed):
    first = archive_of(spark_home, environ)
    os.utime(tmp_path / changed, ns=(1, 1))
    assert archive_of(spark_home, environ) != first


@pytest.mark.parametrize("cache", ["relative/cache", "/with:colon"])
def test_a_cache_the_jvm_cannot_name_is_not_used(spark_home, environ, cache):
    assert archive_of(spark_home, environ | {"XDG_CACHE_HOME": cache}) is None


@pytest.mark.parametrize("body", [b"", b"an arch", b"an archive and more"])
def test_one_that_is_not_as_long_as_it_was_is_not_used(archive, body):
    """A JVM that maps an archive which was cut short dies of it."""
    made(archive).path.write_bytes(body)
    assert str(archive.path) not in java_options(users="", archive=archive, log_settings=LOG)


def test_it_appears_whole(archive):
    archive.path.parent.mkdir(parents=True)
    part = unfinished(archive)
    part.write_bytes(b"all of it")
    settle(archive, part)
    assert archive.path.read_bytes() == b"all of it"
    assert archive.there
    names = sorted(file.name for file in archive.path.parent.iterdir())
    assert names == ["key.jsa", "key.seal"]


def test_a_collector_of_the_users_choice_replaces_ours():
    """Two collectors named at once keep a JVM from starting."""
    options = java_options(users="-XX:+UseG1GC", archive=None, log_settings=LOG)
    assert "UseSerialGC" not in options


@pytest.mark.parametrize(
    "users", ["-Xshare:off", "-XX:SharedArchiveFile=mine.jsa", "-XX:ArchiveClassesAtExit=mine.jsa"]
)
def test_a_user_who_speaks_of_archives_is_left_alone(archive, users):
    assert str(archive.path) not in java_options(
        users=users, archive=made(archive), log_settings=LOG
    )


def test_a_home_with_a_space_in_its_name_is_one_option(tmp_path):
    archive = made(Archive(path=tmp_path / "my cache/key.jsa"))
    options = java_options(users="", archive=archive, log_settings=LOG)
    assert f'"-XX:SharedArchiveFile={archive.path}"' in options


@pytest.mark.parametrize(
    ("limits", "soft"),
    [((256, 1 << 20), 4096), ((256, 1024), 1024), ((8192, 8192), None), ((-1, -1), None)],
)
def test_spark_gets_the_open_files_that_it_may_have(
    spark_home: Path, monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], soft: int | None
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _which: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _which, now: asked.append(now[0]))
    require_files(spark_home)
    assert asked == ([] if soft is None else [soft])


def test_too_few_open_files_are_named_with_the_way_out(
    spark_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java would say "A JNI error has occurred"."""
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (128, 128))
    with pytest.raises(ConfigInvalid, match=r"may open 128 files.*ulimit -n, LimitNOFILE="):
        require_files(spark_home)
