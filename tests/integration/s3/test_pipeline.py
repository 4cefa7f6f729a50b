"""blizzard and penguin with everything on S3: source, table, dead letter queue."""

import json

import pytest
from deltalake import DeltaTable
from typer.testing import CliRunner

from blizzard.cli import app as blizzard_cli
from lakebed.errors import LakeError, StoreUnavailable
from lakebed.layout import PENDING, file_id
from lakebed.storage import remote
from lakebed.types import Handoff
from tests.support.builders import gz, ndjson, rows
from tests.support.faulty import Cut, Drop, Fault, Refuse, Request, times
from tests.support.s3 import QUICK, options
from tests.support.s3_lake import Lake
from tests.support.spark import shared_runner

BAD = b'{"id": "one"}\n'
STEP_TRIES = 5
"""How often a step is tried with `--once`."""


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Let the store's client try again at once: the programs open their stores by themselves."""
    monkeypatch.setattr(remote, "RETRY", QUICK)


@pytest.fixture
def lake(s3, bucket, tmp_path) -> Lake:
    return Lake(bucket, s3, s3, tmp_path)


@pytest.fixture
def troubled(s3, bucket, tmp_path, proxy) -> Lake:
    """Return a lake that the programs reach through the proxy."""
    return Lake(bucket, proxy.address, s3, tmp_path)


def test_rows_travel_from_a_source_on_s3_to_a_delta_table_on_s3(lake):
    """With options in lower case; those of the other tests are in upper case."""
    lake.spelled = str.lower
    lake.land("a.ndjson", ndjson(rows(3)))
    lake.land("b.ndjson.gz", gz(ndjson(rows(3, 3))))
    lake.drain()
    lake.commit()
    assert lake.ids() == list(range(6))


@pytest.mark.parametrize("handoff", list(Handoff))
def test_files_are_handed_off_on_s3_in_every_way(lake, handoff):
    """L23: once, and nothing stays behind."""
    lake.sink = {"handoff": handoff.value}
    lake.land("a.ndjson", ndjson(rows(3)))
    for _life in range(2):
        lake.drain()
        lake.commit()
    assert lake.ids() == [0, 1, 2]
    left = [facts.path for facts in lake.store("table").objects()]
    (written,) = (path for path in left if path.endswith(".parquet"))
    assert [path for path in left if file_id(path)] == [written]
    assert not [path for path in left if path.startswith(PENDING)]


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


FAULTS: dict[str, tuple[Fault, str]] = {
    "answers-500": (Refuse(500), "store_unavailable"),
    "denied": (Refuse(403), "store_denied"),
    "missing": (Refuse(404), "object_missing"),
    "dropped": (Drop(), "store_unavailable"),
    "cut": (Cut(after=5), "store_unavailable"),
}


def test_source_files_that_cannot_be_read_are_recorded_and_land_later_once(troubled, proxy):
    """L04, L05, L14: the rest goes on, and nothing is lost."""
    for number, name in enumerate((*FAULTS, "good")):
        troubled.land(f"{name}.ndjson", ndjson(rows(3, 10 * number)))

    def trouble(request: Request) -> Fault | None:
        name = request.path.rpartition("/")[2].removesuffix(".ndjson")
        return FAULTS[name][0] if request.method == "GET" and name in FAULTS else None

    proxy.rule = trouble
    troubled.drain()
    found = {line["path"].rpartition("/")[2]: line for line in troubled.letters()}
    assert {line["stage"] for line in found.values()} == {"download"}
    assert {name: line["code"] for name, line in found.items()} == {
        f"{name}.ndjson": code for name, (_fault, code) in FAULTS.items()
    }
    troubled.commit()
    assert troubled.ids() == [50, 51, 52]
    proxy.rule = lambda _request: None
    troubled.drains_later()
    troubled.commit()
    assert troubled.ids() == [10 * file + row for file in range(6) for row in range(3)]


def test_a_refused_upload_is_recorded_and_its_files_land_later_once(troubled, proxy):
    """L03, W16."""
    troubled.land("a.ndjson", ndjson(rows(3)))
    proxy.rule = lambda r: Refuse(403) if r.path.endswith(".parquet") else None
    troubled.drain()
    (line,) = troubled.letters()
    assert (line["stage"], line["code"]) == ("upload", "store_denied")
    proxy.rule = lambda _request: None
    troubled.drains_later()
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
