"""Traces and lineage: where they go, how spans are written, and that work never waits for them."""

import base64
import json
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from lakebed.telemetry import export
from lakebed.telemetry.events import Event, ExportFailed, ExportResumed, Level
from lakebed.telemetry.export import (
    Courier,
    Span,
    TracedBatch,
    encoder,
    post,
)
from lakebed.telemetry.settings import ExportSettings, ExportTarget
from tests.support.ports import reserved_port
from tests.support.receiver import Receiver, receiving
from tests.support.waits import until

LONG = 300.0


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "PAUSE_SECS", 0.01)
    monkeypatch.setattr(export, "END_SECS", LONG)


def encode(items: Sequence[int]) -> bytes:
    return json.dumps({"items": list(items)}).encode()


def courier_to(receiver: Receiver, told: list[Event]) -> Courier[int]:
    target = ExportTarget(
        what="traces", url=f"{receiver.url}/here?key=hidden", headers={"x-key": "secret"}
    )
    return Courier(target, encode, told.append)


def test_what_is_handed_in_arrives_together_with_the_headers(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(export, "PAUSE_SECS", LONG)
    with receiving() as receiver:
        courier = courier_to(receiver, [])
        for number in range(5):
            courier.put(number)
        courier.close()
    (request,) = receiver.received
    assert request.document == {"items": [0, 1, 2, 3, 4]}
    assert request.path.startswith("/here")
    assert request.headers["X-Key"] == "secret"
    assert request.headers["Content-Type"] == "application/json"


def test_whoever_hands_in_never_waits_and_what_is_too_much_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
):
    """Neither the run nor its end: nothing has been delivered by then."""
    came, let_go = threading.Event(), threading.Event()
    delivered: list[bytes] = []

    def slow(_target: ExportTarget, body: bytes) -> None:
        came.set()
        assert let_go.wait(LONG)
        delivered.append(body)

    monkeypatch.setattr(export, "WAITING", 10)
    monkeypatch.setattr(export, "END_SECS", 0.1)
    courier = Courier(
        ExportTarget(what="traces", url="http://nowhere"), encode, print, together=1, send=slow
    )
    courier.put(0)
    assert came.wait(LONG)
    for number in range(1, 10_000):
        courier.put(number)
    courier.close()
    assert delivered == []
    let_go.set()
    until(lambda: len(delivered) >= 11)
    courier._thread.join(LONG)
    assert delivered == [encode([number]) for number in range(11)], "in hand, and what may wait"


def test_a_server_that_is_away_is_told_once_and_again_when_it_is_back():
    told: list[Event] = []
    with receiving(status=503) as receiver:
        courier = courier_to(receiver, told)
        for number in range(3):
            courier.put(number)
            until(lambda wanted=number + 1: len(receiver.received) >= wanted)  # type: ignore[misc]
        until(lambda: told)
        receiver.status = 200
        courier.put(9)
        until(lambda: len(told) == 2)
        courier.close()
    assert told[0] == ExportFailed(what="traces", reason="HTTP 503")
    assert isinstance(told[1], ExportResumed)
    assert told[1].lost == 3
    assert told[0].level is Level.WARN


@pytest.mark.parametrize("status", [302, 400, 401])
def test_no_redirect_is_followed(status: int):
    told: list[Event] = []
    with receiving(status=status) as receiver:
        courier = courier_to(receiver, told)
        courier.put(1)
        until(lambda: told)
        courier.close()
    assert len(receiver.received) == 1
    assert told == [ExportFailed(what="traces", reason=f"HTTP {status}")]


def test_nobody_listening_is_told_without_the_address_or_a_secret():
    told: list[Event] = []
    with reserved_port() as port:
        target = ExportTarget(
            what="traces", url=f"http://127.0.0.1:{port}/?key=hidden", headers={"x-key": "secret"}
        )
        courier = Courier(target, encode, told.append)
        courier.put(1)
        until(lambda: told)
        courier.close()
    assert told == [ExportFailed(what="traces", reason="Connection refused")]


def test_a_server_that_is_slow_takes_no_longer_than_it_may():
    with receiving(holds=threading.Event()) as receiver, pytest.raises(OSError, match="timed out"):
        post(ExportTarget(what="traces", url=receiver.url), b"{}", seconds=0.1)
    with receiving(status=500) as receiver, pytest.raises(OSError, match="HTTP 500"):
        post(ExportTarget(what="traces", url=receiver.url), b"{}")


BATCH = TracedBatch(pipeline="events", journal="j-1", entry=7)


def parsed(body: bytes) -> ExportTraceServiceRequest:
    """Read a request by OpenTelemetry's own definitions: an unknown field is an error.

    In JSON they write ids in hexadecimal, where the usual mapping has base64.
    """

    def usual(node: Any) -> Any:
        if isinstance(node, dict):
            return {
                key: base64.b64encode(bytes.fromhex(each)).decode()
                if key in ("traceId", "spanId", "parentSpanId")
                else usual(each)
                for key, each in node.items()
            }
        return [usual(each) for each in node] if isinstance(node, list) else node

    request = ExportTraceServiceRequest()
    ParseDict(usual(json.loads(body)), request)
    return request


def test_a_request_is_what_opentelemetry_defines():
    span = Span(
        trace=BATCH.trace,
        id=BATCH.span("run"),
        parent=BATCH.span("batch"),
        name="run",
        start=1_800_000_000.25,
        end=1_800_000_001.5,
        attributes={"text": "é", "whole": 3, "part": 0.5, "flag": True},
        error="it broke [code]",
    )
    request = parsed(encoder("blizzard")([span]))
    (of_resource,) = request.resource_spans
    assert [each.key for each in of_resource.resource.attributes] == [
        "service.name",
        "service.version",
        "telemetry.sdk.language",
    ]
    (of_scope,) = of_resource.scope_spans
    (found,) = of_scope.spans
    assert (of_scope.scope.name, found.name) == ("blizzard", "run")
    assert found.trace_id.hex() == BATCH.trace
    assert found.span_id.hex() == BATCH.span("run")
    assert found.parent_span_id.hex() == BATCH.span("batch")
    assert found.start_time_unix_nano == 1_800_000_000_250_000_000
    assert found.end_time_unix_nano == 1_800_000_001_500_000_000
    assert found.kind == ProtoSpan.SPAN_KIND_INTERNAL
    assert found.status.code == Status.STATUS_CODE_ERROR
    values = {each.key: each.value for each in found.attributes}
    assert values["text"].string_value == "é"
    assert values["whole"].int_value == 3
    assert values["part"].double_value == 0.5
    assert values["flag"].bool_value is True


def test_the_ids_of_a_batch_are_made_of_its_journal_and_number():
    again = TracedBatch(pipeline="events", journal="j-1", entry=7)
    assert (again.trace, again.span("batch")) == (BATCH.trace, BATCH.span("batch"))
    others = [
        TracedBatch(pipeline="events", journal="j-1", entry=8),
        TracedBatch(pipeline="events", journal="j-2", entry=7),
        TracedBatch(pipeline="other", journal="j-1", entry=7),
    ]
    assert len({BATCH.trace, *(each.trace for each in others)}) == 4
    assert (len(BATCH.trace), len(BATCH.span("batch"))) == (32, 16)


NOTHING = ExportSettings()


@pytest.mark.parametrize(
    "given", ["http://collector:4318", "http://collector:4318/", "http://collector:4318/v1/traces"]
)
def test_an_endpoint_is_a_base_or_the_whole_address(given: str):
    target = ExportSettings(otlp_endpoint=given, otlp_headers={"a": "b"}).traces({})
    assert target is not None
    assert (target.url, target.headers) == ("http://collector:4318/v1/traces", {"a": "b"})


def test_the_configuration_goes_before_the_environment():
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://other:4318"}
    target = ExportSettings(otlp_endpoint="http://own").traces(environment)
    assert target is not None
    assert target.url == "http://own/v1/traces"


def test_the_variables_of_opentelemetry_count_with_their_headers():
    target = NOTHING.traces(
        {
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318",
            "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20secret, x-tenant=blue",
        }
    )
    assert target is not None
    assert target.url == "http://collector:4318/v1/traces"
    assert target.headers == {"authorization": "Bearer secret", "x-tenant": "blue"}
    assert "secret" not in repr(target)
    own = NOTHING.traces({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector/own"})
    assert own is not None
    assert own.url == "http://collector/own"


@pytest.mark.parametrize(
    ("variable", "value"), [("OTEL_SDK_DISABLED", "true"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]
)
def test_variables_that_ask_for_something_else_are_not_used(variable: str, value: str):
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4317", variable: value}
    assert NOTHING.traces(environment) is None
