"""Locations as people write them: every usual form is understood, a wrong one is corrected."""

from collections.abc import Callable

import pytest

from lakebed.config.places import local, location, prefix, source_location
from lakebed.locations import openable, place_of

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
            "must have no port: write https://lake.s3.us-east-1.amazonaws.com/…",
        ),
        (
            "http://lake.s3.us-east-1.amazonaws.com:80/src",
            "must begin with https://: write https://lake.s3.us-east-1.amazonaws.com/…",
        ),
        ("s3://lake//src", "must not have two slashes in a row"),
        ("s3://lake/a//src/", "must not have two slashes in a row"),
        (
            "az://lake.blob.core.windows.net/c/in",
            "write abfss://c@lake.dfs.core.windows.net/in",
        ),
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


@pytest.mark.parametrize("check", [location, source_location, local])
@pytest.mark.parametrize("written", ["5", "-1", "1.5", "1e3", "2024", "true", "False"])
def test_a_number_is_no_path(check: Callable[[str], str], written: str) -> None:
    with pytest.raises(ValueError, match="must be a path or a URI, is a number or a flag"):
        check(written)
    assert check(f"./{written}") == f"./{written}"


@pytest.mark.parametrize("written", [".", "..", "2024-01-01", "5/in", "events5"])
def test_a_name_that_is_no_number_may_be_a_path(written: str) -> None:
    assert location(written) == written


@pytest.mark.parametrize("written", ["/data", "file:///data", "nfs://x"])
def test_a_prefix_is_that_of_a_store(written: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        prefix(written)
    assert prefix("S3://") == "s3://"
    assert prefix("s3a://lake/raw/") == "s3a://lake/raw"
