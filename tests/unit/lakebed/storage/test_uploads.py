"""Uploads that were never completed: where they can be seen, and what is said where they cannot."""

import sys
from datetime import UTC, datetime, timedelta

import pytest

from lakebed.errors import StoreDenied, StoreUnavailable
from lakebed.storage.aws.uploads import UploadsUnlisted, client_settings, last_written
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from tests.support.answering import Answering, error
from tests.support.s3 import options
from tests.support.stores import local

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def s3(place: Answering) -> Store:
    return Store("s3://lake/table", StorageOptions(options(place.address)))


def why(store: Store) -> str:
    """Return why uploads cannot be seen; every such sentence tells the way out."""
    found = store.open_uploads()
    assert isinstance(found, UploadsUnlisted)
    assert "AbortIncompleteMultipartUpload" in found.why
    return found.why


def test_a_local_disk_and_azure_have_none(tmp_path):
    assert local(tmp_path / "table").open_uploads() == ()
    azure = {"AZURE_STORAGE_ACCOUNT_NAME": "acc", "AZURE_SKIP_SIGNATURE": "true"}
    assert Store("az://lake/table", StorageOptions(azure)).open_uploads() == ()


def test_google_is_said_to_hide_them():
    assert "on Google Cloud Storage" in why(
        Store("gs://lake/table", StorageOptions({"GOOGLE_SKIP_SIGNATURE": "true"}))
    )


def test_without_botocore_the_sentence_says_what_to_install(place, monkeypatch):
    monkeypatch.setitem(sys.modules, "botocore", None)
    assert "pip install 'blizzard-penguin[aws]'" in why(s3(place))
    assert place.asked == []


def test_a_permission_that_is_missing_is_named_and_gc_goes_on(place):
    place.answer = lambda _asked: error(403, "AccessDenied")
    assert "[AccessDenied]: it takes s3:ListBucketMultipartUploads" in why(s3(place))
    with pytest.raises(StoreDenied, match="s3:AbortMultipartUpload"):
        s3(place).abort("a", "1")


def test_a_store_that_cannot_list_them_is_told(place):
    place.answer = lambda _asked: error(501, "NotImplemented")
    assert "cannot list unfinished uploads [NotImplemented]" in why(s3(place))


def test_other_trouble_is_an_error_and_not_an_empty_list(place):
    place.answer = lambda _asked: error(400, "InvalidArgument")
    with pytest.raises(StoreUnavailable, match=r"\[InvalidArgument\]") as found:
        s3(place).open_uploads()
    assert "canary" not in str(found.value)
    with pytest.raises(StoreUnavailable, match=r"\[InvalidArgument\]"):
        s3(place).abort("a", "1")


def test_uploads_of_the_table_alone_are_asked_for(place):
    place.answer = lambda _asked: error(501, "NotImplemented")
    s3(place).open_uploads()
    assert "prefix=table%2F" in place.asked[0].path


def test_an_upload_is_as_old_as_its_newest_part():
    assert last_written(NOON, ()) == NOON
    assert last_written(NOON, (NOON + 2 * HOUR, NOON + HOUR)) == NOON + 2 * HOUR


def test_the_client_reaches_the_store_that_the_options_mean():
    given = {
        "endpoint": "https://minio:9000",
        "region": "eu-west-1",
        "virtual_hosted_style_request": "true",
    }
    client = {"proxy_url": "http://proxy:1", "allow_invalid_certificates": "true"}
    assert client_settings(given, client) == {
        "region": "eu-west-1",
        "endpoint": "https://minio:9000",
        "verify": False,
        "s3": {"addressing_style": "virtual"},
        "proxies": {"http": "http://proxy:1", "https": "http://proxy:1"},
    }
    assert client_settings({}, {})["region"] == "us-east-1"
    assert client_settings({}, {})["verify"] is True
