"""Secrets wherever they can be given; then every byte that was written or printed is searched."""

import os
import re
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from blizzard.cli import app as blizzard_cli
from blizzard.cli.surroundings import Surroundings as BlizzardSurroundings
from blizzard.config import load as blizzard_config
from blizzard.metrics import METRICS
from lakebed.storage import remote, store_errors
from lakebed.storage.options import StorageOptions
from lakebed.telemetry.events import StepFailed
from lakebed.telemetry.health import HealthPart, PartKind
from lakebed.telemetry.metrics_server import observed
from lakebed.telemetry.settings import Guard
from penguin.cli import app as penguin_cli
from penguin.cli.run import PenguinSurroundings
from penguin.config import load as penguin_config
from tests.support.builders import ndjson, rows
from tests.support.faulty import Fault, Refuse, Request
from tests.support.ports import reserved_pair
from tests.support.runner import inside
from tests.support.s3 import KEY, QUICK, SECRET
from tests.support.s3_lake import Lake
from tests.support.scrape import Pages
from tests.support.waits import Hurry

SESSION = "canary-session-token"
FROM_ENVIRONMENT = "canary-from-the-environment"
IN_SPARK = "canary-in-spark-conf"
METRICS_TOKEN = "canary-metrics-token-0123"
CANARIES = (KEY, SECRET, SESSION, FROM_ENVIRONMENT, IN_SPARK, METRICS_TOKEN)
GOSSIP = "".join(
    f"<Error><Code>X</Code>{one} https://user:{one}@host/x?sig={one}&amp;X-Amz-Signature={one}</Error>"
    for one in CANARIES
).encode()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "RETRY", QUICK)
    monkeypatch.setenv("CANARY", FROM_ENVIRONMENT)
    monkeypatch.setenv("METRICS_TOKEN", METRICS_TOKEN)


@pytest.fixture
def troubled(s3: str, bucket: str, tmp_path: Path, proxy: Any) -> Lake:
    lake = Lake(bucket, proxy.address, s3, tmp_path)
    lake.error_handling = {"on_bad_record": "quarantine", "max_bad_records": 5}
    return lake


def configured(lake: Lake, **more: Any) -> Path:
    """Write a configuration that holds, or refers to, every secret."""
    document = yaml.safe_load(lake.config.read_text())
    for section in (document["source"], document["sink"], document["tables"]["t"]):
        section["storage_options"]["USER_AGENT"] = "${CANARY}"
    document |= {
        "spark": {"conf": {"spark.hadoop.fs.azure.account.key.x": IN_SPARK}},
        "metrics": {"enabled": True, "token": "${METRICS_TOKEN}", **more.pop("metrics", {})},
        **more,
    }
    file = lake.folder / "canaries.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


STATUSES = (400, 403, 404, 500)


class Told:
    """Everything that two programs say, in whatever way."""

    def __init__(self, file: Path, shape: str) -> None:
        self.file, self.shape = file, shape
        self.texts: list[str] = []

    def blizzard(self, *arguments: str, logs: bool = False) -> Result:
        around = BlizzardSurroundings(make_runner=inside, stop=Hurry(), listen=lambda *_given: None)
        return self._run(blizzard_cli.app, around, arguments, logs=logs)

    def penguin(self, *arguments: str, logs: bool = False) -> Result:
        return self._run(penguin_cli.app, PenguinSurroundings(stop=Hurry()), arguments, logs=logs)

    def _run(self, app: Any, around: Any, arguments: tuple[str, ...], *, logs: bool) -> Result:
        talk = ["--log-level", "trace", "--log-format", self.shape] if logs else []
        command = [*arguments, "-c", str(self.file), *talk, "--output", self.shape]
        done = CliRunner().invoke(app, command, obj=around)
        self.texts += [done.stdout, done.stderr, repr(done.exception)]
        if done.exc_info is not None:
            self.texts += traceback.format_exception(*done.exc_info)
        return done


def found_in(texts: list[str]) -> list[str]:
    return [f"{one} in {text[:200]!r}" for text in texts for one in CANARIES if one in text]


@pytest.mark.unbalanced("file_gone")
@pytest.mark.parametrize("shape", ["text", "json"])
def test_no_canary_is_printed_logged_or_written_by_any_command(
    troubled: Lake, proxy: Any, shape: str, tmp_path: Path
):
    """HOLES W17: keys, tokens, variables, Spark's settings; good answers and gossiping ones."""
    with reserved_pair() as (_lower, upper):
        file = configured(troubled, metrics={"address": f"127.0.0.1:{upper}"})
    told = Told(file, shape)
    troubled.land("good.ndjson", ndjson(rows(3)))
    troubled.land("bad.ndjson", b'{"id": "one"}\n')
    for status in STATUSES:
        troubled.land(f"s{status}.ndjson", ndjson(rows(1, 100)))

    def gossiping(request: Request) -> Fault | None:
        said = (status for status in STATUSES if f"s{status}" in request.path)
        status = next(said, None) if request.method == "GET" else None
        return None if status is None else Refuse(status, GOSSIP)

    told.blizzard("--dry-run", logs=True)
    proxy.rule = gossiping
    told.blizzard("--once", logs=True)
    told.penguin("--dry-run", logs=True)
    told.penguin("--once", logs=True)
    assert (troubled.ids(), len(troubled.letters())) == ([0, 1, 2], len(STATUSES))
    commands = [
        ("status",),
        ("audit", "--deep"),
        ("journal", "1"),
        ("why", f"s3://{troubled.bucket}/in/date=2024-01-01/s403.ndjson"),
        ("why", f"s3://{troubled.bucket}/in/date=2024-01-01/good.ndjson"),
        ("dlq", "list"),
        ("schema",),
        ("gc",),
        ("redo",),
        ("trace", "--where", "id = 1"),
    ]
    proxy.rule = lambda _request: None
    for words in commands:
        told.blizzard(*words)
    told.penguin("status")
    proxy.rule = lambda _request: Refuse(403, GOSSIP)
    for words in commands[:4]:
        told.blizzard(*words)
    told.penguin("status")
    proxy.rule = lambda _request: Refuse(500, GOSSIP)
    told.blizzard("--once", logs=True)
    told.penguin("--once", logs=True)
    proxy.rule = lambda _request: None
    for load in (blizzard_config.load, penguin_config.load):
        told.texts.append(repr(load([file], [], os.environ)))
    assert found_in(told.texts) == []
    assert {"store_denied", "store_unavailable"} <= set(re.findall(r"store_\w+", str(told.texts)))
    bucket = troubled.store()
    stored = {facts.path: bucket.get(facts.path) or b"" for facts in bucket.objects()}
    assert any("quarantine" in path for path in stored)
    assert any("_delta_log" in path for path in stored)
    for one in CANARIES:
        assert [path for path, body in stored.items() if one.encode() in body] == []


@pytest.mark.parametrize(
    ("key", "written"),
    [
        ("path", "s3://user:{canary}@bucket/in"),
        ("path", "s3://bucket/in?X-Amz-Signature={canary}"),
        ("path", "az://container/in?sv=2024&sig={canary}"),
        ("path", "https://account.blob.core.windows.net/c?sig={canary}"),
        ("storage_options", {"AWS_ENDPOINT": "not a url {canary}"}),
        ("storage_options", {"AWS_ACCESS_KEY_IDD": "{canary}"}),
        ("storage_options", {"AWS_ENDPOINT": "http://{canary}:9000"}),
        ("compression", "{canary}"),
    ],
)
def test_a_configuration_that_is_refused_repeats_no_canary(
    lake_free: Path, key: str, written: Any, monkeypatch: pytest.MonkeyPatch
):
    """HOLES W17: whether it stands in the file or comes from the environment."""
    monkeypatch.setenv("CANARY", SECRET)
    source: dict[str, Any] = {"path": "s3://bucket/in", key: _filled(written)}
    document = {
        "source": source,
        "sink": {"path": str(lake_free / "table")},
        "schema": {"fields": [{"name": "id", "type": "int64"}]},
    }
    file = lake_free / "refused.yaml"
    file.write_text(yaml.safe_dump(document))
    told = Told(file, "text")
    done = told.blizzard("--dry-run", logs=True)
    assert done.exit_code != 0
    assert found_in(told.texts) == []


def _filled(written: Any) -> Any:
    if isinstance(written, dict):
        return {name: _filled(value) for name, value in written.items()}
    return written.replace("{canary}", "${CANARY}")


@pytest.fixture
def lake_free(tmp_path: Path) -> Path:
    return tmp_path


def test_the_pages_hold_no_canary(tmp_path: Path):
    """HOLES W17: metrics and health, in a step that failed with a message full of them."""
    options = StorageOptions({str(number): one for number, one in enumerate(CANARIES)})
    told = store_errors.explained(f"Generic S3 error: {GOSSIP.decode()}", options)
    pages = Pages(token=METRICS_TOKEN)
    parts = {HealthPart(PartKind.PIPELINE, "default"): 10.0}
    with observed(
        pages.log,
        address="127.0.0.1:0",
        specs=METRICS,
        parts=parts,
        seconds=lambda: 1.0,
        guard=Guard(token=METRICS_TOKEN),
    ) as emit:
        emit(StepFailed(who="default", code="x", error=told, next_try_secs=1.0))
        bodies = [pages.get(path)[2].decode() for path in ("/metrics", "/health", "/")]
        bodies += [str(pages.get(path)[1]) for path in ("/metrics", "/health", "/")]
    assert found_in([*bodies, *map(str, pages.events)]) == []


@pytest.mark.spark
def test_a_run_on_spark_leaves_no_canary_on_disk(s3: str, bucket: str, tmp_path: Path):
    """HOLES W17: not in Spark's event log, its work folders, or whatever was pickled on the way."""
    lake = Lake(bucket, s3, s3, tmp_path)
    for number in range(3):
        lake.land(f"{number}.ndjson", ndjson(rows(3, 3 * number)))
    left = tmp_path / "left"
    for name in ("events", "local", "tmp", "cwd"):
        (left / name).mkdir(parents=True)
    conf = {
        "spark.hadoop.fs.azure.account.key.x": IN_SPARK,
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{left / 'events'}",
        "spark.eventLog.compress": "false",
        "spark.local.dir": str(left / "local"),
    }
    anywhere = {"blizzard_address": "127.0.0.1:0", "penguin_address": "127.0.0.1:0"}
    file = configured(lake, spark={"master": "local[2]", "conf": conf}, metrics=anywhere)
    done = subprocess.run(
        [sys.executable, "-m", "blizzard", "-c", str(file), "--once", "--log-level", "trace"],
        cwd=left / "cwd",
        env={**os.environ, "TMPDIR": str(left / "tmp")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert found_in([done.stdout, done.stderr]) == []
    files = [path for path in left.rglob("*") if path.is_file()]
    assert any((left / "events") in path.parents for path in files)
    holding = [
        (str(path), one) for path in files for one in CANARIES if one.encode() in path.read_bytes()
    ]
    assert holding == []
    lake.commit()
    assert lake.ids() == list(range(9))
