"""E-tags as they are compared: one of a listing with one of another answer."""

from datetime import UTC, datetime

import pytest

from lakebed.storage.objects import facts_of


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ('"0x8DC1A2B3C4D5E6F"', "0x8DC1A2B3C4D5E6F"),
        ("0x8DC1A2B3C4D5E6F", "0x8DC1A2B3C4D5E6F"),
        ('"9b2cf535f27731c974343645a3985328-2"', '"9b2cf535f27731c974343645a3985328-2"'),
        ('"0f343b0931126a20f133d67c2b018a3b"', '"0f343b0931126a20f133d67c2b018a3b"'),
        (None, None),
    ],
)
def test_only_the_quotes_of_azure_are_left_out(given, kept):
    when = datetime(2024, 1, 1, tzinfo=UTC)
    meta = {"path": "a", "size": 1, "e_tag": given, "last_modified": when}
    assert facts_of(meta).etag == kept
