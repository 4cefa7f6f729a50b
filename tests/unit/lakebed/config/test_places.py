"""Locations and addresses as people write them: understood, corrected, or refused."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

import blizzard.config.load
import penguin.config.load
from lakebed.config.section import location, prefix, source_location
from lakebed.locations import openable, place_of
from lakebed.telemetry.metrics_server import observed
from tests.support.ports import reserved_pair
from tests.support.scrape import Pages

AZURE = "abfss://c@lake.dfs.core.windows.net/in"
FORMS = [
    ("s3://b/in", "s3://b/in", "s3://b/in"),
    ("s3a://b/in", "s3://b/in", "s3a://b/in"),
    ("s3n://b/in", "s3://b/in", "s3://b/in"),
    ("https://b.s3.eu-west-1.amazonaws.com/in/", "s3://b/in", "s3://b/in"),
    ("https://b.s3-eu-west-1.amazonaws.com/in", "s3://b/in", "s3://b/in"),
    ("https://b.s3.amazonaws.com/in", "s3://b/in", "s3://b/in"),
    ("https://s3.eu-west-1.amazonaws.com/b/in", "s3://b/in", "s3://b/in"),
    ("https://s3.amazonaws.com/b/in", "s3://b/in", "s3://b/in"),
    ("https://b.c.s3.dualstack.eu-west-1.amazonaws.com/in", "s3://b.c/in", "s3://b.c/in"),
    ("gs://b/in", "gs://b/in", "gs://b/in"),
    ("gcs://b/in", "gs://b/in", "gs://b/in"),
    ("https://storage.googleapis.com/b/in", "gs://b/in", "gs://b/in"),
    ("https://storage.cloud.google.com/b/in", "gs://b/in", "gs://b/in"),
    ("https://b.storage.googleapis.com/in", "gs://b/in", "gs://b/in"),
    ("az://c/in", "az://c/in", "az://c/in"),
    ("azure://c/in", "az://c/in", "az://c/in"),
    ("adl://c/in", "az://c/in", "az://c/in"),
    (AZURE, "az://c@lake/in", AZURE),
    ("abfs://c@lake.dfs.core.windows.net/in", "az://c@lake/in", None),
    ("abfss://c@lake/in", "az://c@lake/in", AZURE),
    ("wasbs://c@lake.blob.core.windows.net/in", "az://c@lake/in", AZURE),
    ("wasb://c@lake.blob.core.windows.net/in", "az://c@lake/in", AZURE),
    ("https://lake.blob.core.windows.net/c/in", "az://c@lake/in", AZURE),
    ("https://lake.dfs.core.windows.net/c/in", "az://c@lake/in", AZURE),
    ("file:///data/in", "/data/in", "file:///data/in"),
]


@pytest.mark.parametrize(("written", "canonical", "opened"), FORMS)
def test_every_usual_form_is_understood(written: str, canonical: str, opened: str | None) -> None:
    """HOLES L26: one place whatever its spelling, which is kept for people to see."""
    kept = location(written)
    assert kept == written.rstrip("/")
    assert str(place_of(kept)) == canonical
    assert openable(kept) == (opened or kept)
    assert place_of(openable(kept)).same(place_of(kept))


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("s3:/b/in", "must have two slashes after s3:, as in s3://"),
        ("gs:b", "must have two slashes after gs:"),
        ("s4://b/in", "did you mean s3://?"),
        ("S3E://b", "did you mean s3://?"),
        ("abffs://c@a.dfs.core.windows.net", "did you mean abfss://?"),
        ("hdfs://host/x", "must be a local path or start with one of file://, s3://"),
        (
            "http://minio:9000/b/in",
            "write s3://bucket/folder, and set AWS_ENDPOINT: http://minio:9000 and AWS_ALLOW_HTTP",
        ),
        (
            "https://minio:9000/b/in",
            "write s3://bucket/folder, and set AWS_ENDPOINT: https://minio:9000 in storage_options",
        ),
        ("https://s3.eu-west-1.amazonaws.com/", "is not the address of a bucket"),
        (
            "https://lake.s3.us-east-1.amazonaws.com:443/src",
            "of a container of Azure (https://, without a port); for another store",
        ),
        (
            "http://lake.s3.us-east-1.amazonaws.com:80/src",
            "of a container of Azure (https://, without a port); for another store",
        ),
        ("s3://lake//src", "must not have two slashes in a row"),
        ("s3://lake/a//src/", "must not have two slashes in a row"),
        ("https://lake.blob.core.windows.net/c/in?sig=canary", "must not hold ? or #"),
        ("http://me:canary@minio/b", "AWS_ENDPOINT: http://minio and"),
        ("https://me:canary@minio/b", "must not hold a password"),
        ("https://canary@minio/b", "must not hold a key"),
        ("s3://canary@bucket/in", "must not hold a key"),
        ("gs://canary@bucket/in", "must not hold a key"),
    ],
)
@pytest.mark.parametrize("check", [location, source_location])
def test_a_wrong_form_is_answered_with_the_right_one(check, written: str, says: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        check(written)
    assert says in str(refused.value)
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize("written", ["/data", "file:///data", "nfs://x"])
def test_a_prefix_is_that_of_a_store(written: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        prefix(written)
    assert prefix("S3://") == "s3://"
    assert prefix("s3a://lake/raw/") == "s3a://lake/raw"


PIPELINE = {
    "source": {"path": "/in"},
    "sink": {"path": "/table"},
    "schema": {"fields": [{"name": "id", "type": "string"}]},
}
INLINE = {**PIPELINE, "sink": {"path": "/table", "commit": "inline"}}
TABLES = {"tables": {"events": {"table_uri": "/table"}}}
FREE = "0.0.0.0:0"


def addresses(tmp_path: Path, document: dict[str, Any], **metrics: object) -> dict[str, str | None]:
    """Return the address of each program that can use a document."""
    file = tmp_path / "both.yaml"
    file.write_text(yaml.safe_dump({**document, "metrics": {"enabled": True, **metrics}}))
    found: dict[str, str | None] = {}
    if "source" in document:
        found["blizzard"] = blizzard.config.load.load([file], [], {}).metrics_address
    if "tables" in document:
        found["penguin"] = penguin.config.load.load([file], [], {}).metrics_address
    return found


BOTH = {**PIPELINE, **TABLES}


@pytest.mark.parametrize(
    ("document", "metrics", "expected"),
    [
        (BOTH, {}, ("127.0.0.1:9090", "127.0.0.1:9091")),
        (BOTH, {"address": "0.0.0.0:9091"}, ("0.0.0.0:9090", "0.0.0.0:9091")),
        (BOTH, {"address": "[::1]:8001"}, ("[::1]:8000", "[::1]:8001")),
        (BOTH, {"address": FREE}, (FREE, FREE)),
        (BOTH, {"blizzard_address": "h:1"}, ("h:1", "127.0.0.1:9091")),
        (BOTH, {"address": "h:5", "blizzard_address": "h:9"}, ("h:9", "h:5")),
        (BOTH, {"address": "h:5", "penguin_address": "h:9"}, ("h:4", "h:9")),
        (BOTH, {"address": "h:1", "blizzard_address": "h:2"}, ("h:2", "h:1")),
        ({**INLINE, **TABLES}, {"address": "0.0.0.0:9090"}, ("0.0.0.0:9090", "0.0.0.0:9090")),
        (PIPELINE, {"address": "0.0.0.0:9090"}, ("0.0.0.0:9090",)),
        (TABLES, {"address": "0.0.0.0:9091"}, ("0.0.0.0:9091",)),
        (TABLES, {"penguin_address": "h:7", "address": "h:8"}, ("h:7",)),
    ],
)
def test_a_port_is_known_before_either_program_runs(
    tmp_path: Path, document: dict[str, Any], metrics: dict[str, str], expected: tuple[str, ...]
):
    """HOLES W31: one file for both programs gives each a port of its own, by rule."""
    assert tuple(addresses(tmp_path, document, **metrics).values()) == expected


def test_both_programs_of_one_file_serve_at_the_same_time(tmp_path: Path):
    """HOLES W31: the second to start does not die."""
    with reserved_pair() as (lower, upper), ExitStack() as stack:
        found = addresses(tmp_path, BOTH, address=f"127.0.0.1:{upper}")
        assert found == {"blizzard": f"127.0.0.1:{lower}", "penguin": f"127.0.0.1:{upper}"}
        for address in found.values():
            pages = Pages()
            stack.enter_context(
                observed(pages.log, address=address, specs=(), parts={}, seconds=lambda: 0.0)
            )
            assert pages.url == f"http://{address}"
            assert pages.health()[0] == 200


def test_a_port_that_somebody_else_has_is_told_with_the_key_to_change(tmp_path: Path):
    """HOLES W31: also where no key names it, because the rule does."""
    file = tmp_path / "both.yaml"
    metrics = {"enabled": True, "address": "0.0.0.0:9091"}
    file.write_text(yaml.safe_dump({**BOTH, "metrics": metrics}))
    assert blizzard.config.load.load([file], [], {}).metrics_key == "metrics.blizzard_address"
    assert penguin.config.load.load([file], [], {}).metrics_key == "metrics.address"
