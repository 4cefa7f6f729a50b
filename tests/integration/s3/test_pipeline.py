"""blizzard and penguin with everything on S3: source, table, dead letter queue."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from deltalake import DeltaTable
from typer.testing import CliRunner, Result

from blizzard.cli import app as blizzard_cli
from blizzard.cli.surroundings import Surroundings as BlizzardSurroundings
from blizzard.config import load as blizzard_config
from blizzard.execute.runner import Runner
from blizzard.pipeline import Pipeline
from lakebed.clock import Clock
from lakebed.errors import LakeError, StoreUnavailable
from lakebed.layout import entry_sequence
from lakebed.storage import remote
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from penguin.cli import app as penguin_cli
from penguin.cli.run import PenguinSurroundings
from tests.support.builders import gz, ndjson, rows
from tests.support.faulty import Cut, Drop, Fault, Refuse, Request, times
from tests.support.pipelines import pipeline_of
from tests.support.runner import InProcessRunner, inside
from tests.support.s3 import KEY, QUICK, SECRET, options
from tests.support.spark import shared_runner
from tests.support.waits import Hurry, hurried

BAD = b'{"id": "one"}\n'
TOKEN = "canary-session-token"
STEP_TRIES = 5
"""How often a step is tried with `--once`."""


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Let the store's client try again at once: the programs open their stores by themselves."""
    monkeypatch.setattr(remote, "RETRY", QUICK)


@dataclass
class Lake:
    """A bucket with a source, a table and a queue, and the configuration that names them."""

    bucket: str
    address: str
    behind: str
    """The store's own address, where the programs may be given a proxy's."""
    folder: Path
    sink: dict[str, Any] = field(default_factory=dict)
    error_handling: dict[str, Any] = field(default_factory=dict)
    spelled: Callable[[str], str] = str.upper

    @property
    def config(self) -> Path:
        given = options(self.address, AWS_SESSION_TOKEN=TOKEN)
        access = {self.spelled(name): value for name, value in given.items()}
        file = self.folder / "pipeline.yaml"
        document = {
            "source": {"path": f"s3://{self.bucket}/in", "storage_options": access},
            "sink": {
                "path": f"s3://{self.bucket}/table",
                "storage_options": access,
                "partition_by": {"prefix_template": "date=%Y-%m-%d"},
                **self.sink,
            },
            "schema": {
                "fields": [
                    {"name": "id", "type": "int64", "nullable": False},
                    {"name": "name", "type": "string"},
                ]
            },
            "error_handling": self.error_handling,
            "tables": {"t": {"table_uri": f"s3://{self.bucket}/table", "storage_options": access}},
        }
        file.write_text(yaml.safe_dump(document))
        return file

    def store(self, folder: str = "") -> Store:
        """Open the bucket at the store itself."""
        uri = f"s3://{self.bucket}/{folder}".rstrip("/")
        return Store(uri, StorageOptions(options(self.behind)))

    def land(self, name: str, body: bytes) -> None:
        self.store("in").create(f"date=2024-01-01/{name}", body)

    def pipeline(self, runner: Runner | None = None, *, hours: float = 0.0) -> Pipeline:
        settings = blizzard_config.load([self.config], [], {})
        clock = hurried(hours=hours) if runner is None else Clock()
        return pipeline_of(settings.pipelines[0], runner or InProcessRunner(), clock=clock)

    def drain(self, runner: Runner | None = None) -> None:
        pipeline = self.pipeline(runner)
        while pipeline.step():
            pass

    def blizzard(self, *arguments: str) -> Result:
        """Run the command line, with units run in this process instead of on Spark."""
        around = BlizzardSurroundings(make_runner=inside, stop=Hurry(), listen=lambda *_given: None)
        command = ["-c", str(self.config), *arguments]
        return CliRunner().invoke(blizzard_cli.app, command, obj=around)

    def penguin(self, *arguments: str) -> Result:
        around = PenguinSurroundings(stop=Hurry())
        command = ["-c", str(self.config), *arguments]
        return CliRunner().invoke(penguin_cli.app, command, obj=around)

    def commit(self) -> None:
        done = self.penguin("--once")
        assert done.exit_code == 0, done.output

    def ids(self) -> list[int]:
        table = DeltaTable(f"s3://{self.bucket}/table", storage_options=options(self.behind))
        found: list[Any] = pa.table(table.scan(["id"]).read_all())["id"].to_pylist()
        return sorted(found)

    def letters(self) -> list[dict[str, Any]]:
        """Read the dead letters that entries name, the way another program would."""
        found = []
        journal = self.store("table/_blizzard/default/journal")
        for facts in sorted(journal.objects(), key=lambda each: each.path):
            if entry_sequence(facts.path) is None:
                continue
            for uri in json.loads(journal.get(facts.path) or b"").get("dlq", ()):
                body = self.store().get(uri.removeprefix(f"s3://{self.bucket}/"))
                assert body is not None
                found += [json.loads(line) for line in body.splitlines()]
        return found


@pytest.fixture
def lake(s3, bucket, tmp_path) -> Lake:
    return Lake(bucket, s3, s3, tmp_path)


@pytest.fixture
def troubled(s3, bucket, tmp_path, proxy) -> Lake:
    """Return a lake that the programs reach through the proxy."""
    return Lake(bucket, proxy.address, s3, tmp_path)


@pytest.mark.parametrize("spelled", [str.upper, str.lower])
def test_rows_travel_from_a_source_on_s3_to_a_delta_table_on_s3(lake, spelled):
    lake.spelled = spelled
    lake.land("a.ndjson", ndjson(rows(3)))
    lake.land("b.ndjson.gz", gz(ndjson(rows(3, 3))))
    lake.drain()
    lake.commit()
    assert lake.ids() == list(range(6))


@pytest.mark.parametrize("handoff", ["staging", "direct"])
def test_files_are_handed_off_on_s3_in_every_way(lake, handoff):
    """L23."""
    lake.sink = {"handoff": handoff}
    lake.land("a.ndjson", ndjson(rows(3)))
    lake.drain()
    lake.commit()
    lake.commit()
    assert lake.ids() == [0, 1, 2]


def test_batches_follow_each_other_and_a_restart_ingests_nothing_again(lake):
    """D01."""
    for number in range(3):
        lake.land(f"{number}.ndjson", ndjson(rows(2, 2 * number)))
        lake.drain()
        lake.commit()
    lake.drain()
    lake.commit()
    assert lake.ids() == list(range(6))
    table = DeltaTable(f"s3://{lake.bucket}/table", storage_options=options(lake.behind))
    assert len(table.file_uris()) == 3


def test_inline_commits_work_on_s3(lake):
    lake.sink = {"commit": "inline"}
    lake.land("a.ndjson", ndjson(rows(3)))
    lake.blizzard("--once")
    assert lake.ids() == [0, 1, 2]


def test_failures_are_recorded_below_the_table_or_where_it_is_said(lake):
    lake.land("bad.ndjson", BAD)
    lake.drain()
    (line,) = lake.letters()
    assert line["path"] == f"s3://{lake.bucket}/in/date=2024-01-01/bad.ndjson"
    assert (line["stage"], line["code"], line["line"]) == ("parse", "wrong_type", 1)
    lake.error_handling = {"dlq_path": f"s3://{lake.bucket}/elsewhere/"}
    lake.land("worse.ndjson", BAD)
    lake.drain()
    (written,) = lake.store("elsewhere").objects()
    assert written.path.startswith("failures-")
    assert [letter["path"].rpartition("/")[2] for letter in lake.letters()] == [
        "bad.ndjson",
        "worse.ndjson",
    ]
    shown = CliRunner().invoke(
        blizzard_cli.app, ["dlq", "list", "-c", str(lake.config), "--output", "json"]
    )
    assert [json.loads(text)["path"].rpartition("/")[2] for text in shown.stdout.splitlines()] == [
        "worse.ndjson",
        "bad.ndjson",
    ]


# ------------------------------------------------------------------------------ trouble


def reads(name: str) -> Callable[[Request], bool]:
    return lambda request: request.method == "GET" and request.path.endswith(name)


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Refuse(500), "store_unavailable"),
        (Refuse(403), "store_denied"),
        (Refuse(404), "object_missing"),
        (Drop(), "store_unavailable"),
        (Cut(after=5), "store_unavailable"),
    ],
    ids=str,
)
def test_a_source_file_that_cannot_be_read_is_recorded_and_lands_later_once(
    troubled, proxy, fault, code
):
    """L04, L05, L14: the rest goes on, and nothing is lost."""
    troubled.land("a.ndjson", ndjson(rows(3)))
    troubled.land("b.ndjson", ndjson(rows(3, 10)))
    proxy.rule = lambda request: fault if reads("a.ndjson")(request) else None
    troubled.drain()
    (line,) = troubled.letters()
    assert (line["stage"], line["code"]) == ("download", code), line
    troubled.commit()
    assert troubled.ids() == [10, 11, 12]
    proxy.rule = lambda _request: None
    later = troubled.pipeline(hours=2)
    while later.step():
        pass
    troubled.commit()
    assert troubled.ids() == [0, 1, 2, 10, 11, 12]


def test_a_refused_upload_is_recorded_and_its_files_land_later_once(troubled, proxy):
    """L03, W16."""
    troubled.land("a.ndjson", ndjson(rows(3)))
    proxy.rule = lambda r: Refuse(403) if r.path.endswith(".parquet") else None
    troubled.drain()
    (line,) = troubled.letters()
    assert (line["stage"], line["code"]) == ("upload", "store_denied")
    proxy.rule = lambda _request: None
    later = troubled.pipeline(hours=2)
    while later.step():
        pass
    troubled.commit()
    assert troubled.ids() == [0, 1, 2]


def test_a_storm_of_503_stops_the_step_and_nothing_is_half_done(troubled, proxy):
    """W01, W16: the pipeline's own backoff takes over."""
    troubled.land("a.ndjson", ndjson(rows(3)))
    pipeline = troubled.pipeline()
    proxy.rule = lambda _request: Refuse(503)
    with pytest.raises(StoreUnavailable):
        pipeline.step()
    proxy.rule = lambda _request: None
    assert pipeline.step()
    troubled.commit()
    assert troubled.ids() == [0, 1, 2]


def test_a_listing_that_breaks_off_takes_no_file_and_moves_nothing(troubled, proxy):
    """L10."""
    troubled.land("a.ndjson", ndjson(rows(3)))
    pipeline = troubled.pipeline()
    proxy.rule = lambda r: Cut(after=300) if r.query.get("prefix") == ["in/"] else None
    with pytest.raises(LakeError):
        pipeline.step()
    assert (
        troubled.store("table/_blizzard/default/journal").head("00000000000000000001.json") is None
    )
    proxy.rule = lambda _request: None
    assert pipeline.step()
    troubled.commit()
    assert troubled.ids() == [0, 1, 2]


@pytest.mark.parametrize(
    ("status", "said"),
    [(503, "the store answered 503"), (403, "refused access; check the permissions")],
)
def test_penguin_says_what_ails_the_log_and_commits_once_it_is_mended(
    troubled, proxy, status, said
):
    """W01, W16: within a bounded time."""
    troubled.land("a.ndjson", ndjson(rows(3)))
    troubled.drain()
    before = len(proxy.record)
    proxy.rule = lambda r: Refuse(status) if "_delta_log" in r.path else None
    done = troubled.penguin("--once")
    assert done.exit_code == 1
    assert said in done.output
    asked = [each for each in proxy.record[before:] if each.path.endswith("_last_checkpoint")]
    assert 0 < len(asked) <= STEP_TRIES * (remote.RETRY["max_retries"] + 1)
    proxy.rule = lambda _request: None
    troubled.commit()
    assert troubled.ids() == [0, 1, 2]


@pytest.mark.parametrize("fault", [Refuse(500), Refuse(503), Drop()], ids=str)
def test_penguin_commits_once_through_passing_trouble(troubled, proxy, fault: Fault):
    """D06."""
    troubled.land("a.ndjson", ndjson(rows(3)))
    troubled.drain()
    proxy.rule = times(3, fault, lambda r: "_delta_log" in r.path)
    troubled.commit()
    troubled.commit()
    assert troubled.ids() == [0, 1, 2]


# ------------------------------------------------------------------------------ secrets


@pytest.mark.parametrize("shape", ["text", "json"])
def test_no_secret_is_printed_logged_or_written_whatever_happens(troubled, proxy, shape):
    """W17."""
    told: list[str] = []
    talk = ("--log-level", "trace", "--log-format", shape, "--output", shape)
    gossip = f"<Error>{KEY} {SECRET} {TOKEN} https://u:{SECRET}@h/?sig={SECRET}</Error>".encode()

    def blizzard(*arguments: str) -> None:
        done = troubled.blizzard(*arguments, *talk)
        told.extend((done.stdout, done.stderr, repr(done.exception)))

    def penguin(*arguments: str) -> None:
        done = troubled.penguin(*arguments, *talk)
        told.extend((done.stdout, done.stderr, repr(done.exception)))

    troubled.land("good.ndjson", ndjson(rows(3)))
    troubled.land("bad.ndjson", BAD)
    statuses = {"s500": 500, "s403": 403, "s400": 400, "s404": 404}
    for name in statuses:
        troubled.land(f"{name}.ndjson", ndjson(rows(1, 100)))

    def gossiping(request: Request) -> Fault | None:
        name = request.path.rpartition("/")[2].partition(".")[0]
        if name in statuses and request.method == "GET":
            return Refuse(statuses[name], gossip)
        return None

    blizzard("--dry-run")
    proxy.rule = gossiping
    blizzard("--once")
    assert len(troubled.letters()) == 5
    proxy.rule = lambda _request: Refuse(500, gossip)
    blizzard("--once")
    blizzard("--dry-run")
    penguin("--once")
    penguin("--dry-run")
    proxy.rule = lambda _request: Refuse(403, gossip)
    blizzard("--once")
    penguin("--once")
    proxy.rule = lambda _request: None
    blizzard("--dry-run")
    penguin("--dry-run")
    penguin("--once")
    assert troubled.ids() == [0, 1, 2]
    settings = blizzard_config.load([troubled.config], [], {})
    told.append(repr(settings))
    listed = CliRunner().invoke(blizzard_cli.app, ["dlq", "list", "-c", str(troubled.config)])
    told.append(listed.output)
    bucket = troubled.store()
    stored = {facts.path: bucket.get(facts.path) or b"" for facts in bucket.objects()}

    together = "\n".join(told)
    assert "store_denied" in together
    assert "store_unavailable" in together
    for secret in (KEY, SECRET, TOKEN):
        assert secret not in together
        assert [path for path, body in stored.items() if secret.encode() in body] == []


# ------------------------------------------------------------------------------ on Spark


@pytest.mark.spark
def test_executors_read_and_write_s3_by_themselves(lake):
    """L13, L15: source, table and dead letter queue on S3, the units on Spark."""
    lake.error_handling = {"dlq_path": f"s3://{lake.bucket}/dead-letters"}
    for number in range(4):
        lake.land(f"{number}.ndjson.gz", gz(ndjson(rows(50, 50 * number))) + gz(b""))
    lake.land("bad.ndjson", ndjson(rows(3, 1000)) + BAD)
    lake.drain(shared_runner())
    lake.commit()
    assert lake.ids() == list(range(200))
    (line,) = lake.letters()
    assert (line["stage"], line["line"]) == ("parse", 4)
