"""Spans are written as OTLP says, and the trace of a batch is the same for both programs."""

import base64
import json
from typing import Any

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from lakebed.telemetry.export.spans import Span, TracedBatch, encoder

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
        parent=BATCH.root,
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
    assert found.parent_span_id.hex() == BATCH.root
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
    assert (again.trace, again.root) == (BATCH.trace, BATCH.root)
    others = [
        TracedBatch(pipeline="events", journal="j-1", entry=8),
        TracedBatch(pipeline="events", journal="j-2", entry=7),
        TracedBatch(pipeline="other", journal="j-1", entry=7),
    ]
    assert len({BATCH.trace, *(each.trace for each in others)}) == 4
    assert (len(BATCH.trace), len(BATCH.root)) == (32, 16)
