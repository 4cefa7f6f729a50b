"""A panic of a Rust library is no Exception; it is told all the same, and is one file's trouble."""

import json
import os
import signal
import threading
import time

import pytest
import yaml
from typer.testing import CliRunner

from blizzard.cli.app import app
from blizzard.cli.surroundings import Surroundings
from lakebed.storage.store import Store
from tests.support.builders import Bench, ndjson, pipeline_settings, put, rows
from tests.support.runner import InProcessRunner, InsideService
from tests.support.scrape import Pages
from tests.support.stores import Far, opened_as


class PanicException(BaseException):
    """What a panic of a Rust library looks like in Python."""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_panic_in_one_pipeline_is_told_and_the_others_go_on(tmp_path):
    """W01: no `except Exception` sees a panic; health and the exit code must tell of it."""
    pages = Pages()
    panicked, seen = threading.Event(), []

    class RunsOrPanics(InsideService):
        def run(self, units, work):
            if work.marks["pipeline"] == "bad":
                panicked.set()
                raise PanicException("the core panicked")
            assert panicked.wait(300)
            deadline = time.monotonic() + 300
            while (found := pages.health())[0] == 200 and time.monotonic() < deadline:
                time.sleep(0.05)
            seen.append(found)
            os.kill(os.getpid(), signal.SIGTERM)
            return super().run(units, work)

    around = Surroundings(make_runner=lambda _spark, **_told: RunsOrPanics(), also=pages.log)
    for name in ("bad", "good"):
        put(tmp_path / name, "a.ndjson", ndjson(rows(3)))
    file = tmp_path / "pipeline.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "pipelines": {
                    name: {
                        "sources": {"in": {"path": str(tmp_path / name)}},
                        "sink": {
                            "path": str(tmp_path / "tables" / name),
                            "inactivity_timeout_secs": 1,
                        },
                        "schema": {"fields": [{"name": "id", "type": "int64"}]},
                    }
                    for name in ("bad", "good")
                },
                "metrics": {"enabled": True, "address": "127.0.0.1:0"},
            }
        )
    )
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        answer = CliRunner().invoke(app, ["-c", str(file), "--output", "json"], obj=around)
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
    status, health = seen[0]
    assert status == 503
    assert health["pipelines"]["bad"]["status"] == "ended"
    assert answer.exit_code == 1
    assert "the core panicked" in answer.stderr
    results = {each["pipeline"]: each for each in map(json.loads, answer.stdout.splitlines())}
    assert "panicked" in results["bad"]["error"]
    assert results["good"]["error"] is None
    assert results["good"]["files_processed"] == 1


class PanickingReader(Far):
    def stream(self, path: str, **how):
        if "bad" in path:
            raise PanicException("called unwrap on nothing")
        return super().stream(path, **how)


class PanickingStore(Store):
    def upload(self, *arguments, **named):
        raise PanicException("called unwrap on nothing")


def test_a_panic_in_a_download_is_that_files_failure_and_the_rest_goes_on(tmp_path):
    """W19: else the job fails, and fails again with every try."""
    runner = InProcessRunner(opened_as(reader=PanickingReader))
    put(tmp_path / "in", "bad.ndjson", ndjson(rows(3)))
    put(tmp_path / "in", "good.ndjson", ndjson(rows(3)))
    bench = Bench(pipeline_settings(tmp_path / "in", tmp_path / "table"), runner=runner)
    pipeline = bench.pipeline()
    assert pipeline.step()
    assert pipeline.statistics.files_processed == 1
    assert pipeline.statistics.files_failed == 1
    assert "library_panicked" in str(bench.events)
    assert "called unwrap on nothing" in str(bench.events)


def test_a_panic_in_an_upload_is_the_failure_of_its_files(tmp_path):
    """W19."""
    runner = InProcessRunner(opened_as(store=PanickingStore))
    put(tmp_path / "in", "a.ndjson", ndjson(rows(3)))
    bench = Bench(pipeline_settings(tmp_path / "in", tmp_path / "table"), runner=runner)
    pipeline = bench.pipeline()
    assert pipeline.step()
    assert pipeline.statistics.files_failed == 1
    assert "library_panicked" in str(bench.events)
