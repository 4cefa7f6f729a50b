"""Traces and lineage of runs of both programs, received on the loopback."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

import blizzard.cli.app as blizzard_cli
import penguin as penguin_package
import penguin.cli.app as penguin_cli
from blizzard.cli.surroundings import Surroundings as BlizzardSurroundings
from blizzard.config.load import load
from blizzard.listeners import exporting
from lakebed.telemetry.events import Event
from penguin.cli.run import PenguinSurroundings
from tests.support.builders import ndjson, put, rows
from tests.support.ports import reserved_port
from tests.support.receiver import Receiver, receiving
from tests.support.runner import inside
from tests.support.waits import Hurry

HEADERS = {"authorization": "Bearer a-token-of-the-test"}


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_SERVICE_NAME"):
        monkeypatch.delenv(name, raising=False)
    with receiving() as found:
        yield found


def config(tmp_path: Path, telemetry: dict[str, Any], commit: str = "penguin") -> Path:
    put(tmp_path / "in", "a.ndjson", ndjson(rows(3)))
    document = {
        "source": {"path": str(tmp_path / "in")},
        "sink": {"path": str(tmp_path / "table"), "commit": commit},
        "schema": {"fields": [{"name": "id", "type": "int64"}, {"name": "name", "type": "string"}]},
        "tables": {"events": {"table_uri": str(tmp_path / "table")}},
        "telemetry": telemetry,
    }
    file = tmp_path / "lake.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


def blizzard(file: Path) -> Result:
    around = BlizzardSurroundings(make_runner=inside, stop=Hurry(), listen=lambda *_given: None)
    done = CliRunner().invoke(blizzard_cli.app, ["-c", str(file), "--once"], obj=around)
    assert done.exit_code == 0, done.output
    return done


def penguin(file: Path) -> Result:
    around = PenguinSurroundings(stop=Hurry(), listen=lambda *_given: None)
    done = CliRunner().invoke(penguin_cli.app, ["-c", str(file), "--once"], obj=around)
    assert done.exit_code == 0, done.output
    return done


def names(receiver: Receiver) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for span in receiver.spans:
        found.setdefault(span["service"], set()).add(span["name"])
    return found


def test_a_batch_and_its_commit_are_one_trace(tmp_path: Path, receiver: Receiver):
    file = config(tmp_path, {"otlp_endpoint": receiver.url, "otlp_headers": HEADERS})
    blizzard(file)
    penguin(file)
    assert names(receiver) == {
        "blizzard": {"batch", "discover", "plan", "run", "journal", "publish"},
        "penguin": {"penguin", "poll", "read", "commit"},
    }
    assert len({span["traceId"] for span in receiver.spans}) == 1
    ids = {span["spanId"] for span in receiver.spans}
    assert {span["parentSpanId"] for span in receiver.spans if "parentSpanId" in span} <= ids
    assert {each.path for each in receiver.received} == {"/v1/traces"}
    assert {each.headers["Authorization"] for each in receiver.received} == set(HEADERS.values())


def test_an_inline_commit_is_in_the_trace_too(tmp_path: Path, receiver: Receiver):
    blizzard(config(tmp_path, {"otlp_endpoint": receiver.url}, commit="inline"))
    (found,) = names(receiver).values()
    assert {"batch", "publish", "penguin", "commit"} <= found
    assert len({span["traceId"] for span in receiver.spans}) == 1


@pytest.mark.parametrize("by_variable", [False, True])
def test_a_commit_from_python_is_in_the_trace_of_its_batch(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, by_variable: bool
):
    """The standard variables are as good as a section."""
    telemetry = {} if by_variable else {"otlp_endpoint": receiver.url, "otlp_headers": HEADERS}
    if by_variable:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
        monkeypatch.setenv("OTEL_SERVICE_NAME", "lake")
    blizzard(config(tmp_path, telemetry))
    penguin_package.commit(str(tmp_path / "table"), telemetry=telemetry or None)
    found = names(receiver)
    if by_variable:
        assert {"batch", "penguin", "poll", "read", "commit"} <= found["lake"]
    else:
        assert found["penguin"] == {"penguin", "poll", "read", "commit"}
        assert {each.headers["Authorization"] for each in receiver.received} == {*HEADERS.values()}
    assert len({span["traceId"] for span in receiver.spans}) == 1


def test_telemetry_given_in_python_is_checked_as_a_section(tmp_path: Path):
    with pytest.raises(
        penguin_package.ConfigInvalid, match=r"telemetry\.otlp_endpiont: unknown key"
    ):
        penguin_package.commit(str(tmp_path), telemetry={"otlp_endpiont": "http://host"})


def test_lineage_is_told_with_its_namespace(tmp_path: Path, receiver: Receiver):
    file = config(
        tmp_path,
        {
            "openlineage_url": receiver.url,
            "openlineage_headers": HEADERS,
            "openlineage_namespace": "night",
        },
    )
    blizzard(file)
    assert [each["eventType"] for each in receiver.documents] == ["START", "COMPLETE"]
    assert {each.path for each in receiver.received} == {"/api/v1/lineage"}
    assert receiver.documents[1]["job"]["namespace"] == "night"
    (output,) = receiver.documents[1]["outputs"]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 3
    assert [each["name"] for each in output["facets"]["schema"]["fields"]][:2] == ["id", "name"]


def test_an_endpoint_that_does_not_answer_is_told_and_fails_nothing(tmp_path: Path):
    with reserved_port() as port:
        away = f"http://127.0.0.1:{port}"
        telemetry = {
            "otlp_endpoint": away,
            "openlineage_url": away,
            "openlineage_headers": {"authorization": "Bearer a-token-of-the-test"},
        }
        done = blizzard(config(tmp_path, telemetry))
    assert "traces cannot be delivered: Connection refused" in done.output
    assert "lineage cannot be delivered" in done.output
    assert "a-token-of-the-test" not in done.output


def test_nothing_listens_where_nothing_is_configured(tmp_path: Path):
    settings = load([config(tmp_path, {})], [], {})
    told: list[Event] = []
    emit = told.append
    with exporting(settings, emit, {}) as listened:
        assert listened == emit


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("otlp_endpoint", "collector:4317", "must be a URL that begins with http"),
        ("openlineage_url", "https://user:pass@host", "must not contain a password"),
        ("otlp_endpiont", "http://host", "unknown key"),
    ],
)
def test_what_cannot_be_an_address_is_refused_in_words(
    tmp_path: Path, key: str, value: str, says: str
):
    file = config(tmp_path, {key: value})
    done = CliRunner().invoke(penguin_cli.app, ["-c", str(file), "--once"])
    assert done.exit_code == 2
    assert says in done.output
    assert "pass@" not in done.output
