"""blizzard from Python, on a session that the caller has, as docs/python.md shows it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

import blizzard
import penguin
from blizzard.execute.spark.runner import checked
from lakebed.config.files import IN_CODE
from tests.support.receiver import receiving

PAGE = Path(__file__).parents[3] / "docs" / "python.md"


def test_faults_of_a_configuration_are_raised_all_at_once() -> None:
    with pytest.raises(blizzard.ConfigInvalid) as invalid:
        blizzard.run({"source": {"path": "/in", "batch_size": 0}, "sink": {"pth": "/table"}})
    assert [each.partition(":")[0] for each in invalid.value.faults] == [
        "source.batch_size",
        "sink.pth",
    ]
    assert all(each.endswith(f"({IN_CODE})") for each in invalid.value.faults)


def test_a_pipeline_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    config = {"source": {"path": str(tmp_path)}, "sink": {"path": str(tmp_path / "t")}}
    with pytest.raises(blizzard.ConfigInvalid, match="no pipeline 'x'; there are: default"):
        blizzard.run(config, pipeline="x")


def test_values_mean_what_they_would_in_yaml(tmp_path: Path) -> None:
    from blizzard.config.load import load  # noqa: PLC0415

    found = load(
        [
            {
                "source": {"path": tmp_path, "poll_interval_secs": 2.5},
                "sink": {"path": str(tmp_path / "t"), "file_size_mb": 1, "partition_by": None},
                "schema": {"fields": [{"name": "a", "type": "long", "nullable": False}]},
            }
        ],
        [],
        {},
    )
    (pipeline,) = found.pipelines
    assert pipeline.poll_interval == 2.5
    assert not pipeline.schema.fields[0].nullable


class FakeConnect:
    """What a session of Spark Connect looks like from here."""


FakeConnect.__module__ = "pyspark.sql.connect.session"


def test_a_session_of_spark_connect_is_refused_in_words() -> None:
    with pytest.raises(blizzard.ConfigInvalid, match="Spark Connect session"):
        checked(FakeConnect())
    with pytest.raises(blizzard.ConfigInvalid, match="must be a SparkSession, is a str"):
        checked("local[*]")


class FarSession(SparkSession):
    """A session whose executors are on other machines, as far as that is asked."""

    def __init__(self) -> None:
        running = SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: False))
        self.told = SimpleNamespace(master="yarn", _jsc=running)

    @property
    def sparkContext(self) -> Any:  # noqa: N802 - Spark's own name
        return self.told


def test_a_local_path_is_refused_on_a_session_with_executors_elsewhere(tmp_path: Path) -> None:
    config = {"source": {"path": str(tmp_path)}, "sink": {"path": "s3://lake/events"}}
    with pytest.raises(blizzard.ConfigInvalid) as invalid:
        blizzard.run(config, spark=FarSession())
    (fault,) = invalid.value.faults
    assert fault.startswith("source.path: is on this machine's disk, but executors of yarn would")


@pytest.mark.spark
def test_the_page_runs_on_a_session_that_stays_open(tmp_path: Path) -> None:
    """Every block of the page in its order, in one Python that has a plain session.

    What the page's configuration sends is received: its batches are traces and lineage.
    """
    landing = tmp_path / "landing"
    landing.mkdir()
    (landing / "a.ndjson").write_text("".join(f'{{"id": {n}}}\n' for n in range(7)))
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    bad = f"""
open({str(landing / "bad.ndjson")!r}, "w").write("{{nope\\n")
for attempt in ("first", "retry"):
    try:
        ingest()
    except RuntimeError as error:
        print(attempt, error)
print('rows', spark.range(5).count())
"""
    with receiving() as collector, receiving() as lineage:
        script = "\n".join(blocks).replace("/data/", f"{tmp_path}/")
        config = {
            "source": {"path": str(landing)},
            "sink": {"path": f"{tmp_path}/tables/events"},
            "tables": {"events": {"table_uri": f"{tmp_path}/tables/events"}},
            "telemetry": {"otlp_endpoint": collector.url, "openlineage_url": lineage.url},
        }
        (tmp_path / "pipeline.yaml").write_text(json.dumps(config))
        told = subprocess.run(
            [sys.executable, "-c", script.replace("http://collector:4318", collector.url) + bad],
            cwd=tmp_path,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert told.returncode == 0, told.stderr
    assert "rows 5" in told.stdout
    assert "7 rows from 1 files" in told.stdout
    assert "version 1: 7 rows" in told.stdout
    assert "first 1 files of default cannot be read" in told.stdout
    assert "retry 1 files of default cannot be read" in told.stdout
    spans = {span["name"] for span in collector.spans}
    assert spans >= {"batch", "discover", "plan", "run", "unit", "journal", "publish"}
    assert [each["eventType"] for each in lineage.documents][:2] == ["START", "COMPLETE"]


def test_a_commit_to_a_path_at_which_nothing_is_makes_no_version(tmp_path: Path) -> None:
    done = penguin.commit(str(tmp_path / "mistyped"))
    assert (done.version, done.commits) == (None, 0)
    assert not (tmp_path / "mistyped").exists()
