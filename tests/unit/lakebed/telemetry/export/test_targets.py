"""Where traces and lineage go: the configuration first, then the standard variables."""

import pytest

from lakebed.telemetry.export.targets import ExportSettings

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
    ("variable", "value"),
    [("OTEL_SDK_DISABLED", "true"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
)
def test_variables_that_ask_for_something_else_are_not_used(variable: str, value: str):
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4317", variable: value}
    assert NOTHING.traces(environment) is None
