"""Failures and faults behind the live page; every answer is as the OpenAPI document says."""

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from lakebed.clock import Clock
from lakebed.errors import StoreUnavailable
from lakebed.layout import journal_entry, log_version
from lakebed.storage.store import Reader
from lakebed.telemetry.http import Request
from liveview.answers import Answers
from liveview.api import Api, ViewFailed
from liveview.lake import joined
from liveview.live import Live
from liveview.observer import ANSWER_SECS, Observer
from liveview.routes import text
from tests.support.live_lake import CANARY, PATIENT, LiveLake


@dataclass
class Asking:
    """An API without a server, on stores that count what is asked of them, and are told to fail."""

    lake: LiveLake
    clock: Clock = field(default_factory=Clock)
    program: Literal["blizzard", "penguin"] = "penguin"
    failing: bool = False
    asked: Counter[str] = field(default_factory=Counter)
    """How often a folder was listed, or an object in it read."""
    events: list[object] = field(default_factory=list)

    def __post_init__(self) -> None:
        asking = self

        class Counted(Reader):
            def get(self, path):
                asking.note(path)
                return super().get(path)

            def fetch(self, path):
                asking.note(path)
                return super().fetch(path)

            def objects(self, prefix="", *, after=None):
                asking.asked[f"list {prefix}"] += 1
                return super().objects(prefix, after=after)

        self.live = Live(self.program, version="0", seconds=self.clock.seconds)
        self.observer = Observer(
            joined(self.lake.blizzard, self.lake.penguin),
            self.live,
            self.program,
            clock=self.clock,
            opening=lambda place: Counted(place.uri, place.options),
            opening_table=lambda table: Counted(table.table_uri, table.storage_options),
            failed=self.events.append,
            monotonic=self.clock.seconds,
            patience=PATIENT,
        )
        self.api = Api(
            Answers(self.observer),
            version="0",
            emit=self.events.append,
        )

    def note(self, path: str) -> None:
        self.asked[path.rpartition("/")[0]] += 1
        if self.failing:
            raise StoreUnavailable("no answer", path=path)

    @property
    def reads(self) -> int:
        return sum(times for what, times in self.asked.items() if not what.startswith("list "))

    def get(self, path, query=""):
        answer = self.api.answer(Request(method="GET", path=path, query=query))
        return answer.status, json.loads(answer.body)


def answer(lake: LiveLake, path: str, query: str = "", **named: Any) -> Any:
    """Return what a page that has just been opened answers."""
    asking = Asking(lake, **named)
    try:
        status, found = asking.get(path, query)
    finally:
        asking.api.close()
    assert status == 200
    return found


@pytest.fixture
def lake(tmp_path):
    lake = LiveLake(tmp_path, names=("orders",))
    for number in range(3):
        lake.land("orders", f"{number}.ndjson", 2)
        lake.ingest("orders")
        lake.commit("orders")
    return lake


@pytest.fixture
def asking(lake):
    asking = Asking(lake)
    yield asking
    asking.api.close()


def test_a_store_that_does_not_answer_makes_things_unknown_and_never_a_500(asking):
    asking.failing = True
    status, found = asking.get("/api/v1/overview")
    assert status == 200
    (pipeline,), (table,) = found["pipelines"], found["tables"]
    assert (pipeline["state"], pipeline["health"]) == ("unknown", "failing")
    assert pipeline["problems"][0]["code"] == "store_unavailable"
    assert table["problems"][0]["code"] == "store_unavailable"
    assert table["waiting_entries"] is None
    for path in ("pipelines/orders/batches", "pipelines/orders/files", "tables/orders-t/versions"):
        status, found = asking.get(f"/api/v1/{path}")
        assert (status, found["error"]["code"]) == (503, "store_unavailable")
    status, found = asking.get("/api/v1/pipelines/orders")
    assert status == 200
    assert "cannot be read" in found["note"]


def test_a_table_that_is_asked_about_first_of_all_tells_what_waits_for_its_commit(lake, asking):
    lake.land("orders", "3.ndjson", 2)
    lake.ingest("orders")
    status, found = asking.get("/api/v1/tables/orders-t")
    assert (status, found["summary"]["waiting_entries"]) == (200, 1)


@pytest.mark.unbalanced("unreadable")
def test_an_entry_that_is_damaged_is_named_and_hides_no_other(lake):
    (lake.root / "orders-table" / journal_entry("orders", 2)).write_bytes(b"{")
    asking = Asking(lake)
    status, found = asking.get("/api/v1/overview")
    assert status == 200
    (problem, *_more) = found["pipelines"][0]["problems"]
    assert problem["code"] == "document_unreadable"
    status, found = asking.get("/api/v1/pipelines/orders/files", "search=ndjson")
    assert status in (200, 503)
    asking.api.close()


def test_a_table_whose_log_is_gone_is_not_there(lake):
    for version in range(4):
        (lake.root / "orders-table" / log_version(version)).unlink()
    assert answer(lake, "/api/v1/tables/orders-t")["summary"]["version"] is None


def test_a_fault_of_the_program_is_a_document_and_a_log_line_without_what_it_says(lake):
    def broken():
        raise RuntimeError(f"{CANARY} of a row")

    asking = Asking(lake)
    asking.observer.clock = Clock(seconds=broken)
    answer = asking.api.answer(Request(method="GET", path="/api/v1/overview"))
    assert answer.status == 500
    assert json.loads(answer.body)["error"]["code"] == "internal_error"
    assert CANARY.encode() not in answer.body
    (told,) = [one for one in asking.events if isinstance(one, ViewFailed)]
    assert CANARY not in told.sentence()
    assert "RuntimeError at test_live_trouble.py:" in told.sentence()
    asking.api.close()


def test_a_second_look_reads_what_is_new(lake, asking):
    for _ in range(2):
        asking.get("/api/v1/overview")
    # What lists sources reads, too, in threads of its own.
    asking.observer.settle(PATIENT.first)
    view = asking.observer.pipelines["orders"].view
    asking.asked.clear()
    view()
    idle = asking.reads
    lake.land("orders", "new.ndjson", 1)
    lake.ingest("orders")
    asking.asked.clear()
    view()
    # The entry, the log, the listing, and why a start would be refused.
    assert asking.reads <= idle + 4


def test_a_day_is_not_complete_beside_a_failure_that_is_newer_than_the_verdict(lake):
    ahead = [86_400.0]
    asking = Asking(lake, clock=Clock(seconds=lambda: time.time() + ahead[0]))

    def looks():
        ahead[0] += 20
        (pipeline,) = asking.observer.overview().pipelines
        asking.observer.settle(PATIENT.first)
        return pipeline.failed_files, pipeline.yesterday.complete

    assert [looks() for _ in range(3)][-1] == (0, True)
    broken = lake.root / "orders-in" / "broken.ndjson.gz"
    broken.write_bytes(b"\x1f\x8b nothing of gzip")
    lake.ingest("orders")
    told = [looks() for _ in range(4)]
    asking.api.close()
    assert (1, True) not in told
    assert told[-1] == (1, False)


def test_a_document_has_one_version_of_a_table(lake):
    ahead = [0.0]
    asking = Asking(lake, clock=Clock(seconds=lambda: time.time() + ahead[0]))

    def looks():
        (table,) = asking.observer.overview().tables
        asking.observer.settle(PATIENT.first)
        return table.version, table.rows

    assert looks()[0] == 3
    assert looks() == (3, 6)
    lake.land("orders", "new.ndjson", 1)
    lake.ingest("orders")
    lake.commit("orders")
    ahead[0] += ANSWER_SECS
    detail = Answers(asking.observer).table("orders-t")
    assert detail.summary.version == detail.recent_versions[0].version == 4
    assert (detail.summary.rows, detail.summary.size_version) in ((6, 3), (7, 4))
    asking.observer.settle(PATIENT.first)
    # The log of the overview may be older; the size is that of the version that it names.
    assert looks() in ((3, 6), (3, None), (4, 6), (4, 7))
    asking.api.close()


def test_a_table_that_no_entry_of_the_configuration_names_is_known_by_its_pipeline(lake):
    found = joined(lake.blizzard, None)
    assert found.tables["orders"].table_uri == lake.penguin.tables[0].table_uri
    assert found.table_of == {"orders": "orders"}
    assert "penguin" not in found.notes


STORED = Path("docs/openapi.json")
DOCUMENT = json.loads(STORED.read_text())
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
NAMES = {"pipelines": ("orders", "clicks"), "tables": ("orders-t", "clicks-t")}


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    lake = LiveLake(tmp_path_factory.mktemp("lake"))
    lake.fill()
    with lake.served() as (pages, _site, _emit):
        yield pages.url


def test_the_stored_document_is_the_one_that_is_served():
    assert STORED.read_text() == text(DOCUMENT["info"]["version"]), "run make openapi"


def test_every_operation_is_named_once():
    named = [one["get"]["operationId"] for one in DOCUMENT["paths"].values()]
    assert len(set(named)) == len(named)


PATHS = list(DOCUMENT["paths"])


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_validates_against_its_schema(path, url):
    operation = SCHEMA[path]["GET"]
    kind = path.split("/")[3] if "{name}" in path else None
    seen = set()
    names = st.sampled_from(NAMES[kind]) if kind else st.just("")

    @settings(
        max_examples=20,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(), name=names)
    def asks(case, name):
        # Made up names are refused; those that are there must be answered, too.
        if kind and case.path_parameters and len(case.path_parameters["name"]) % 2:
            case.path_parameters["name"] = name
        answer = case.call(base_url=url, timeout=300)
        case.validate_response(answer)
        assert answer.status_code != 500
        seen.add(answer.status_code)
        assert CANARY not in answer.text

    asks()
    assert 200 in seen
