"""The API of the live page, over HTTP, on a lake with something of everything."""

import json
import threading

import pytest

from blizzard.events import BatchStarted, BatchStep, StageFinished, UnitReported
from lakebed.telemetry.events import NextStepDue, StepFailed, StepFinished
from lakebed.telemetry.health import PartKind
from lakebed.telemetry.metrics_server import live_page
from lakebed.telemetry.settings import Guard
from tests.support.live_lake import CANARY, LiveLake, asked
from tests.support.ports import reserved_pair

TOKEN = "a token of twenty-four".replace(" ", "-")
EVERYTHING = (
    "/api/v1/overview",
    "/api/v1/process",
    "/api/v1/pipelines/orders",
    "/api/v1/pipelines/orders/batches",
    "/api/v1/pipelines/orders/files?search=canary",
    "/api/v1/pipelines/orders/files",
    "/api/v1/pipelines/orders/file?path=default:2024/a2.ndjson",
    "/api/v1/pipelines/orders/file?path=2024/broken.ndjson.gz",
    "/api/v1/pipelines/orders/days",
    "/api/v1/pipelines/orders/throughput",
    "/api/v1/pipelines/orders/freshness",
    "/api/v1/tables/orders-t",
    "/api/v1/tables/orders-t/versions",
    "/api/openapi.json",
)


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    lake = LiveLake(tmp_path_factory.mktemp("lake"))
    lake.fill()
    return lake


@pytest.fixture(scope="module")
def served(lake):
    with lake.served() as (pages, _site, emit):
        yield pages, emit


@pytest.fixture
def pages(served):
    return served[0]


def pipeline(pages, name="orders"):
    found = asked(pages, f"/api/v1/pipelines/{name}")
    return found["summary"], found


@pytest.mark.parametrize("path", EVERYTHING)
def test_no_answer_holds_anything_of_the_data(pages, path):
    status, headers, body = pages.get(path)
    assert status == 200
    assert CANARY.encode() not in body
    assert headers["Cache-Control"] == "no-store"
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self';")
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"


def test_head_gives_the_headers_alone_and_nothing_can_be_written(pages):
    status, headers, body = pages.get("/api/v1/overview", method="HEAD")
    assert (status, body) == (200, b"")
    assert headers["Content-Type"] == "application/json"
    status, headers, body = pages.get("/api/v1/overview", method="POST")
    assert status == 405
    assert headers["Allow"] == "GET, HEAD"
    assert json.loads(body)["error"]["code"] == "method_not_allowed"


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/api/v1/overview?token=x", 400, "parameter_unknown"),
        ("/api/v1/pipelines/orders/batches?limit=0", 400, "parameter_invalid"),
        ("/api/v1/pipelines/orders/batches?limit=1&limit=2", 400, "parameter_repeated"),
        ("/api/v1/pipelines/orders/batches?before=-1", 400, "parameter_invalid"),
        ("/api/v1/pipelines/orders/files?search=%00", 400, "parameter_invalid"),
        ("/api/v1/pipelines/orders/file", 400, "parameter_missing"),
        ("/api/v1/pipelines/nobody", 404, "pipeline_unknown"),
        ("/api/v1/tables/orders", 404, "table_unknown"),
        ("/api/v1/pipelines/%2e%2e", 400, "name_invalid"),
        ("/api/v1/pipelines/..%2f..%2fetc", 400, "name_invalid"),
        ("/api/v1/pipelines/%ff", 400, "name_invalid"),
        ("/api/v1/pipelines/orders/file?path=../../etc/passwd", 404, "file_unknown"),
        ("/api/v1/pipelines/orders/file?path=default:a/../../b", 404, "file_unknown"),
        ("/api/v1/pipelines/orders/file?path=/etc/passwd", 404, "file_unknown"),
        ("/api/v1/pipelines/orders/file?path=file:///etc/passwd", 404, "file_unknown"),
        ("/api/v2/overview", 404, "not_found"),
    ],
)
def test_what_is_not_a_request_of_the_api_is_refused_with_a_document(pages, path, status, code):
    got, _headers, body = pages.get(path)
    assert (got, json.loads(body)["error"]["code"]) == (status, code)


@pytest.mark.parametrize(
    "path", ["/live/..%2fsite.py", "/live/../site.py", "/live/site.py", "/live/", "/liveview"]
)
def test_only_files_of_the_page_are_served(pages, path):
    assert pages.get(path)[0] == 404


def test_the_books_of_a_batch_and_the_version_that_has_it(pages):
    batches = asked(pages, "/api/v1/pipelines/orders/batches?limit=2")
    assert [one["entry"] for one in batches["batches"]] == [5, 4]
    older = asked(
        pages, f"/api/v1/pipelines/orders/batches?limit=2&before={batches['next_before']}"
    )
    third, second = older["batches"]
    assert (third["entry"], third["rows"], third["bad_lines"], third["lines"]) == (3, 12, 2, 14)
    assert third["balanced"]
    assert third["books"] == [
        {"label": "lines read", "value": 14},
        {"label": "rows written", "value": 12},
        {"label": "bad lines in quarantine", "value": 2},
    ]
    assert (third["committed_version"], second["committed_version"]) == (3, 2)
    assert batches["batches"][1]["committed_version"] is None


def test_a_pipeline_tells_what_failed_what_is_bad_and_what_lets_it_in(pages):
    summary, found = pipeline(pages)
    assert summary["state"] == "to_commit"
    assert summary["health"] == "warning"
    assert {one["code"] for one in summary["problems"]} == {
        "decompress_failed",
        "bad_lines_waiting",
    }
    assert (summary["failed_files"], summary["quarantined_lines"]) == (1, 3)
    (group,) = found["bad_lines"]
    assert (group["lines"], group["files"], group["field"]) == (3, 2, "id")
    way_out = group["way_out"]
    assert way_out["yaml"] is None or "on_mismatch: rescue" in way_out["yaml"]
    assert all(one.startswith("blizzard -c ") and " dlq " in one for one in way_out["commands"])
    (failed,) = found["failed"]
    assert failed["path"] == "default:2024/broken.ndjson.gz"
    assert failed["way_out"]["advice"]
    assert all(one.startswith("blizzard -c ") for one in failed["way_out"]["commands"])


def test_freshness_is_from_the_arrival_in_the_source_to_the_commit(pages):
    fresh = pipeline(pages)[0]["freshness"]
    assert fresh["measured_files"] == 3
    assert 0 < fresh["median_secs"] <= fresh["worst_secs"] < 600


def test_files_are_found_by_a_part_of_their_names_in_every_state(pages):
    found = asked(pages, "/api/v1/pipelines/orders/files?search=2024/")
    states = {one["path"].rpartition("/")[2]: one["state"] for one in found["files"]}
    assert states == {
        "broken.ndjson.gz": "failed",
        "late.ndjson": "journaled",
        "a2.ndjson": "in_table",
        "a1.ndjson": "in_table",
        "a0.ndjson": "in_table",
        "waits.ndjson": "waiting",
    }
    assert not found["more"]
    few = asked(pages, "/api/v1/pipelines/orders/files?search=2024/&limit=2")
    assert few["more"]
    assert len(few["files"]) == 2


def test_the_journey_of_a_file_is_the_answer_of_why(pages):
    found = asked(pages, "/api/v1/pipelines/orders/file?path=default:2024/a1.ndjson")
    assert found["state"] == "in_table"
    (read,) = found["read"]
    assert (read["rows"], read["quarantined"]) == (11, 1)
    assert (found["stored"]["path"], read["entry"], read["version"]) == ("2024/a1.ndjson", 2, 2)
    waits = asked(pages, "/api/v1/pipelines/orders/file?path=2024/waits.ndjson")
    assert (waits["state"], waits["read"]) == ("waiting", [])


@pytest.mark.parametrize("name", ["x" * 4000, f"2024/{'%C3%A9' * 200}"])
def test_a_name_that_no_file_can_have_is_missing(pages, name):
    found = asked(pages, f"/api/v1/pipelines/orders/file?path={name}")
    assert found["state"] == "missing"


def test_another_sites_name_reads_no_data(pages):
    for path in ("/", *EVERYTHING):
        status, _headers, body = pages.get(path, host="evil.example")
        assert (status, b"2024" in body) == (421, False)


def test_days_and_throughput_add_up_to_what_landed(pages):
    (today,) = asked(pages, "/api/v1/pipelines/orders/days")["days"]
    assert (today["landed"], today["in_table"], today["failed"], today["waiting"]) == (6, 3, 1, 1)
    series = asked(pages, "/api/v1/pipelines/orders/throughput?hours=2&points=4")
    assert sum(series["rows"]) == 38
    assert len(series["rows"]) == 4


def test_a_table_tells_its_versions_columns_and_changes(pages):
    found = asked(pages, "/api/v1/tables/orders-t")
    assert found["summary"]["version"] == 3
    assert found["summary"]["waiting_entries"] == 2
    assert [one["version"] for one in found["recent_versions"]] == [3, 2, 1, 0]
    assert found["schema_changes"][0]["what"] == "created with 2 columns"
    versions = asked(pages, "/api/v1/tables/orders-t/versions?limit=2&before=3")
    assert [one["version"] for one in versions["versions"]] == [2, 1]
    assert versions["next_before"] == 1
    empty = asked(pages, "/api/v1/tables/clicks-t")
    assert empty["summary"]["version"] is None


def test_what_runs_now_is_shown_while_it_runs(lake):
    with lake.served() as (pages, _site, emit):
        emit(
            BatchStarted(
                pipeline="clicks",
                entry=7,
                files=3,
                bytes=300,
                units=2,
                planned=(("u1", 2, 200), ("u2", 1, 100)),
            )
        )
        emit(UnitReported(pipeline="clicks", unit="u1", bytes_read=90, records=5, files_read=1))
        batch = pipeline(pages, "clicks")[0]["current_batch"]
        assert (batch["entry"], batch["files"]) == (7, 3)
        assert [one["state"] for one in batch["units"]] == ["running", "waiting"]
        assert {one["name"]: one["state"] for one in batch["stages"]} == {
            "discover": "done",
            "plan": "done",
            "run": "running",
            "journal": "waiting",
            "publish": "waiting",
            "commit": "waiting",
        }
        emit(StageFinished(pipeline="clicks", stage=BatchStep.RUN, seconds=1.0))
        emit(StepFailed(who="clicks", code="store_full", error="no space", next_try_secs=5.0))
        emit(NextStepDue(who="orders", seconds=30.0))
        overview = asked(pages, "/api/v1/overview")
        orders, clicks = overview["pipelines"]
        assert clicks["current_batch"] is None
        assert (clicks["state"], clicks["health"]) == ("failing", "failing")
        assert clicks["problems"][0]["message"] == "no space"
        assert orders["next_listing_at"] is not None


def test_an_error_that_nobody_foresaw_is_not_quoted(lake):
    with lake.served() as (pages, _site, emit):
        emit(StepFailed(who="clicks", code="internal_error", error=CANARY, next_try_secs=None))
        body = pages.get("/api/v1/overview")[2]
        assert CANARY.encode() not in body
        emit(StepFinished(who="clicks", found=True))


def test_data_needs_the_token_and_the_page_does_not(lake):
    with lake.served(guard=Guard(token=TOKEN)) as (pages, _site, _emit):
        status, headers, body = pages.get("/api/v1/overview")
        assert status == 401
        assert headers["WWW-Authenticate"] == "Bearer"
        assert json.loads(body)["error"]["code"] == "token_needed"
        assert b"orders" not in body
        assert pages.get("/api/openapi.json")[0] == 401
        assert pages.get("/")[0] in (200, 404)
        pages.token = TOKEN
        assert pages.get("/api/v1/overview")[0] == 200


def _lookers():
    """Threads that look at journals and tables; those that answer a request may end at any time."""
    return {each for each in threading.enumerate() if each.name == "live refresh"}


def test_nothing_is_looked_at_while_nobody_asks(lake):
    with lake.served() as (pages, site, emit):
        before = _lookers()
        emit(StepFinished(who="orders", found=False))
        pages.get("/metrics")
        assert site.requests == 0
        assert _lookers() <= before
        pages.get("/api/v1/overview")
        assert site.requests == 1


def test_either_program_serves_and_asks_the_other_for_its_part(tmp_path):
    with reserved_pair() as (blizzard, penguin):
        more = (
            f"metrics: {{enabled: true, blizzard_address: '127.0.0.1:{blizzard}', "
            f"penguin_address: '127.0.0.1:{penguin}', token: {TOKEN}}}\n"
        )
        lake = LiveLake(tmp_path, more=more)
        lake.land("orders", "a.ndjson", 3)
        lake.ingest("orders")
        with lake.served("blizzard") as (pages, _site, _emit):
            found = asked(pages, "/api/v1/overview")
            programs = {one["name"]: one for one in found["programs"]}
            assert not programs["penguin"]["reachable"]
            assert "no answer" in programs["penguin"]["note"]
        guard = Guard(token=TOKEN)
        with (
            lake.served("penguin", guard=guard, port=penguin) as (_pages, _site, of_penguin),
            lake.served("blizzard", guard=guard) as (pages, _site2, _emit),
        ):
            of_penguin(
                StepFailed(
                    who="orders-t",
                    code="store_full",
                    error="no space",
                    next_try_secs=1.0,
                    kind=PartKind.TABLE,
                )
            )
            pages.token = TOKEN
            found = asked(pages, "/api/v1/overview")
            assert all(one["reachable"] for one in found["programs"])
            orders = next(one for one in found["tables"] if one["name"] == "orders-t")
            assert (orders["state"], orders["waiting_entries"]) == ("failing", 1)


def test_history_survives_a_restart(lake):
    shown = []
    for _ in range(2):
        with lake.served("penguin") as (pages, _site, _emit):
            found = asked(pages, "/api/v1/pipelines/orders")
            shown.append((found["recent_batches"], found["summary"]["freshness"]["median_secs"]))
    assert shown[0] == shown[1]


def test_the_page_can_be_turned_off(tmp_path):
    lake = LiveLake(tmp_path)
    on = lake.blizzard
    text = lake.file.read_text().replace("enabled: true", "enabled: true, page: false")
    lake.file.write_text(text)
    off = lake.blizzard
    assert live_page("blizzard", on, [lake.file], [], []) is not None
    assert live_page("blizzard", off, [lake.file], [], []) is None
