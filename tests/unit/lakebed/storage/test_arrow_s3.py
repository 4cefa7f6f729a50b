"""Arrow's S3 client is set as the store's own."""

from typing import Any

import pytest

from lakebed.errors import StoreUnavailable
from lakebed.storage.options import StorageOptions
from lakebed.storage.unusable_names import can_name, client, names

KEYS = {"AWS_ACCESS_KEY_ID": "k", "aws_secret_access_key": "s"}


@pytest.mark.parametrize(
    ("options", "environment", "settings"),
    [
        ({}, {}, {}),
        (KEYS, {}, {"access_key": "k", "secret_key": "s"}),
        (
            {**KEYS, "AWS_SESSION_TOKEN": "t"},
            {},
            {"access_key": "k", "secret_key": "s", "session_token": "t"},
        ),
        ({"region": "eu"}, {"AWS_REGION": "us", "REGION": "x"}, {"region": "eu"}),
        ({"AWS_ENDPOINT": "http://h:9/"}, {}, {"endpoint_override": "h:9", "scheme": "http"}),
        ({"AWS_SKIP_SIGNATURE": "true"}, {}, {"anonymous": True}),
        ({"aws_virtual_hosted_style_request": "true"}, {}, {"force_virtual_addressing": True}),
    ],
)  # fmt: skip
def test_options_and_environment_mean_what_they_mean_to_the_store(
    options: dict[str, str], environment: dict[str, str], settings: dict[str, Any]
) -> None:
    assert client(options, environment) == {"region": "us-east-1", **settings}


def test_only_s3_is_read_so() -> None:
    assert can_name("s3://b/x")
    assert not can_name("gs://b/x")
    assert not can_name("/x")


def test_trouble_is_an_error_and_never_fewer_names() -> None:
    """W23."""
    place = {"AWS_ENDPOINT": "http://127.0.0.1:1", "AWS_ALLOW_HTTP": "true"}
    options = {**KEYS, **place, "AWS_REGION": "us-east-1"}
    with pytest.raises(StoreUnavailable, match="cannot be read"):
        names("s3://b/x", "", StorageOptions(options))
